"""A text that a session gives in pages: those of one moment put together. Whoever asks for them is elsewhere."""

from dataclasses import dataclass


@dataclass
class Pages:
    """What has come so far; the next page is asked for from `len(text)` on, and of the moment `seq`."""

    text: str = ""
    seq: int = 0
    """Entry of which the pages are; 0 before the first."""
    whole: bool = False

    def take(self, seq: int, total: int, text: str) -> bool:
        """Add a page. False when the session has moved on: pages of two moments do not fit together."""
        if self.seq not in (0, seq):
            return False
        self.text, self.seq = self.text + text, seq
        self.whole = len(self.text) >= total
        return True
