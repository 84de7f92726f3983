"""What mkdocs.yml cannot say: where links out of docs/ lead, and the tests that prove the rows of docs/coverage.md.

Pages of docs/ are written to be read in a checkout too, so they link to files of the repository. On the site such a
file is a page of its own, with its text.
"""

import logging
import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from docs.making.proofs import with_proofs

ROOT = Path(__file__).parents[2]
AT_THE_TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
LANGUAGES = {".py": "python", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}

log = logging.getLogger("mkdocs.hooks.longhaul")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Has each link lead to a page of the site."""
    shown: set[Path] = set()
    for page in list(files.documentation_pages()):
        path = Path("docs", page.src_uri)
        text = with_proofs(page.content_string) if page.src_uri == "coverage.md" else page.content_string
        _put(files, config, page.src_uri, _with_links(path, page.src_uri, text, shown))
    for name in AT_THE_TOP:
        at = _page_of(Path(name))
        _put(files, config, at, _with_links(Path(name), at, (ROOT / name).read_text(encoding="utf-8"), shown))
    for path in sorted(shown):
        _put(files, config, _page_of(path), _as_page(path))
    return files


def _put(files: Files, config: MkDocsConfig, name: str, content: str) -> None:
    old = files.get_file_from_path(name)
    if old is not None:
        files.remove(old)
    files.append(File.generated(config, name, content=content))


def _with_links(path: Path, page: str, text: str, shown: set[Path]) -> str:
    """The text of the file `path`, as it stands on the page. `shown` gains files that have to be pages for it."""

    def led(link: re.Match[str]) -> str:
        before, to, behind = link.groups()
        if ":" in to:
            return link[0]
        target = Path(os.path.normpath(path.parent / to))
        if target.suffix == ".md" or (target.is_relative_to("docs") and (ROOT / target).is_file()):
            pass
        elif (ROOT / target).exists():
            shown.add(target)
        else:
            log.warning("%s leads to %s, which is not there", path, to)
        return f"{before}{os.path.relpath(_page_of(target), Path(page).parent)}{behind}"

    return LINK.sub(led, text)


def _page_of(path: Path) -> str:
    """Where a file of the repository is on the site."""
    if path.is_relative_to("docs") and (path.suffix == ".md" or (ROOT / path).is_file()):
        return path.relative_to("docs").as_posix()
    if path.as_posix() in AT_THE_TOP:
        return f"project/{path.stem.lower()}.md"
    # mkdocs leaves out what begins with a dot.
    return f"source/{path.as_posix().removeprefix('.')}.md"


def _as_page(path: Path) -> str:
    """A file as a page, or what lies in a folder."""
    if (ROOT / path).is_dir():
        names = sorted(each.name for each in (ROOT / path).iterdir() if each.name[:1] not in "._")
        return f"# {path}/\n\n" + "".join(f"- {name}\n" for name in names)
    text = (ROOT / path).read_text(encoding="utf-8")
    return f"# {path}\n\n````{LANGUAGES.get(path.suffix, 'text')}\n{text}\n````\n"


def on_config(config: MkDocsConfig) -> Any:
    """Headings get the anchors that forges give them, so that a link works in a checkout and on the site."""
    from tests.codebase.headings import anchor_of  # noqa: PLC0415  not before mkdocs has its folders

    config.mdx_configs["toc"] = {"permalink": True, "slugify": lambda heading, _separator: anchor_of(heading)}
    return config
