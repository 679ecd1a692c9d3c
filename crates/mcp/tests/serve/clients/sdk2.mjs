// Drives a server with the TypeScript SDK 2.x and prints what it saw as JSON.
// sdk2.mjs MODE URL | sdk2.mjs MODE COMMAND ARGUMENT...
const sdk = `${process.env.GATELET_TOOLS}/npm/node_modules/@modelcontextprotocol/client/dist`;
const { Client, StreamableHTTPClientTransport } = await import(`${sdk}/index.mjs`);
const { StdioClientTransport } = await import(`${sdk}/stdio.mjs`);

const [mode, target, ...args] = process.argv.slice(2);
const transport = target.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args });
const client = new Client(
  { name: "sdk2", version: "1" },
  { capabilities: { elicitation: {}, sampling: {} }, versionNegotiation: { mode } },
);
client.setRequestHandler("elicitation/create", async () => ({
  action: "accept",
  content: { username: "ann", email: "a@b.c" },
}));
client.setRequestHandler("sampling/createMessage", async () => ({
  role: "assistant",
  content: { type: "text", text: "sampled" },
  model: "none",
}));
await client.connect(transport);
const call = async (name, args = {}) =>
  (await client.callTool({ name, arguments: args })).content[0].text;
console.log(
  JSON.stringify({
    tools: (await client.listTools()).tools.length,
    text: await call("test_simple_text"),
    elicited: await call("test_elicitation", { message: "Who?" }),
    sampled: await call("test_sampling", { prompt: "Say" }),
    read: (await client.readResource({ uri: "test://static-text" })).contents[0].text,
  }),
);
await client.close();
process.exit(0);
