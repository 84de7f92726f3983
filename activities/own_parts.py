"""Parts that an operator brings along: what settings name as `module:name`, one or several with commas between them."""

import importlib
import inspect
from typing import Any


def names_in(setting: str) -> list[str]:
    return [name for name in (part.strip() for part in setting.split(",")) if name]


def found_at(place: str, kind: str, mistake: type[Exception], *, make: bool = True) -> Any:
    """What stands at `module:name`; of a class, unless `make` is False, what it makes without arguments. Raises
    `mistake` with a sentence about the `kind` of thing that was looked for."""
    module_name, _, attribute = place.partition(":")
    try:
        found: Any = getattr(importlib.import_module(module_name), attribute)
        return found() if make and inspect.isclass(found) else found
    except Exception as error:  # A module may raise anything while it is imported; the operator reads which one.
        raise mistake(
            f"the {kind} {place!r} can't be loaded: {type(error).__name__}: {error}; write module:name"
        ) from error
