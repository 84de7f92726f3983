"""A real HTTP server that writes down what is posted to it, and answers as a test says."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Hook:
    """`answers` are given in order; after the last one, 204."""

    answers: list[int]
    url: str = ""
    posts: list[tuple[dict[str, str], bytes]] = field(default_factory=list[tuple[dict[str, str], bytes]])
    """Headers, in small letters, and bodies."""


@contextmanager
def hook_server(answers: Sequence[int] = ()) -> Iterator[Hook]:
    hook = Hook(list(answers))

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hook.posts.append(({name.lower(): value for name, value in self.headers.items()}, body))
            status = hook.answers.pop(0) if hook.answers else 204
            self.send_response(status)
            if status in (302, 307):
                self.send_header("Location", f"{hook.url}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the parent's name for it
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    hook.url = f"http://127.0.0.1:{server.server_address[1]}/calls"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hook
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
