"""Nine MCP servers that others have written, as their own programs listed their tools: `nine_servers.json.xz` holds the
lists, with the packages and versions that they are from. As a program it serves one of the lists, and echoes calls:
`python nine_servers.py NAME`.
"""

import json
import lzma
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
USES = FOLDER / "tool_uses.tsv"
"""What somebody wants to do, and the tools that do it: two hundreds, with an empty line in between."""


def listed() -> dict[str, list[dict[str, Any]]]:
    """By server: the answer to `tools/list`."""
    tools: dict[str, list[dict[str, Any]]] = json.loads(
        lzma.decompress((FOLDER / "nine_servers.json.xz").read_bytes())
    )["tools"]
    return tools


def uses() -> list[list[tuple[str, list[str]]]]:
    """Each hundred: the words, and the names of the right tools."""
    hundreds = USES.read_text(encoding="utf-8").strip().split("\n\n")
    return [
        [(words, names.split()) for words, _, names in (line.partition("\t") for line in hundred.splitlines())]
        for hundred in hundreds
    ]


def _answer(method: str, params: dict[str, Any], tools: list[dict[str, Any]]) -> object:
    match method:
        case "initialize":
            about = {"name": "recorded", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": tools}
        case "tools/call":
            said = f"{params['name']} was called with {json.dumps(params['arguments'], sort_keys=True)}"
            return {"content": [{"type": "text", "text": said}]}
        case "ping":
            return {}
        case _:
            raise LookupError(method)


def main() -> None:
    tools = listed()[sys.argv[1]]
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        try:
            said: dict[str, object] = {"result": _answer(asked["method"], asked.get("params", {}), tools)}
        except LookupError:
            said = {"error": {"code": -32601, "message": "Method not found"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)


if __name__ == "__main__":
    main()
