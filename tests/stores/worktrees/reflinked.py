"""A file system with reflinks for these tests: XFS in a file, mounted where the test says."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

IMAGE_BYTES = 320 * 2**20
"""The least that mkfs.xfs takes is 300 MB; the file is sparse."""


@contextmanager
def reflinked(folder: Path) -> Iterator[Path | None]:
    """Where it is mounted; None where none can be had: it takes root, loop devices and xfsprogs."""
    image, mounted = folder / "reflinks.img", folder / "reflinks"
    mounted.mkdir()
    with image.open("wb") as made:
        made.truncate(IMAGE_BYTES)
    made_one = os.geteuid() == 0 and _runs("mkfs.xfs", "-q", "-m", "reflink=1", str(image))
    if not made_one or not _runs("mount", "-o", "loop", str(image), str(mounted)):
        yield None
        return
    try:
        yield mounted
    finally:
        # Lazily: a worker that is being stopped may hold a file for a moment.
        subprocess.run(["umount", "--lazy", str(mounted)], check=True)


def _runs(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
