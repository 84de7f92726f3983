"""Bodies that do not compress: what a tool of the benchmarks returns."""

import base64
import os


def body(chars: int) -> str:
    """Random base64 text of exactly `chars` characters."""
    return base64.b64encode(os.urandom(chars * 3 // 4 + 3)).decode("ascii")[:chars]
