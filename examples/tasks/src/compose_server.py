"""Servers for tasks in which results are joined, counted, fetched one by one, paged through,
filtered and compared. What they say is computed, so that verdicts can compute it, too.

`compose_server.py orders|crm|warehouse`
"""
import json
import sys

READS = {"readOnlyHint": True}
CITIES = ["Bergen", "Gdynia", "Kiel", "Lorient", "Malmo", "Porto", "Split"]
WORDS = "packed by hand and checked twice before it left the quay in the usual crate "


def filler(n, length):
    return (WORDS[n % 40 :] + WORDS * (1 + length // len(WORDS)))[:length]


def list_orders(given):
    status = ["open", "paid", "shipped"]
    orders = [
        {"id": 5000 + n, "customer_id": 100 + n * 7 % 23, "status": status[n % 3],
         "total_cents": 1000 + n * 7919 % 50000, "note": filler(n, 180)}
        for n in range(36)
    ]
    wanted = given.get("status")
    return {"orders": [order for order in orders if wanted in (None, order["status"])]}


def read_log(given):
    kind = lambda n: "ERROR card declined" if n % 29 == 3 else "INFO card accepted"
    return "\n".join("2026-11-%02dT%02d:00:00Z %s order=%d" % (1 + n // 80, n % 24, kind(n), 5000 + n) for n in range(2000))


def list_refunds(given):
    page = int(given.get("page", 1))
    reasons = ["damaged", "late", "wrong size", "not wanted"]
    refunds = [
        {"id": n, "reason": reasons[n * n % 11 % 4], "cents": 500 + n * 613 % 9000, "text": filler(n, 160)}
        for n in range(240)
    ]
    return {"refunds": refunds[20 * (page - 1) : 20 * page], "next_page": page + 1 if page < 12 else None}


def export(given):
    regions = ["north", "east", "south", "west"]
    return [
        {"id": n, "region": regions[n % 4], "amount": n * 7919 % 1000, "text": filler(n, 200)}
        for n in range(20000)
    ]


def inventory(label):
    def differs(n):
        return 1 if label == "warehouse" and n in (17, 203, 388) else 0

    return lambda given: [{"sku": "SKU-%03d" % n, "count": n * 31 % 97 + differs(n)} for n in range(400)]


def get_customer(given):
    number = int(given["customer_id"])
    visits = [{"day": day, "text": filler(number + day, 150)} for day in range(12)]
    return {"id": number, "name": "Customer %d" % number, "city": CITIES[number * 5 % 7], "visits": visits}


def list_items(given):
    return {"skus": ["SKU-%03d" % (n * 8) for n in range(50)]}


def get_stock(given):
    n = int(given["sku"][4:])
    shelves = [{"shelf": "A%d" % k, "count": (n * 17 + k * 29) % 60, "text": filler(n + k, 90)} for k in range(8)]
    return {"sku": given["sku"], "shelves": shelves}


def tool(name, description, run, **arguments):
    properties = {key: {"type": kind} for key, kind in arguments.items()}
    required = [key for key in arguments if key not in ("status", "page")]
    schema = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": description, "inputSchema": schema, "annotations": READS}, run


SERVERS = {
    "orders": [
        tool("list_orders", "List the shop's orders.", list_orders, status="string"),
        tool("read_log", "Read the log of card payments, as text.", read_log),
        tool("list_refunds", "List refunds, 20 a page; next_page says where it goes on.", list_refunds, page="integer"),
        tool("export", "Export all sales.", export),
        tool("inventory", "Counts of all items, as the shop knows them.", inventory("orders")),
    ],
    "crm": [tool("get_customer", "Everything about one customer.", get_customer, customer_id="integer")],
    "warehouse": [
        tool("list_items", "The items of the autumn sale, by SKU.", list_items),
        tool("get_stock", "How many pieces of an item lie on which shelf.", get_stock, sku="string"),
        tool("inventory", "Counts of all items, as the warehouse knows them.", inventory("warehouse")),
    ],
}


def answer(method, params, tools):
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": sys.argv[1], "version": "1"}}
    if method == "tools/list":
        return {"tools": [definition for definition, _ in tools]}
    if method == "tools/call":
        for definition, run in tools:
            if definition["name"] == params["name"]:
                said = run(params.get("arguments") or {})
                text = said if isinstance(said, str) else json.dumps(said)
                return {"content": [{"type": "text", "text": text}]}
    return None


def main():
    tools = SERVERS[sys.argv[1]]
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        said = answer(message["method"], message.get("params") or {}, tools)
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        reply.update({"result": said} if said is not None else {"error": {"code": -32601, "message": "no such method or tool"}})
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


main()
