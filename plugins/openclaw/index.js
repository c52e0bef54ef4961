// OpenClaw's memory slot, answered by notewell: one warm `notewell mcp` per workspace, and `notewell hook` for recall.
import { spawn } from "node:child_process";
import { homedir } from "node:os";
import { createInterface } from "node:readline";
import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";

const ID = "memory-notewell";
const [ANSWER_MS, END_MS] = [60_000, 3_000];
const HELP = "install notewell (pip install notewell), then run: notewell install openclaw";

/** One `notewell mcp` process; every request ends in an answer, an error, or the death of the process. */
class Engine {
  constructor(command, workspace) {
    Object.assign(this, { waiting: new Map(), last: 0, dead: null, said: "" });
    const [program, ...rest] = command;
    const child = (this.child = spawn(program, [...rest, "mcp", "-w", workspace], { stdio: "pipe", cwd: homedir() })); // Windows looks for programs there
    this.ended = new Promise((resolve) => child.once("close", resolve));
    child.once("error", (error) => this.fail(new Error(`${program} cannot be started (${error.code ?? error}); ${HELP}`)));
    child.once("close", (code) => this.fail(new Error(`notewell ended with ${code}${this.said && `: ${this.said.trim()}`}`)));
    child.stdin.on("error", () => {}); // the end of the process is told by "close"
    child.stderr.on("data", (data) => { this.said = (this.said + data).slice(-500); });
    createInterface({ input: child.stdout }).on("line", (line) => this.receive(line));
    for (const one of [child, child.stdin, child.stdout, child.stderr]) one.unref?.(); // a command line may end at any time
    const hello = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "openclaw", version: "1" } };
    this.ready = this.request("initialize", hello).then(() => this.send({ method: "notifications/initialized" }));
    this.ready.catch(() => {}); // whoever asks is told
  }
  send(message) { this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`); }
  receive(line) {
    let message;
    try { message = JSON.parse(line); } catch { return; }
    const one = this.waiting.get(message?.id);
    if (message?.error) one?.reject(new Error(message.error.message));
    else one?.resolve(message.result);
  }
  fail(error) {
    this.dead ??= error;
    for (const one of this.waiting.values()) one.reject(this.dead);
  }
  request(method, params, signal) {
    if (this.dead) return Promise.reject(this.dead);
    const id = ++this.last;
    let timer, stop;
    return new Promise((resolve, reject) => {
      stop = () => reject(signal.reason ?? new Error("aborted"));
      if (signal?.aborted) return stop();
      signal?.addEventListener("abort", stop, { once: true });
      timer = setTimeout(() => reject(new Error(`no answer within ${ANSWER_MS / 1000} s`)), ANSWER_MS);
      this.waiting.set(id, { resolve, reject });
      this.send({ id, method, params });
    }).finally(() => { clearTimeout(timer); signal?.removeEventListener("abort", stop); this.waiting.delete(id); });
  }
  async tool(name, given, signal) {
    await this.ready;
    const answer = await this.request("tools/call", { name, arguments: given }, signal);
    if (answer.isError) throw new Error(answer.content?.[0]?.text ?? "notewell failed");
    return answer.structuredContent;
  }
  /** Ends the process: it stops by itself when its input ends, and is killed if it does not. */
  async close() {
    this.child.stdin.end();
    const timer = setTimeout(() => this.child.kill("SIGKILL"), END_MS);
    if (!this.dead) await this.ended;
    clearTimeout(timer);
  }
}

const hit = (r) => ({
  path: r.path, startLine: r.start_line, endLine: r.end_line, score: r.score, vectorScore: r.vector_score ?? undefined,
  textScore: r.text_score ?? undefined, snippet: r.snippet, source: r.source === "sessions" ? "sessions" : "memory",
  citation: r.citation,
  provenance: { originClass: r.origin, sessionKind: "unknown", observedAt: Date.parse(r.time ?? r.date ?? "") || 0 },
});

/** What OpenClaw asks of a memory, for one workspace; a process that died is started again. */
class Manager {
  constructor(command, workspace) { Object.assign(this, { command, workspace, engine: null, last: null, mode: "" }); }
  async ask(name, given, signal) {
    for (let again = true; ; again = false) {
      if (!this.engine || this.engine.dead) this.engine = new Engine(this.command, this.workspace);
      const engine = this.engine;
      try { return await engine.tool(name, given, signal); } catch (error) {
        if (!again || !engine.dead || signal?.aborted) throw error; // reading twice does no harm
      }
    }
  }
  async search(query, o = {}) {
    if (!query?.trim()) return [];
    const given = { query: query.slice(0, 20_000), limit: Math.min(Math.max(Math.trunc(o.maxResults) || 6, 1), 100) };
    if (o.minScore >= 0 && o.minScore <= 1) given.min_score = o.minScore;
    if (o.lexicalOnly) given.profile = "lexical";
    if (o.sources?.length === 1 && o.sources[0] === "sessions") given.source = "sessions";
    const found = await this.ask("memory_search", given, o.signal);
    this.mode = found.mode;
    o.onDebug?.({ backend: "builtin", configuredMode: "notewell", effectiveMode: found.mode });
    return found.results.map(hit).filter((one) => !o.sources?.length || o.sources.includes(one.source));
  }
  async readFile({ relPath, from, lines }) {
    try {
      const given = { reference: relPath, ...(from > 0 && { from_line: from }), ...(lines > 0 && { lines }) };
      const read = await this.ask("memory_get", given);
      return { status: "ok", path: read.path, text: read.text, from: read.start_line, lines: read.end_line - read.start_line + 1 };
    } catch (error) {
      if (this.engine?.dead) throw error;
      return { status: "not_found", text: "", path: relPath };
    }
  }
  /** Who wrote a file: only what the owner wrote is put into prompts unasked. */
  async origin(relPath) {
    try { return (await this.ask("memory_get", { reference: relPath, lines: 1 })).origin; } catch { return "untrusted"; }
  }
  async refresh() { return (this.last = await this.ask("memory_status", {})); }
  status() {
    const s = this.last ?? {};
    const counts = s.sources?.map((x) => ({ source: x.name === "sessions" ? "sessions" : "memory", files: x.documents, chunks: x.chunks }));
    return {
      backend: "builtin", provider: "notewell", model: s.embedder, files: s.documents, chunks: s.chunks,
      dirty: this.last ? !s.fresh : undefined, workspaceDir: this.workspace, dbPath: s.index,
      sources: [...new Set((counts ?? []).map((x) => x.source))], sourceCounts: counts, fts: { enabled: true, available: true },
      vector: { enabled: true, available: s.embedded > 0, index: { state: !s.chunks ? "empty" : s.pending ? "incomplete" : "complete" } },
      custom: { notewell: s },
    };
  }
  async sync() { await this.refresh(); } // every search reads what changed
  async probeVectorAvailability() { return (await this.refresh()).embedded > 0; }
  async probeEmbeddingAvailability() { return { ok: await this.probeVectorAvailability(), checked: true }; }
  async probeVectorStoreAvailability() { return true; }
  async close() { await this.engine?.close(); }
}

/** Runs `notewell hook` and returns the object that it prints; {} if there is none in time. It never throws. */
function hook(command, event, told, limitMs) {
  return new Promise((resolve) => {
    const child = spawn(command[0], [...command.slice(1), "hook", event, "--host", "openclaw"], { stdio: ["pipe", "pipe", "ignore"], cwd: homedir() });
    const timer = setTimeout(() => child.kill("SIGKILL"), limitMs); // spawn's own would go on if there is no such program
    let out = "";
    const done = () => { clearTimeout(timer); try { resolve(JSON.parse(out) ?? {}); } catch { resolve({}); } };
    child.once("error", done).once("close", done);
    child.stdout.on("data", (data) => { out += data; });
    child.stdin.on("error", () => {}).end(JSON.stringify(told));
  });
}
const context = (answer) => answer.context ?? "";
const say = (text) => process.stdout.write(`${text}\n`); // with --json OpenClaw sends console.log to stderr

const GUIDE = "Before answering anything about earlier work, decisions, dates, people, preferences or open tasks: run memory_search, "
  + "then memory_get for the lines you need. If nothing fits, say that you looked.";
const FLUSH = (file) => `Pre-compaction memory flush. Store what must last in ${file} (create memory/ if needed); if the file exists, append only. `
  + "Do not change MEMORY.md, SOUL.md, AGENTS.md or other reference files, and make no other dated files. If there is nothing to store, reply with NO_REPLY.";

const day = (ms, timeZone) => new Date(ms).toLocaleDateString("en-CA", { timeZone }); // as in 2026-11-02
function today(ms, cfg) { try { return day(ms, cfg?.agents?.defaults?.userTimezone); } catch { return day(ms); } }

export default definePluginEntry({
  id: ID,
  name: "Memory (notewell)",
  description: "Searches the notes of the workspace with a local notewell process.",
  kind: "memory",
  register(api) {
    const command = api.pluginConfig?.command ?? ["notewell"];
    const folder = (cfg, agentId) => api.pluginConfig?.workspace?.replace(/^~(?=$|[/\\])/, homedir())
      ?? api.runtime.agent.resolveAgentWorkspaceDir(cfg ?? api.config, agentId ?? "main");
    const managers = new Map();
    const managerOf = (cfg, agentId) => {
      const at = folder(cfg, agentId);
      return managers.get(at) ?? managers.set(at, new Manager(command, at)).get(at);
    };
    const closeAll = () => Promise.all([...managers.values()].map((one) => one.close()));
    // Conversations are private: only the agent's own main session outside a sandbox sees them.
    const allowed = (hits, sessionKey, sandboxed) =>
      hits.filter((one) => one.source !== "sessions" || (!sandboxed && sessionKey?.endsWith(":main")));
    const runtime = {
      async getMemorySearchManager({ cfg, agentId, purpose }) {
        const manager = managerOf(cfg, agentId);
        try { await manager.refresh(); } catch (error) { return { manager: null, error: error.message }; }
        return { manager, debug: { backend: "builtin", purpose } };
      },
      resolveMemoryBackendConfig: () => ({ backend: "builtin" }),
      authorizeSearchHits: async ({ hits, requesterSessionKey, sandboxed }) => allowed(hits, requesterSessionKey, sandboxed),
      classifyWorkspaceMemoryPaths: ({ cfg, agentId, relativePaths }) => Promise.all(relativePaths.map(
        async (relativePath) => ({ relativePath, originClass: await managerOf(cfg, agentId).origin(relativePath) }))),
      closeMemorySearchManager: async ({ cfg, agentId }) => managers.get(folder(cfg, agentId))?.close(),
      closeAllMemorySearchManagers: closeAll,
    };
    api.registerMemoryCapability({
      deterministicRecallToolName: "memory_search", runtime,
      promptBuilder: ({ availableTools, citationsMode }) => !availableTools.has("memory_search") ? [] : [
        "## Memory", GUIDE, citationsMode === "off" ? "Do not mention paths or line numbers in replies unless asked." : "Cite what you use as path#L3-L9.", ""],
      flushPlanResolver: ({ cfg, nowMs = Date.now() } = {}) => {
        const relativePath = `memory/${today(nowMs, cfg)}.md`;
        const sizes = { softThresholdTokens: 4_000, forceFlushTranscriptBytes: 2_097_152, reserveTokensFloor: 20_000 };
        return { ...sizes, prompt: FLUSH(relativePath), systemPrompt: FLUSH(relativePath), relativePath };
      },
    });

    const shown = (details) => ({ content: [{ type: "text", text: JSON.stringify(details) }], details });
    const tool = (name, label, description, required, properties, run) => api.registerTool((ctx) => ({
      name, label, description, parameters: { type: "object", required: [required], properties },
      async execute(_id, given, signal) {
        try { return shown(await run(managerOf(ctx.config, ctx.agentId), given, ctx, signal)); }
        catch (error) { return shown({ results: [], disabled: true, error: error.message, action: "Tell the user that memory did not answer, and why." }); }
      },
    }), { names: [name] });
    tool("memory_search", "Memory Search", "Find the passages of notes and conversations that answer a question. Use it before you answer anything about earlier work, decisions, people, dates or preferences.",
      "query", { query: { type: "string" }, maxResults: { type: "integer", minimum: 1 }, minScore: { type: "number", minimum: 0, maximum: 1 } },
      async (manager, given, ctx, signal) => ({
        results: allowed(await manager.search(given.query, { ...given, signal }), ctx.sessionKey, ctx.sandboxed), provider: "notewell", mode: manager.mode,
      }));
    tool("memory_get", "Memory Get", "Read a note, or some of its lines, by the path or citation that memory_search gave.",
      "path", { path: { type: "string" }, from: { type: "integer", minimum: 1 }, lines: { type: "integer", minimum: 1 } },
      (manager, given) => manager.readFile({ relPath: given.path, from: given.from, lines: given.lines }));

    api.registerCli(({ program, config }) => {
      const memory = program.command("memory").description("Search and inspect memory with notewell");
      const verb = (name, about, run) => memory.command(name).description(about).option("--agent <id>", "agent", "main").option("--json", "print JSON")
        .action(async (...given) => { try { await run(...given); } finally { await closeAll(); } });
      verb("search [query]", "Search the notes", async (words, o) => {
        const results = await managerOf(config, o.agent).search(o.query ?? words, { maxResults: Number(o.maxResults), minScore: o.minScore && Number(o.minScore) });
        say(o.json ? JSON.stringify({ results }, null, 2) : results.map((r) => `${r.score.toFixed(3)} ${r.citation}\n${r.snippet}\n`).join("\n") || "No matches.");
      }).option("--query <text>").option("--max-results <n>").option("--min-score <n>");
      verb("status", "Show what is indexed", async (o) => {
        const manager = managerOf(config, o.agent);
        const s = await manager.refresh();
        say(o.json ? JSON.stringify([{ agentId: o.agent, status: manager.status() }], null, 2)
          : `notewell ${s.version}: ${s.documents} notes, ${s.chunks} passages, ${s.embedded} with a vector (${s.embedder})\n${manager.workspace}\n${s.index}`);
      }).option("--deep").option("--index");
      verb("index", "Bring the index up to date", (o) => new Promise((resolve, reject) => {
        const given = [...command.slice(1), "index", "-w", folder(config, o.agent), ...(o.force ? ["--force"] : []), ...(o.json ? ["--json"] : [])];
        spawn(command[0], given, { stdio: "inherit", cwd: homedir() }).once("error", reject).once("close", (code) => (code ? reject(new Error(`notewell index ended with ${code}`)) : resolve()));
      })).option("--force");
    }, { descriptors: [{ name: "memory", description: "Search and inspect memory with notewell", hasSubcommands: true }] });

    api.on("gateway_stop", closeAll);
    if (!api.config?.plugins?.entries?.[ID]?.hooks?.allowConversationAccess) return; // recall and capture need this consent
    const known = new Set();
    const told = (ctx, rest) => ({ session_id: ctx.sessionId ?? ctx.sessionKey ?? "", cwd: folder(null, ctx.agentId), ...rest });
    api.on("before_prompt_build", async (event, ctx) => {
      const prompt = event.currentUserMessage ?? event.prompt;
      if (!prompt?.trim() || ["cron", "heartbeat", "memory"].includes(ctx.trigger)) return undefined;
      const asked = [hook(command, "prompt", told(ctx, { prompt }), 5_000)];
      const session = ctx.sessionId ?? ctx.sessionKey;
      if (known.size !== known.add(session).size) asked.unshift(hook(command, "session-start", told(ctx, { source: "startup" }), 8_000));
      const text = (await Promise.all(asked)).map(context).filter(Boolean).join("\n\n");
      return text ? { prependContext: text } : undefined;
    }, { timeoutMs: 10_000 });
    for (const [name, event] of [["agent_end", "stop"], ["before_compaction", "compact"], ["session_end", "session-end"]]) {
      api.on(name, (given, ctx) => hook(command, event, told(ctx ?? {}, { transcript_path: given?.sessionFile ?? "" }), 20_000));
    }
  },
});
