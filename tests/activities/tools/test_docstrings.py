"""What a tool's docstring says of its parameters reaches the model, in each of the usual styles."""

from typing import Annotated, Any

import pytest
from pydantic import Field

from longhaul.activities.tools.function import Function, tool
from longhaul.agent.values.conversation.tools import Effect


def google(page: int, chars: int = 40) -> str:
    """Return that page
    of the book.

    It may be long.

    Args:
        page: Its number,
            counted from 1.
        chars (int): How many characters.

    Returns:
        The text.
    """
    return f"{page} {chars}"


def numpy(page: int, chars: int = 40) -> str:
    """Return that page
    of the book.

    Parameters
    ----------
    page : int
        Its number,
        counted from 1.
    chars : int, optional
        How many characters.
    """
    return f"{page} {chars}"


def sphinx(page: int, chars: int = 40) -> str:
    """Return that page
    of the book.

    :param page: Its number,
        counted from 1.
    :param int chars: How many characters.
    :returns: The text.
    """
    return f"{page} {chars}"


def crowded(page: int, chars: int = 40) -> str:
    """Return that page
    of the book.
    Args:
        page: Its number,
            counted from 1.
        chars: How many characters.
    """
    return f"{page} {chars}"


def properties(function: Function) -> dict[str, Any]:
    return dict(tool(effect=Effect.READ)(function).input_schema["properties"])


@pytest.mark.proves("A7")
@pytest.mark.parametrize("function", [google, numpy, sphinx, crowded])
def test_what_is_said_of_parameters_is_in_the_schema(function: Function) -> None:
    made = tool(effect=Effect.READ)(function)

    assert made.description == "Return that page\nof the book."
    assert [field["description"] for field in made.input_schema["properties"].values()] == [
        "Its number,\ncounted from 1.",
        "How many characters.",
    ]
    assert made.input_schema["required"] == ["page"]


def test_the_signature_has_the_last_word() -> None:
    def fetch(page: Annotated[int, Field(description="The page.")], chars: int = 40) -> str:
        """Return that page.

        Args:
            page: Its number.
            chars: How many characters.
            colour: Nothing of that name.
        """
        return f"{page} {chars}"

    assert {name: field["description"] for name, field in properties(fetch).items()} == {
        "page": "The page.",
        "chars": "How many characters.",
    }


@pytest.mark.parametrize(
    ("words", "description"),
    [
        (None, ""),
        ("", ""),
        ("Say: hello.\n\nExample: no style at all.", "Say: hello."),
        ("Odd:\n  a: b: c\n\n---\n", "Odd:\n  a: b: c"),
        (":param", ":param"),
    ],
)
def test_a_docstring_without_parameters_is_taken_as_before(words: str | None, description: str) -> None:
    def fetch(page: int) -> str:
        return str(page)

    fetch.__doc__ = words

    assert tool(effect=Effect.READ)(fetch).description == description
    assert "description" not in properties(fetch)["page"]
