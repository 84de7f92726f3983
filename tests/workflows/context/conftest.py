"""The provider that these tests share."""

from collections.abc import AsyncIterator

import pytest

from tests.activities.models.strict import Strict, on_a_strict_port


@pytest.fixture
async def strict() -> AsyncIterator[Strict]:
    async with on_a_strict_port() as told:
        yield told
