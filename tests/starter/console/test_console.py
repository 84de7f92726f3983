"""The parts of the console that need no server: what makes a text harmless, and forms against the HTTP API's table."""

import re
from pathlib import Path

import pytest

from longhaul.starter.console import pages
from longhaul.starter.console.changes import SENT
from longhaul.starter.console.console_request import NAMED
from longhaul.starter.console.transcript import MOST_CHARS, as_html, diff_lines, fitted, side_by_side
from longhaul.starter.visible import harmless

SCRIPT = (pages.FOLDER / "static" / "console.js").read_text(encoding="utf-8")
MARKUP = "".join(path.read_text(encoding="utf-8") for path in Path(pages.FOLDER / "templates").glob("*.html"))


def test_the_script_marks_the_same_characters_as_the_server() -> None:
    (written,) = re.findall(r"const OBEYED = /(\[.+\])/gu;", SCRIPT)
    by_script = {number for number in range(0x110000) if re.match(written, chr(number))}

    assert by_script == {number for number in range(0x110000) if harmless(chr(number)) != chr(number)}


def test_no_template_has_what_the_policy_forbids_or_marks_text_as_safe() -> None:
    assert re.findall(r"<script(?! src=)|<style|\sstyle=|\son\w+=|javascript:|\|\s*safe|autoescape", MARKUP) == []


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("<b>x</b>", "<p>&lt;b&gt;x&lt;/b&gt;</p>\n"),
        ("![a](http://x/y.png)", "<p>[picture: a http://x/y.png]</p>\n"),
        ("[a](javascript:x)", "<p>[a](javascript:x)</p>\n"),
        ("[a](ftp://x)", '<p><a rel="noopener noreferrer nofollow">a</a></p>\n'),
        ("a\u202eb", "<p>a\\u202eb</p>\n"),
        ("```html\n<i>\n```", "<pre><code>&lt;i&gt;\n</code></pre>\n"),
    ],
)
def test_markdown_becomes_html_in_which_nothing_runs_or_is_fetched(text: str, html: str) -> None:
    assert as_html(text) == html


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    shown = fitted("a" * 20_000 + "\x1b" + "z" * 20_000)

    assert re.fullmatch(r"a{13333}\n⟨20002 characters are not shown here⟩\nz{6666}", shown)
    assert as_html("[x](y) " * MOST_CHARS).startswith('<pre class="long">[x](y)')


def test_what_a_form_may_do_is_an_operation_of_the_table() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in pages.FOLDER.glob("*.py"))
    asked = {*re.findall(r'\.ask\(\s*"(\w+)"', source), *SENT}

    assert asked <= set(NAMED)
    assert {"decide", "resolve", "message", "inbox", "pending", "transcript", "events"} <= asked


def test_a_diff_in_two_columns_pairs_what_stands_in_the_others_place() -> None:
    lines = list(diff_lines("--- a\n+++ b\n@@ -1 +1 @@\n one\n-two\n-three\n+2\n four\n+five\n-six\u202e"))
    pairs = [(one.before and one.before.text, one.after and one.after.text) for one in side_by_side(lines)]

    assert pairs == [
        ("--- a", "--- a"),
        ("+++ b", "+++ b"),
        ("@@ -1 +1 @@", "@@ -1 +1 @@"),
        (" one", " one"),
        ("-two", "+2"),
        ("-three", None),
        (" four", " four"),
        (None, "+five"),
        ("-six\\u202e", None),
    ]
