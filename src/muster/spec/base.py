"""What all models of the campaign file share."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field

from muster.spec.fields import form


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)


def field(default: Any, meaning: str, example: str, **more: Any) -> Any:
    """A key with its meaning and an example as it would be written in the file; `...` as default: required."""
    return Field(default, description=meaning, examples=[example] if example else None, **more)


def forms(expected: str, hint: str = "") -> Discriminator:
    """For a key that takes a text, a list or a mapping: only the form at hand is read, so there is one message."""
    # the two go together as one text: the context that pydantic offers would make the annotation unhashable
    return Discriminator(form, custom_error_type="muster_form", custom_error_message=f"{expected}\n{hint}")
