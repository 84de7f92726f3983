"""bubblewrap for the tests: found, or installed where that is ours to do."""

from starter.provision.temporal_cli import Say
from tests.servers.debian import find_program


def find_bubblewrap(say: Say) -> str:
    """Return the path of `bwrap`, installing the distribution's package when we are root. Raises ServerUnavailable."""
    return find_program(["bwrap"], "bubblewrap", say)
