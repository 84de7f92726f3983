"""The two kinds of pydantic value that every record is made of, and how they stay small."""

from functools import partial
from operator import eq
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Value(BaseModel):
    """A frozen record of our own making: an unknown field is a mistake and is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Guest(BaseModel):
    """A frozen record that others write too: fields that we do not know are dropped, never an error."""

    model_config = ConfigDict(frozen=True, extra="ignore")


def sparse(default: Any, **limits: Any) -> Any:
    """A field that is left out of the JSON while it holds `default`; `limits` as pydantic's Field takes them.

    Messages and entries cross the history and fill the carried state by the thousand; what says nothing
    must cost nothing. Changing a default here changes what old records mean: add a field instead.
    """
    silent = partial(eq, default)  # in C: it is asked for every field of everything that is written
    if default == {}:
        # pydantic would copy an empty one deeply, in Python, for every value that is made.
        return Field(default_factory=dict, **limits, exclude_if=silent)
    return Field(default=default, **limits, exclude_if=silent)
