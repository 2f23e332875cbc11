"""By which definition cells were made: what counts as another one, and whose runs it sets apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muster.app.facts.definition_changes import changed_command_words, find_definition_mixtures, find_outdated_cells
from muster.app.facts.past_campaigns import BegunAttempt, CampaignSnapshot, PastCampaigns, read_past_campaigns
from muster.app.report.red_flag_text import describe_flag
from muster.engine.ports.store import LoggedDecision
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.cell import Cell, list_campaign_cells
from muster.model.decision import Decision
from muster.model.verdict import VerdictState
from muster.spec import read_campaign
from muster.stats.flags_of_provenance import flag_definitions

TEXT = """\
muster: 1
campaign: c
axes:
  config: {base: {args: --lr 1}, new: {args: --lr 2}}
  seed: [0, 1, 2]
jobs:
  train: {axes: [config, seed], command: 'python train.py {config.args} --seed {seed} --out {out}', results: {score: {json: r.json, key: s}}}
"""


def snapshot(text: str, root: str = "/home/me/c", hashes: Mapping[str, str] | None = None) -> CampaignSnapshot:
    return CampaignSnapshot(read_campaign(text, file="campaign.yaml", folder=root).campaign, hashes or {}, root)


def record(cell: Cell, attempts: int = 1) -> CellRecord:
    dead = Outcome(VerdictState.DEAD)
    made = [
        Attempt(
            cell.id, n, f"t{n}", 1, (), "", "", 0.0, "", outcome=Outcome(VerdictState.DONE) if n == attempts else dead
        )
        for n in range(1, attempts + 1)
    ]
    return CellRecord(cell, 0, attempts=tuple(made))


class Story:
    """Cells, each DONE under one of two campaigns."""

    def __init__(self, then: CampaignSnapshot, now: CampaignSnapshot, before: Sequence[str]) -> None:
        cells = {cell.id: cell for at in (then, now) for cell in list_campaign_cells(at.campaign)}
        self.now = now
        self.records = [record(cell) for cell in cells.values()]
        begun = [BegunAttempt(name, 1, "then" if name in before else "now") for name in cells]
        begun.sort(key=lambda each: each.campaign != "then")
        self.past = PastCampaigns(tuple(begun), {"then": then, "now": now}.get)

    def told(self) -> list[str]:
        mixed = list(find_definition_mixtures(self.records, self.past, {}))
        cells = frozenset((cell, each.part) for each in mixed if not each.as_run for cell in each.cells)
        found = flag_definitions(mixed, find_outdated_cells(self.records, self.past, self.now, cells))
        return [f"{flag.level} {flag.message}" for flag in found]


def story(then: str, now: str, *before: str, **more: str) -> list[str]:
    return Story(snapshot(then), snapshot(now, **more), before).told()


BASE, NEW = [[f"train/{config}/{seed}" for seed in range(3)] for config in ("base", "new")]
AGAIN = "one table, two definitions; `muster redo --outdated --because ...` runs the older ones again"


def test_args_that_changed_inside_a_row() -> None:
    told = story(TEXT, TEXT.replace("--lr 2", "--lr 3"), *BASE, *NEW[:2])
    assert told == [f"ERROR train: command is `--lr 2` for new, seeds 0, 1, and `--lr 3` for new, seed 2: {AGAIN}"]


def test_a_row_that_stayed_as_it_was_does_not_stand_against_a_changed_one() -> None:
    """Seeds that came with the change are known by nobody before it, and base runs as it always did."""
    now = TEXT.replace("--lr 2", "--lr 3").replace("[0, 1, 2]", "[0, 1, 2, 3]")
    told = story(TEXT, now, *BASE, *NEW)
    assert told == [f"ERROR train: command is `--lr 2` for new, seeds 0, 1, 2, and `--lr 3` for new, seed 3: {AGAIN}"]


def test_a_template_that_changed_between_compared_rows() -> None:
    told = story(TEXT, TEXT.replace("--seed", "--steps 9 --seed"), *BASE)
    assert told == [
        f"ERROR train: command is not set for base, seeds 0, 1, 2, and `--steps 9` for new, seeds 0, 1, 2: {AGAIN}"
    ]


def test_an_environment_variable_and_the_steps() -> None:
    now = TEXT.replace("train: {", "train: {steps: 20, env: {OMP: '4'}, ").replace(
        "muster: 1", "muster: 1\nenv: {LR: '1'}"
    )
    then = TEXT.replace("train: {", "train: {steps: 10, ")
    told = story(then, now, *BASE)
    assert sorted(each.partition(" for ")[0] for each in told) == [
        "ERROR train: env LR is not set", "ERROR train: env OMP is not set", "ERROR train: steps is `10`",
    ]  # fmt: skip


def test_a_change_is_told_only_of_runs_that_it_would_have_touched() -> None:
    """Another variable for all, and other args of a config that ran only afterwards."""
    now = TEXT.replace("muster: 1", "muster: 1\nenv: {LR: '1'}").replace("--lr 2", "--lr 3")
    assert story(TEXT, now, *BASE) == [
        f"ERROR train: env LR is not set for base, seeds 0, 1, 2, and `1` for new, seeds 0, 1, 2: {AGAIN}"
    ]


def test_args_of_two_configs_that_changed_between_their_runs() -> None:
    """Told is what each ran, and not what the other one's args became."""
    now = TEXT.replace("--lr 1", "--lr 5").replace("--lr 2", "--lr 9")
    error, warn = story(TEXT, now, *BASE)
    assert error == (
        f"ERROR train: command is `--lr 1` for base, seeds 0, 1, 2, and `--lr 9` for new, seeds 0, 1, 2: {AGAIN}"
    )
    assert warn.startswith("WARN train: command was `--lr 1` for base, seeds 0, 1, 2; campaign.yaml says `--lr 5`")


