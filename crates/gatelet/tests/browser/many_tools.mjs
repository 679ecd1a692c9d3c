// An MCP server on pipes with as many tools as it is told to have.
import { createInterface } from "node:readline";

const verbs = ["read", "list", "create", "update", "delete", "search", "export", "archive", "merge", "share"];
const nouns = ["invoice", "ticket", "branch", "contact", "calendar", "report", "image", "folder", "message", "order"];
const tools = Array.from({ length: Number(process.argv[2]) }, (_, n) => {
  const [verb, noun] = [verbs[n % 10], nouns[Math.floor(n / 10) % 10]];
  return {
    name: `${verb}_${noun}_${Math.floor(n / 100)}`,
    description: `${verb} one ${noun} of department ${Math.floor(n / 100)}.`,
    inputSchema: { type: "object", properties: { id: { type: "string" }, note: { type: "string" } } },
    annotations: { readOnlyHint: true },
  };
});
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "many", version: "1" },
  }),
  "tools/list": () => ({ tools }),
  "tools/call": ({ name }) => ({ content: [{ type: "text", text: `${name} is done` }] }),
  ping: () => ({}),
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  const told = answer ? { result: answer(params ?? {}) } : { error: { code: -32601, message: "unknown method" } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...told }) + "\n");
});
