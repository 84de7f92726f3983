"""A model's Markdown on a terminal: laid out, and unable to steer it or to hide anything in it."""

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown
from rich.segment import Segment

from longhaul.starter.cli.terminal.painting import without_blank_end
from longhaul.starter.visible import harmless


class MarkdownText:
    """One block or more. A link shows where it leads to, and none can be clicked that says another thing."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        laid_out = Markdown(harmless(self._text), hyperlinks=False, code_theme="ansi_dark")
        lines = console.render_lines(laid_out, options.update(height=None), pad=False)
        while lines and not _says_something(lines[-1]):
            lines.pop()
        first = next((number for number, line in enumerate(lines) if _says_something(line)), 0)
        for line in map(without_blank_end, lines[first:]):
            # Once more: an entity such as `&#x202e;` becomes its character only while it is laid out.
            yield from (Segment(harmless(segment.text), segment.style) for segment in line if not segment.control)
            yield Segment.line()


def _says_something(line: list[Segment]) -> bool:
    return any(segment.text.strip() for segment in line)
