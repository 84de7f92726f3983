"""A server over stdin and stdout that lists and answers what it is given, odd as it is: `python odd.py FILE`.

FILE is JSON: `pages` of a list of tools, by cursor ("" is the first one), and `answers`, by the name of a tool: its
content, or its whole result.
"""

import json
import sys
from pathlib import Path


def answer(asked: dict, given: dict) -> object:  # type: ignore[type-arg]
    params = asked.get("params") or {}
    match asked["method"]:
        case "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}}
            return {"protocolVersion": params["protocolVersion"], **about}
        case "tools/list":
            return given["pages"][params.get("cursor") or ""]
        case "tools/call":
            plain = [{"type": "text", "text": "noted"}]
            said = given.get("answers", {}).get(params["name"], plain)
            return said if isinstance(said, dict) else {"content": said}
        case "ping":
            return {}
    return None


def main() -> None:
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        result = answer(asked, given)
        said = {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)


if __name__ == "__main__":
    main()
