"""A gate's settings in a file of their own, for `muster gates replay --with FILE`; every mistake with its line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from muster.domain.errors import CampaignInvalid, Mistake
from muster.spec.base import Model
from muster.spec.document import Document, Node, Scalar, Table, plain
from muster.spec.messages import mistakes_of
from muster.spec.model_gate import Gate, Rules
from muster.spec.syntax import read_document

_HINT = "it may be the settings themselves, `NAME: {success: ...}`, or a campaign file with one gate"


class _Declared(Model):
    gates: dict[str, Gate]


class _Alone(Model):
    gates: dict[str, Rules]


def read_rules(text: str, *, file: str, name: str = "") -> dict[str, Any]:
    """As `campaign.gates` holds them; raises CampaignInvalid with all mistakes. `name`: which, of several."""
    document, mistakes = read_document(text)
    if document is None or mistakes:
        raise CampaignInvalid(file, tuple(mistakes))
    gates = _gates(document.root)
    chosen = [entry for entry in gates.entries if name in ("", entry[0].text)]
    if len(chosen) != 1:
        known = ", ".join(key.text for key, _ in gates.entries)
        what = f"there is no gate '{name}'" if name else f"it has {len(gates.entries)} gates, and one is needed"
        raise CampaignInvalid(file, (Mistake(what, hint=f"its gates: {known}" if known else _HINT),))
    return _validated(replace(document, root=_table("gates", replace(gates, entries=tuple(chosen)))), file)


def _gates(root: Node) -> Table:
    """Whichever of the three forms it is: a mapping from names to gates."""
    if not isinstance(root, Table):
        return _table("gate", root)
    declared = root.get("gates")
    if declared and isinstance(declared[1], Table):
        return declared[1]
    named = all(
        isinstance(value, Table) and (value.get("success") or value.get("failure")) for _, value in root.entries
    )
    return root if named and root.entries else _table("gate", root)


def _table(name: str, value: Node) -> Table:
    key = Scalar(name, name, False, value.line, value.column)
    return Table(((key, value),), value.line, value.column)


def _validated(document: Document, file: str) -> dict[str, Any]:
    (_, gates) = document.root.entries[0] if isinstance(document.root, Table) else (None, document.root)
    gate = gates.entries[0][1] if isinstance(gates, Table) else None
    whole = isinstance(gate, Table) and gate.get("job") is not None
    try:
        model = (_Declared if whole else _Alone).model_validate(plain(document.root))
    except ValidationError as error:
        raise CampaignInvalid(file, tuple(mistakes_of(error, document))) from None
    rules = next(iter(model.gates.values()))
    return rules.model_dump(exclude_none=True, warnings=False)
