"""Names what is wrong with a value, in one line."""

from pydantic import ValidationError


def what_is_wrong(error: ValidationError) -> str:
    """The first complaint as `field: what (value); n more`, short enough for a log line. Where a key's name belongs
    somebody may have written the key, which is not repeated, nor is a text that the complaint quotes."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "body"
    more = f"; {error.error_count() - 1} more" if error.error_count() > 1 else ""
    message = first["msg"].removeprefix("Value error, ")
    value: object = first.get("input")
    given = shortened(value)
    is_said = first["loc"][-1:] == ("api_key_env",) or (isinstance(value, str) and given in message)
    return f"{field}: {message}{'' if is_said else f' (it is {given})'}{more}"


def shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def shown(value: object) -> str:
    """Its Python form for such a line, cut."""
    return cut(repr(value))


def cut(text: str) -> str:
    """At 60 characters."""
    return text if len(text) <= 60 else f"{text[:60]}…"
