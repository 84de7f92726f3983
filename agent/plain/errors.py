"""The one tree of errors that users meet: everything that Longhaul raises on purpose is a `LonghaulError`.

The groups say whose move it is. A class that is also a `ValueError`, `RuntimeError` or `LookupError` stays one, for
pydantic and for callers who catch those. Temporal knows errors by the name of their class: it can't be changed.
"""


class LonghaulError(Exception):
    """Above all that Longhaul raises on purpose; the sentence says what is wrong, and what to do where one can."""


class BadSetup(LonghaulError):
    """A setting, a file or a module of whoever runs it can't be used. Trying again does not help; changing it does."""


class BadInput(LonghaulError):
    """What the caller gave can't be used: a rule, a path, a template, a state, a command. Nothing was changed."""


class Unavailable(LonghaulError):
    """Something that is needed does not answer, or not from here. It may do so later: nothing is known to be lost."""


class Damaged(LonghaulError):
    """What was kept is not there, not whole, or of a later version. Trying again does not help."""
