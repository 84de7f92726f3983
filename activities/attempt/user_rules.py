"""Gives a session the rules of its user that it does not have yet: when a reply begins, and when calls are looked at
again."""

from typing import NamedTuple

from temporalio.exceptions import ApplicationError

from longhaul.agent.plain.values import digest_of
from longhaul.agent.values.permission import PermissionRule
from longhaul.stores.state.store import DamagedRecord, StoreError, UserRules


class FoundRules(NamedTuple):
    digest: str
    """Empty when there are none."""
    rules: tuple[PermissionRule, ...] | None
    """None: as the session has them."""


NONE = FoundRules("", None)


async def found(book: UserRules | None, user_id: str | None, known_digest: str) -> FoundRules:
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
    return FoundRules("", None) if digest == known_digest else FoundRules(digest, rules)
