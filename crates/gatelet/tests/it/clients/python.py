"""The Python SDK as a client.

Usage: python.py MODE CALLS http URL | stdio PROGRAM ARG…
MODE is the SDK's connect mode (auto, legacy, or a revision); CALLS is a JSON
list of [tool, arguments]. Prints what came back as JSON.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters


async def main() -> None:
    mode, calls, kind, *target = sys.argv[1:]
    server = target[0] if kind == "http" else StdioServerParameters(command=target[0], args=target[1:])
    async with Client(server, mode=mode) as client:
        tools = await client.list_tools()
        results = []
        for tool, arguments in json.loads(calls):
            result = await client.call_tool(tool, arguments)
            text = "\n".join(block.text for block in result.content if block.type == "text")
            results.append({"text": text, "isError": bool(result.is_error)})
        print(json.dumps({
            "tools": [tool.name for tool in tools.tools],
            "protocol": client.protocol_version,
            "results": results,
        }))


asyncio.run(main())
