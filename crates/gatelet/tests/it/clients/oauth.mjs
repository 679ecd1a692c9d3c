// The TypeScript SDK as a client of a gate that wants a token.
//
// Usage: oauth.mjs GENERATION URL
// GENERATION is v1 or v2. Logs in with a browser that agrees to everything.
// Prints what came back as JSON.

import { createRequire } from "node:module";

const [generation, url] = process.argv.slice(2);
const require = createRequire(`${process.env.GATELET_TOOLS}/npm/`);
const about = { name: "gatelet-test", version: "1.0.0" };

let Client, Http, options;
if (generation === "v1") {
  ({ Client } = require("@modelcontextprotocol/sdk/client/index.js"));
  Http = require("@modelcontextprotocol/sdk/client/streamableHttp.js").StreamableHTTPClientTransport;
  options = { capabilities: {} };
} else {
  const sdk = require("@modelcontextprotocol/client");
  ({ Client } = sdk);
  Http = sdk.StreamableHTTPClientTransport;
  options = { capabilities: {}, versionNegotiation: { mode: "auto" } };
}

let back, client, verifier, tokens;
const login = {
  redirectUrl: "http://127.0.0.1:9/callback",
  clientMetadata: { client_name: "gatelet-test", redirect_uris: ["http://127.0.0.1:9/callback"] },
  clientInformation: () => client,
  saveClientInformation: (it) => (client = it),
  tokens: () => tokens,
  saveTokens: (it) => (tokens = it),
  codeVerifier: () => verifier,
  saveCodeVerifier: (it) => (verifier = it),
  redirectToAuthorization: async (address) => {
    const page = await fetch(address, { redirect: "manual" });
    back = new URL(page.headers.get("location"));
  },
};

// The SDK stops where a human would go to the browser, and is told to go on.
const first = new Http(new URL(url), { authProvider: login });
try {
  await new Client(about, options).connect(first);
  throw new Error("the gate let us in without a token");
} catch (error) {
  if (!back) throw error;
}
await first.finishAuth(generation === "v1" ? back.searchParams.get("code") : back.searchParams);
const second = new Http(new URL(url), { authProvider: login });
const us = new Client(about, options);
await us.connect(second);
const result = await us.callTool({ name: "call", arguments: { namespace: "time", function: "now" } });
const protocol = us.getNegotiatedProtocolVersion?.() ?? second.protocolVersion ?? "";
console.log(JSON.stringify({ protocol, text: result.content[0].text, scope: tokens.scope }));
await us.close();
