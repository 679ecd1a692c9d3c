"""Drives a server with the Python SDK and prints what it saw as JSON.

client.py MODE URL | client.py MODE COMMAND ARGUMENT...
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters, types


async def elicit(context, params):
    return types.ElicitResult(action="accept", content={"username": "ann", "email": "a@b.c"})


async def sample(context, params):
    content = types.TextContent(type="text", text="sampled")
    return types.CreateMessageResult(role="assistant", content=content, model="none")


async def main(mode, target):
    logged, progressed = [], []

    async def log(params):
        logged.append(params.data)

    async def progress(done, total, message):
        progressed.append(done)

    server = target[0]
    if not server.startswith("http"):
        server = StdioServerParameters(command=target[0], args=target[1:])
    async with Client(
        server,
        mode=mode,
        elicitation_callback=elicit,
        sampling_callback=sample,
        logging_callback=log,
        log_level="info" if mode != "legacy" else None,
    ) as client:
        tools = await client.list_tools()
        text = await client.call_tool("test_simple_text", {})
        elicited = await client.call_tool("test_elicitation", {"message": "Who?"})
        sampled = await client.call_tool("test_sampling", {"prompt": "Say"})
        await client.call_tool("test_tool_with_progress", {}, progress_callback=progress)
        await client.call_tool("test_tool_with_logging", {})
        read = await client.read_resource("test://static-text")
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
        print(
            json.dumps(
                {
                    "tools": len(tools.tools),
                    "text": text.content[0].text,
                    "elicited": elicited.content[0].text,
                    "sampled": sampled.content[0].text,
                    "progress": progressed,
                    "logged": len(logged),
                    "read": read.contents[0].text,
                    "prompt": prompt.messages[0].content.text,
                }
            )
        )


asyncio.run(main(sys.argv[1], sys.argv[2:]))
