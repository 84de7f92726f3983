"""The kinds of search attributes, as the server wants them."""

from temporalio.api.enums.v1 import IndexedValueType

from longhaul.starter.hosting.requirements import value_type
from longhaul.workflows.contract import SEARCH_ATTRIBUTES


def test_each_kind_has_a_name_that_the_server_knows() -> None:
    assert {kind: value_type(kind) for kind in SEARCH_ATTRIBUTES.values()} == {
        "Keyword": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
        "KeywordList": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
        "Datetime": IndexedValueType.INDEXED_VALUE_TYPE_DATETIME,
        "Int": IndexedValueType.INDEXED_VALUE_TYPE_INT,
        "Double": IndexedValueType.INDEXED_VALUE_TYPE_DOUBLE,
    }
