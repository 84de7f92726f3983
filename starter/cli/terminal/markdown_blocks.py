"""Growing Markdown, cut where it can no longer change: between blocks that stand at the margin. In linear time."""

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class MarkdownBlocks:
    """One text, fed piece by piece; gives each block when the next one has begun."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._open = ""
        """The line that has no end yet."""
        self._fence = ""
        self._blank = False

    @property
    def rest(self) -> str:
        """What was given of no block yet."""
        return "\n".join([*self._lines, self._open])

    def feed(self, piece: str) -> list[str]:
        """The blocks that are finished by it."""
        *lines, self._open = (self._open + piece).split("\n")
        done = []
        for line in lines:
            done.append(self._ended_by(line))
            self._mind_fence(line)
            self._lines.append(line)
            self._blank = not line.strip()
        done.append(self._ended_by(self._open))
        return [block for block in done if block.strip()]

    def _ended_by(self, line: str) -> str:
        """The block that ends before this line, or its beginning; empty for most lines."""
        # An indented line goes on with the item of a list, and a fenced block may hold blank lines.
        if not self._blank or self._fence or not line or line[0].isspace():
            return ""
        done, self._lines, self._blank = "\n".join(self._lines).strip("\n"), [], False
        return done

    def _mind_fence(self, line: str) -> None:
        found = _FENCE.match(line)
        if not self._fence:
            self._fence = found[1] if found else ""
        elif found and found[1].startswith(self._fence) and not line.strip().strip(self._fence[0]):
            self._fence = ""
