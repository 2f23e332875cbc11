"""From text to Campaign, or every mistake at once."""

from __future__ import annotations

from muster.model.campaign import Parsed
from muster.model.errors import CampaignInvalid, Mistake
from muster.spec.build_campaign import build_campaign
from muster.spec.lint_axes import lint_axes, lint_env
from muster.spec.lint_cells import lint_cells, lint_command_words
from muster.spec.lint_context import LintContext
from muster.spec.lint_jobs import lint_jobs
from muster.spec.lint_sections import lint_sections
from muster.spec.read_yaml import read_yaml_document
from muster.spec.validate_model import validate_largest_part
from muster.spec.yaml_tree import Scalar, Table, YamlDocument, describe_value

FILE_VERSION = 1


def read_campaign_text(text: str, *, file: str, folder: str) -> Parsed:
    document, mistakes = read_yaml_document(text)
    if document is None:
        raise _invalid_campaign(file, mistakes)
    fatal = _wrong_format_mistake(document)
    if fatal:
        raise _invalid_campaign(file, [*mistakes, fatal])
    model, valid, found = validate_largest_part(document)
    mistakes += found
    if model is not None:
        lint = LintContext(model, valid, document, mistakes)
        lint_env(lint, ("env",))
        lint_axes(lint)
        lint_jobs(lint)
        lint_command_words(lint)
        lint_cells(lint)
        lint_sections(lint)
        if document.has(("gates",)):
            from muster.spec.gate_rules import lint_gates  # few campaigns have any

            lint_gates(lint)
    if model is None or any(mistake.level == "error" for mistake in mistakes):
        raise _invalid_campaign(file, mistakes)
    return Parsed(build_campaign(model, document, folder), _ordered_mistakes(mistakes))


def _wrong_format_mistake(document: YamlDocument) -> Mistake | None:
    """What makes every further message pointless."""
    root = document.root
    if not isinstance(root, Table):
        what = f"expected a mapping, found {describe_value(root)}"
        return Mistake(what, root.line, root.column, "a campaign begins with `muster: 1` and `campaign: NAME`")
    entry = root.get("muster")
    version = entry[1] if entry else None
    if isinstance(version, Scalar) and type(version.value) is int and version.value != FILE_VERSION:
        what = f"the file has format version {version.text}; this Muster reads version {FILE_VERSION}"
        return Mistake(what, version.line, version.column, "write `muster: 1`, or use a newer Muster", "muster")
    return None


def _invalid_campaign(file: str, mistakes: list[Mistake]) -> CampaignInvalid:
    return CampaignInvalid(file, tuple(item for item in _ordered_mistakes(mistakes) if item.level == "error"))


def _ordered_mistakes(mistakes: list[Mistake]) -> tuple[Mistake, ...]:
    """By place, each once."""
    return tuple(sorted(dict.fromkeys(mistakes), key=lambda item: (item.line, item.column, item.message)))
