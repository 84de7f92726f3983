"""A tool's result that is the reply itself: `response_msg` in its metadata."""

from pydantic import ValidationError

from longhaul.agent.values.conversation.messages import Msg, ToolResultBlock, ToolResultState

RESPONSE_MSG = "response_msg"


def response_in(result: ToolResultBlock) -> str:
    """The text of the message, or the text itself; empty where there is none, or the tool did not succeed."""
    said = result.metadata.get(RESPONSE_MSG)
    if said is None or result.state is not ToolResultState.SUCCESS:
        return ""
    if isinstance(said, str):
        return said
    try:
        return Msg.model_validate(said).get_text_content()
    except ValidationError:
        return ""
