"""Finds the worker's own keys and passwords, which are as secret as those that its operator names for agents.

Nobody is given them, and they are cut out of whatever leaves an activity like the others.
"""

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from longhaul.activities.models.key_places import NO_VARIABLES, KeyPlace
from longhaul.activities.models.providers import PROVIDERS

SHORTEST_CHARACTERS = 8
"""A shorter one could be guessed, or is a word such as `none`: cut out, it would take harmless text along."""
_OTHERS = (
    *("ANTHROPIC_AUTH_TOKEN", "OPENAI_ADMIN_KEY", "TEMPORAL_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    *("AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PASSWORD", "AZURE_PASSWORD", "IDENTITY_HEADER"),
)
_PAIRS = ("LONGHAUL_APPROVAL_KEY", "LONGHAUL_MASTER_KEY")
"""Of names and keys, separated by commas."""
_ADDRESSES = ("LONGHAUL_REDIS_URL", "LONGHAUL_STORE", "LONGHAUL_BLOBS", "LONGHAUL_KEYS", "LONGHAUL_NOTIFY")


def own_keys(environ: Mapping[str, str], places: Iterable[KeyPlace], settings: Mapping[str, str]) -> dict[str, str]:
    """Values by the names of their variables. `settings`: as the operator set them, by variable, from wherever."""
    known = {**environ, **{name: value for name, value in settings.items() if value}}
    names = {provider.key_env for provider in PROVIDERS.values()} | {place.key_env for place in places}
    found = {name: known.get(name, "") for name in [*sorted(names - {"", *NO_VARIABLES}), *_OTHERS, "LONGHAUL_ID_KEY"]}
    for variable in _PAIRS:
        setting = known.get(variable, "")
        for number, pair in enumerate(() if setting.startswith("file:") else setting.split(",")):
            found[f"{variable}{f'_{number}' if number else ''}"] = pair.partition(":")[2]
    for name in _ADDRESSES:
        found[f"{name}_PASSWORD"] = _password(known.get(name, ""))
    kept = {name: value.strip() for name, value in found.items()}
    return {name: value for name, value in kept.items() if len(value) >= SHORTEST_CHARACTERS}


def _password(address: str) -> str:
    try:
        return urlsplit(address).password or ""
    except ValueError:
        return ""
