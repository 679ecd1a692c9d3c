# One tool, `wait`: a call is answered when the file that it names is there.
import json
import os
import sys
import threading
import time

lock = threading.Lock()
open_calls = {}


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def wait(id, path):
    while not os.path.exists(path) and id in open_calls:
        time.sleep(0.01)
    if open_calls.pop(id, None):
        send({"id": id, "result": {"content": [{"type": "text", "text": "waited"}]}})


for line in sys.stdin:
    message = json.loads(line)
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "initialize":
        send({"id": id, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                   "serverInfo": {"name": "slow", "version": "1"}}})
    elif method == "tools/list":
        tool = {"name": "wait", "description": "Waits.", "inputSchema": {"type": "object"}}
        send({"id": id, "result": {"tools": [tool]}})
    elif method == "tools/call":
        path = os.path.join("PLACE", params["arguments"]["name"])
        open_calls[id] = path
        threading.Thread(target=wait, args=(id, path), daemon=True).start()
    elif method == "notifications/cancelled":
        path = open_calls.pop(params["requestId"], None)
        if path:
            open(path + ".cancelled", "w").close()
    elif id is not None:
        send({"id": id, "error": {"code": -32601, "message": "no such method"}})
