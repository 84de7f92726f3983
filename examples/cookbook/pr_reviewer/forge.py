"""A forge on this machine: it opens pull request 7, sends a signed webhook about it, and prints the review.

It stands for your own forge, or for a small program that signs what your forge sends.
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import time
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Event, Thread
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

DIFF = "--- a/price.py\n+++ b/price.py\n@@ -1 +1 @@\n-total = price * pieces\n+total = price + pieces\n"
REVIEWED = Event()


class Forge(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.answer(DIFF)

    def do_POST(self) -> None:
        print("review:", self.rfile.read(int(self.headers["Content-Length"])).decode(), flush=True)
        self.answer("commented")
        REVIEWED.set()

    def answer(self, text: str) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep the terminal for the review."""


def delivered(secret: str, event: dict[str, object]) -> str:
    """Send a webhook as standardwebhooks.com specifies, and return the answer."""
    body, name, at = json.dumps(event).encode(), str(uuid.uuid4()), str(int(time.time()))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signature = base64.b64encode(hmac.digest(key, f"{name}.{at}.".encode() + body, hashlib.sha256)).decode()
    headers = {"webhook-id": name, "webhook-timestamp": at, "webhook-signature": f"v1,{signature}"}
    hook = os.environ.get("HOOK_URL", "http://127.0.0.1:8000") + "/v1/webhooks/forge"
    with urlopen(Request(hook, body, headers), timeout=30) as answer:  # noqa: S310
        return str(answer.read().decode())


def main() -> None:
    port = urlsplit(os.environ.get("FORGE_URL", "http://127.0.0.1:8089")).port or 80
    with HTTPServer(("127.0.0.1", port), Forge) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            print(delivered(os.environ["FORGE_SECRET"], {"type": "pull_request", "data": {"number": 7}}))
        except HTTPError as error:
            sys.exit(f"refused with {error.code}")
        if not REVIEWED.wait(60):
            sys.exit("no review came within 60 s")
        server.shutdown()


if __name__ == "__main__":
    main()
