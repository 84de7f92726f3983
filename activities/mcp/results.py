"""Makes output of a tool of what an MCP server answers: text, images, audio, resources, links, structured content."""

import json
import re
from typing import Any, assert_never

import mcp_types as types

from longhaul.activities.process.output_truncation import clipped
from longhaul.activities.tool import ToolOutput
from longhaul.activities.tools.function_output import OUTPUT_CAP
from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, TextBlock

_MEDIA_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,60}/[A-Za-z0-9][A-Za-z0-9.+_-]{0,60}")
_OTHER = "application/octet-stream"
STRUCTURED = "structured_content"
LONGEST_STRUCTURED = 100_000
"""Characters of JSON in the metadata, which stands in the session's state as long as the result does."""


def output_of(result: types.CallToolResult, metadata: dict[str, Any]) -> ToolOutput:
    """`metadata` with what the server has structured, beside. It stands in the output where nothing else does; what is
    long stands there alone, to be cut and kept whole as long texts are, unless the server says the same in words."""
    blocks = [_block(content) for content in result.content]
    if result.structured_content is not None:
        written = json.dumps(result.structured_content, ensure_ascii=False)
        is_long = len(written) > LONGEST_STRUCTURED
        if not is_long:
            metadata = {**metadata, STRUCTURED: result.structured_content}
        said = sum(len(block.text) for block in blocks if isinstance(block, TextBlock))
        if not blocks or (is_long and said < len(written) // 2):
            blocks.append(TextBlock(text=written))
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    output = clipped("\n".join(texts), OUTPUT_CAP) if len(texts) == len(blocks) else tuple(blocks)
    return ToolOutput(output, failed=result.is_error, metadata=metadata)


def _block(content: types.ContentBlock) -> TextBlock | DataBlock:
    match content:
        case types.TextContent():
            return TextBlock(text=content.text)
        case types.ImageContent() | types.AudioContent():
            return _data(content.data, content.mime_type, None)
        case types.ResourceLink():
            about = f" ({content.description})" if content.description else ""
            return TextBlock(text=f"[resource {content.name}: {content.uri}{about}]")
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            return TextBlock(text=f"[resource {resource.uri}]\n{resource.text}")
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            return _data(resource.blob, resource.mime_type or _OTHER, resource.uri[:200])
        case types.EmbeddedResource():
            return TextBlock(text="[a resource of no kind that is known here]")
        case _ as never:
            assert_never(never)


def _data(data: str, media_type: str, name: str | None) -> DataBlock:
    sound = media_type if _MEDIA_TYPE.fullmatch(media_type) else _OTHER
    return DataBlock(source=Base64Source(data=data, media_type=sound), name=name)
