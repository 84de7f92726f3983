"""Messages and results that these tests offload, and how they read back what was written."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    Base64Source,
    DataBlock,
    Msg,
    ToolResultBlock,
    UserMsg,
)

PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(range(40))
PIXEL_NAME = f"{hashlib.sha256(PIXEL).hexdigest()}.png"


def picture() -> DataBlock:
    return DataBlock(
        source=Base64Source(data=base64.b64encode(PIXEL).decode(), media_type="image/png"), name="pixel.png"
    )


def said(number: int, padding: int = 0) -> Msg:
    speaker = UserMsg if number % 2 else AssistantMsg
    return speaker("ana", f"message {number} {'x' * padding}".rstrip(), id=f"m-{number}")


def result(call_id: str, output: Any) -> ToolResultBlock:
    return ToolResultBlock(id=call_id, name="fetch", output=output)


def texts_in(path: Path | str) -> list[str]:
    """The text of each line, in order. Raises ValueError for a line that is not whole."""
    content = Path(path).read_bytes()
    assert content.endswith(b"\n")
    return [Msg.model_validate(json.loads(line)).get_text_content() for line in content.splitlines()]


def content_of(path: Path | str) -> str:
    return Path(path).read_text(encoding="utf-8")


def names_in(folder: Path | str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def resolved(path: Path) -> Path:
    return path.resolve()


def files_below(folder: Path, pattern: str = "*") -> list[Path]:
    """Resolved, as the model is told of them."""
    return sorted(folder.resolve().rglob(pattern))
