"""Masks a text that comes in pieces."""

from longhaul.activities.masking.masker import Masker

_LONG = 512
_PATIENCE = 32
"""A long beginning is looked at again when it has grown by this part of itself: so that time stays linear."""


class MaskedStream:
    """Gives the text on as it comes, and holds back only what may be the beginning of a secret until more has come."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._held = ""
        self._look_at = 0

    def feed(self, piece: str) -> str:
        """As much as can be told by now, masked; nothing while a secret may be on its way."""
        self._held += piece
        if not self._masker:
            return self.end()
        if len(self._held) < self._look_at:
            return ""
        cut = self._cut()
        said, self._held = self._held[:cut], self._held[cut:]
        kept = len(self._held)
        self._look_at = kept + (kept // _PATIENCE if kept > _LONG else 0)
        return self._masker.masked(said)

    def end(self) -> str:
        """The rest."""
        said, self._held = self._held, ""
        return self._masker.masked(said)

    def _cut(self) -> int:
        """Where what is held back begins. No form of a secret is longer than twice the reach."""
        length, reach = len(self._held), self._masker.reach
        cut = self._masker.opening(self._held, max(0, length - 2 * reach))
        if cut == 0 and length >= 2 * reach:
            cut = length - reach
        return next((end for start, end in self._masker.spans(self._held) if start < cut < end), cut)
