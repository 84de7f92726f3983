"""What is recalled: the right messages, newest first, each body exactly as it was."""

from typing import Any

import pytest

from longhaul.activities.tools.recall import PAGE_CHARS, FoundMessages, Newest, messages_text, part_of_output, wanted
from longhaul.agent.entries import AnyEntry
from longhaul.agent.incarnation.history import messages
from tests.agent.play import Play, calls, text

ODD = 'a\tb  "c" \\n\r\n 漢字\u200b end  '


def entries(*words: str) -> list[AnyEntry]:
    """One reply for each; request and answer alternate, so the answers have odd numbers."""
    play = Play([text(word) for word in words], keeps=True)
    for number in range(len(words)):
        play.say(f"Ask {number}", f"r{number}")
        play.run()
    return list(play.journal.log)


def ask(log: list[AnyEntry], **arguments: Any) -> str:
    want = wanted(arguments)
    found, newest = FoundMessages(want), Newest(want)
    pairs = list(messages(log))
    newest.look_at(pairs)
    found.add(newest.newest_first())
    return messages_text(found, want, len(pairs))


def numbers(answer: str) -> list[int]:
    lines = [line for line in answer.splitlines() if line.startswith("--- message")]
    return [int(line.split()[2]) for line in lines]


def test_all_of_a_short_session_comes_newest_first() -> None:
    answer = ask(entries("One.", "Two."))

    assert numbers(answer) == [3, 2, 1, 0]
    assert answer.splitlines()[:3] == [
        "4 of 4 messages, the newest first.",
        "--- message 3 · assistant · mason",
        "Two.",
    ]


def test_a_range_holds_both_of_its_ends() -> None:
    assert numbers(ask(entries("One.", "Two.", "Three."), from_message=1, to_message=3)) == [3, 2, 1]


def test_a_text_is_found_in_any_case_of_letters_and_as_it_stands() -> None:
    log = entries("Straße [1]", "STRASSE [1]", "Strasse 1")

    assert numbers(ask(log, text="strasse [1]")) == [3, 1]


@pytest.mark.proves("X11")
def test_a_body_is_exactly_what_it_was() -> None:
    answer = ask(entries(ODD), from_message=1, to_message=1)

    assert answer == f"1 of 2 messages, the newest first.\n--- message 1 · assistant · mason\n{ODD}"


def test_calls_and_results_are_found_too() -> None:
    play = Play([calls("a Look", arguments='{"where":  "attic"}'), text("Done.")], keeps=True)
    play.say("Look")
    play.run()

    answer = ask(list(play.journal.log), text="attic")

    assert '[call a of Look]\n{"where":  "attic"}' in answer
    assert "[result of call a of Look: success]\ndone" in ask(list(play.journal.log), text="done", to_message=2)


def test_more_than_a_page_is_asked_for_again() -> None:
    log = entries("a" * 5_000, "b" * 5_000, "c" * 2_000)

    first = ask(log)
    assert numbers(first) == [5, 4, 3, 2]
    assert first.endswith("[… 2 more: ask again with to_message=1]")
    assert numbers(ask(log, to_message=1)) == [1, 0]


def test_a_limit_is_kept() -> None:
    answer = ask(entries("One.", "Two."), limit=1)

    assert numbers(answer) == [3]
    assert answer.endswith("[… 3 more: ask again with to_message=2]")


def test_a_long_message_is_read_piece_by_piece() -> None:
    whole = "".join(f"{number:07} " for number in range(2_500))
    log = entries(whole)
    read = ""
    while len(read) < len(whole):
        answer = ask(log, from_message=1, to_message=1, offset=len(read))
        body = answer.split("\n", 2)[2]
        read += body.partition("\n[… ")[0]

    assert read == whole
    assert len(whole) > 2 * PAGE_CHARS


@pytest.mark.parametrize("arguments", [{"text": "nowhere"}, {"from_message": 99}, {"from_message": 3, "to_message": 1}])
def test_nothing_found_says_how_many_there_are(arguments: dict[str, Any]) -> None:
    assert ask(entries("One."), **arguments) == "Nothing was found. This session has 2 messages, numbered from 0."


def test_an_output_is_read_page_by_page() -> None:
    whole = "".join(f"{number:07} " for number in range(2_500))
    read = ""
    while len(read) < len(whole):
        page, _, more = part_of_output(whole, "", len(read)).partition("\n[… ")
        read += page
        assert more == (
            "" if read == whole else f"{len(whole) - len(read)} more characters: ask again with offset={len(read)}]"
        )

    assert read == whole


def test_of_an_output_the_lines_with_a_text_are_shown_with_their_numbers() -> None:
    assert part_of_output("Rain\nSTRASSE 1\nSun\nStraße 2", "straße", 0) == "2: STRASSE 1\n4: Straße 2"
    assert part_of_output("Rain", "snow", 0) == "Nothing was found."
    assert part_of_output("Rain", "", 9) == "There are 4 characters, none from 9 on."
