// Requests to the server of this page. A request that is no longer needed is cancelled.

let token = sessionStorage.getItem("notewell-token") || "";
let askToken = null;

export class Refusal extends Error {
  constructor(error) {
    super(error.message);
    this.code = error.code || "";
    this.hint = error.hint || "";
  }
}

export function onTokenNeeded(ask) {
  askToken = ask;
}

export async function ask(call, given, signal) {
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const answer = await fetch(`/api/${call}`, { method: "POST", headers, body: JSON.stringify(given), signal });
  if (answer.status === 401 && askToken) {
    token = await askToken();
    sessionStorage.setItem("notewell-token", token);
    return ask(call, given, signal);
  }
  const body = await answer.json();
  if (body.error) throw new Refusal(body.error);
  return body;
}

// Events over fetch, because EventSource cannot send a token.
export async function listen(receive) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  for (;;) {
    try {
      const answer = await fetch("/api/events", { headers });
      if (!answer.ok) return;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) {
          const data = part.split("\n").find((line) => line.startsWith("data: "));
          if (data) receive(JSON.parse(data.slice(6)));
        }
      }
    } catch {
      // The server has gone; it may come back.
    }
    await new Promise((resume) => setTimeout(resume, 3000));
  }
}

// The newest question only. One that is under way may finish, so that a fast typist sees answers; one that takes too
// long is cancelled. Of those that wait, the last is asked; the others get null.
export function newest(patience_ms = 150) {
  let running = null;
  let last = null;
  return async (call, given) => {
    const turn = (last = Symbol(call));
    if (running) await Promise.race([running.done, new Promise((resume) => setTimeout(resume, patience_ms))]);
    if (last !== turn) return null;
    running?.own.abort();
    const own = new AbortController();
    const answer = ask(call, given, own.signal);
    const under = (running = { own, done: answer.catch(() => null) });
    try {
      return await answer;
    } catch (error) {
      if (own.signal.aborted) return null;
      throw error;
    } finally {
      if (running === under) running = null;
    }
  };
}
