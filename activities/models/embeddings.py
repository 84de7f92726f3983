"""Vectors of texts by a server that speaks OpenAI's embeddings API. Which key goes to which address is decided as for
models: by the operator's profiles and list."""

import asyncio
import importlib.util
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from longhaul.activities.models.apis.vendors import OPENAI, left_out
from longhaul.activities.models.failures.status_table import SetupError
from longhaul.activities.models.model import scrub_json
from longhaul.activities.models.model_limits import Called
from longhaul.activities.models.providers import Providers
from longhaul.agent.plain.errors import MissingExtra
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.stores.memories.vectors import Meaning, NoVectors, Retrieval, packed

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import CreateEmbeddingResponse

SETTING = "LONGHAUL_EMBEDDINGS"
WORKER_SECONDS = 8.0
"""For one try; a session waits for it, and does without when it takes longer."""
PATIENT_SECONDS = 60.0
LONGEST_CHARS = 8_000
"""Of one text: servers refuse what has more than 8,191 tokens."""
REFUSALS = (400, 413, 422)
"""What servers answer to a text that they can't take; some take 512 tokens."""


def open_meaning(
    setting: str, retrieval: Retrieval, providers: Providers, masked: Callable[[str], str], *, patient: bool = False
) -> Meaning | None:
    """What the setting names; None where embeddings are off. Nothing is asked yet, and no SDK imported.

    `masked` takes secrets out of what is sent. `patient`: nobody waits for a reply. Raises SetupError and
    MissingExtra.
    """
    if not setting:
        return None
    if importlib.util.find_spec("numpy") is None:
        raise MissingExtra(f"{SETTING}: 'numpy' is not installed: pip install 'longhaul-agents[vectors]'")
    called = providers.look_up(setting, ModelConfig())
    if called is None or called.name.provider not in ("openai", "openai-chat"):
        raise SetupError(
            f"{SETTING}: {setting[:100]!r} names no model of embeddings; write openai:NAME, or the name of a profile "
            'whose provider is "openai"'
        )
    return Meaning(Embeddings(called, providers, masked, patient=patient), retrieval)


class Embeddings:
    def __init__(self, called: Called, providers: Providers, masked: Callable[[str], str], *, patient: bool) -> None:
        """Raises SetupError for an address to which this worker does not send that key."""
        self._base_url, self._key_env = providers.way(called)
        self._called, self._providers, self._masked = called, providers, masked
        self._patient = patient
        self._client: AsyncOpenAI | None = None
        self._making = asyncio.Lock()

    @property
    def name(self) -> str:
        """The address too, and what the profile adds: the same name elsewhere may be another model."""
        profile = self._called.profile
        further = json.dumps(profile.extra_body, sort_keys=True) if profile and profile.extra_body else ""
        return f"{self._called.name.name} at {self._base_url} {further}".strip()

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """As `stores.memories.vectors.Embedder`."""
        asked = [self._masked(text)[:LONGEST_CHARS] or " " for text in texts]
        try:
            said = await self._request(asked)
            vectors = {each.index: packed(each.embedding) for each in said.data}
        except NoVectors:
            raise
        except Exception as error:  # noqa: BLE001  the SDK may raise anything of what a server answers; see the docstring
            # Something that no sentence holds where the worker has no key.
            try:
                key = self._providers.read_key(self._key_env)
            except SetupError:
                key = "\0"
            why = self._masked(str(error).replace(key, "…"))[:300]
            refused = getattr(error, "status_code", 0) in REFUSALS
            raise NoVectors(f"{SETTING}: no vectors came: {type(error).__name__}: {why}", refused=refused) from None
        if set(vectors) != set(range(len(texts))):
            raise NoVectors(f"{SETTING}: {len(vectors)} vectors came for {len(texts)} texts")
        return [vectors[at] for at in range(len(texts))]

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _request(self, texts: list[str]) -> "CreateEmbeddingResponse":
        async with self._making:
            if self._client is None:
                # In a thread: importing the SDK takes a second, which the event loop must not stand still for.
                key = self._providers.read_key(self._key_env)
                self._client = await asyncio.to_thread(self._make_client, key)
        profile = self._called.profile
        return await self._client.embeddings.create(
            model=self._called.name.name,
            input=texts,
            encoding_format="float",
            extra_headers=dict(profile.headers) if profile else None,
            extra_body=scrub_json(profile.extra_body) if profile else None,
        )

    def _make_client(self, key: str) -> "AsyncOpenAI":
        import openai  # noqa: PLC0415  a worker has to start within a second

        # Of another account the SDK would add what the environment says of the usual one.
        headers = None if self._called.profile is None else left_out(openai.Omit(), key, *OPENAI)
        seconds, tries = (PATIENT_SECONDS, 5) if self._patient else (WORKER_SECONDS, 1)
        return openai.AsyncOpenAI(
            api_key=key, base_url=self._base_url, max_retries=tries - 1, timeout=seconds, default_headers=headers
        )
