"""What mkdocs needs to build the pages that GitHub shows: see mkdocs.yml.

README (in both languages), CONTRIBUTING, SECURITY and CHANGELOG lie beside `docs/` and become pages of the
site. Links to files that are no page lose their target and keep their text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
FRONT = {  # file beside docs/ -> page
    "README.md": "index.md",
    "README.zh-CN.md": "zh.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```[\w-]+) .*$", re.MULTILINE)  # superfences takes no second word, as in "console no-run"


def on_files(files: Files, config: Any) -> Files:
    for source, page in FRONT.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Any, files: Files, **_: Any) -> str:
    """The text with links as the site has them."""
    uri = page.file.src_uri
    source = next((file for file, name in FRONT.items() if name == uri), f"docs/{uri}")

    def rewrite_link(found: re.Match[str]) -> str:
        target = site_target(source, uri, found[2], files)
        return f"[{found[1]}]({target})" if target else found[1]

    return FENCE.sub(r"\1", LINK.sub(rewrite_link, markdown))


def site_target(source: str, uri: str, target: str, files: Files) -> str | None:
    """Where a link of this file leads on the site; None where it leads to no page."""
    file, hash_, anchor = target.partition("#")
    if not file or "://" in file:
        return target
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), file))
    page = FRONT.get(path) or path.removeprefix("docs/")
    if (ROOT / path).is_dir():
        page = f"{page}/README.md"
    if path not in FRONT and (not path.startswith("docs/") or files.get_file_from_path(page) is None):
        return None
    return posixpath.relpath(page, posixpath.dirname(uri) or ".") + hash_ + anchor
