"""Mistakes in how Temporal is reached are sentences that name the variable."""

import asyncio
import contextlib
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from longhaul.starter.connection.connect import BadConnection, Unreachable, connect, why_not_reached

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
     ("false", b"", "closes the connection; set TEMPORAL_TLS=true if it needs TLS")],
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


class Authority:
    """Signs certificates, and keeps them in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = folder / "authority.pem"
        self._written(self.file, _named("authority"), self._key.public_key(), days=(-1, 1), is_authority=True)

    def server(self, name: str, days: tuple[int, int]) -> ssl.SSLContext:
        """What a server of that name shows; it holds from and until so many days from now."""
        key, file = ec.generate_private_key(ec.SECP256R1()), self._folder / "server.pem"
        self._written(file, _named(name), key.public_key(), days=days, is_authority=False)
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        file.write_bytes(file.read_bytes() + secret)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        context.set_alpn_protocols(["h2"])
        return context

    def _written(
        self, file: Path, name: x509.Name, key: ec.EllipticCurvePublicKey, *, days: tuple[int, int], is_authority: bool
    ) -> None:
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder(_named("authority"), name, key, x509.random_serial_number())
            .not_valid_before(now + timedelta(days=days[0]))
            .not_valid_after(now + timedelta(days=days[1]))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.DNSName(str(name.get_attributes_for_oid(COMMON)[0].value))]),
                critical=False,
            )
        )
        file.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))


COMMON = x509.NameOID.COMMON_NAME


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(COMMON, name)])


MISTAKES: dict[str, tuple[str, tuple[int, int], bool, bool, str]] = {
    "nobody has signed": ("localhost", (-1, 1), False, False, "UnknownIssuer; name who signed it in .*CA_CERT_PATH"),
    "another name": (
        "elsewhere.example", (-1, 1), True, False, "it is for elsewhere.example; set TEMPORAL_TLS_SERVER_NAME",
    ),
    "expired": ("localhost", (-9, -1), True, False, "it has expired; have it renewed"),
    "not yet": ("localhost", (1, 2), True, False, "it is not valid yet; check this machine's clock"),
    "wants a certificate": (
        "localhost", (-1, 1), True, True, "closes the connection after the handshake; if it needs a certificate, set",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_what_is_wrong_with_certificates_is_told(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, days, is_trusted, wants_one, sentence = MISTAKES[mistake]
    authority = Authority(tmp_path)
    context = authority.server(name, days)
    if wants_one:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.file)
    monkeypatch.setenv("TEMPORAL_TLS", "true")
    if is_trusted:
        monkeypatch.setenv(CA, str(authority.file))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await reader.read(1)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        with pytest.raises(Unreachable, match=sentence):
            await connect(f"localhost:{server.sockets[0].getsockname()[1]}")


def test_a_server_that_closes_before_its_reason_is_read_is_told_like_one_that_says_it() -> None:
    told = 'Transport, hyper::Error(Io, Custom { kind: Other, error: "connection closed" })'
    assert "if it needs a certificate" in why_not_reached(RuntimeError(told), tls=True)


def test_a_file_without_a_certificate_is_told() -> None:
    assert "PEM" in why_not_reached(RuntimeError("error::Error(Transport, NoCertificatesPresented)"), tls=True)
