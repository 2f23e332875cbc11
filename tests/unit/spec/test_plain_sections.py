"""Sections are what they were written as, without a word on stderr."""

from __future__ import annotations

import warnings

import pytest

from muster.model.campaign import BestOf
from muster.spec import read_campaign

TEXT = """\
muster: 1
campaign: c
axes: {{config: [base, new], seed: [0, 1]}}
jobs:
  eval: {{axes: [config, seed], command: c, results: {{score: {{json: r.json, key: score}}}}}}
decision: {{primary: {{metric: score, better: higher}}, baseline: base, checkpoint: {checkpoint}}}
"""


@pytest.mark.parametrize(("written", "read"), [("last", "last"), ("{best: score}", BestOf("score"))])
def test_the_choice_of_a_checkpoint_warns_nobody(written: str, read: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        campaign = read_campaign(TEXT.format(checkpoint=written), file="campaign.yaml", folder="/home/me/c").campaign
    assert campaign.decision is not None
    assert campaign.decision.checkpoint == read
