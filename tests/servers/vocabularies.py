"""tiktoken's vocabularies as js-tiktoken brings them, written out as tiktoken's own files; these have known digests."""

import json
import subprocess
from pathlib import Path

from longhaul.starter.dev_server.temporal_cli import Say
from tests.servers.npm import installed


def find_vocabularies(say: Say) -> Path:
    """The folder of the package. Raises ServerUnavailable."""
    return installed(say) / "js-tiktoken"


def tiktoken_file(package: Path, encoding: str) -> str:
    """The file that tiktoken would download: a line for each token, in base64, with its rank."""
    command = ["node", "-p", f"JSON.stringify(require('js-tiktoken/ranks/{encoding}').bpe_ranks)"]
    told = subprocess.run(command, cwd=package, capture_output=True, text=True, check=True)
    lines = list[str]()
    for row in json.loads(told.stdout).splitlines():
        _, first, *tokens = row.split(" ")
        lines += (f"{token} {rank}\n" for rank, token in enumerate(tokens, int(first)))
    return "".join(lines)
