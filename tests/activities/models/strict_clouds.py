"""A server of each cloud on a real port: it refuses another path, version, form of body, or sign-in than its cloud's.

Sources, 2026-11-24: docs.aws.amazon.com, "InvokeModelWithResponseStream", "Create a signed AWS API request"; Google's
"streamRawPredict"; learn.microsoft.com, "Azure OpenAI REST API reference"; the SDKs' own clients.
"""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from tests.activities.models.converse_wire import STREAM, converse_says, frame
from tests.activities.models.wire import chat_says, claude_message, claude_says, google_says, response_says

KEY, TOKEN, SECRET = "sk-of-the-cloud-moss", "token-of-the-worker-reef", "secret-of-aws-gorse"
VERSION = "2025-04-01-preview"
CLAUDE, DEPLOYED = "us.anthropic.claude-opus-4-8-v1:0", "our-deployment"
NOVA, GEMINI = "us.amazon.nova-pro-v1:0", "gemini-3-pro"


class Refused(Exception):
    pass


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.raw)
        return told


@dataclass
class WorkerHost:
    answered: Callable[[Asked], bytes]
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    tokens: int = 0
    """How often somebody signed in."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        method, path, _ = first.split(" ")
        status, (answer, kind) = 200, self._answer(Asked(method, path, headers, raw))
        if kind == "refused":
            status, kind = 400, "application/json"
        said = [f"HTTP/1.1 {status} Said", f"content-type: {kind}", f"content-length: {len(answer)}", "", ""]
        writer.write("\r\n".join(said).encode() + answer)
        await writer.drain()
        writer.close()

    def _answer(self, asked: Asked) -> tuple[bytes, str]:
        if asked.path.startswith("/token"):
            self.tokens += 1
            return json.dumps(token_of(asked)).encode(), "application/json"
        self.asked.append(asked)
        try:
            answer = self.answered(asked)
        except Refused as refused:
            error = {"type": "invalid_request_error", "message": str(refused)}
            told = {"type": "error", "error": error, "message": str(refused)}
            return json.dumps(told).encode(), "refused"
        framed = asked.path.endswith(("/invoke-with-response-stream", STREAM))
        return answer, "application/vnd.amazon.eventstream" if framed else "text/event-stream"


@asynccontextmanager
async def hosting(answered: Callable[[Asked], bytes]) -> AsyncIterator[WorkerHost]:
    told = WorkerHost(answered)
    server = await asyncio.start_server(told.serve, "127.0.0.1", 0)
    told.url = "http://{}:{}".format(*server.sockets[0].getsockname())
    async with server:
        yield told


def token_of(asked: Asked) -> dict[str, Any]:
    """As Google's token service and Azure's App Service give one out."""
    return {
        "access_token": TOKEN,
        "expires_in": 3600,
        "expires_on": "4102444800",
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "resource": asked.path,
        "token_type": "Bearer",
    }


def check(asked: Asked, path: str, *there: str, without: tuple[str, ...] = ()) -> None:
    if (asked.method, asked.path) != ("POST", path):
        raise Refused(f"there is nothing at {asked.method} {asked.path}")
    if missing := [name for name in there if name not in asked.body]:
        raise Refused(f"{missing} are missing")
    if extra := [name for name in without if name in asked.body]:
        raise Refused(f"{extra}: Extra inputs are not permitted")


def signed_in(asked: Asked, **headers: str) -> None:
    """Exactly so: a further credential is somebody else's."""
    names = ("authorization", "api-key", "x-api-key", "x-goog-api-key", "openai-organization", "x-of-the-account")
    sent = {name.replace("-", "_"): asked.headers[name] for name in names if name in asked.headers}
    if sent != headers:
        raise Refused(f"signed in with {sent}")


def azure(asked: Asked) -> bytes:
    check(asked, f"/openai/responses?api-version={VERSION}", "model", "input", "stream")
    signed_in(asked, api_key=KEY)
    return response_says("Aye.")


def azure_v1(asked: Asked) -> bytes:
    check(asked, "/openai/v1/responses?api-version=v1", "model", "input", "stream")
    signed_in(asked, authorization=f"Bearer {TOKEN}")
    return response_says("Aye.")


def azure_chat(asked: Asked) -> bytes:
    check(asked, f"/openai/deployments/{DEPLOYED}/chat/completions?api-version={VERSION}", "messages", "stream")
    signed_in(asked, authorization=f"Bearer {TOKEN}")
    return chat_says("Aye.")


def foundry(asked: Asked) -> bytes:
    check(asked, "/anthropic/v1/messages", "model", "messages", "max_tokens", "stream")
    signed_in(asked, api_key=KEY, x_api_key=KEY)
    return claude_says("Aye.")


