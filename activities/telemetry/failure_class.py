"""Names the class of a failure in one word that quotes nothing: `rate_limit` says more than that a model failed."""

from temporalio.exceptions import ApplicationError

from longhaul.activities.contract import MODEL_FAILED
from longhaul.agent.values.conversation.messages import ErrorInfo


def kind_of(error: BaseException) -> str:
    if isinstance(error, ApplicationError) and error.type:
        return error.type
    return type(error).__name__


def class_of(error: BaseException) -> str:
    """The type that a provider's verdict gave it, for a model that failed for good; else the kind of the failure."""
    if isinstance(error, ApplicationError) and error.type == MODEL_FAILED and error.details:
        match error.details[0]:
            case ErrorInfo(type=kind):
                return kind
            case {"type": str(kind)}:
                return kind
            case _:
                pass
    return kind_of(error)
