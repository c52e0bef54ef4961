// notewell for opencode (1.18 and later, and 2): a brief at the start, recall for each prompt, the conversation kept.
import { spawn } from "node:child_process";
import { homedir } from "node:os";

const COMMAND = ["notewell"];
const WORKSPACE = "";

/** Runs `notewell hook` and returns the text it has for the model; empty if there is none in time. It never throws. */
function hook(event, told, limitMs) {
  const fixed = WORKSPACE ? ["--workspace", WORKSPACE] : [];
  return new Promise((resolve) => {
    let out = "";
    const given = [...COMMAND.slice(1), "hook", event, "--host", "opencode", ...fixed];
    // On Windows a program is looked for in the folder first in which it is to run: not in the project.
    const child = spawn(COMMAND[0], given, { stdio: ["pipe", "pipe", "ignore"], cwd: homedir() });
    const timer = setTimeout(() => child.kill("SIGKILL"), limitMs); // spawn's own would go on if there is no such program
    const done = () => { clearTimeout(timer); try { resolve(JSON.parse(out).context ?? ""); } catch { resolve(""); } };
    child.once("error", done).once("close", done);
    child.stdin.on("error", () => {});
    child.stdout.on("data", (data) => { out += data; });
    child.stdin.end(JSON.stringify(told));
  });
}

/** What sessions were told: recall starts when a prompt arrives and is waited for when the model is asked. */
class Sessions {
  constructor(folder) { Object.assign(this, { folder, begun: new Set(), recalled: new Map() }); }
  told(session, rest) { return { session_id: session, cwd: this.folder, ...rest }; }
  ask(session, prompt) {
    const first = !this.begun.has(session) && this.begun.add(session);
    this.recalled.set(session, Promise.all([
      first ? hook("session-start", this.told(session, { source: "startup" }), 8_000) : "",
      prompt.trim() ? hook("prompt", this.told(session, { prompt }), 5_000) : "",
    ]).then((texts) => texts.filter(Boolean).join("\n\n")));
  }
  async text(session) { return (await this.recalled.get(session)) ?? ""; }
  keep(event, session) { return hook(event, this.told(session, {}), 20_000); }
  end(session) {
    this.begun.delete(session);
    this.recalled.delete(session);
    return this.keep("session-end", session);
  }
}

/** opencode 1: a function that returns hooks. */
async function server({ directory }) {
  const sessions = new Sessions(directory);
  return {
    "chat.message": async ({ sessionID }, { parts }) => {
      sessions.ask(sessionID, parts.filter((one) => one.type === "text" && !one.synthetic).map((one) => one.text).join("\n"));
    },
    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      const text = sessionID && (await sessions.text(sessionID));
      if (text) output.system.push(text);
    },
    "experimental.session.compacting": async ({ sessionID }) => { await sessions.keep("compact", sessionID); },
    event: async ({ event }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id;
      if (event.type === "session.idle") await sessions.keep("stop", session);
      if (event.type === "session.deleted") await sessions.end(session);
    },
  };
}

/** opencode 2: a function that registers hooks. */
async function setup(ctx) {
  const sessions = new Sessions(process.cwd());
  await ctx.session.hook("prompt", (event) => { sessions.ask(event.sessionID, event.prompt?.text ?? ""); });
  await ctx.session.hook("context", async (event) => {
    const text = await sessions.text(event.sessionID);
    if (text) event.system.push({ type: "text", text });
  });
  await ctx.session.hook("compaction", async (event) => { await sessions.keep("compact", event.sessionID); });
  return async () => { await Promise.all([...sessions.begun].map((one) => sessions.end(one))); };
}

export default { id: "notewell", server, setup };
