// A host of MCP Apps, with the official client and helpers. Usage: app_host.mjs URL ui|plain
// Prints as JSON what it sees: tools with their interfaces, an answer, the interface.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url, kind] = process.argv.slice(2);
const require = createRequire(`${process.env.GATELET_TOOLS}/npm/`);
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const helpers = require.resolve("@modelcontextprotocol/ext-apps/app-bridge");
const { getToolUiResourceUri, RESOURCE_MIME_TYPE } = await import(pathToFileURL(helpers));

const extensions = kind === "ui" ? { "io.modelcontextprotocol/ui": { mimeTypes: [RESOURCE_MIME_TYPE] } } : {};
const client = new Client(
  { name: "gatelet-test", version: "1.0.0" },
  { capabilities: { extensions }, versionNegotiation: { mode: "auto" } },
);
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
const seen = { interfaces: {} };
for (const tool of tools) {
  const uri = getToolUiResourceUri(tool);
  if (uri !== undefined) seen.interfaces[tool.name] = uri;
}
const forecast = Object.keys(seen.interfaces).find((name) => name.includes("forecast"));
if (forecast !== undefined) {
  seen.answer = await client.callTool({ name: forecast, arguments: { place: "Rome" } });
  const { contents } = await client.readResource({ uri: seen.interfaces[forecast] });
  seen.page = contents[0];
  seen.isApp = contents[0].mimeType === RESOURCE_MIME_TYPE;
}
console.log(JSON.stringify(seen));
await client.close();
