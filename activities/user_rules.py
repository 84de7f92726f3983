"""What a session is told of its user's rules, when a reply begins and when calls are looked at again: what it does not
have yet."""

from typing import NamedTuple

from temporalio.exceptions import ApplicationError

from activities.stores.store import DamagedRecord, StoreError
from activities.stores.user_rules import UserRules
from agent.canonical import digest_of
from agent.permission.rules import PermissionRule


class Found(NamedTuple):
    digest: str
    """Empty when there are none."""
    rules: tuple[PermissionRule, ...] | None
    """None: as the session has them."""


NONE = Found("", None)


async def found(book: UserRules | None, user_id: str | None, known_digest: str) -> Found:
    """For a session of this user; an anonymous one has none. Raises ApplicationError: without them nothing may be
    decided, for one of them may deny."""
    if user_id is None or book is None:
        return NONE
    try:
        rules = await book.of(user_id)
    except DamagedRecord as error:
        raise ApplicationError(str(error), type="DamagedRecord", non_retryable=True) from error
    except StoreError as error:
        raise ApplicationError(str(error), type=type(error).__name__) from error
    digest = digest_of([rule.model_dump(mode="json") for rule in rules]) if rules else ""
    return Found("", None) if digest == known_digest else Found(digest, rules)
