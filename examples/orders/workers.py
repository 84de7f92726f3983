"""The shop's connection to Temporal, with a codec of its own, and its workers. Start them with

LONGHAUL_TOOLS=examples.orders.activities python -m examples.orders.workers
"""

import asyncio
import base64
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import PayloadCodec
from temporalio.worker import Worker

from examples.orders.activities import hand_over, issue_refund
from examples.orders.workflows import OrderWorkflow
from longhaul import LonghaulPlugin


class ShopCodec(PayloadCodec):
    """Encrypts with the key in ORDERS_KEY: 32 bytes in base64, as `openssl rand -base64 32` prints them."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata={"encoding": b"shop/aes"}, data=self._encrypt(each)) for each in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._decrypt(each) if each.metadata["encoding"] == b"shop/aes" else each for each in payloads]

    def _encrypt(self, payload: Payload) -> bytes:
        nonce = os.urandom(12)
        return nonce + self._key().encrypt(nonce, payload.SerializeToString(), None)

    def _decrypt(self, payload: Payload) -> Payload:
        return Payload.FromString(self._key().decrypt(payload.data[:12], payload.data[12:], None))

    def _key(self) -> AESGCM:
        return AESGCM(base64.b64decode(os.environ["ORDERS_KEY"]))


CONVERTER = replace(pydantic_data_converter, payload_codec=ShopCodec())


async def connect(address: str | None = None, plugin: LonghaulPlugin | None = None) -> Client:
    address = address or os.environ.get("TEMPORAL_ADDRESS", "localhost:7233")
    return await Client.connect(address, data_converter=CONVERTER, plugins=[plugin or LonghaulPlugin()])


@asynccontextmanager
async def working(client: Client) -> AsyncIterator[None]:
    """The shop's workers; the plugin of their client adds the agents'."""
    orders = Worker(client, task_queue="orders", workflows=[OrderWorkflow], activities=[hand_over])
    async with orders, Worker(client, task_queue="payments", activities=[issue_refund]):
        yield


async def main() -> None:
    async with working(await connect()):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
