"""A real browser for the tests of the console: found, or installed where that is ours to do."""

from longhaul.starter.dev_server.temporal_cli import Say
from tests.servers.debian import find_program


def find_chromium(say: Say) -> str:
    """Return the path of Chromium, installing the distribution's package when we are root. Raises ServerUnavailable."""
    return find_program(["chromium", "chromium-browser", "google-chrome"], "chromium", say)
