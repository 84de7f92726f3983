"""Why a provider could not be reached is said, and what is no outage is not waited for."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anthropic
import httpx2
import openai
import pytest

from longhaul.activities.models.failures.failure_classification import FailureAction, judge


@asynccontextmanager
async def server(answer: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with listening:
        yield listening.sockets[0].getsockname()[1]


async def called(url: str, proxy: str | None = None) -> list[FailureAction]:
    """By both SDKs."""
    actions = []
    for kind in (openai.AsyncOpenAI, anthropic.AsyncAnthropic):
        http = httpx2.AsyncClient(proxy=proxy) if proxy else None
        client = kind(api_key="k", base_url=url, max_retries=0, http_client=http)
        with pytest.raises((openai.APIConnectionError, anthropic.APIConnectionError)) as failed:
            await client.post("/messages", cast_to=object, body={})
        await client.close()
        actions.append(judge(failed.value))
    return actions


def certificate(folder: Path) -> ssl.SSLContext:
    key, cert = folder / "key.pem", folder / "cert.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    subprocess.run([*made, "-keyout", key, "-out", cert], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


async def test_a_name_that_nobody_has_is_no_outage() -> None:
    for action in await called("http://no-such-host.invalid/v1"):
        assert (action.kind, action.sentence) == (
            "few_tries",
            "No server is named no-such-host.invalid; check base_url.",
        )


async def test_a_port_where_nobody_listens_may_be_a_server_that_starts() -> None:
    async with server(b"") as port:
        pass

    for action in await called(f"http://127.0.0.1:{port}/v1"):
        assert (action.kind, action.sentence) == ("retry", f"No server accepts connections at 127.0.0.1:{port}.")


async def test_a_certificate_that_nobody_vouches_for_is_said(tmp_path: Path) -> None:
    async with server(b"", certificate(tmp_path)) as port:
        for action in await called(f"https://localhost:{port}/v1"):
            assert (action.kind, action.error_type) == ("fall_back", "setup")
            assert action.sentence == f"The certificate of localhost:{port} is not accepted: self-signed certificate."


async def test_a_server_without_tls_is_said() -> None:
    async with server(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        for action in await called(f"https://localhost:{port}/v1"):
            assert (action.kind, action.error_type) == ("fall_back", "setup")
            assert "does not speak TLS; write http:// into base_url" in action.sentence


@pytest.mark.parametrize(
    ("line", "kind"), [("407 Proxy Authentication Required", "fall_back"), ("502 Bad Gateway", "retry")]
)
async def test_a_proxy_says_why_it_lets_nobody_through(line: str, kind: str) -> None:
    async with server(f"HTTP/1.1 {line}\r\ncontent-length: 0\r\n\r\n".encode()) as port:
        for action in await called("https://models.example/v1", proxy=f"http://127.0.0.1:{port}"):
            assert action.kind == kind
            assert f"did not connect it to the model's provider: {line}." in action.sentence
