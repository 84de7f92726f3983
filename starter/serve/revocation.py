"""Ends a request that waits when its token is taken out, or comes to be good for other things."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from longhaul.starter.serve.problems import Problem
from longhaul.starter.serve.tokens import Caller

LOOK_SECONDS = 1.0
"""A token that is taken out ends its streams before their next event, and what is silent or waits after so long."""

Made = TypeVar("Made")


async def while_let_in(caller: Caller, look: Callable[[], Caller], work: Awaitable[Made]) -> Made:
    """What the work gives, which is ended when `look` finds its caller to be another, or to be none. Raises Problem."""
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=LOOK_SECONDS))[0]:
            _check(caller, look)
        return task.result()
    finally:
        task.cancel()
        # Until it has ended it might still answer, behind the refusal.
        await asyncio.gather(task, return_exceptions=True)


def _check(caller: Caller, look: Callable[[], Caller]) -> None:
    try:
        if look() == caller:
            return
        why = Problem("unauthorized", "Authorization: the token is good for other things by now; ask again")
    except Problem as problem:
        why = problem
    told = "the token changed while this request waited; what it had asked for by then is not taken back"
    raise Problem(why.kind, f"{told}. {why.detail}", headers=why.headers)
