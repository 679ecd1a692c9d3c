# A server that talks while a call runs: one tool, `act`, which does what `kind` says.
import json
import os
import sys

asked = {}
cancelled = set()


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(id, text):
    send({"id": id, "result": {"content": [{"type": "text", "text": text}]}})


def call(id, params):
    kind = params["arguments"]["kind"]
    if kind == "progress":
        token = params.get("_meta", {}).get("progressToken")
        for n in range(3):
            progress = {"progressToken": token, "progress": n, "total": 3}
            send({"method": "notifications/progress", "params": progress})
        answer(id, f"by {os.getpid()}.")
    elif kind == "elicit":
        asked[f"q{id}"] = id
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        send({"id": f"q{id}", "method": "elicitation/create",
              "params": {"message": "Who?", "requestedSchema": schema}})
    elif kind == "sample":
        asked[f"q{id}"] = id
        content = {"type": "text", "text": "Say something."}
        send({"id": f"q{id}", "method": "sampling/createMessage",
              "params": {"messages": [{"role": "user", "content": content}], "maxTokens": 10}})
    elif kind == "was-cancelled":
        answer(id, f"cancelled {len(cancelled)}.")
    # Any other kind is never answered.


for line in sys.stdin:
    message = json.loads(line)
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "initialize":
        send({"id": id, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                   "serverInfo": {"name": "talkative", "version": "1"}}})
    elif method == "tools/list":
        tool = {"name": "act", "description": "Acts.", "inputSchema": {"type": "object"}}
        send({"id": id, "result": {"tools": [tool]}})
    elif method == "tools/call":
        call(id, params)
    elif method == "notifications/cancelled":
        cancelled.add(params["requestId"])
    elif method is None and id in asked:
        answer(asked.pop(id), "heard " + json.dumps(message.get("result") or message.get("error")))
    elif id is not None:
        send({"id": id, "error": {"code": -32601, "message": "no such method"}})
