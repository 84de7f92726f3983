"""How values cross to Temporal and back: pydantic JSON, and nothing that a stranger sends can stop a session."""

from collections.abc import Sequence
from dataclasses import fields

from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter


class PlainPayloads(DataConverter):
    """Takes payloads as they are.

    The SDK resolves references to external storage before our code runs, and fails the workflow task for ever when
    it can't: one forged signal would stop a session. We store nothing outside, so whatever looks like a reference
    is forged; left as it is, it reaches `letters.decode`, which refuses its encoding.
    """

    async def _decode_reference_payload_sequence(self, payloads: Sequence[Payload]) -> list[Payload]:
        return list(payloads)

    async def _external_retrieve_payload_sequence(self, payloads: Sequence[Payload]) -> list[Payload]:
        return list(payloads)


DATA_CONVERTER: DataConverter = PlainPayloads(
    **{field.name: getattr(pydantic_data_converter, field.name) for field in fields(DataConverter) if field.init}
)
