"""Failures between this worker and an MCP server. Each says so in a sentence without its full stop."""

from longhaul.activities.process.output_truncation import words_of


class NotOffered(Exception):
    """What an agent names is not for agents of this worker."""


class ServerFailure(Exception):
    """A server did not do what it was asked for."""


class ServerAway(ServerFailure):
    """It can't be reached, or does not speak as it should; nothing was asked of it."""


class ServerBusy(ServerFailure):
    """It has not begun with the request, and may take it later."""


class ServerLost(ServerFailure):
    """The connection was lost, or gave no answer, after a request had been sent."""


class AnswerTooLong(ServerFailure):
    """It has answered, with what can't be read."""


def in_words(error: BaseException) -> str:
    """Of a group of errors the first, in words."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return words_of(error, 500)
