"""What a program sends as messages is looked at before it leaves."""

import pytest

from longhaul.agent.values.conversation.messages import UserMsg
from longhaul.starter.client.wire import Refused, as_messages

SAID = UserMsg("user", "Look at the wall.")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (5, "messages: '5' is of type int; send text, a Msg, a list of Msg, or None to let the agent continue"),
        (2.5, "messages: '2.5' is of type float; send text"),
        (b"Look", "messages: \"b'Look'\" is of type bytes; send text"),
        (object, "is of type type; send text"),
        ([SAID, None], "messages[1]: 'None' is of type NoneType; send text"),
        ([SAID, 7], "messages[1]: '7' is of type int; send text"),
        (["Look"], "messages[0]: 'Look' is of type str; send text"),
    ],
)
def test_what_is_no_message_is_refused_with_its_place_and_what_to_send(given: object, sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        as_messages(given)

    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (None, []),
        ("Look", ["user"]),
        (SAID, ["user"]),
        ((SAID, SAID), ["user", "user"]),
        ((each for each in (SAID,)), ["user"]),
        (SAID.model_dump(mode="json"), ["user"]),
        ([SAID.model_dump(mode="json")], ["user"]),
    ],
)
def test_text_messages_and_their_json_are_taken(given: object, names: list[str]) -> None:
    assert [message["name"] for message in as_messages(given)] == names
