"""Why results can't be read, in the report's language."""

from __future__ import annotations

from muster.domain.origins import Unread
from muster.domain.whereabouts import Whereabouts
from muster.report.words import Words


def unread_words(unread: Unread, where: Whereabouts, language: str) -> str:
    """Why, without a full stop. A folder that moved is named: what lay outside of it may lie elsewhere, too."""
    w = Words(language)
    if unread.there:
        return w("unread.there", path=unread.path, metric=", ".join(unread.results))
    key = "unread.moved" if where.former else "unread.gone"
    return w(key, path=unread.path, folder=where.now)
