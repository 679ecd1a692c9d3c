#!/usr/bin/env python3
"""Gathers the tool documents that `train_table.py` learns the language of tools from.

    tool_documents.py --corpus CORPUS.jsonl --without CORPUS.jsonl … --servers DIR > documents.jsonl

`--corpus` is a list of tools of public MCP servers, one JSON object a line (`name`,
`description`, `server`, `server_description`, `input_schema`). Tools with the name and
the beginning of the description of one in a `--without` list are left out, so that the
documents of a set that is kept for evaluation are not trained on. `--servers` is a
directory of captured listings, one server a file (`slug`, `instructions`, `tools`).
"""
import argparse, json, pathlib, sys

parser = argparse.ArgumentParser()
parser.add_argument("--corpus", required=True)
parser.add_argument("--without", nargs="*", default=[])
parser.add_argument("--servers", type=pathlib.Path)
args = parser.parse_args()
KEYS = ("name", "description", "server", "server_description", "input_schema")


def lines(path):
    return map(json.loads, open(path, encoding="utf-8"))


def mark(document):
    return document["name"], (document.get("description") or "")[:80]


kept_aside = {mark(document) for path in args.without for document in lines(path)}
for document in lines(args.corpus):
    if mark(document) not in kept_aside:
        print(json.dumps({key: document.get(key) for key in KEYS}))
for file in sorted(args.servers.glob("*.json")) if args.servers else []:
    server = json.loads(file.read_text("utf-8"))
    for tool in server.get("tools", []):
        print(json.dumps(dict(
            name=tool["name"], description=tool.get("description"), server=server["slug"],
            server_description=server.get("instructions"), input_schema=tool.get("inputSchema"))))
