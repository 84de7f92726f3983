"""The words of one PDF or HTML file: a program of its own, which reads the file from its input and says them.

What strangers wrote may keep a parser busy for hours, or fill the memory, so whoever starts this ends it in time. It
imports nothing of ours. It ends with REFUSED where its output is the reason why there are none.
"""

import io
import resource
import sys
from html.parser import HTMLParser

REFUSED = 3
CPU_SECONDS = 30
MEMORY_BYTES = 1_500_000_000
MOST_PAGES = 5_000
MOST_CHARS = 15_000_000
_NO_WORDS = ("script", "style", "template")
_LINES = ("p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article", "pre")


class NoWords(Exception):
    """The sentence says why."""


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self._silent += tag in _NO_WORDS
        if tag in _LINES:
            self.words.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        self._silent = max(self._silent - (tag in _NO_WORDS), 0)

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.words.append(data)


def of_html(content: bytes) -> str:
    page = _Page()
    page.feed(content.decode("utf-8-sig"))
    page.close()
    return "".join(page.words)


def of_pdf(content: bytes) -> str:
    """Raises NoWords."""
    try:
        return _of_pages(content)
    except NoWords:
        raise
    except Exception as error:  # of what strangers wrote, a parser raises anything
        raise NoWords(f"it is a PDF that can't be read ({type(error).__name__}); save it again, or as text") from error


def _of_pages(content: bytes) -> str:
    """Each page a paragraph of its own."""
    from pypdf import PdfReader  # noqa: PLC0415  HTML does without

    reader = PdfReader(io.BytesIO(content))
    if reader.is_encrypted and not reader.decrypt(""):
        raise NoWords("it is a PDF with a password; save it without one")
    if len(reader.pages) > MOST_PAGES:
        raise NoWords(f"it is a PDF with more than {MOST_PAGES} pages; cut it up")
    pages, size = list[str](), 0
    for page in reader.pages:
        pages.append(page.extract_text())
        size += len(pages[-1])
        if size > MOST_CHARS:
            raise NoWords(f"it is a PDF with more than {MOST_CHARS // 1_000_000} million characters; cut it up")
    if not "".join(pages).strip():
        raise NoWords("it is a PDF without text, as of pages that were scanned; have a program read them first (OCR)")
    return "\n\n".join(pages)


def main() -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    if sys.platform == "linux":  # elsewhere the libraries themselves may take as much
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    content = sys.stdin.buffer.read()
    try:
        words, code = (of_pdf if sys.argv[1] == "pdf" else of_html)(content), 0
    except NoWords as error:
        words, code = str(error), REFUSED
    sys.stdout.buffer.write(words.replace("\0", " ").encode("utf-8", "replace"))
    return code


if __name__ == "__main__":
    sys.exit(main())
