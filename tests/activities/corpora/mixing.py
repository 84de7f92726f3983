"""Lines that nobody has written: plain ones with words of hostile ones in them, and hostile ones with words gone."""

import random
import re
from collections.abc import Iterator

from tests.activities.corpora.stage import corpus

_JOINING = (" ", " && ", "; ", " | ", " || ", "\n", " -- ", " 2>&1 ")


def mixed(seed: int) -> Iterator[str]:
    """Without end, each line once, and always the same for the same seed. None that waits."""
    chance = random.Random(seed)  # noqa: S311  lines, not secrets
    hostile = [line.text for line in corpus("hostile.txt")]
    plain = [line.text for line in corpus("benign.txt")]
    words = [word for line in hostile for word in line.split()]
    seen: set[str] = set()
    while True:
        line = _mixed(chance, plain, hostile, words)
        if line not in seen and "sleep" not in line:
            seen.add(line)
            yield line


def _mixed(chance: random.Random, plain: list[str], hostile: list[str], words: list[str]) -> str:
    how, parts, other = chance.random(), _parts(chance.choice(plain)), _parts(chance.choice(hostile))
    if how < 0.35:
        parts.insert(chance.randrange(len(parts) + 1), f" {chance.choice(words)} ")
    elif how < 0.55:
        parts[2 * chance.randrange((len(parts) + 1) // 2)] = chance.choice(words)
    elif how < 0.7:
        parts += [chance.choice(_JOINING), *other]
    elif how < 0.85:
        parts = other
        del parts[chance.randrange(len(parts))]
    else:
        more = _parts(chance.choice(hostile))
        parts = other[: chance.randrange(len(other) + 1)] + more[chance.randrange(len(more) + 1) :]
    return "".join(parts)


def _parts(line: str) -> list[str]:
    """Words, and what stands between them."""
    return re.findall(r"\S+|\s+", line)