def foundry_by_token(asked: Asked) -> bytes:
    check(asked, "/anthropic/v1/messages", "model", "messages", "max_tokens", "stream")
    signed_in(asked, authorization=f"Bearer {TOKEN}")
    return claude_says("Aye.")


def vertex(asked: Asked) -> bytes:
    at = "/v1/projects/our-project/locations/us-east5/publishers/anthropic/models"
    check(asked, f"{at}/{CLAUDE}:streamRawPredict", "anthropic_version", "messages", "max_tokens", without=("model",))
    signed_in(asked, authorization=f"Bearer {TOKEN}")
    return claude_says("Aye.")


def bedrock(asked: Asked) -> bytes:
    _check_invoked(asked)
    signed_in(asked, authorization=f"Bearer {KEY}")
    return framed("Aye.")


def bedrock_signed(asked: Asked) -> bytes:
    _check_invoked(asked)
    _check_signature(asked, "bedrock")
    return framed("Aye.")


def _check_signature(asked: Asked, service: str) -> None:
    if not asked.headers["authorization"].startswith("AWS4-HMAC-SHA256 "):
        raise Refused("signed in with no signature")
    expected = signature_of(asked, asked.headers["authorization"], service)
    if not asked.headers["authorization"].endswith(f"Signature={expected}"):
        raise Refused("The request signature we calculated does not match the signature you provided.")


def mantle(asked: Asked) -> bytes:
    check(asked, "/anthropic/v1/messages", "model", "messages", "max_tokens", "stream")
    signed_in(asked, authorization=f"Bearer {KEY}")
    return claude_says("Aye.")


def mantle_signed(asked: Asked) -> bytes:
    check(asked, "/anthropic/v1/messages", "model", "messages", "max_tokens", "stream")
    _check_signature(asked, "bedrock-mantle")
    return claude_says("Aye.")


def converse(asked: Asked) -> bytes:
    _check_conversed(asked)
    signed_in(asked, authorization=f"Bearer {KEY}")
    return converse_says("Aye.")


def converse_signed(asked: Asked) -> bytes:
    _check_conversed(asked)
    _check_signature(asked, "bedrock")
    return converse_says("Aye.")


def _check_conversed(asked: Asked) -> None:
    check(asked, f"/model/{quote(NOVA, safe='')}{STREAM}", "messages", "inferenceConfig", without=("modelId", "model"))


def gemini(asked: Asked) -> bytes:
    _check_generated(asked)
    signed_in(asked, authorization=f"Bearer {KEY}")
    return google_says("Aye.")


def gemini_by_token(asked: Asked) -> bytes:
    _check_generated(asked)
    signed_in(asked, authorization=f"Bearer {TOKEN}")
    return google_says("Aye.")


def _check_generated(asked: Asked) -> None:
    at = "/v1beta1/projects/our-project/locations/us-east5/publishers/google/models"
    check(asked, f"{at}/{GEMINI}:streamGenerateContent?alt=sse", "contents", "generationConfig", without=("model",))


def _check_invoked(asked: Asked) -> None:
    path = f"/model/{CLAUDE}/invoke-with-response-stream"
    check(asked, path, "anthropic_version", "messages", "max_tokens", without=("model", "stream"))


def signature_of(asked: Asked, authorization: str, service: str) -> str:
    """AWS's Signature Version 4 of what came, by the secret that both sides know."""
    fields = dict(part.split("=", 1) for part in authorization.partition(" ")[2].split(", "))
    scope = fields["Credential"].partition("/")[2]
    if not scope.endswith(f"/us-east-1/{service}/aws4_request"):
        raise Refused(f"Credential should be scoped to a valid region: {scope}")
    lines = "".join(f"{name}:{asked.headers[name]}\n" for name in fields["SignedHeaders"].split(";"))
    digest = hashlib.sha256(asked.raw).hexdigest()
    canonical = "\n".join(["POST", quote(asked.path, safe="/~"), "", lines, fields["SignedHeaders"], digest])
    told = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{SECRET}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    text = "\n".join(["AWS4-HMAC-SHA256", asked.headers["x-amz-date"], scope, told])
    return hmac.digest(key, text.encode(), "sha256").hex()


def framed(text: str) -> bytes:
    """A reply of Claude's as AWS's event stream has it."""
    said: list[dict[str, Any]] = [
        {"type": "message_start", "message": claude_message(input_tokens=11, output_tokens=1)},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]
    return b"".join(frame({"bytes": base64.b64encode(json.dumps(event).encode()).decode()}, "chunk") for event in said)
