"""MCP servers that others have written, from npm."""

from pathlib import Path

from longhaul.starter.dev_server.temporal_cli import Say
from tests.servers.npm import installed


def find_mcp_packages(say: Say) -> Path:
    """The folder of the packages. Raises ServerUnavailable."""
    return installed(say) / "@modelcontextprotocol"
