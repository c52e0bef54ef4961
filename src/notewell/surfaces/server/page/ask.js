// Requests to the server of this page. A request that is no longer needed is cancelled.

// The server makes a key for each of its runs. Only that is kept here: it is worth nothing once the server
// has ended, when another user could listen on its port and read what this browser keeps for the address.
export const KEPT = "notewell-key";

let key = localStorage.getItem(KEPT) || "";
let askToken = null;
let asking = null;

export class Refusal extends Error {
  constructor(error) {
    super(error.message);
    this.code = error.code || "";
    this.hint = error.hint || "";
  }
}

// What to do where the server asks for its token: it is over when somebody has given one.
export function onTokenNeeded(ask) {
  askToken = ask;
}

// Gives a token, or an address that ends in one, for the key. Returns what was wrong.
export async function unlock(text) {
  const token = text.split("#token=").at(-1).trim();
  try {
    const headers = { Authorization: `Bearer ${token}` };
    const answer = await fetch("/api/key", { method: "POST", headers });
    if (answer.status === 401) return "That is not the token of this server as it runs now.";
    if (answer.ok) {
      key = (await answer.json()).key;
      localStorage.setItem(KEPT, key);
      return "";
    }
  } catch {
    // It has gone, or the token has letters that no header can hold.
  }
  return "The server did not answer. Check that notewell serve is still running.";
}

// Another tab may have been given the key of the server since.
async function renewed(used) {
  key = localStorage.getItem(KEPT) || "";
  if (key !== used) return;
  asking ||= askToken().finally(() => {
    asking = null;
  });
  await asking;
}

async function send(path, options = {}) {
  for (;;) {
    const used = key;
    const headers = { ...options.headers };
    if (used) headers.Authorization = `Bearer ${used}`;
    const answer = await fetch(path, { ...options, headers });
    if (answer.status !== 401 || !askToken) return answer;
    await renewed(used);
  }
}

export async function ask(call, given, signal) {
  const headers = { "Content-Type": "application/json" };
  const sent = { method: "POST", headers, body: JSON.stringify(given), signal };
  const answer = await send(`/api/${call}`, sent);
  const body = await answer.json();
  if (body.error) throw new Refusal(body.error);
  return body;
}

// Events over fetch, because EventSource cannot send a token.
export async function listen(receive) {
  for (;;) {
    try {
      const answer = await send("/api/events");
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
