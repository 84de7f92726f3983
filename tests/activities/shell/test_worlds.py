"""Lines and worlds that nobody has written: what is allowed runs, and nothing comes of it (`make fuzz` goes on)."""

import os
import random
from pathlib import Path

import pytest

from longhaul.activities.shell.environment_variables import hardened, scrubbed
from longhaul.agent.values.permission import PermissionMode
from tests.activities.corpora import fuzzing
from tests.activities.corpora.harness import picture

SEEDS = [*range(10)]
FAILED_ONCE = [1496]
"""Seeds in whose worlds something went wrong, kept for ever."""


@pytest.mark.parametrize("seed", [*SEEDS, *FAILED_ONCE])
def test_what_passes_in_a_world_of_chance_is_harmless(seed: int) -> None:
    wrong, tried, ran = fuzzing.failures(seed)

    assert wrong == []
    assert tried == fuzzing.LINES_OF_A_WORLD
    assert ran >= 1


@pytest.mark.parametrize(
    "line", ["cat ../outside/canary", "touch ../outside/ran", "sed '1e cat ../outside/canary' f", "cp f ../outside/e"]
)
def test_a_line_that_does_harm_would_be_seen(line: str, tmp_path: Path) -> None:
    made = fuzzing.world(tmp_path, random.Random(1))  # noqa: S311  lines, not secrets
    (made.root / "f").write_text("f\n")
    environment = hardened(scrubbed(os.environ)) | {"HOME": str(made.outside)}
    before = picture(made.outside)

    printed = fuzzing.run(line, made.root, environment)

    assert fuzzing.CANARY.encode() in printed or picture(made.outside) != before
    assert fuzzing.allowed(line, made, PermissionMode.ACCEPT_EDITS) is None
