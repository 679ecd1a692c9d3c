"""The Python SDK as a client of a gate that wants a token.

Usage: oauth.py MODE URL
Logs in with a browser that agrees to everything. Prints what came back as JSON.
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlparse

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata


class Memory:
    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def main() -> None:
    mode, url = sys.argv[1:]
    back = {}

    async def browse(address: str) -> None:
        async with httpx2.AsyncClient() as browser:
            page = await browser.get(address, follow_redirects=False)
        back.update(parse_qs(urlparse(page.headers["location"]).query))

    async def returned() -> AuthorizationCodeResult:
        one = lambda key: back.get(key, [None])[0]
        return AuthorizationCodeResult(code=one("code"), state=one("state"), iss=one("iss"))

    about = OAuthClientMetadata(client_name="gatelet-test", redirect_uris=["http://127.0.0.1:9/callback"])
    memory = Memory()
    login = OAuthClientProvider(url, about, memory, browse, returned)
    async with httpx2.AsyncClient(auth=login) as web:
        async with Client(streamable_http_client(url, http_client=web), mode=mode) as client:
            result = await client.call_tool("call", {"namespace": "time", "function": "now"})
            print(json.dumps({
                "protocol": client.protocol_version,
                "text": result.content[0].text,
                "scope": memory.tokens.scope,
            }))


asyncio.run(main())