def test_variables_of_two_configs_that_changed_between_their_runs() -> None:
    text = TEXT.replace("args: --lr 1", "env: {A: '1'}").replace("args: --lr 2", "env: {A: '2'}")
    error, _ = story(text, text.replace("A: '1'", "A: '5'").replace("A: '2'", "A: '9'"), *BASE)
    assert error.startswith("ERROR train: env A is `1` for base, seeds 0, 1, 2, and `9` for new, seeds 0, 1, 2:")


def test_args_that_changed_before_another_config_came_in() -> None:
    now = TEXT.replace("--lr 1", "--lr 5").replace("args: --lr 2}", "args: --lr 2}, third: {args: --lr 9}")
    error, _ = story(TEXT, now, *BASE, *NEW)
    assert error.startswith("ERROR train: command is `--lr 1` for base, seeds 0, 1, 2, and `--lr 9` for third,")


def test_a_part_that_stands_against_nobody_is_told_as_older_than_the_file() -> None:
    now = TEXT.replace("muster: 1", "muster: 1\nenv: {LR: '1'}").replace("--lr 1", "--lr 5")
    error, warn = story(TEXT, now, *BASE)
    assert error.startswith("ERROR train: env LR")
    assert warn.startswith("WARN train: command was `--lr 1` for base, seeds 0, 1, 2; campaign.yaml says `--lr 5`")


def test_what_leaves_every_run_as_it_was_is_no_other_definition() -> None:
    moved = TEXT.replace("train.py {config.args}", "train.py --lr {config.args}").replace("args: --lr ", "args: ")
    for now in (
        moved.replace("args: 1", "args: '1'").replace("args: 2", "args: '2'"),  # the option moved into the template
        TEXT.replace("[0, 1, 2]", "[0, 1, 2, 3, 4]"),  # it grew
        TEXT.replace("args: --lr 2}", "args: --lr 2}, third: {args: --lr 9}"),
        TEXT.replace("args: --lr 2}", "args: --lr 2, note: the new one}"),
        TEXT.replace("json: r.json", "json: other.json"),
    ):
        assert story(TEXT, now, *BASE, *NEW[:2]) == []


def test_a_config_that_was_changed_before_it_ran_is_one_definition() -> None:
    assert story(TEXT, TEXT.replace("--lr 2", "--lr 3"), *BASE) == []


def test_a_config_that_came_later_under_another_template() -> None:
    now = TEXT.replace("args: --lr 2}", "args: --lr 2}, third: {args: --lr 9}").replace("train.py", "other.py")
    told = story(TEXT, now, *BASE, *NEW)
    assert len(told) == 1
    assert (
        "`train.py` for base, seeds 0, 1, 2 and new, seeds 0, 1, 2, and `other.py` for third, seeds 0, 1, 2" in told[0]
    )


