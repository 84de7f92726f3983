"""Master keys that a service holds, and never gives away: AWS KMS, and the transit engine of Vault and OpenBao.

A service is asked once for each session and process, when its key is made or first read.
"""

import asyncio
import base64
import json
import os
import ssl
import urllib.error
import urllib.request
from functools import cached_property
from pathlib import Path
from typing import Any

from longhaul.agent.plain.errors import MissingExtra
from longhaul.stores.keys.keyring import HOW, BadKeysSetting, KeysUnavailable, WrongMaster

CONNECT_SECONDS = 3
ANSWER_SECONDS = 8
"""What waits for a key is tried again; a signal or an update waits as long as this."""
LONGEST_ANSWER_BYTES = 100_000
ABOUT = "longhaul-key"
"""Name of the entry in the encryption context that has the id of the key that is wrapped."""
_DENIED = ("AccessDeniedException", "NotFoundException", "DisabledException", "KMSInvalidStateException")


class KmsKey:
    """A symmetric key of AWS KMS, by its ARN, id or alias. boto3 finds region, credentials and address."""

    def __init__(self, key: str) -> None:
        """Raises BadKeysSetting, MissingExtra."""
        if not key:
            raise BadKeysSetting(f"LONGHAUL_MASTER_KEY: aws-kms: names no key; {HOW}")
        try:
            import boto3  # type: ignore[import-untyped]  # noqa: F401, PLC0415  who starts without it hears so at once
        except ModuleNotFoundError as error:
            raise MissingExtra(
                f"{error.name!r} is not installed; it comes with an extra: pip install 'longhaul-agents[kms]'"
            ) from error
        self.name = f"aws-kms:{key}"
        self._key = key

    @cached_property
    def _client(self) -> Any:
        import boto3  # noqa: PLC0415  as above
        from botocore.config import Config  # type: ignore[import-untyped]  # noqa: PLC0415

        limits = {"connect_timeout": CONNECT_SECONDS, "read_timeout": ANSWER_SECONDS}
        return boto3.client("kms", config=Config(retries={"total_max_attempts": 2}, **limits))

    async def wrap(self, data_key: bytes, key_id: str) -> bytes:
        """Raises KeysUnavailable."""
        answer = await self._ask("encrypt", Plaintext=data_key, EncryptionContext={ABOUT: key_id})
        return bytes(answer["CiphertextBlob"])

    async def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        """Raises WrongMaster, KeysUnavailable."""
        answer = await self._ask("decrypt", CiphertextBlob=wrapped, EncryptionContext={ABOUT: key_id})
        return bytes(answer["Plaintext"])

    async def _ask(self, what: str, **fields: Any) -> dict[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]  # noqa: PLC0415

        try:
            return dict(await asyncio.to_thread(lambda: getattr(self._client, what)(KeyId=self._key, **fields)))
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if code in ("InvalidCiphertextException", "IncorrectKeyException"):
                raise WrongMaster(
                    f"LONGHAUL_MASTER_KEY: {self.name!r} is not the key that a session's key was wrapped by; set that "
                    "one too"
                ) from None
            remedy = "see the key, its policy and the worker's role" if code in _DENIED else "it is tried again"
            raise KeysUnavailable(f"keys: AWS KMS refuses {what} with {self.name!r} ({code}); {remedy}") from error
        except BotoCoreError as error:  # no credentials, no region, no answer
            raise KeysUnavailable(f"keys: AWS KMS can't be asked for {self.name!r}: {error}") from error


class VaultKey:
    """A key of a transit engine, `KEY` or `MOUNT/KEY`, of a type with associated data such as aes256-gcm96.

    VAULT_ADDR, VAULT_TOKEN (else the file `~/.vault-token`, which an agent keeps fresh), VAULT_NAMESPACE and
    VAULT_CACERT say where and as whom, as they do for Vault's own command.
    """

    def __init__(self, key: str) -> None:
        """Raises BadKeysSetting."""
        mount, _, name = key.rpartition("/")
        address = os.environ.get("VAULT_ADDR", "")
        if not name:
            raise BadKeysSetting(f"LONGHAUL_MASTER_KEY: vault: names no key; {HOW}")
        if not address.startswith(("https://", "http://")):
            raise BadKeysSetting(
                f"VAULT_ADDR: {address[:80]!r} is no address; set it to that of Vault, https://HOST:8200"
            )
        self.name = f"vault:{mount or 'transit'}/{name}"
        self._base, self._mount, self._key = address.rstrip("/"), mount or "transit", name

    async def wrap(self, data_key: bytes, key_id: str) -> bytes:
        """Raises KeysUnavailable."""
        answer = await self._ask("encrypt", plaintext=_base64(data_key), associated_data=_base64(key_id.encode()))
        return str(answer["ciphertext"]).encode("ascii")

    async def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        """Raises WrongMaster, KeysUnavailable."""
        about = _base64(key_id.encode())
        answer = await self._ask("decrypt", ciphertext=wrapped.decode("ascii", "replace"), associated_data=about)
        return base64.b64decode(answer["plaintext"])

    async def _ask(self, what: str, **fields: str) -> dict[str, Any]:
        try:
            return dict((await asyncio.to_thread(self._posted, what, fields))["data"])
        except urllib.error.HTTPError as error:
            # Vault tells a key that can't decrypt by this status alone; its words differ from release to release.
            if error.code == 400 and what == "decrypt":
                raise WrongMaster(
                    f"LONGHAUL_MASTER_KEY: {self.name!r} is not the key that a session's key was wrapped by; set that "
                    "one too"
                ) from None
            remedy = "see VAULT_TOKEN, its policy and the key" if error.code in (400, 403, 404) else "it is tried again"
            raise KeysUnavailable(
                f"keys: Vault at {self._base!r} refuses {what} with {self.name!r} (HTTP {error.code}); {remedy}"
            ) from error
        except (OSError, ValueError, KeyError) as error:
            raise KeysUnavailable(f"keys: Vault at {self._base!r} can't be asked: {type(error).__name__}") from error

    def _posted(self, what: str, fields: dict[str, str]) -> Any:
        token = os.environ.get("VAULT_TOKEN", "")
        if not token:
            token = (Path.home() / ".vault-token").read_text(encoding="ascii")
        headers = {"X-Vault-Token": token.strip(), "X-Vault-Request": "true", "Content-Type": "application/json"}
        if namespace := os.environ.get("VAULT_NAMESPACE"):
            headers["X-Vault-Namespace"] = namespace
        trusted = ssl.create_default_context(cafile=os.environ.get("VAULT_CACERT") or None)
        request = urllib.request.Request(  # noqa: S310  the scheme was checked above
            f"{self._base}/v1/{self._mount}/{what}/{self._key}", json.dumps(fields).encode(), headers, method="POST"
        )
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS, context=trusted) as answer:  # noqa: S310  as above
            return json.loads(answer.read(LONGEST_ANSWER_BYTES))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
