// Requests to the server this page came from. An answer that is no longer wanted is cancelled.

let token = sessionStorage.getItem("recollect-token") || "";
let askToken = null;

export class Refusal extends Error {
  constructor(error) {
    super(error.message);
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
    sessionStorage.setItem("recollect-token", token);
    return ask(call, given, signal);
  }
  const body = await answer.json();
  if (body.error) throw new Refusal(body.error);
  return body;
}

// Events over fetch, not EventSource: that one cannot send a token.
export async function listen(hear) {
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
          if (data) hear(JSON.parse(data.slice(6)));
        }
      }
    } catch {
      // The server went away; it may come back.
    }
    await new Promise((resume) => setTimeout(resume, 3000));
  }
}

// One question at a time: a newer one cancels the one before it.
export function latest() {
  let running = null;
  return async (call, given) => {
    running?.abort();
    const own = (running = new AbortController());
    try {
      return await ask(call, given, own.signal);
    } catch (error) {
      if (own.signal.aborted) return null;
      throw error;
    }
  };
}
