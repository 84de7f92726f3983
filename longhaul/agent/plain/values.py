"""The two kinds of pydantic value that every record is made of, and how they stay small.

One spelling of a value, so that equal values have equal digests on every machine and in every release.

Code that is named in settings: an object of it may stand where its name is wanted.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from json import JSONEncoder
from operator import eq
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, Self, TypeVar, cast, overload

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

T = TypeVar("T")
G = TypeVar("G")

if TYPE_CHECKING:

    class Given(Generic[T, G]):
        """A field that is a T, and may be given as a G: type checkers learn so what pydantic takes anyhow."""

        @overload
        def __get__(self, instance: None, owner: Any) -> Any: ...
        @overload
        def __get__(self, instance: object, owner: Any) -> T: ...
        def __get__(self, instance: object, owner: Any) -> Any: ...
        def __set__(self, instance: Any, value: G) -> None: ...

    Many = Given[tuple[T, ...], Sequence[T]]
    """A tuple, and may be given as a list."""
else:

    class Given:
        """A field that is a T: what else may be given is for type checkers."""

        def __class_getitem__(cls, both: tuple[Any, Any]) -> Any:
            return both[0]

    class Many:
        """A tuple: that lists may be given is for type checkers."""

        def __class_getitem__(cls, item: Any) -> Any:
            return tuple[item, ...]


class QuicklyCopied(BaseModel):
    """Copied as pydantic copies, in one step where there is nothing but fields: of each entry, message and call there
    are several copies, and each takes a dozen calls otherwise."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        if deep or self.__pydantic_extra__ is not None or self.__pydantic_private__ is not None:
            return super().model_copy(update=update, deep=deep)
        made = self.__class__.__new__(self.__class__)
        changed = update or {}
        object.__setattr__(made, "__dict__", {**self.__dict__, **changed})
        object.__setattr__(made, "__pydantic_fields_set__", {*self.__pydantic_fields_set__, *changed})
        object.__setattr__(made, "__pydantic_extra__", None)
        object.__setattr__(made, "__pydantic_private__", None)
        return made


class Value(QuicklyCopied):
    """A frozen record of our own making: an unknown field is a mistake and is refused. So is a number that is none or
    has no end: as JSON both are null, which nobody could read back."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class OpenValue(QuicklyCopied):
    """A frozen record that others write too: fields that we do not know are dropped, never an error."""

    model_config = ConfigDict(frozen=True, extra="ignore")


def stated(default: Any) -> Any:
    """The default of a `Given` field that is always in the JSON."""
    return default


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


_JSON = JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
"""Made once: several digests are taken in every step."""


def canonical_json(value: Any) -> bytes:
    """JSON with sorted keys, no spaces and ASCII escapes; lone surrogates survive, NaN raises ValueError."""
    return _JSON.encode(value).encode("ascii")


def digest_of(value: Any) -> str:
    """sha-256 of the canonical JSON, as `_short` spells it."""
    return _short(canonical_json(value))


def chain_digest(before: str, message: str) -> str:
    """Digest of a context that ends with `message`, given the digest of the context before it ("" = empty)."""
    return _short(f"{before}+{message}".encode("ascii"))


def _short(data: bytes) -> str:
    """All 256 bits in 43 characters: several digests cross the history with every step."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode("ascii").rstrip("=")


class CodeWithName(Protocol):
    """A tool, a middleware, a skill loader: whatever workers have under its name."""

    @property
    def name(self) -> str: ...


def name_of(thing: object) -> object:
    """The name under which workers have it: its own, or that of its class where it has none. What is no such object
    comes back as it is, for whoever checks names to refuse. Raises ValueError for one of the program that is run, which
    is no module that workers could import."""
    if isinstance(thing, str) or not isinstance(name := getattr(thing, "name", None), str):
        return thing
    kind = thing if isinstance(thing, type) else type(thing)
    name = name or kind.__name__
    if getattr(thing, "__module__", "") == "__main__":
        raise ValueError(
            f"{name!r} is defined in the program that is run, where no worker finds it: put it into a module, name "
            "that in LONGHAUL_TOOLS of the workers, and import it from there"
        )
    return name


def _names_of(given: Any) -> Any:
    return [name_of(each) for each in cast(Sequence[object], given)] if isinstance(given, list | tuple) else given


NAMES = BeforeValidator(_names_of)
Names = Annotated[tuple[str, ...], NAMES]
