"""Makes output for the model of a function's answer: text, blocks, or JSON; and that of a generator, gathered piece by
piece."""

import json
from itertools import groupby

from pydantic_core import to_jsonable_python

from longhaul.activities.process.output_truncation import clipped, words_of
from longhaul.activities.process.progress import progress
from longhaul.activities.tool import ToolError, ToolOutput
from longhaul.agent.values.conversation.messages import DataBlock, TextBlock

OUTPUT_CAP = 20_000_000
"""Characters. What the context has no room for is kept whole outside, so this guards the worker's memory alone."""


def tool_output(result: object) -> ToolOutput:
    """Raises ToolError for what JSON can't carry."""
    match result:
        case ToolOutput():
            return result
        case str():
            return ToolOutput(clipped(result, OUTPUT_CAP))
        case TextBlock() | DataBlock():
            return ToolOutput((result,))
        case tuple() | list() if result and all(isinstance(part, TextBlock | DataBlock) for part in result):
            return ToolOutput(tuple(result))
        case _:
            return ToolOutput(clipped(_as_json(result), OUTPUT_CAP))


class Pieces:
    """What a generator yields, in its order: texts as they stand, anything else that is no block on a line of its own.
    Each is shown as progress when it comes. The newest ToolOutput says whether the tool has failed, and where it is."""

    def __init__(self) -> None:
        self._blocks: list[TextBlock | DataBlock] = []
        self._newest = ToolOutput("")
        self._room = OUTPUT_CAP
        self._left_out = 0

    def take(self, piece: object) -> None:
        """Raises ToolError for what JSON can't carry."""
        made = tool_output(piece)
        self._newest = made if isinstance(piece, ToolOutput) else self._newest
        text = isinstance(piece, str | ToolOutput)
        blocks = made.output if isinstance(made.output, tuple) else (TextBlock(text=made.output + "\n" * (not text)),)
        for block in blocks:
            self._keep(block)

    def output(self) -> ToolOutput:
        blocks = _joined(self._blocks)
        if self._left_out:
            blocks += (TextBlock(text=f"\n[… {self._left_out} more pieces are left out …]"),)
        texts = [block.text for block in blocks if isinstance(block, TextBlock)]
        output = "".join(texts) if len(texts) == len(blocks) else blocks
        return ToolOutput(output, self._newest.failed, self._newest.metadata, self._newest.cwd)

    def before(self, sentence: str) -> str:
        """An error's sentence, with the text that had come before it."""
        so_far = "".join(block.text for block in self._blocks if isinstance(block, TextBlock))
        return f"{so_far.rstrip()}\n\nThen it failed: {sentence}" if so_far.strip() else sentence

    def _keep(self, block: TextBlock | DataBlock) -> None:
        if isinstance(block, TextBlock):
            progress(block.text)
        size = len(block.text) if isinstance(block, TextBlock) else len(block.model_dump_json())
        if size > self._room:
            self._left_out += 1
        else:
            self._room -= size
            self._blocks.append(block)


def _joined(blocks: list[TextBlock | DataBlock]) -> tuple[TextBlock | DataBlock, ...]:
    """With one block for neighbouring texts: a tool may yield each letter."""
    made: list[TextBlock | DataBlock] = []
    for is_text, run in groupby(blocks, lambda block: isinstance(block, TextBlock)):
        if is_text:
            made.append(TextBlock(text="".join(block.text for block in run if isinstance(block, TextBlock))))
        else:
            made += run
    return tuple(made)


def _as_json(result: object) -> str:
    try:
        return json.dumps(to_jsonable_python(result), ensure_ascii=False)
    except Exception as error:  # noqa: BLE001  the tool has run: whatever its answer does now, it must not look undone
        raise ToolError(f"the tool did its work, but its result can't be written as JSON: {words_of(error)}") from None
