// Drives the OpenClaw plugin as its host does, with a host that is a few objects; prints what came of each step.
import { pathToFileURL } from "node:url";

const [plugin, command, workspace, consent] = process.argv.slice(2);
const made = { tools: {}, hooks: {}, cli: {} };
const api = {
  pluginConfig: { command: JSON.parse(command) },
  config: { plugins: { entries: { "memory-notewell": { hooks: { allowConversationAccess: consent === "yes" } } } } },
  runtime: { agent: { resolveAgentWorkspaceDir: () => workspace } },
  registerMemoryCapability: (one) => { made.memory = one; },
  registerTool: (tool, { names }) => { made.tools[names[0]] = tool; },
  registerCli: (fill) => { made.fill = fill; },
  on: (name, run) => { made.hooks[name] = run; },
};
const entry = (await import(pathToFileURL(plugin))).default;
entry.register(api);
const tool = async (name, given, ctx = {}) => JSON.parse((await made.tools[name](ctx).execute("1", given)).content[0].text);
const alive = (pid) => { try { process.kill(pid, 0); return true; } catch { return false; } };
const manager = async () => (await made.memory.runtime.getMemorySearchManager({ cfg: {}, agentId: "main" })).manager;

const verbs = {};
const verb = (name) => {
  const one = { description: () => one, option: () => one, action: (run) => { verbs[name.split(" ")[0]] = run; return one; } };
  return one;
};
made.fill({ program: { command: () => ({ description: () => ({ command: verb }) }) }, config: {} });

const steps = {
  names: () => ({ id: entry.id, kind: entry.kind, tools: Object.keys(made.tools), verbs: Object.keys(verbs), hooks: Object.keys(made.hooks).sort() }),
  search: () => tool("memory_search", { query: "what is the staging port now", maxResults: 2 }),
  strange: async () => [await tool("memory_search", { query: "  " }), await tool("memory_search", { query: "port", maxResults: -5, minScore: 7 })],
  get: () => tool("memory_get", { path: "memory/2026-02-10.md", from: 3, lines: 1 }),
  missing: () => tool("memory_get", { path: "../../etc/passwd" }),
  prompt: () => made.memory.promptBuilder({ availableTools: new Set(["memory_search"]) }),
  silent: () => made.memory.promptBuilder({ availableTools: new Set() }),
  flush: () => made.memory.flushPlanResolver({ nowMs: Date.UTC(2026, 10, 2, 23), cfg: { agents: { defaults: { userTimezone: "Asia/Tokyo" } } } }),
  nowhere: () => made.memory.flushPlanResolver({ nowMs: Date.UTC(2026, 10, 2, 12), cfg: { agents: { defaults: { userTimezone: "Mars/Base" } } } }).relativePath,
  classes: () => made.memory.runtime.classifyWorkspaceMemoryPaths({ relativePaths: ["MEMORY.md", "nothing.md"] }),
  sessions: async () => {
    const hits = [{ source: "memory" }, { source: "sessions" }];
    const ask = (requesterSessionKey, sandboxed) => made.memory.runtime.authorizeSearchHits({ hits, requesterSessionKey, sandboxed });
    return [await ask("agent:main:main", false), await ask("agent:main:main", true), await ask("agent:main:discord:1", false), await ask(undefined, false)].map((x) => x.length);
  },
  status: async () => (await manager()).status(),
  // Stopped, asked, killed: the question that was waiting is asked again of a new process.
  killed: async () => {
    const one = await manager();
    const before = one.engine.child.pid;
    process.kill(before, "SIGSTOP");
    const asked = one.search("staging port");
    process.kill(before, "SIGKILL");
    const found = await asked;
    return { found: found.length, other: one.engine.child.pid !== before, alive: alive(before) };
  },
  aborted: async () => {
    const stop = new AbortController();
    const asked = (await manager()).search("staging port", { signal: stop.signal }).then(() => "answered", (error) => error.name);
    stop.abort();
    return asked;
  },
  recall: () => made.hooks.before_prompt_build?.({ prompt: "which port?", messages: [] }, { sessionId: "s1", workspaceDir: workspace }),
  again: () => made.hooks.before_prompt_build?.({ prompt: "which port?", messages: [] }, { sessionId: "s1", workspaceDir: workspace }),
  beat: async () => (await made.hooks.before_prompt_build?.({ prompt: "tick", messages: [] }, { sessionId: "s1", trigger: "heartbeat" })) ?? null,
  ends: async () => { await made.hooks.agent_end?.({ messages: [] }, { sessionId: "s1" }); return "done"; },
  stop: async () => {
    const one = await manager();
    const pid = one.engine.child.pid;
    await made.hooks.gateway_stop();
    return { alive: alive(pid) };
  },
  cli: async () => {
    const lines = [];
    const write = process.stdout.write;
    process.stdout.write = (text) => lines.push(text);
    try { await verbs.search("staging port", { json: true, agent: "main", maxResults: "1" }); } finally { process.stdout.write = write; }
    return lines;
  },
};
for (const name of process.argv.slice(6)) console.log(JSON.stringify([name, (await steps[name]()) ?? null]));
