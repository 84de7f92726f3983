"""Of which class a failure is, in one word that quotes nothing: `rate_limited` says more than that a model failed."""

from temporalio.exceptions import ApplicationError

from activities.contract import MODEL_FAILED
from activities.failure_kind import kind_of
from agent.messages import ErrorInfo


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
