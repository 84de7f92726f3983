"""What an activity failed of, in one word that quotes nothing."""

from temporalio.exceptions import ApplicationError


def kind_of(error: BaseException) -> str:
    if isinstance(error, ApplicationError) and error.type:
        return error.type
    return type(error).__name__
