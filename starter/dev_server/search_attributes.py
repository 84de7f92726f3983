"""Search attributes of a namespace, compared by name and by type with those that sessions need: one of another type is
as good as none, and no session could start.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client

VALUE_TYPES: Mapping[str, IndexedValueType.ValueType] = MappingProxyType(
    {
        "Bool": IndexedValueType.INDEXED_VALUE_TYPE_BOOL,
        "Datetime": IndexedValueType.INDEXED_VALUE_TYPE_DATETIME,
        "Double": IndexedValueType.INDEXED_VALUE_TYPE_DOUBLE,
        "Int": IndexedValueType.INDEXED_VALUE_TYPE_INT,
        "Keyword": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
        "KeywordList": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
        "Text": IndexedValueType.INDEXED_VALUE_TYPE_TEXT,
    }
)
"""By the name that the command line has for each."""


@dataclass(frozen=True, slots=True)
class OtherType:
    """An attribute that has the name of one of ours, and another type."""

    name: str
    found: str
    needed: str

    def __str__(self) -> str:
        return f"{self.name} is of type {self.found} and has to be of type {self.needed}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a namespace lacks of what is needed."""

    missing: Mapping[str, str]
    """Name to type."""
    others: tuple[OtherType, ...]

    @property
    def is_complete(self) -> bool:
        return not self.missing and not self.others

    @property
    def remedy(self) -> str:
        """Commands for those of another type. A type can't be changed; on Temporal Cloud nothing can be removed."""
        names = " ".join(f"--name {other.name}" for other in self.others)
        kinds = " ".join(f"--name {other.name} --type {other.needed}" for other in self.others)
        return (
            "remove and create what has another type (its index is lost): "
            f"`temporal operator search-attribute remove --yes {names}`, then "
            f"`temporal operator search-attribute create {kinds}`; on Temporal Cloud rename it with "
            "`tcld namespace search-attributes rename`; or use another namespace, or set "
            "LONGHAUL_SEARCH_ATTRIBUTES=off for workers and clients"
        )


async def compare(client: Client, needed: Mapping[str, str]) -> Comparison:
    """With those of the client's namespace. Raises RPCError."""
    listed = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    found = {name: name_of_type(number) for name, number in listed.custom_attributes.items()}
    return Comparison(
        {name: kind for name, kind in needed.items() if name not in found},
        tuple(OtherType(name, found[name], kind) for name, kind in needed.items() if found.get(name, kind) != kind),
    )


async def register(client: Client, missing: Mapping[str, str]) -> None:
    """Raises RPCError."""
    await client.operator_service.add_search_attributes(
        AddSearchAttributesRequest(
            namespace=client.namespace,
            search_attributes={name: VALUE_TYPES[kind] for name, kind in missing.items()},
        )
    )


def name_of_type(number: IndexedValueType.ValueType) -> str:
    """As the command line calls it; the bare number of a type that this build does not know."""
    return next((kind for kind, known in VALUE_TYPES.items() if known == number), str(number))
