"""Lines that are longer than the terminal is wide."""

from rich.console import Console
from rich.text import Text

from longhaul.starter.cli.terminal.text_layout import folded

LINES = """\
may it do this?
  once: it may have run, and is never repeated
  │ cp -r harbour pier && ls
  │ /a/path/that/is/too/long/for/a/row
  +The tide comes in with boats
   kept as it was"""
ROWS = """\
may it do this?
  once: it may have
    run, and is never
    repeated
  │ cp -r harbour pier
  ┆ && ls
  │ /a/path/that/is/to
  ┆ o/long/for/a/row
  +The tide comes in
  ┆ with boats
   kept as it was"""


def test_no_word_is_parted_and_no_row_of_text_from_outside_begins_as_ours() -> None:
    rows = folded(Text(LINES), Console(width=22))

    assert "\n".join(row.rstrip() for row in rows.plain.split("\n")) == ROWS
    assert max(map(len, rows.plain.split("\n"))) == 22


def test_a_command_stays_one_line_that_can_be_pasted() -> None:
    command = "  longhaul approve harbour call-7 --agent keeper\n  to continue: longhaul resume harbour"

    assert folded(Text(command), Console(width=22)).plain == command


def test_what_fits_stays_as_it_is() -> None:
    assert folded(Text(LINES), Console(width=50)).plain == LINES
