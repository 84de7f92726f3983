"""The header that says for which reply an activity works."""

import json

import pytest
from temporalio.api.common.v1 import Payload

from longhaul.activities.telemetry.attempts import header_in


@pytest.mark.parametrize(("named", "read"), [(199_900, True), (200_001, False)])
def test_a_trace_header_of_more_than_200000_bytes_is_not_read(named: int, read: bool) -> None:
    payload = Payload(data=json.dumps({"reply": "x" * named}).encode())

    assert bool(header_in({"longhaul-trace": payload}).reply) is read
