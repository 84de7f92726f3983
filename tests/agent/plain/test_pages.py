"""Pages of one moment make a text; a page of another moment does not fit."""

from longhaul.agent.plain.text import Pages


def test_pages_of_one_moment_make_the_whole_text() -> None:
    pages = Pages()

    assert pages.take(7, 11, "amber")
    assert (pages.whole, len(pages.text), pages.seq) == (False, 5, 7)
    assert pages.take(7, 11, " and b")
    assert (pages.whole, pages.text) == (True, "amber and b")


def test_a_page_of_another_moment_does_not_fit_and_changes_nothing() -> None:
    pages = Pages()
    pages.take(7, 11, "amber")

    assert not pages.take(8, 12, " and blue")
    assert (pages.whole, pages.text, pages.seq) == (False, "amber", 7)
