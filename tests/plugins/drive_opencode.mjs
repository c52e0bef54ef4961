// Drives the opencode plugin as both versions of its host do; prints what the model would be told.
import { pathToFileURL } from "node:url";

const plugin = (await import(pathToFileURL(process.argv[2]))).default;
const told = {};

const hooks = await plugin.server({ directory: process.argv[3] });
const ask = async (prompt) => {
  const output = { system: ["base"] };
  await hooks["chat.message"]({ sessionID: "a" }, { parts: [{ type: "text", text: prompt }, { type: "text", text: "no", synthetic: true }] });
  await hooks["experimental.chat.system.transform"]({ sessionID: "a" }, output);
  await hooks["experimental.chat.system.transform"]({}, output);
  return output.system;
};
told.first = await ask("which port?");
told.second = await ask("and the other?");
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "a" } } });
await hooks.event({ event: { type: "file.edited", properties: {} } });
await hooks["experimental.session.compacting"]({ sessionID: "a" }, { context: [] });
await hooks.event({ event: { type: "session.deleted", properties: { info: { id: "a" } } } });

const made = {};
const end = await plugin.setup({ session: { hook: async (name, run) => { made[name] = run; } } });
const event = { sessionID: "b", prompt: { text: "which port?" }, system: [] };
await made.prompt(event);
await made.context(event);
await made.compaction(event);
await end();
told.next = event.system;
told.id = plugin.id;
console.log(JSON.stringify(told));
