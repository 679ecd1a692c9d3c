// Drives a server with the TypeScript SDK 1.x and prints what it saw as JSON.
// sdk1.mjs URL | sdk1.mjs COMMAND ARGUMENT...
const sdk = `${process.env.GATELET_TOOLS}/npm/node_modules/@modelcontextprotocol/sdk/dist/esm`;
const { Client } = await import(`${sdk}/client/index.js`);
const { StreamableHTTPClientTransport } = await import(`${sdk}/client/streamableHttp.js`);
const { StdioClientTransport } = await import(`${sdk}/client/stdio.js`);
const types = await import(`${sdk}/types.js`);

const [target, ...args] = process.argv.slice(2);
const transport = target.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args });
const client = new Client(
  { name: "sdk1", version: "1" },
  { capabilities: { elicitation: {}, sampling: {} } },
);
client.setRequestHandler(types.ElicitRequestSchema, async () => ({
  action: "accept",
  content: { username: "ann", email: "a@b.c" },
}));
client.setRequestHandler(types.CreateMessageRequestSchema, async () => ({
  role: "assistant",
  content: { type: "text", text: "sampled" },
  model: "none",
}));
let logged = 0;
client.setNotificationHandler(types.LoggingMessageNotificationSchema, () => void logged++);
const changed = new Promise((resolve) =>
  client.setNotificationHandler(types.ToolListChangedNotificationSchema, resolve),
);
await client.connect(transport);
const progress = [];
const onprogress = (one) => progress.push(one.progress);
const call = async (name, args = {}, options) =>
  (await client.callTool({ name, arguments: args }, undefined, options)).content[0].text;
const seen = {
  tools: (await client.listTools()).tools.length,
  text: await call("test_simple_text"),
  elicited: await call("test_elicitation", { message: "Who?" }),
  sampled: await call("test_sampling", { prompt: "Say" }),
  withProgress: await call("test_tool_with_progress", {}, { onprogress }),
  progress,
  withLogging: await call("test_tool_with_logging"),
  read: (await client.readResource({ uri: "test://static-text" })).contents[0].text,
};
await call("test_trigger_tool_change");
await changed;
seen.logged = logged;
seen.changed = true;
console.log(JSON.stringify(seen));
if (transport.terminateSession) await transport.terminateSession();
await client.close();
process.exit(0);
