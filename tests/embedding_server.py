"""A server of embeddings of the tests' own on a real port, as OpenAI's API has them: texts that share pieces of words
are near.

Its vectors count the words of a text and the groups of three operations in them, each at a place that its hash names:
no model, but the same for ever, and near where a word is spelt otherwise.
"""

import json
import re
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PLACES = 768
KEY = "sk-embedding-heather"


@dataclass
class EmbeddingServer:
    url: str = ""
    status: int = 200
    """Sent in place of vectors when it is another."""
    answer: Any = None
    """Sent in place of what was asked for."""
    longest: int = 10_000
    """Characters of a text; one that is longer is refused, with all that was sent with it."""
    keys: list[str] = field(default_factory=list)
    """Of each request, its header."""
    asked: list[dict[str, Any]] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        return [text for body in self.asked for text in body["input"]]


def vector_of(text: str) -> list[float]:
    """Whole words weigh three times what a group of operations does."""
    found = [0.0] * PLACES
    for word in re.findall(r"\w+", text.casefold()):
        marked = f"<{word}>"
        groups = [marked[at : at + 3] for at in range(len(marked) - 2)]
        for piece, weight in [(marked, 3.0), *((group, 1.0) for group in groups)]:
            found[zlib.crc32(piece.encode()) % PLACES] += weight
    return found


@contextmanager
def embedding_server() -> Iterator[EmbeddingServer]:
    served = EmbeddingServer()

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet: the system would hold the second back for 40 ms

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            served.keys.append(self.headers.get("Authorization", ""))
            served.asked.append(body)
            status = 400 if any(len(text) > served.longest for text in body["input"]) else served.status
            said = json.dumps(served.answer if served.answer is not None else _vectors(body)).encode()
            self.send_response(status if self.path == "/v1/embeddings" else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  as the standard library names it
            """Nothing: a test's output is for what fails."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    served.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _vectors(body: dict[str, Any]) -> dict[str, Any]:
    data = [{"object": "embedding", "index": at, "embedding": vector_of(text)} for at, text in enumerate(body["input"])]
    return {"object": "list", "data": data, "model": body["model"], "usage": {"prompt_tokens": 1, "total_tokens": 1}}
