"""The template of a summary: fields go in as text, and nothing in them is interpreted."""

import pytest

from longhaul.agent.values.spec.summary_template import BadTemplate, check_template, fill

SCHEMA = {"type": "object", "properties": {"goal": {"type": "string"}, "next-step": {"type": "array"}}}


def test_each_field_goes_to_its_place() -> None:
    filled = fill("G: {goal}\n{next-step}\n{goal}", {"goal": " paint ", "next-step": ["buy", "mix"]})

    assert filled == "G: paint\n- buy\n- mix\npaint"


def test_braces_that_name_no_field_stay_as_they_are() -> None:
    assert fill('{ "a": {goal} } {{goal}} {goal!r} {goal.upper} {', {"goal": "x"}) == (
        '{ "a": x } {goal} {goal!r} {goal.upper} {'
    )


def test_values_are_never_interpreted() -> None:
    hostile = r"{next-step} {0.__class__} \g<field> %s {{"

    assert fill("{goal}", {"goal": hostile, "next-step": "never seen"}) == hostile


@pytest.mark.parametrize("tag", ["</system-info>", "< / SYSTEM-INFO >", "<system-info source='x'>"])
def test_values_cannot_close_or_open_our_tags(tag: str) -> None:
    assert fill("<system-info>{goal}</system-info>", {"goal": [tag, {"deep": tag}]}).count("<") == 2


def test_what_is_no_text_is_shown_as_json_and_nothing_as_nothing() -> None:
    assert fill("{goal}|{next-step}|{missing}", {"goal": {"a": [1, "ü"]}, "next-step": None}) == '{"a": [1, "ü"]}||'


def test_an_unknown_field_is_named() -> None:
    with pytest.raises(BadTemplate, match="summary_template: the summary has no field 'gaol'; it has goal, next-step"):
        check_template("{gaol}", SCHEMA)


def test_a_template_that_shows_nothing_is_refused() -> None:
    with pytest.raises(BadTemplate, match="summary_template: it shows no field"):
        check_template("{{goal}}", SCHEMA)


@pytest.mark.proves("B2")
@pytest.mark.parametrize("schema", [{}, {"type": "array"}, {"type": "object", "properties": {}}, {"properties": [1]}])
def test_a_schema_without_fields_is_refused(schema: dict[str, object]) -> None:
    with pytest.raises(BadTemplate, match="summary_schema: it has to describe an object"):
        check_template("{goal}", schema)
