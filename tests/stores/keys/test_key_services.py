"""Master keys that a service holds: AWS KMS as moto's server answers, and a server that answers as Vault's transit
engine does, with real encryption, versions and refusals."""

import base64
import json
import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from moto.server import ThreadedMotoServer

from longhaul.stores.keys import keyring
from longhaul.stores.keys.keyring import BadKeysSetting, Keyring, KeysUnavailable, Masters, WrongMaster
from longhaul.stores.keys.open_keyring import open_keys

LOCAL = f"local:{base64.b64encode(os.urandom(32)).decode()}"
TOKEN = "hvs.of-the-worker"


class Transit(BaseHTTPRequestHandler):
    """`encrypt` and `decrypt` of one key, `longhaul`, at the mount `transit`."""

    keys: list[bytes]
    """Its versions, the oldest first."""
    sealed: bool
    asked: list[str]

    def do_POST(self) -> None:
        body: dict[str, str] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(self.path)
        if self.sealed:
            return self.answer(503, {"errors": ["Vault is sealed"]})
        if self.headers["X-Vault-Token"] != TOKEN:
            return self.answer(403, {"errors": ["permission denied"]})
        about = base64.b64decode(body["associated_data"])
        match self.path:
            case "/v1/transit/encrypt/longhaul":
                nonce = os.urandom(12)
                sealed = nonce + AESGCM(self.keys[-1]).encrypt(nonce, base64.b64decode(body["plaintext"]), about)
                spelt = f"vault:v{len(self.keys)}:{base64.b64encode(sealed).decode()}"
                return self.answer(200, {"data": {"ciphertext": spelt, "key_version": len(self.keys)}})
            case "/v1/transit/decrypt/longhaul":
                _, version, spelt = body["ciphertext"].split(":")
                sealed = base64.b64decode(spelt)
                try:
                    plain = AESGCM(self.keys[int(version[1:]) - 1]).decrypt(sealed[:12], sealed[12:], about)
                except InvalidTag:
                    return self.answer(400, {"errors": ["cipher: message authentication failed"]})
                return self.answer(200, {"data": {"plaintext": base64.b64encode(plain).decode()}})
            case _:
                return self.answer(400, {"errors": ["encryption key not found"]})

    def answer(self, status: int, body: dict[str, Any]) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name
        """Tests are quiet."""


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Transit]]:
    class Own(Transit):
        keys, sealed, asked = [os.urandom(32)], False, []

    with ThreadingHTTPServer(("127.0.0.1", 0), Own) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("VAULT_ADDR", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("VAULT_TOKEN", TOKEN)
        yield Own
        server.shutdown()


@pytest.fixture
def kms_key(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The ARN of a key."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL_KMS": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "of-a-test",
        "AWS_SECRET_ACCESS_KEY": "of-a-test",
        "AWS_DEFAULT_REGION": "eu-central-1",
    }.items():
        monkeypatch.setenv(name, value)
    yield str(boto3.client("kms").create_key(Description="sessions")["KeyMetadata"]["Arn"])
    server.stop()


def opened(folder: Path, masters: str) -> Keyring:
    return Keyring(open_keys("", data_dir=folder), Masters(masters))


async def sealed_by(masters: str, folder: Path) -> tuple[str, bytes]:
    keys = opened(folder, masters)
    try:
        return await keys.encrypt("a-session", b"secret", begins=True)
    finally:
        await keys.close()


async def opened_by(masters: str, folder: Path, sealed: tuple[str, bytes]) -> bytes:
    keys = opened(folder, masters)
    try:
        return await keys.decrypt("a-session", *sealed)
    finally:
        await keys.close()


async def test_sessions_are_encrypted_under_a_key_of_aws_and_read_by_another_process(
    kms_key: str, tmp_path: Path
) -> None:
    sealed = await sealed_by(f"aws-kms:{kms_key}", tmp_path)

    assert await opened_by(f"aws-kms:{kms_key}", tmp_path, sealed) == b"secret"
    with pytest.raises(WrongMaster, match=f"the master key 'aws-kms:{kms_key}' is needed, and is not among local"):
        await opened_by(LOCAL, tmp_path, sealed)


async def test_what_a_key_of_aws_wrapped_is_bound_to_the_id_of_the_session_key(kms_key: str) -> None:
    master = Masters(f"aws-kms:{kms_key}")
    wrapped = await master.wrap(b"k" * 32, "first-id")

    assert await master.unwrap(wrapped, "first-id", master.newest) == b"k" * 32
    with pytest.raises(WrongMaster, match="is not the key that a session's key was wrapped by"):
        await master.unwrap(wrapped, "second-id", master.newest)


async def test_aws_that_refuses_or_is_not_there_is_waited_for(kms_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeysUnavailable, match=r"refuses encrypt .* \(NotFoundException\); see the key, its policy"):
        await Masters("aws-kms:alias/none").wrap(b"k" * 32, "id")
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", "http://127.0.0.1:9")
    with pytest.raises(KeysUnavailable, match="AWS KMS can't be asked"):
        await Masters(f"aws-kms:{kms_key}").wrap(b"k" * 32, "id")


async def test_sessions_are_encrypted_under_a_key_of_vault_before_and_after_it_is_rotated(
    vault: type[Transit], tmp_path: Path
) -> None:
    sealed = await sealed_by("vault:longhaul", tmp_path)
    vault.keys.append(os.urandom(32))
    (tmp_path / "later").mkdir()
    later = await sealed_by("vault:longhaul", tmp_path / "later")

    assert await opened_by("vault:transit/longhaul", tmp_path, sealed) == b"secret"
    assert await opened_by("vault:longhaul", tmp_path / "later", later) == b"secret"
    assert [path.split("/")[3] for path in vault.asked] == ["encrypt", "decrypt"] * 2 + ["decrypt"] * 2


async def test_vault_that_refuses_is_explained(vault: type[Transit], monkeypatch: pytest.MonkeyPatch) -> None:
    master = Masters("vault:longhaul")
    wrapped = await master.wrap(b"k" * 32, "first-id")

    with pytest.raises(WrongMaster, match="'vault:transit/longhaul' is not the key"):
        await master.unwrap(wrapped, "second-id", master.newest)
    with pytest.raises(KeysUnavailable, match=r"refuses encrypt with 'vault:transit/none' \(HTTP 400\)"):
        await Masters("vault:none").wrap(b"k" * 32, "id")
    vault.sealed = True
    with pytest.raises(KeysUnavailable, match=r"\(HTTP 503\); it is tried again"):
        await master.unwrap(wrapped, "first-id", master.newest)
    vault.sealed = False
    monkeypatch.setenv("VAULT_TOKEN", "hvs.revoked")
    with pytest.raises(KeysUnavailable, match=r"\(HTTP 403\); see VAULT_TOKEN"):
        await master.unwrap(wrapped, "first-id", master.newest)
    monkeypatch.setenv("VAULT_ADDR", "http://127.0.0.1:9")
    with pytest.raises(KeysUnavailable, match="can't be asked"):
        await Masters("vault:longhaul").wrap(b"k" * 32, "id")


async def test_keys_move_from_one_holder_to_another(vault: type[Transit], kms_key: str, tmp_path: Path) -> None:
    sealed = await sealed_by(LOCAL, tmp_path)
    for masters in (f"vault:longhaul,{LOCAL}", f"aws-kms:{kms_key},vault:longhaul"):
        keys = opened(tmp_path, masters)
        assert await keys.rewrap() == (1, 1)
        await keys.close()

    assert await opened_by(f"aws-kms:{kms_key}", tmp_path, sealed) == b"secret"


async def test_a_key_that_is_looked_up_again_and_has_not_changed_asks_its_service_once(
    vault: type[Transit], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyring, "RECHECK_SECONDS", 0.0)
    keys = opened(tmp_path, "vault:longhaul")
    sealed = await keys.encrypt("a-session", b"secret", begins=True)
    vault.sealed = True
    read = [await keys.decrypt("a-session", *sealed) for _ in range(3)]
    await keys.close()

    assert read == [b"secret"] * 3
    assert [path.split("/")[3] for path in vault.asked] == ["encrypt", "decrypt"]


class OwnKey:
    """As an operator writes one."""

    name = "own:1"

    async def wrap(self, data_key: bytes, key_id: str) -> bytes:
        return key_id.encode() + data_key[::-1]

    async def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        return wrapped.removeprefix(key_id.encode())[::-1]


async def test_an_operators_own_provider_is_named_by_its_class(tmp_path: Path) -> None:
    own = "provider:tests.stores.keys.test_key_services:OwnKey"
    sealed = await sealed_by(own, tmp_path)

    assert Masters(own).newest == "own:1"
    assert await opened_by(own, tmp_path, sealed) == b"secret"


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("aws-kms:", "aws-kms: names no key"),
        ("vault:", "vault: names no key"),
        ("provider:os:sep", "'os:sep' has no name, wrap and unwrap"),
        ("provider:nowhere:Key", "the provider 'nowhere:Key' can't be loaded"),
    ],
)
def test_a_holder_that_cannot_be_is_explained(setting: str, why: str, vault: type[Transit]) -> None:
    with pytest.raises(BadKeysSetting, match=why):
        Masters(setting)


def test_vault_without_an_address_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VAULT_ADDR", raising=False)
    with pytest.raises(BadKeysSetting, match="VAULT_ADDR: '' is no address"):
        Masters("vault:longhaul")
