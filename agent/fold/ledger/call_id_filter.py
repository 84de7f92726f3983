"""Call ids of long ago, of which only is kept whether they were used: three bytes each, without ever missing one.

A Bloom filter to each eight thousand calls. It may say "yes" of an id that was never there: each of them once in eight
hundred times when it is full; such a call then gets an id of our own, as one does that repeats an older id.
"""

import base64
from collections.abc import Mapping
from hashlib import blake2b

from longhaul.agent.fold.ledger.ledger_values import Forgotten

KEPT_NAMES = 200
"""The newest calls, which are known by name."""
FILTER_CALLS = 8_000
_FILTER_BYTES = 2**14
_PROBES = 5


def was_there(forgotten: tuple[Forgotten, ...], call_id: str) -> bool:
    """Whether the id was used, or perhaps so."""
    places = _places(call_id)
    return any(_holds(base64.b64decode(filled.bits), places) for filled in forgotten)


def forget(
    names: Mapping[str, str], forgotten: tuple[Forgotten, ...], needed: Mapping[str, object]
) -> tuple[dict[str, str], tuple[Forgotten, ...]]:
    """The names of the newest calls, and of those that are needed; and what is kept of all others."""
    old = [call_id for call_id in list(names)[: -KEPT_NAMES or None] if call_id not in needed]
    gone = set(old)
    for start in range(0, len(old), FILTER_CALLS):
        forgotten = _with(forgotten, old[start : start + FILTER_CALLS])
    return {call_id: name for call_id, name in names.items() if call_id not in gone}, forgotten


def _with(forgotten: tuple[Forgotten, ...], call_ids: list[str]) -> tuple[Forgotten, ...]:
    """No more ids than one filter holds."""
    if not forgotten or forgotten[-1].calls + len(call_ids) > FILTER_CALLS:
        forgotten = (*forgotten, Forgotten(0, _text(bytearray(_FILTER_BYTES))))
    newest = forgotten[-1]
    bits = bytearray(base64.b64decode(newest.bits))
    for call_id in call_ids:
        for place in _places(call_id):
            bits[place >> 3] |= 1 << (place & 7)
    return (*forgotten[:-1], Forgotten(newest.calls + len(call_ids), _text(bits)))


def _text(bits: bytearray) -> str:
    return base64.b64encode(bits).decode("ascii")


def _holds(bits: bytes, places: list[int]) -> bool:
    return all(bits[place >> 3] & (1 << (place & 7)) for place in places)


def _places(call_id: str) -> list[int]:
    digest = blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=4 * _PROBES).digest()
    return [int.from_bytes(digest[at : at + 4], "big") % (8 * _FILTER_BYTES) for at in range(0, len(digest), 4)]
