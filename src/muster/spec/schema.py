"""JSON schema of the campaign file."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from muster.spec.model import CampaignFile

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, object]:
    schema: dict[str, Any] = CampaignFile.model_json_schema(by_alias=True, schema_generator=_Schema)
    schema["properties"]["muster"] |= {"const": 1}
    return {"$schema": DIALECT, **schema, "title": "Muster campaign"}


class _Schema(GenerateJsonSchema):
    """Optional keys are left out of a campaign, never null; and titles made from key names only repeat them."""

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])  # defaults are inner values (seconds, tuples), not as written

    def get_title_from_name(self, name: str) -> str:
        return name

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 pydantic's signature
        return False
