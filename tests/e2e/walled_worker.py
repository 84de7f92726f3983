"""A worker in a mount namespace of its own, with an empty folder where everybody else has the data directory: what a
container makes of one path."""

import os
import sys

os.execvp(  # noqa: S606  it becomes the worker
    "unshare",
    [
        "unshare", "--map-root-user", "--mount", "sh", "-c",
        'mount -t tmpfs none "$LONGHAUL_DATA_DIR" && exec "$0" -m longhaul.worker', sys.executable,
    ],
)  # fmt: skip
