"""The process in a sandbox that runs one call of one tool. It is told a folder, in which the call stands."""

import asyncio
import importlib
import os
from pathlib import Path
from typing import NoReturn

from longhaul.activities.attempt.secrets import given
from longhaul.activities.tool import NeedsDecision, Place, Tool, ToolCall, ToolError
from longhaul.activities.tools.sandbox_call import ANSWER, ASK, SandboxedAnswer, SandboxedAsk
from longhaul.agent.permission.call_analysis import CallAnalysis


def main(told: str) -> NoReturn:
    folder = Path(told)
    ask = SandboxedAsk.model_validate_json((folder / ASK).read_bytes())
    with (folder / ANSWER).open("ab") as answer:
        # What the tool starts finds neither: it can't answer in the tool's place.
        (folder / ASK).unlink()
        (folder / ANSWER).unlink()
        answer.write(_answered(ask).model_dump_json().encode("utf-8", "replace"))
    os._exit(0)


def _answered(ask: SandboxedAsk) -> SandboxedAnswer:
    try:
        tool = _found(ask)
        # Not before all is imported: a working directory is where Python may look for modules.
        os.chdir(_start_folder(Path(ask.root), Path(ask.cwd)))
        with given(ask.secrets):
            place = Place(
                root=Path(ask.root),
                cwd=Path(ask.cwd),
                offloaded=tuple(map(Path, ask.offloaded)),
                ruled=ask.ruled,
                closed=ask.closed,
                opened=tuple(map(Path, ask.opened)),
            )
            analysis = CallAnalysis.model_validate(ask.analysis)
            call = ToolCall(ask.call_id, ask.arguments, place, analysis, attempt=ask.attempt, secrets=ask.secrets)
            done = asyncio.run(tool.run(call))
        return SandboxedAnswer(how="output", output=done.output, failed=done.failed, metadata=done.metadata)
    except NeedsDecision as changed:
        return SandboxedAnswer(how="undecided", output=changed.reason)
    except ToolError as error:
        return SandboxedAnswer(how="error", output=str(error))
    except Exception as error:  # noqa: BLE001  a tool is somebody else's code, and its bug the model's to read
        return SandboxedAnswer(how="failed", output=f"{ask.tool} failed: {type(error).__name__}: {error}"[:4_000])


def _start_folder(root: Path, cwd: Path) -> Path:
    return cwd if cwd.is_relative_to(root) and cwd.is_dir() else root


def _found(ask: SandboxedAsk) -> Tool:
    module = importlib.import_module(ask.module)
    for value in vars(module).values():
        if isinstance(value, Tool) and value.name == ask.tool:
            return value
        if isinstance(value, type) and issubclass(value, Tool) and getattr(value, "name", "") == ask.tool:
            made: Tool = value()
            return made
    raise ToolError(f"there is no tool {ask.tool!r} in {ask.module!r}, as the sandbox sees it")
