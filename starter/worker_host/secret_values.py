"""Reads a worker's secrets: from its environment, and from a file that nobody else can read."""

import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from longhaul.agent.plain.errors import BadSetup
from longhaul.starter.settings import Settings

PREFIX = "LONGHAUL_SECRET_"
FILE_CAP_BYTES = 1_000_000


class BadSecrets(BadSetup):
    """Secrets that can't be taken, and what to do about it; values are not in the text."""


def read_secrets(settings: Settings, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Values by name. Raises BadSecrets for a name without a value or with two, and for a file that others can read."""
    values: dict[str, str] = {}
    for name, value in _found(settings, environment):
        if values.setdefault(name, value) != value:
            raise BadSecrets(f"the secret {name!r} is set twice, to different values; keep one")
    return values


def _found(settings: Settings, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for variable, value in environment.items():
        if variable.startswith(PREFIX):
            yield variable.removeprefix(PREFIX), value
    for name in filter(None, (part.strip() for part in settings.secrets.split(","))):
        if name not in environment:
            raise BadSecrets(
                f"LONGHAUL_SECRETS names {name!r}, but the worker has no such variable; set it, or leave it out"
            )
        yield name, environment[name]
    if settings.secrets_file is not None:
        yield from _in_file(settings.secrets_file)


def _in_file(path: Path) -> Iterator[tuple[str, str]]:
    try:
        # Looked at and read through one descriptor, so that nobody puts another file in its place in between.
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or stat.S_IMODE(about.st_mode) & 0o177 or about.st_uid != os.geteuid():
                raise BadSecrets(
                    f"the secrets file {str(path)!r} must be a file of the worker's own user with mode 0600, so that "
                    f"nobody else can read it; run: chmod 600 {path}"
                )
            table = tomllib.loads(file.read(FILE_CAP_BYTES).decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadSecrets(f"the secrets file {str(path)!r} can't be read: {type(error).__name__}") from None
    except tomllib.TOMLDecodeError:
        # The parser's own words may quote a line.
        raise BadSecrets(f'the secrets file {str(path)!r} is not TOML; write lines like NAME = "value"') from None
    for name, value in table.items():
        if not isinstance(value, str):
            raise BadSecrets(f"the secrets file {str(path)!r}: {name} must be text in quotes")
        yield name, value
