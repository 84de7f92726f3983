"""Programs that a model writes, as replies of an agent: a small Python that reaches nothing but the agent's tools.

`RunProgram` starts a sub-agent of this kind. Each call of a function in the program is a step of that session: judged,
shown and recorded as a call of a model is, with its effect class. For each step the program runs from the beginning
again, is given what is recorded of its calls, and stops at the first call that is new: so it goes on after a worker is
lost, and repeats nothing. It runs in Monty, an interpreter without files, network, processes and imports of its own, in
a process that is killed with the step. Its clock stands still and its chance is the same each time, as its steps have
to be.
"""

import importlib.metadata
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from longhaul.activities.custom_agents.custom_agent import (
    CallResult,
    CustomAgent,
    CustomAgentCall,
    CustomAgentSession,
    custom_agent,
)
from longhaul.activities.custom_agents.next_step import CustomAgentFailed
from longhaul.agent.plain.values import canonical_json
from longhaul.agent.reducer.all_changes import CALLS_OF_A_TURN
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.subagents import PROGRAM

MEMORY_BYTES = 200_000_000
COMPUTING_SECONDS = 5.0
"""Of the whole program, all that it did before its newest call included: less than a custom agent's step may take."""
MOST_CALLS = 1_000
PRINTED_BYTES = 1_000_000
SHOWN_CHARS = 30_000
"""Of what it prints and ends with: less than a sub-agent may report."""
FAILURE_CHARS = 2_000
TOGETHER, CALL = "together", "call"
_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


def has_interpreter() -> bool:
    """Whether the extra `programs` is installed."""
    return importlib.util.find_spec("pydantic_monty") is not None


@custom_agent(PROGRAM)
class ProgramAgent(CustomAgent):
    async def reply(self, msg: Msg, session: CustomAgentSession) -> str:
        """What the program printed, and the value of its last line. Raises CustomAgentFailed where it fails."""
        import pydantic_monty as monty  # noqa: PLC0415  comes with an extra

        with _running(msg.get_text_content()) as (started, printed):
            state = started
            while not isinstance(state, monty.MontyComplete):
                if not isinstance(state, monty.FunctionSnapshot):
                    state = state.resume() if isinstance(state, monty.NameLookupSnapshot) else _refuse_futures()
                elif state.is_os_function:
                    state = state.resume_not_handled()
                else:
                    try:
                        calls = _calls_of(session, str(state.function_name), state.args, state.kwargs)
                        came = await session.together(*calls) if calls else ()
                        answer: Any = {"return_value": _value(str(state.function_name), calls, came)}
                    except (TypeError, ValueError, RuntimeError) as error:
                        answer = {"exception": error}
                    state = state.resume(answer)
            return _text_of_output(printed.output, state.output)


@contextmanager
def _running(program: str) -> Iterator[tuple[Any, Any]]:
    """The program at its first question to its host, and what it has printed. Raises CustomAgentFailed for
    what it does wrong, there and later."""
    import pydantic_monty as monty  # noqa: PLC0415  comes with an extra

    printed = monty.CollectString(PRINTED_BYTES)
    try:
        with (
            monty.Monty(binary_path=_interpreter(), max_processes=1, request_timeout=COMPUTING_SECONDS * 1.5) as pool,
            pool.checkout(
                script_name="program.py",
                limits={
                    "max_memory": MEMORY_BYTES,
                    "max_feed_duration_secs": COMPUTING_SECONDS,
                    "max_suspensions": MOST_CALLS,
                },
                os_policy={"datetime": _BEGINNING, "sleep": "zero", "random_start": {"seed": 0}},
            ) as session,
        ):
            yield session.feed_start(program, print_callback=printed), printed
    except (monty.MontySyntaxError, monty.MontyRuntimeError) as error:
        raise CustomAgentFailed(_why(error.display(), printed.output)) from None
    except (monty.MontyError, TimeoutError) as error:
        raise CustomAgentFailed(_why(f"{type(error).__name__}: {error}", printed.output)) from None


def _interpreter() -> Path:
    """A copy of the interpreter that nobody may read: Linux then shows its environment, which holds the worker's keys,
    to no other process of the same user, and no results in its memory either. Raises CustomAgentFailed where none
    can be."""
    from pydantic_monty._binary import find_monty_binary  # noqa: PLC0415  it has no public word

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "longhaul"
    copy = cache / f"monty-{importlib.metadata.version('pydantic-monty-runtime')}"
    if not copy.exists():
        try:
            cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=cache)
            os.close(handle)
            shutil.copyfile(find_monty_binary(), name)
            Path(name).chmod(0o100)
            Path(name).replace(copy)
        except OSError as error:
            raise CustomAgentFailed(f"its interpreter can't be copied to {str(copy)!r}: {error.strerror}") from None
    return copy


def _calls_of(
    session: CustomAgentSession, name: str, given: tuple[Any, ...], named: Mapping[str, Any]
) -> list[CustomAgentCall]:
    """Raises TypeError and ValueError, which the program can catch."""
    if name == TOGETHER:
        wanted = given[0] if len(given) == 1 and not named else None
        if not isinstance(wanted, list | tuple) or not all(map(_is_pair, wanted)):
            raise TypeError("together takes one list of pairs: [('Read', {'file_path': 'a.txt'}), …]")
        if len(wanted) > CALLS_OF_A_TURN:
            raise ValueError(f"together takes at most {CALLS_OF_A_TURN} calls, and was given {len(wanted)}")
        return [_call(session, tool, arguments) for tool, arguments in wanted]
    if name == CALL and len(given) == 1 and isinstance(given[0], str):
        return [_call(session, given[0], named)]
    if given:
        raise TypeError(f"{name}() takes arguments by name alone, as in {name}(argument=…)")
    return [_call(session, name, named)]


def _is_pair(wanted: Any) -> bool:
    return (
        isinstance(wanted, list | tuple)
        and len(wanted) == 2
        and isinstance(wanted[0], str)
        and isinstance(wanted[1], dict)
    )


def _call(session: CustomAgentSession, tool: str, arguments: Mapping[str, Any]) -> CustomAgentCall:
    try:
        canonical_json(dict(arguments))
        return session.call(tool, **arguments)
    except Exception as error:  # noqa: BLE001  whatever JSON can't carry, the program has to hear of
        raise TypeError(f"{tool}: the arguments can't be written as JSON: {type(error).__name__}") from None


def _value(name: str, calls: list[CustomAgentCall], came: tuple[CallResult, ...]) -> Any:
    """Raises RuntimeError for the first call that came to nothing: the program can catch it."""
    for call, result in zip(calls, came, strict=True):
        if not result.ok:
            raise RuntimeError(f"{call.tool}: {result.state}: {result.text[:FAILURE_CHARS]}")
    texts = [result.text for result in came]
    return texts if name == TOGETHER else texts[0]


def _refuse_futures() -> Any:
    raise CustomAgentFailed(
        "nothing can be awaited; call tools as plain functions, and several at once by together([…])"
    )


def _text_of_output(printed: str, value: Any) -> str:
    last = "" if value is None else value if isinstance(value, str) else repr(value)
    text = "\n".join(part for part in (printed.rstrip("\n"), last) if part) or "(the program printed nothing)"
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}\n[cut after {SHOWN_CHARS} characters]"


def _why(error: str, printed: str) -> str:
    before = f"\nIt had printed:\n{printed[-FAILURE_CHARS:]}" if printed.strip() else ""
    return f"{error[-FAILURE_CHARS:]}{before}"
