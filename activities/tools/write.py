"""The tool `Write`: the whole content of one file."""

from typing import Any

from longhaul.activities.tools.file_change import FileChange, Plan, encoded
from longhaul.activities.tools.files import ABSENT, FileSnapshot

DESCRIPTION = """\
Writes a text file: creates it, with the folders that are missing, or replaces its whole content.

- `file_path` is absolute, or relative to the working directory.
- The content is written exactly as given, in UTF-8.
- To change a part of a file, prefer Edit."""

INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "description": "The file to write."},
        "content": {"type": "string", "description": "Its whole new content."},
    },
    "required": ["file_path", "content"],
    "additionalProperties": False,
}


class Write(FileChange):
    """Replaces a file by `content`, in one step."""

    boxed_from = __name__
    name = "Write"
    description = DESCRIPTION
    input_schema = INPUT_SCHEMA

    def plan(self, arguments: dict[str, Any], before: FileSnapshot) -> Plan:
        data = encoded(arguments["content"], "content")
        verb = "Created" if before.digest == ABSENT else "Replaced the content of"
        return Plan(data, f"{verb} {arguments['file_path']!r} ({len(data)} bytes)")
