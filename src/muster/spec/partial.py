"""The largest part of a document that is valid, so that the lints can tell their mistakes beside the others."""

from __future__ import annotations

from pydantic import ValidationError

from muster.domain.errors import Mistake
from muster.spec.document import Document, Path, Scalar, plain
from muster.spec.messages import mistakes_of, paths_of
from muster.spec.model import CampaignFile

_STAND_INS = {"muster": Scalar(1, "1", False, 1, 1), "campaign": Scalar("?", "?", True, 1, 1), "jobs": {}}
_COMMAND = Scalar("true", "true", True, 1, 1)


def validate(document: Document) -> tuple[CampaignFile | None, Document, list[Mistake]]:
    """The model, the document that it was made from, and the mistakes of the whole one."""
    mistakes: list[Mistake] | None = None
    for _ in range(12):  # each round cuts one level higher at worst, and no path is longer
        try:
            return CampaignFile.model_validate(_data(document, told=mistakes is not None)), document, mistakes or []
        except ValidationError as error:
            if mistakes is None:
                mistakes = mistakes_of(error, document)
            document = document.without(_cuts(error, document))
    return None, document, mistakes or []


def _cuts(error: ValidationError, document: Document) -> list[Path]:
    """What to leave out: the wrong value; and for a key that is missing, the mapping that lacks it."""
    return [path if document.has(path) else path[:-1] for path in paths_of(error)]


def _data(document: Document, *, told: bool) -> object:
    data = plain(document.root)
    if not isinstance(data, dict):
        return data
    if told:  # these are missing, which is told already
        data = _STAND_INS | data
    jobs = data.get("jobs")
    for job in jobs.values() if isinstance(jobs, dict) else ():
        if isinstance(job, dict):
            job.setdefault("command", _COMMAND)  # its absence is told by the lints
    return data
