"""Looks for secrets in attachments. A text is shown with marks; of another file nothing can be cut out, so words stand
in its place."""

import base64

from longhaul.activities.masking.masker import Masker, mark
from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, TextBlock, URLSource

_PIXELS = frozenset({"image", "audio", "video"})
"""Nobody writes a secret so that it could be found in their bytes, and looking takes a second where they are many."""


def out_of_attachment(block: DataBlock, masker: Masker) -> DataBlock | TextBlock:
    """The same one when it holds no secret."""
    source = block.source
    if isinstance(source, URLSource):
        return left_out(name) if (name := masker.found(source.url)) else _renamed(block, masker)
    if source.media_type.partition("/")[0].strip().lower() in _PIXELS:
        return _renamed(block, masker)
    text = _text_in(source)
    if text is None:
        return left_out(name) if (name := masker.found(source.data)) else _renamed(block, masker)
    shown = masker.masked(text)
    if shown != text:
        data = base64.b64encode(shown.encode()).decode()
        block = block.model_copy(update={"source": source.model_copy(update={"data": data})})
    return _renamed(block, masker)


def left_out(name: str) -> TextBlock:
    """Words for what holds the secret of this name."""
    return TextBlock(text=f"[an attachment is left out: it holds {mark(name)}]")


def _renamed(block: DataBlock, masker: Masker) -> DataBlock:
    shown = masker.masked(block.name or "")
    return block if shown == (block.name or "") else block.model_copy(update={"name": shown})


def _text_in(source: Base64Source) -> str | None:
    """None for a PDF, which would be spoilt by other words, and for what is no UTF-8."""
    if source.media_type.partition(";")[0].strip().lower() == "application/pdf":
        return None
    try:
        return base64.b64decode(source.data, validate=True).decode()
    except ValueError:
        return None
