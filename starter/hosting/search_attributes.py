"""The search attributes of a namespace: known to the server, or made known to it."""

import re

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError

from longhaul.agent.plain.errors import BadSetup
from longhaul.workflows.contract import SEARCH_ATTRIBUTES


class NotRegistered(BadSetup):
    """Sessions could not be indexed here, and the line that mends it."""


async def register_search_attributes(client: Client) -> None:
    """Make sure that the server knows our attributes: an unknown one fails a workflow task for ever."""
    try:
        listed = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace)
        )
        missing = {name: kind for name, kind in SEARCH_ATTRIBUTES.items() if name not in listed.custom_attributes}
        if missing:
            await client.operator_service.add_search_attributes(
                AddSearchAttributesRequest(
                    namespace=client.namespace,
                    search_attributes={name: value_type(kind) for name, kind in missing.items()},
                )
            )
    except RPCError as error:
        flags = " ".join(f"--name {name} --type {kind}" for name, kind in SEARCH_ATTRIBUTES.items())
        raise NotRegistered(
            f"the search attributes could not be checked or registered ({error}); run\n"
            f"  temporal operator search-attribute create {flags}\n"
            "or set LONGHAUL_SEARCH_ATTRIBUTES=off for worker and clients"
        ) from error


def value_type(kind: str) -> IndexedValueType.ValueType:
    """As the API spells what the command line calls `KeywordList`."""
    return IndexedValueType.Value(f"INDEXED_VALUE_TYPE_{re.sub('(?<=[a-z])(?=[A-Z])', '_', kind).upper()}")
