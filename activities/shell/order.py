"""Tells what the parts of a line do to each other: a proof about files holds only while no other part changes them
first."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class PartEffect(IntEnum):
    """What a part does to the world, as far as another part may notice."""

    NOTHING = 0
    MAKES = 1
    """New plain files and folders, and what plain files hold: no path leads elsewhere for it."""
    MOVES = 2
    """It may put something else in the place of a name, a link among it."""
    RUNS = 3
    """Anything."""


class Leans(IntEnum):
    """What a part's proof stands on."""

    WORDS = 0
    """On nothing but its words: it works on text."""
    PATHS = 1
    """On where its paths lead."""
    NAMES = 2
    """On which names there are: a pattern stands for them."""
    SETTINGS = 3
    """On files and variables that steer the program, which are held off only from a line that is proven as a whole."""


@dataclass(frozen=True, slots=True)
class LinePart:
    """One command or redirection of a line."""

    words: tuple[str, ...]
    effect: PartEffect
    leans: Leans
    step: int
    """Parts of one step may run at the same time; those of a lower one are done before."""

    def is_undone_by(self, other: "LinePart") -> bool:
        """Whether this part's proof says nothing any more, for what the other part may do."""
        if self.leans is Leans.SETTINGS and other.effect is PartEffect.RUNS:
            return True
        if other.step > self.step or self.leans is Leans.WORDS:
            return False
        return other.effect >= PartEffect.MOVES or (other.effect is PartEffect.MAKES and self.leans >= Leans.NAMES)


def undone(parts: Sequence[LinePart]) -> set[tuple[str, ...]]:
    """The words of those parts whose proof does not hold beside the others."""
    changing = [(place, part) for place, part in enumerate(parts) if part.effect]
    return {
        part.words
        for place, part in enumerate(parts)
        if any(place != other_place and part.is_undone_by(other) for other_place, other in changing)
    }
