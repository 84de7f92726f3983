"""The example of an offloader of one's own, against a bucket of the tests' own on a real port."""

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import pytest

from examples.s3_offloader import BucketError, S3Offloader
from longhaul.agent.values.conversation.messages import TextBlock
from longhaul.stores.offload.offloaders import Offloader
from tests.stores.offload.samples import PIXEL, PIXEL_NAME, picture, result, said


class Bucket(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.objects: dict[str, bytes] = {}
        self.authorizations: set[str] = set()
        self.refusing = False
        self.one_at_a_time = threading.Lock()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


def version(content: bytes) -> str:
    return f'"{hashlib.md5(content).hexdigest()}"'  # noqa: S324  as S3 does


class Answering(BaseHTTPRequestHandler):
    server: Bucket  # pyright: ignore[reportIncompatibleVariableOverride]  the library's idiom

    def do_GET(self) -> None:
        with self.server.one_at_a_time:
            content = self.server.objects.get(unquote(self.path))
        self._answer(404 if content is None else 200, content or b"")

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.one_at_a_time:
            self.server.authorizations.add(self.headers.get("Authorization", ""))
            before = self.server.objects.get(unquote(self.path))
            wanted = self.headers.get("If-Match")
            is_taken = self.headers.get("If-None-Match") == "*" and before is not None
            has_changed = wanted is not None and (before is None or version(before) != wanted)
            if not (is_taken or has_changed or self.server.refusing):
                self.server.objects[unquote(self.path)] = content
        self._answer(503 if self.server.refusing else 412 if is_taken or has_changed else 200, b"")

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", version(content))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the library's name
        """Nothing: the tests look at the objects."""


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with Bucket() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def s3(bucket: Bucket) -> Offloader:
    return S3Offloader(bucket.endpoint, "attic", "lamp/~", "Bearer marmalade")


async def test_messages_of_attempts_at_once_are_in_the_bucket_once(bucket: Bucket, s3: Offloader) -> None:
    attempts = [s3.offload_context("kettle", [said(1), said(2)], batch="epoch-2") for _ in range(4)]

    references = await asyncio.gather(*attempts)
    await s3.offload_context("kettle", [said(3)], batch="epoch-3")

    assert set(references) == {"s3://attic/lamp/~/sessions/kettle/context.jsonl"}
    lines = bucket.objects["/attic/lamp/~/sessions/kettle/context.jsonl"].decode().splitlines()
    assert [f"message {number}" in line for number, line in enumerate(lines, 1)] == [True] * 3
    assert bucket.authorizations == {"Bearer marmalade"}


async def test_a_result_and_its_attachment_are_kept_whole(bucket: Bucket, s3: Offloader) -> None:
    output = (TextBlock(text="x" * 2_000_000), picture())

    references = [await s3.offload_tool_result("kettle", result("../7", output)) for _ in range(2)]
    other = await s3.offload_tool_result("kettle", result("../7", "other"))

    assert set(references) == {"s3://attic/lamp/~/sessions/kettle/tool_result-%2E.%2F7.txt"}
    assert other.endswith("%2F7(1).txt")
    assert bucket.objects[f"/attic/lamp/~/data/{PIXEL_NAME}"] == PIXEL
    kept = bucket.objects[references[0].removeprefix("s3:/")].decode()
    assert kept == f"{'x' * 2_000_000}\n[image/png 'pixel.png': s3://attic/lamp/~/data/{PIXEL_NAME}]"


async def test_a_bucket_that_refuses_is_an_error(bucket: Bucket, s3: Offloader) -> None:
    bucket.refusing = True

    with pytest.raises(BucketError, match="503"):
        await s3.offload_tool_result("kettle", result("call_7", "kept"))
