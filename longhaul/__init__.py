"""One door: `from longhaul import Longhaul`, and so each name that programs use; docs/reference/python.md lists them.

The names stand once, in `__init__.pyi`, where type checkers look. Each is imported from its home when it is asked for:
the command line must not pay for Temporal's SDK to print its help, nor a client for what only workers need.
"""

_homes: dict[str, str] = {}
"""Each public name with the module that it comes from; empty before the first is asked for."""


def _list_names() -> dict[str, str]:
    import pkgutil  # noqa: PLC0415  whoever imports a room of ours needs no list

    for line in (pkgutil.get_data(__name__, "__init__.pyi") or b"").decode().splitlines() if not _homes else ():
        match line.split():
            case ["from", home, "import", name, "as", _]:
                _homes[name] = home
    return _homes


def __getattr__(name: str) -> object:
    if name == "__all__":
        return sorted(one for one in _list_names() if _can_be_had(one))
    if name.startswith("_"):
        raise AttributeError(f"longhaul has no {name!r}", name=name)
    if home := _list_names().get(name):
        try:
            globals()[name] = found = getattr(_loaded(home), name)
        except ModuleNotFoundError as error:
            from longhaul.agent.plain.errors import missing  # noqa: PLC0415  as above

            raise missing(error) from error
        return found
    raise _unknown(name)


def _loaded(home: str) -> object:
    """The module. The sandbox of a workflow would load it again for each run, with other classes than all others have;
    it is that of its worker instead."""
    import sys  # noqa: PLC0415  as above
    from importlib import import_module  # noqa: PLC0415

    workflow = sys.modules.get("temporalio.workflow")
    if workflow is None or not workflow.unsafe.in_sandbox():
        return import_module(home)
    with workflow.unsafe.imports_passed_through():
        return __import__(home, fromlist=("",))  # the sandbox hears of this way alone


def _can_be_had(name: str) -> bool:
    """Whether what it needs is installed: `from longhaul import *` takes what is there, and asks for no extra."""
    try:
        __getattr__(name)
    except ImportError as error:
        from longhaul.agent.plain.errors import MissingExtra  # noqa: PLC0415  as above

        if not isinstance(error, MissingExtra):
            raise
        return False
    return True


def _unknown(name: str) -> Exception:
    """Python takes an AttributeError of `from longhaul import …` and says less; so that one gets an ImportError."""
    import difflib  # noqa: PLC0415  as above
    import dis  # noqa: PLC0415
    import sys  # noqa: PLC0415

    meant = difflib.get_close_matches(name, _list_names(), n=1) or [
        one for one in _homes if one.lower() == name.lower()
    ]
    sentence = f"longhaul has no {name!r}; " + (
        f"did you mean {meant[0]!r}?" if meant else "see docs/reference/python.md"
    )
    asking = sys._getframe(2)  # noqa: SLF001
    imports = asking.f_code.co_code[asking.f_lasti] == dis.opmap["IMPORT_FROM"]
    return ImportError(sentence, name=name) if imports else AttributeError(sentence, name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_list_names()})
