"""axe-core, which finds what keeps people from using a page."""

from pathlib import Path

from longhaul.starter.dev_server.temporal_cli import Say
from tests.servers.npm import installed


def find_axe_core(say: Say) -> Path:
    """Its one script. Raises ServerUnavailable."""
    return installed(say) / "axe-core" / "axe.min.js"
