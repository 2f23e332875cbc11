"""From text to Campaign, or every mistake at once."""

from __future__ import annotations

from muster.domain.errors import CampaignInvalid, Mistake
from muster.spec.document import Document, Scalar, Table, describe
from muster.spec.lint import Lint
from muster.spec.lint_axes import lint_axes, lint_env
from muster.spec.lint_cells import lint_cells
from muster.spec.lint_jobs import lint_jobs
from muster.spec.lint_sections import lint_sections
from muster.spec.lint_words import lint_words
from muster.spec.parsed import Parsed
from muster.spec.partial import validate
from muster.spec.resolve import campaign_of
from muster.spec.syntax import read_document

VERSION = 1


def read(text: str, *, file: str, folder: str) -> Parsed:
    document, mistakes = read_document(text)
    if document is None:
        raise _invalid(file, mistakes)
    fatal = _not_ours(document)
    if fatal:
        raise _invalid(file, [*mistakes, fatal])
    model, valid, found = validate(document)
    mistakes += found
    if model is not None:
        lint = Lint(model, valid, document, mistakes)
        lint_env(lint, ("env",))
        lint_axes(lint)
        lint_jobs(lint)
        lint_words(lint)
        lint_cells(lint)
        lint_sections(lint)
        if document.has(("gates",)):
            from muster.spec.lint_gates import lint_gates  # few campaigns have any

            lint_gates(lint)
    if model is None or any(mistake.level == "error" for mistake in mistakes):
        raise _invalid(file, mistakes)
    return Parsed(campaign_of(model, document, folder), _ordered(mistakes))


def _not_ours(document: Document) -> Mistake | None:
    """What makes every further message pointless."""
    root = document.root
    if not isinstance(root, Table):
        what = f"expected a mapping, found {describe(root)}"
        return Mistake(what, root.line, root.column, "a campaign begins with `muster: 1` and `campaign: NAME`")
    entry = root.get("muster")
    version = entry[1] if entry else None
    if isinstance(version, Scalar) and type(version.value) is int and version.value != VERSION:
        what = f"the file has format version {version.text}; this Muster reads version {VERSION}"
        return Mistake(what, version.line, version.column, "write `muster: 1`, or use a newer Muster", "muster")
    return None


def _invalid(file: str, mistakes: list[Mistake]) -> CampaignInvalid:
    return CampaignInvalid(file, tuple(item for item in _ordered(mistakes) if item.level == "error"))


def _ordered(mistakes: list[Mistake]) -> tuple[Mistake, ...]:
    """By place, each once."""
    return tuple(sorted(dict.fromkeys(mistakes), key=lambda item: (item.line, item.column, item.message)))
