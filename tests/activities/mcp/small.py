"""The smallest MCP server, over stdin and stdout, that starts as soon as Python does: `python small.py`.

For what is about processes; `server.py` is a real one.
"""

import json
import os
import sys
import time
from pathlib import Path

TOOLS = [
    "add",
    "note",
    "environment",
    "end",
    "long",
    "slow",
    "endless",
    "babble",
    "moor",
    "sound",
    "grow",
    "linger",
    "grown",
    "doze",
]
SCHEMA = json.loads(os.environ.get("SCHEMA", '{"type": "object"}'))
NEWS = {"jsonrpc": "2.0", "method": "notifications/message"}
kept: list[str] = []
MANY = [f"tide_{number}" for number in range(int(os.environ.get("MANY", "0")))]


def called(name: str, given: dict[str, object]) -> str:
    match name:
        case "add":
            return str(int(str(given["a"])) + int(str(given["b"])))
        case "note":
            kept.append(str(given["text"]))
            return f"{os.getpid()}: {', '.join(kept)}"
        case "environment":
            return f"{' '.join(sorted(os.environ))} KEEPER={os.environ.get('KEEPER', '')}"
        case "end":
            os._exit(3)
        case "long":
            return "x" * int(str(given["megabytes"])) * 1_000_000
        case "linger" | "grow" | "grown":
            return changing(name, given)
        case "slow":
            mark = Path(str(given["path"]))
            mark.write_text("started", encoding="utf-8")
            if "notifications/cancelled" in sys.stdin.readline():
                mark.write_text("given up", encoding="utf-8")
            return "ended"
        case _ if name in MANY:
            return f"{name} is high"
        case _:
            return unwell(name, given)


def changing(name: str, given: dict[str, object]) -> str:
    """What is not the same the second time."""
    match name:
        case "linger":
            times = started(str(given["path"]))
            if times == 1:
                sys.stdin.read()
            return f"begun {times} times"
        case "grow":
            Path(os.environ["GROWN"]).touch()
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
            return "grown"
        case _:
            return "new"


def started(path: str) -> int:
    """How often, this time included."""
    with Path(path).open("a+", encoding="utf-8") as mark:
        mark.write("x")
        mark.flush()
        return mark.tell()


def unwell(name: str, given: dict[str, object]) -> str:
    match name:
        case "endless":
            for _ in range(int(str(given["megabytes"]))):
                sys.stdout.write("x" * 1_000_000)
            sys.stdout.flush()
            return "told"
        case "doze":
            time.sleep(float(str(given["seconds"])))
            return "awake"
        case "babble":
            for number in range(int(str(given["times"]))):
                print(json.dumps({**NEWS, "params": {"level": "info", "data": number}}))
                print('{"jsonrpc": broken')
            return "said"
        case "moor":
            nights = {"type": "integer", "maximum": 30}
            fields = {"name": {"type": "string"}, "nights": nights}
            berth = {"type": "object", "properties": fields, "required": ["name"]}
            question = {"message": "Which berth?", "requestedSchema": berth}
            print(json.dumps({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": question}))
            sys.stdout.flush()
            said = json.loads(sys.stdin.readline())["result"]
            return f"moored at {said['content']['name']}" if said["action"] == "accept" else "adrift"
        case "sound":
            asked = [{"role": "user", "content": {"type": "text", "text": str(given["words"])}}]
            wanted = {"messages": asked, "maxTokens": 40}
            print(json.dumps({"jsonrpc": "2.0", "id": "m1", "method": "sampling/createMessage", "params": wanted}))
            sys.stdout.flush()
            answer = json.loads(sys.stdin.readline())
            said = answer.get("result")
            return (
                f"{said['content']['text']} ({said['stopReason']})"
                if said
                else f"refused: {answer['error']['message']}"
            )
        case _:
            raise ValueError(name)


def answer(method: str, params: dict[str, object]) -> object:
    match method:
        case "initialize":
            version = params["protocolVersion"]
            capabilities = {"tools": {"listChanged": True}}
            return {
                "protocolVersion": version,
                "capabilities": capabilities,
                "serverInfo": {"name": "s", "version": "1"},
            }
        case "tools/list":
            if Path(os.environ.get("UNLISTED", "/none")).exists():
                os._exit(4)
            there = [
                name for name in (*TOOLS, *MANY) if name != "grown" or Path(os.environ.get("GROWN", "/none")).exists()
            ]
            return {
                "tools": [
                    {"name": name, "description": name + os.environ.get("WORDS", ""), "inputSchema": SCHEMA}
                    for name in there
                ]
            }
        case "tools/call":
            given: dict[str, object] = params["arguments"]  # type: ignore[assignment]
            return {"content": [{"type": "text", "text": called(str(params["name"]), given)}]}
        case "ping":
            return {}
        case _:
            raise LookupError(method)


def main() -> None:
    print("flood " * 20_000, file=sys.stderr, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        try:
            said: dict[str, object] = {"result": answer(asked["method"], asked.get("params", {}))}
        except LookupError:
            said = {"error": {"code": -32601, "message": "Method not found"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)


if __name__ == "__main__":
    main()
