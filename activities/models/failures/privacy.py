"""Takes from a provider's words what may not be shown or recorded: keys and headers; and cuts them to one line."""

import re

LONGEST_CHARACTERS = 400

_SECRETS = re.compile(
    r"\b(?:sk|pk|rk|ak|key|api|ant|xai|gsk|hf|ghp|gho|xox[abp])[-_][\w.*\-]{6,}"  # a key, also one partly starred out
    r"|\bAIza[\w\-]{20,}"
    r"|\beyJ[\w\-]+\.[\w\-.]+"  # a JSON web token
    r"|\b(?:bearer|basic)\s+\S+"
    r"|\b(?:authorization|x-api-key|api[-_ ]?key|cookie)\b['\"]?\s*[:=]\s*['\"]?(?:bearer\s+)?[^\s,'\"}]+"
    r"|//[^/\s:@]+:[^/\s@]+@"  # a password in an address
    r"|\b[A-Za-z0-9+_\-]{40,}={0,2}",
    re.IGNORECASE,
)


def for_a_person(text: str) -> str:
    """`text` on one line of at most 400 characters, with everything that looks like a secret hidden."""
    # Cut before the search: an answer can be megabytes long.
    line = " ".join(text[: LONGEST_CHARACTERS * 4].split())
    hidden = _SECRETS.sub("(hidden)", line)
    return hidden if len(hidden) <= LONGEST_CHARACTERS else hidden[: LONGEST_CHARACTERS - 1] + "…"
