"""`python -m benchmarks.mcp_server stdio|http [PORT]`: the tool of the benchmarks, behind the protocol."""

import sys

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

from benchmarks.bodies import body

server = MCPServer("bench", log_level="ERROR")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def fetch(chars: int) -> str:
    """Return a text of that many characters."""
    return body(chars)


if __name__ == "__main__":
    transport, *port = sys.argv[1:]
    if transport == "http":
        server.run(transport="streamable-http", port=int(port[0]))
    else:
        server.run(transport="stdio")