def test_a_campaign_that_was_moved_is_the_same() -> None:
    then = TEXT.replace("train: {", "train: {cwd: src, ")
    assert Story(snapshot(then, "/a/b"), snapshot(then, "/else/where"), [*BASE, *NEW[:2]]).told() == []


def test_rows_that_agree_and_are_older_than_the_file_are_a_warning() -> None:
    told = story(TEXT, TEXT.replace("--lr 2", "--lr 3"), *BASE, *NEW)
    assert told == [
        "WARN train: command was `--lr 2` for new, seeds 0, 1, 2; campaign.yaml says `--lr 3`; "
        "`muster redo --outdated --because ...` runs them again"
    ]


def test_a_config_file_that_was_rewritten() -> None:
    text = TEXT.replace("{config.args}", "--config {config}.yaml")
    text = text.replace("--config {config}.yaml", "--config cfg.yaml")
    then = snapshot(text, hashes=dict.fromkeys((*BASE, *NEW), "aa-1"))
    now = snapshot(text, hashes=dict.fromkeys((*BASE, *NEW), "bb-1"))
    told = Story(then, now, [*BASE, *NEW[:2]]).told()
    assert told == [
        "ERROR train: cfg.yaml was changed after base, seeds 0, 1, 2 and new, seeds 0, 1 had begun, and before "
        f"new, seed 2: {AGAIN}"
    ]


def test_a_run_that_was_resumed_under_another_definition() -> None:
    then, now = snapshot(TEXT), snapshot(TEXT.replace("--lr 1", "--lr 7"))
    cell = next(iter(list_campaign_cells(then.campaign)))
    past = PastCampaigns(
        (BegunAttempt(cell.id, 1, "then"), BegunAttempt(cell.id, 2, "now")), {"then": then, "now": now}.get
    )
    assert not list(find_definition_mixtures([record(cell, 2)], past, {}))
    (found,) = find_definition_mixtures([record(cell, 2)], past, {cell.id: (1, 2)})
    assert (found.old, found.new, found.cells, found.others) == ("--lr 1", "--lr 7", (cell.id,), (cell.id,))


def test_it_is_told_in_chinese_too() -> None:
    then, now = snapshot(TEXT), snapshot(TEXT.replace("--lr 2", "'--lr 3, 4'"))
    made = Story(then, now, [*BASE, *NEW[:2]])
    (flag,) = flag_definitions(find_definition_mixtures(made.records, made.past, {}), ())
    assert describe_flag(flag, "zh") == (
        "train 的命令不一致：new 0、1 用的是 `--lr 2`，new 2 用的是 `--lr 3, 4`；"
        "`muster redo --outdated --because ...` 可按新定义重跑旧的单元"
    )


def test_only_the_words_that_differ() -> None:
    assert changed_command_words("a --x 1 b c", "a --x 2 b d") == ("--x 1 ... c", "--x 2 ... d")
    assert changed_command_words("a b", "a b --fast") == ("", "--fast")


def test_the_campaign_that_was_in_force_by_the_log() -> None:
    def event(
        kind: str, cell: str | None = None, attempt: int | None = None, void: str | None = None, **data: str
    ) -> LoggedDecision:
        return LoggedDecision(Decision(kind, "me", cell=cell, attempt=attempt, data=data), void)

    found = read_past_campaigns(
        [
            event("campaign", hash="one", env_file="/home/me/c/.muster/env/1.json"),
            event("start", "train/base/0", 1),
            event("campaign", hash="two", void="the campaign is held"),
            event("start", "train/base/1", 1),
            event("round", hash="three"),
            event("start", "train/base/2", 1, void="the campaign is down"),
            event("adopt", "train/base/2", 1),
        ],
        lambda name: snapshot(TEXT, root="") if name != "one" else None,
    )
    assert found.in_force() == {("train/base/0", 1): "one", ("train/base/1", 1): "one", ("train/base/2", 1): "three"}
    assert found.snapshots("one") is None
    then = found.snapshots("three")
    assert then is not None
    assert then.root == "/home/me/c"
