"""Names the place of a session in a store: names that no two sessions share, whatever characters their ids are made
of."""

import hashlib
import re
from dataclasses import dataclass

from longhaul.agent.plain.ids import workflow_id

ANONYMOUS = "~"
_ODD = re.compile(r"[^a-z0-9_-]")


@dataclass(frozen=True, slots=True)
class Slot:
    """The ids that name one stored session."""

    user_id: str | None
    agent_id: str
    session_id: str

    @property
    def name(self) -> str:
        """At most 255 plain ASCII characters; the workflow's id, so that a key leads to its session."""
        return workflow_id(self.agent_id, self.user_id, self.session_id)

    @property
    def digest(self) -> str:
        """64 hexadecimal characters, for stores that fold upper and lower case or cut long keys."""
        return hashlib.sha256(self.name.encode("ascii")).hexdigest()

    @property
    def owner(self) -> str:
        return owner(self.user_id)


def owner(user_id: str | None) -> str:
    """64 hexadecimal characters for a user, `~` for the anonymous one."""
    return ANONYMOUS if user_id is None else digest_of(user_id)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def file_name(text: str | None) -> str:
    """A name for files and folders on any file system: how it starts for people, its digest for the difference.

    Lower case only, at most 73 characters, never `.`-led; `~` for None, which no text comes to.
    """
    if text is None:
        return ANONYMOUS
    slug = _ODD.sub("_", text[:40].lower())
    return f"{slug[:40]}-{digest_of(text)[:32]}"
