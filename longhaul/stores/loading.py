"""Parts that an operator brings along: what settings name as `module:name`, one or several with commas between them."""

import importlib
import importlib.util
import inspect
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

log = logging.getLogger(__name__)


def names_in(setting: str) -> list[str]:
    return [name for name in (part.strip() for part in setting.split(",")) if name]


def found_at(
    place: str, kind: str, mistake: Callable[[str], Exception], *, make: bool = True, setting: str = ""
) -> Any:
    """What stands at `module:name`; of a class, unless `make` is False, what it makes without arguments. Raises
    `mistake` with a sentence about the `kind` of thing that was looked for; `setting` is what named it, else the one
    that is called after the kind."""
    module_name, _, attribute = place.partition(":")
    try:
        found: Any = getattr(module_at(module_name, setting or setting_of(kind)), attribute)
        return found() if make and inspect.isclass(found) else found
    except Exception as error:  # A module may raise anything while it is imported; the operator reads which one.
        raise mistake(
            f"the {kind} {place!r} can't be loaded: {type(error).__name__}: {error}; write module:name"
        ) from error


def setting_of(kind: str) -> str:
    return f"LONGHAUL_{kind.upper()}S"


def module_at(name: str, setting: str) -> ModuleType:
    """The module of that name: an installed one, or else that of the current folder, if the environment names it.

    A folder that was only cloned gets nothing in by this: it can't set the environment, what is installed stands before
    it, and what a settings file names for every folder is not looked for in any. Raises what the module does.
    """
    first = name.partition(".")[0]
    if first.isidentifier() and importlib.util.find_spec(first) is None:
        folder = Path.cwd()
        if not (folder / f"{first}.py").is_file() and not (folder / first).is_dir():
            raise _missing(name, f"and {str(folder)!r} has none", setting)
        if name not in _modules_in(os.environ.get(setting, "")):
            raise _missing(name, f"and the one in {str(folder)!r} counts only when the environment names it", setting)
        log.info("%s: the module %r is taken from %s", setting, name, folder)
        sys.path.append(str(folder))  # at the end, and for good: it may import its neighbours at any time
    return importlib.import_module(name)


def _modules_in(setting: str) -> list[str]:
    return [name.removeprefix("?").partition(":")[0].strip() for name in names_in(setting)]


def _missing(name: str, why: str, setting: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(
        f"no module {name!r} is installed, {why}; "
        f"put its folder into PYTHONPATH, or start in that folder with {setting} set in the environment",
        name=name,
    )


def places_of(thing: object) -> list[str]:
    """Where it stands at the top of a module, as `found_at` takes it: one place where its own module has it, else all
    that have it. What the program that was started holds itself is not told: nobody else can import it."""
    found = [
        f"{module}:{name}"
        for module, loaded in list(sys.modules.items())
        if module != "__main__" and isinstance(loaded, ModuleType)
        for name, value in list(vars(loaded).items())
        if value is thing
    ]
    own = getattr(thing, "__module__", None)
    return [place for place in found if place.partition(":")[0] == own] or found
