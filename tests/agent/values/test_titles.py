"""Lists tell sessions apart by how their requests begin."""

from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    Base64Source,
    DataBlock,
    TextBlock,
    UserMsg,
    title_of,
)


def test_a_title_is_what_users_said_on_one_line() -> None:
    chart = DataBlock(source=Base64Source(data="", media_type="image/png"), name="chart.png")
    asked = UserMsg("ana", [TextBlock(text=" Mend\n\tthe   lamp "), chart])

    said = [AssistantMsg("lamp", "Yes?"), UserMsg("ben", " "), asked, UserMsg("ben", "now")]

    assert title_of(said) == "Mend the lamp [chart.png]"
    assert title_of([AssistantMsg("lamp", "Yes?")]) == ""


def test_a_long_one_is_cut_and_can_be_stored() -> None:
    assert title_of([UserMsg("ana", "a" * 120)]) == "a" * 120
    assert title_of([UserMsg("ana", "\ud800" + "a" * 9_000_000)]) == "?" + "a" * 118 + "…"
    assert [title_of([UserMsg("ana", " " * blanks + "a")]) for blanks in (2_399, 2_400)] == ["a", ""]
    assert title_of([UserMsg("ana", "lamp " * 9)], 9) == "lamp lam…"
