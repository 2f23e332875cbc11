"""Fails if a built site loads anything from outside: scripts, styles, fonts, images, frames.

python tools/check_site.py site
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

SOURCES = {"src", "srcset", "poster", "data"}
LOADING = {
    "stylesheet",
    "icon",
    "shortcut",
    "preload",
    "prefetch",
    "preconnect",
    "dns-prefetch",
    "modulepreload",
    "manifest",
}
OUTSIDE = re.compile(r"^\s*(https?:)?//", re.IGNORECASE)
STYLE = re.compile(r"(?:url\(|@import)\s*['\"]?\s*((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)


class Loads(HTMLParser):
    """Collects what a page loads from another host."""

    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        loaded = [given[name] for name in SOURCES if name in given]
        if tag == "link" and LOADING & set(given.get("rel", "").lower().split()):
            loaded.append(given.get("href", ""))
        if "mermaid" in given.get("class", "").split():
            self.outside.append("a mermaid diagram, whose script the theme fetches from outside")
        self.outside += [f"<{tag}> {url}" for url in loaded if OUTSIDE.match(url)]
        self.outside += [f"style of <{tag}> {url}" for url in STYLE.findall(given.get("style", ""))]


def outside_of(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".css":
        return STYLE.findall(text)
    page = Loads()
    page.feed(text)
    inline = re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL | re.IGNORECASE)
    return page.outside + [url for style in inline for url in STYLE.findall(style)]


def main(folder: Path) -> int:
    pages = sorted(path for path in folder.rglob("*") if path.suffix in (".html", ".css"))
    found = [f"{path}: {what}" for path in pages for what in outside_of(path)]
    if not any(path.suffix == ".html" for path in pages):
        found.append(f"{folder}: there is no page")
    print("\n".join(found) or f"{folder}: {len(pages)} pages and styles load nothing from outside")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
