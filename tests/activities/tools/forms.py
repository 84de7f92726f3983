"""Schemas that are generated, each with a value that fits it and one that does not."""

from typing import Any

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

Form = tuple[dict[str, Any], Any, Any]
"""A schema, a value that fits it, and one that does not."""

NAMES = st.text(st.characters(codec="utf-8", categories=("L", "N", "Zs")), min_size=1, max_size=8)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)


def texts() -> st.SearchStrategy[Form]:
    return st.one_of(
        TEXTS.map(lambda text: ({"type": "string"}, text, 7)),
        TEXTS.map(lambda text: ({"type": "string", "minLength": len(text) + 1}, text + "x", text)),
        TEXTS.map(lambda text: ({"type": "string", "pattern": "^x+$"}, "xx", text + "y")),
        st.lists(TEXTS, min_size=1, unique=True).map(lambda all_: ({"enum": all_}, all_[0], "".join(all_) + "!")),
        TEXTS.map(lambda text: ({"const": text}, text, text + "?")),
    )


def numbers() -> st.SearchStrategy[Form]:
    # As far as every JSON reader knows whole numbers apart, with room for one more on each side.
    whole = st.integers(-(2**53) + 2, 2**53 - 2)
    return st.one_of(
        whole.map(lambda number: ({"type": "integer"}, number, number + 0.5 if abs(number) < 2**40 else "one")),
        whole.map(lambda number: ({"type": "number", "minimum": number}, number, number - 1)),
        whole.map(lambda number: ({"type": "number", "exclusiveMaximum": number}, number - 1, number)),
        st.booleans().map(lambda flag: ({"type": "boolean"}, flag, 1)),
        st.just(({"type": "null"}, None, False)),
    )


def lists(parts: st.SearchStrategy[Form]) -> st.SearchStrategy[Form]:
    return st.one_of(
        st.tuples(parts, st.integers(0, 4)).map(
            lambda made: (
                {"type": "array", "items": made[0][0]},
                [made[0][1]] * made[1],
                [*[made[0][1]] * made[1], made[0][2]],
            )
        ),
        parts.map(lambda part: ({"type": "array", "items": part[0], "maxItems": 1}, [part[1]], [part[1]] * 2)),
        parts.map(lambda part: ({"type": "array", "uniqueItems": True}, [part[1]], [part[1], part[1]])),
        parts.map(lambda part: ({"anyOf": [part[0], {"type": "null"}]}, None, part[2])).filter(
            lambda form: form[2] is not None
        ),
        st.tuples(parts, parts).map(
            lambda two: (
                {"type": "array", "prefixItems": [two[0][0], two[1][0]]},
                [two[0][1], two[1][1]],
                [two[0][1], two[1][2]],
            )
        ),
    )


def objects(parts: st.SearchStrategy[Form]) -> st.SearchStrategy[Form]:
    def made(fields: dict[str, Form], missing: bool, closed: bool) -> Form:
        schema: dict[str, Any] = {"type": "object", "properties": {name: form[0] for name, form in fields.items()}}
        valid = {name: form[1] for name, form in fields.items()}
        name = next(iter(fields))
        if missing:
            return {**schema, "required": [name]}, valid, {key: valid[key] for key in valid if key != name}
        if closed:
            return {**schema, "additionalProperties": False}, valid, {**valid, "".join(fields) + "+": 1}
        return schema, valid, {**valid, name: fields[name][2]}

    fields = st.dictionaries(NAMES, parts, min_size=1, max_size=4)
    return st.builds(made, fields, st.booleans(), st.booleans())


def forms() -> st.SearchStrategy[Form]:
    parts = st.recursive(texts() | numbers(), lambda inner: lists(inner) | objects(inner), max_leaves=8)
    return objects(parts)


def some_forms(count: int) -> list[Form]:
    """The same ones each time."""
    made: list[Form] = []

    @seed(17)
    @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate])
    @given(forms())
    def make(form: Form) -> None:
        made.append(form)

    make()
    return made[:count]
