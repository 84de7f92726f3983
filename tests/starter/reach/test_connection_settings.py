"""Mistakes in how Temporal is reached are sentences that name the variable."""

import asyncio
from pathlib import Path

import pytest

from longhaul.starter.reach.connection import Unreachable, connect
from longhaul.starter.reach.connection_settings import BadConnection, why_not_reached

CERT, KEY, CA = (
    "TEMPORAL_TLS_CLIENT_CERT_PATH",
    "TEMPORAL_TLS_CLIENT_KEY_PATH",
    "TEMPORAL_TLS_SERVER_CA_CERT_PATH",
)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"TEMPORAL_PROFILE": "prod"}, "Profile 'prod' not found in .*see TEMPORAL_PROFILE"),
        ({CERT: "/nope", KEY: "/nope2"}, f"{CERT}: '/nope' can't be read: No such file"),
        ({CA: "/nope"}, f"{CA}: '/nope' can't be read: No such file"),
        ({CERT: "empty"}, f"{CERT} and {KEY} are set together or not at all"),
        ({"TEMPORAL_CONFIG_FILE": "broken"}, "TOML parse error at line 1"),
    ],
    ids=["profile", "certificate", "authority", "no key", "file"],
)
async def test_what_can_not_be_read_is_named(
    said: dict[str, str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "broken").write_text("profile = [")
    monkeypatch.chdir(tmp_path)
    for name, value in said.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(BadConnection, match=sentence):
        await connect("127.0.0.1:1")


@pytest.mark.parametrize(
    ("tls", "answer", "sentence"),
    [("true", b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak TLS there; unset TEMPORAL_TLS"),
     ("false", b"", "hangs up; set TEMPORAL_TLS=true if it wants TLS")],
)  # fmt: skip
async def test_a_port_of_the_other_kind_is_told(
    tls: str, answer: bytes, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        writer.close()

    monkeypatch.setenv("TEMPORAL_TLS", tls)
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        with pytest.raises(Unreachable, match=sentence):
            await connect(f"{host}:{port}")


def test_a_certificate_that_is_not_trusted_is_told() -> None:
    told = RuntimeError("ConnectError(Custom { kind: InvalidData, error: InvalidCertificate(UnknownIssuer) })")

    assert why_not_reached(told, tls=True).startswith("its certificate is not trusted here: UnknownIssuer; name who")
    assert "PEM" in why_not_reached(RuntimeError("error::Error(Transport, NoCertificatesPresented)"), tls=True)
