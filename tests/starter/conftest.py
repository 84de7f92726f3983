"""What several tests of callers need."""

import os
import time
from collections.abc import Iterator

import pytest


@pytest.fixture
def in_berlin() -> Iterator[None]:
    """The reader's machine is in Berlin while the test runs."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Europe/Berlin"
    time.tzset()
    yield
    os.environ.pop("TZ")
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()
