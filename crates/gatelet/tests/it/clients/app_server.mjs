// An MCP server with a user interface, made with the official helpers of MCP Apps, which
// the Inspector brings along. Usage: app_server.mjs

import { createRequire } from "node:module";

const require = createRequire(`${process.env.GATELET_TOOLS}/npm/`);
const { registerAppTool, registerAppResource, RESOURCE_MIME_TYPE } = require("@modelcontextprotocol/ext-apps/server");
const { McpServer } = require("@modelcontextprotocol/server");
const { StdioServerTransport } = require("@modelcontextprotocol/server/stdio");
const { z } = require("zod");

const uri = "ui://weather/view.html";
const server = new McpServer({ name: "weather", version: "1.0.0" });
registerAppTool(
  server,
  "forecast",
  {
    title: "Forecast",
    description: "Shows the weather of the next days.",
    inputSchema: z.object({ place: z.string() }),
    _meta: { ui: { resourceUri: uri } },
  },
  async ({ place }) => ({ content: [{ type: "text", text: `sunny in ${place}` }], structuredContent: { place, sky: "sunny" } }),
);
// Only the interface itself calls this one.
registerAppTool(
  server,
  "refresh",
  { description: "Loads the weather anew.", inputSchema: z.object({}), _meta: { ui: { resourceUri: uri, visibility: ["app"] } } },
  async () => ({ content: [{ type: "text", text: "refreshed" }] }),
);
server.registerTool("plain", { description: "Says hello.", inputSchema: z.object({}) }, async () => ({
  content: [{ type: "text", text: "hello" }],
}));
registerAppResource(server, "view", uri, { description: "The forecast as a page." }, async () => ({
  contents: [{ uri, mimeType: RESOURCE_MIME_TYPE, text: "<!doctype html><title>Forecast</title>", _meta: { ui: { prefersBorder: true } } }],
}));
await server.connect(new StdioServerTransport());
