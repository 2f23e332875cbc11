"""Text of campaign.yaml in, Campaign out, or every mistake at once with line and column.

Nothing is imported until it is used: `init` needs only the templates, and pydantic costs a tenth of a second.
"""

from __future__ import annotations

from muster.model.campaign import Parsed


def read_campaign(text: str, *, file: str, folder: str) -> Parsed:
    """The campaign of a text; raises CampaignInvalid with all mistakes. `folder` is where the file lies, absolute."""
    from muster.spec.campaign_reader import read_campaign_text

    return read_campaign_text(text, file=file, folder=folder)


def json_schema() -> dict[str, object]:
    """JSON schema (draft 2020-12) of the campaign file, for editors."""
    from muster.spec.reference import build_json_schema

    return build_json_schema()


def reference_markdown() -> str:
    """Every key of the campaign file with type, default, meaning and example."""
    from muster.spec.reference import build_reference_markdown

    return build_reference_markdown()
