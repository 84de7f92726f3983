"""Providers over real HTTP: aimock speaks Anthropic's and OpenAI's wire formats and answers what a test wants."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from longhaul.starter.dev_server.temporal_cli import Say
from tests.servers.local import free_port, running
from tests.servers.npm import installed


class Aimock:
    """A running mock. What it can match and answer: its fixtures, https://github.com/CopilotKit/aimock."""

    def __init__(self, url: str) -> None:
        self.url = url
        """Goes into `base_url` for Anthropic; OpenAI's SDK wants `/v1` behind it."""

    def answer(self, *fixtures: dict[str, Any]) -> None:
        """Add fixtures, each `{"match": {...}, "response": {...}}`; the first that matches answers."""
        self._control("POST", "fixtures", {"fixtures": list(fixtures)})

    def fail_next(self, status: int, **body: Any) -> None:
        """Answer the next request, whatever it is, with an HTTP error."""
        self._control("POST", "error", {"status": status, **({"body": body} if body else {})})

    def journal(self) -> list[dict[str, Any]]:
        """Every request since the last reset, oldest first, with path, headers, body and the response's status."""
        entries: list[dict[str, Any]] = self._control("GET", "journal", None)
        return entries

    def reset(self) -> None:
        """Forget fixtures, faults and journal."""
        self._control("POST", "reset", None)

    def _control(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        # trust_env=False: a proxy in the environment must not see what is meant for this machine.
        with httpx.Client(base_url=self.url, trust_env=False) as client:
            return client.request(method, f"/__aimock/{path}", json=body).raise_for_status().json()


def find_aimock(say: Say) -> Path:
    """Return the mock's program. Raises ServerUnavailable."""
    return installed(say) / "@copilotkit" / "aimock" / "dist" / "cli.js"


@contextmanager
def aimock_server(program: Path, directory: Path) -> Iterator[Aimock]:
    """Yield a mock without fixtures; what no fixture matches is answered with 404."""
    port = free_port()
    mock = Aimock(f"http://127.0.0.1:{port}")
    fixtures = directory / "fixtures"
    fixtures.mkdir()
    command = ["node", str(program), "--port", str(port), "--fixtures", str(fixtures), "--log-level", "warn"]
    with running(command, port, directory / "aimock.log", lambda: True):
        yield mock
