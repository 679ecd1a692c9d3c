// The TypeScript SDK as a client.
//
// Usage: typescript.mjs GENERATION CALLS http URL | stdio PROGRAM ARG…
// GENERATION is v1 or v2, or v2-legacy for v2 with the older protocol; CALLS is
// a JSON list of [tool, arguments]. Prints what came back as JSON.

import { createRequire } from "node:module";

const [generation, calls, kind, ...target] = process.argv.slice(2);
const require = createRequire(`${process.env.GATELET_TOOLS}/npm/`);
const about = { name: "gatelet-test", version: "1.0.0" };

let client, Http, Stdio;
if (generation === "v1") {
  const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
  Http = require("@modelcontextprotocol/sdk/client/streamableHttp.js").StreamableHTTPClientTransport;
  Stdio = require("@modelcontextprotocol/sdk/client/stdio.js").StdioClientTransport;
  client = new Client(about, { capabilities: {} });
} else {
  const sdk = require("@modelcontextprotocol/client");
  Http = sdk.StreamableHTTPClientTransport;
  Stdio = require("@modelcontextprotocol/client/stdio").StdioClientTransport;
  const mode = generation === "v2" ? "auto" : "legacy";
  client = new sdk.Client(about, { capabilities: {}, versionNegotiation: { mode } });
}

const transport =
  kind === "http"
    ? new Http(new URL(target[0]))
    : new Stdio({ command: target[0], args: target.slice(1), env: process.env, stderr: "inherit" });
await client.connect(transport);
const { tools } = await client.listTools();
const results = [];
for (const [name, args] of JSON.parse(calls)) {
  const result = await client.callTool({ name, arguments: args });
  const text = result.content.filter((block) => block.type === "text").map((block) => block.text).join("\n");
  results.push({ text, isError: Boolean(result.isError) });
}
const protocol = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? "";
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), protocol, results }));
await client.close();
