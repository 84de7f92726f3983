"""Source as a tree, in a process whose other tests may have left anything to the collector."""

import ast
import gc
from pathlib import Path


def tree_of(path: Path) -> ast.Module:
    """Of a file's text. Nothing is collected meanwhile: what then is logged (a future whose error nobody fetched) is
    shown with its lines, which Python 3.11 parses too, and a parse in the midst of another ends it with SystemError."""
    text = path.read_text("utf-8")
    collecting = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if collecting:
            gc.enable()
