"""What a model is shown beside the recorded messages: the summary as a message of its own."""

from agent.messages import Msg, TextBlock

SUMMARY_NAME = "summary"


def summary_message(summary: str) -> Msg:
    """The summary layer: the first message of a context that was made shorter. No id and no time, so that the same
    text has the same digest wherever it is made."""
    return Msg(name=SUMMARY_NAME, role="user", content=(TextBlock(text=summary),))
