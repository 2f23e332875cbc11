"""From events and state to the facts of a record: what is folded, why cells are missing, what would fix it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from muster.app.campaign.campaign_cost import expected_price
from muster.app.campaign.campaign_status import ControllerStatus, Status, build_status
from muster.app.facts.record_facts import AbsentCells, Observation, RecordFacts
from muster.app.record.event_story import EventStory, shorten_story
from muster.app.record.gather_record import RecordSources, command_as_typed, gather_record_facts
from muster.app.record.record_markdown import record_markdown
from muster.engine.ports.store import LoggedDecision
from muster.model.attempt import Attempt, CellRecord, Order, Outcome
from muster.model.campaign import Axis, AxisValue, Campaign, Job, Money, Slots
from muster.model.campaign_state import CampaignState, CellFilter, Intent
from muster.model.cell import list_campaign_cells
from muster.model.decision import Decision
from muster.model.verdict import Cause, Evidence, VerdictState
from muster.text.secret_masking import HIDDEN_VALUE

ME = "me@here"
CONFIGS = ("baseline", "u_only", "cert_only", "full")
CAMPAIGN = Campaign(
    "paper",
    (
        Axis("config", tuple(AxisValue(name, name) for name in CONFIGS)),
        Axis("seed", tuple(AxisValue(str(seed), seed) for seed in range(5))),
    ),
    (
        Job("train", ("config", "seed"), ("python", "train.py", "{config}"), env={"HF_TOKEN": "s3cret", "A": "1"}),
        Job("eval", ("config", "seed"), ("python", "eval.py"), needs=("train",)),
    ),
    slots=Slots(gpus=(0,), cpus=1),
    money=Money(2.0, "CNY"),
)
ORDER = Order("c", 1, "t", 1, (), "/code", {}, "", (), "", "", "", "", 0.0, "", None, None, "", "", "", (), 0.0, {}, {})


def event(kind: str, cell: str | None = None, reason: str = "", *, n: int | None = None, who: str = ME, void: str | None = None,
          epoch: int | None = None, minute: int = 0, **data: Any) -> LoggedDecision:  # fmt: skip
    at = f"2026-02-22T02:{minute:02}:00.000+08:00"
    return LoggedDecision(Decision(kind, who, reason, cell, n, epoch, at, 0.0, data), void)


def outcome(verdict: VerdictState = VerdictState.DONE, cause: Cause | None = None, **more: Any) -> Outcome:
    return Outcome(verdict, cause, **{"duration_s": 3600.0, "reason": "why", **more})


def attempt(cell: str, n: int = 1, ended: Outcome | None = None, *, adopted: bool = False) -> Attempt:
    return Attempt(cell, n, "t", 1, (), "h-c", "2026-02-22T02:00:00+08:00", 0.0, "b", adopted=adopted, outcome=ended)


OOM = Cause("cuda_oom", confidence="probable")
DOWN = Intent("down")


def _record_text(
    status: Status, events: Sequence[LoggedDecision], sources: RecordSources, language: str | None = None
) -> str:
    return record_markdown(gather_record_facts(status, events, sources, language=language))


class Scene:
    """Cells that are DONE, dead or given up; everything else has not run."""

    def __init__(self, done: Sequence[str] = (), dead: Sequence[str] = (), adopted: Sequence[str] = (),
                 given_up: Sequence[str] = (), only: CellFilter = (), intent: Intent = DOWN,
                 campaign: Campaign = CAMPAIGN, ended: Outcome | None = None) -> None:  # fmt: skip
        died = ended or outcome(VerdictState.DEAD, OOM, advice="use a smaller batch", lines=("CUDA out of memory",))
        cells = {}
        for position, cell in enumerate(list_campaign_cells(campaign)):
            attempts: tuple[Attempt, ...] = ()
            if cell.id in (*done, *adopted):
                attempts = (attempt(cell.id, ended=outcome(output=f"/runs/{cell.id}"), adopted=cell.id in adopted),)
            elif cell.id in dead:
                attempts = (attempt(cell.id, ended=died),)
            reason = "no budget" if cell.id in given_up else None
            cells[cell.id] = CellRecord(cell, position, True, "h-c", attempts, given_up=reason)
        self.state = CampaignState(campaign, "hash", "/secret/env.json", intent, 3, only, cells)
        self.events: list[LoggedDecision] = []
        self.texts: dict[str, str] = {}

    @property
    def status(self) -> Status:
        return build_status(self.state, {}, ControllerStatus(False), wall=1771900000.0, boot=9.0, boot_id="b")

    def sources(self, **more: Any) -> RecordSources:
        return RecordSources("/c", "/c/.muster", lambda cell, n: f"/c/.muster/attempts/{cell}/{n}", lambda *_: ORDER,
                       self.texts.get, lambda _: True, **more)  # fmt: skip

    def facts(self, **more: Any) -> RecordFacts:
        return gather_record_facts(self.status, self.events, self.sources(), **more)

    def why(self, cell: str) -> AbsentCells:
        (found,) = [each for each in self.facts().absent if cell in each.cells]
        return found


def names(job: str, *configs: str, seeds: str = "01234") -> list[str]:
    return [f"{job}/{config}/{seed}" for config in configs or CONFIGS for seed in seeds]


# -- the story


def told(scene: Scene, events: Sequence[LoggedDecision]) -> list[Observation]:
    return EventStory(scene.state, lambda each: (f"/log/{each.cell}",)).tell(events)


def test_the_routine_is_one_line() -> None:
    cells = names("train")
    scene = Scene(done=cells)
    events = []
    for minute, cell in enumerate(cells):
        events.append(event("start", cell, n=1, epoch=1, minute=minute))
        events.append(event("settle", cell, n=1, epoch=1, minute=minute + 1))
    (line,) = told(scene, events)
    assert (line.kind, line.count, line.done, line.cells) == ("routine", 20, 20, tuple(cells))
    assert (line.at[11:16], line.until[11:16]) == ("02:00", "02:20")


def test_a_death_stands_out_with_its_cause_its_evidence_and_its_log() -> None:
    exited = Evidence("exit", "exit", "exit 1 after 60 s", "died")
    proof = Evidence("step", "proof", "none", "fails")
    died = outcome(
        VerdictState.DEAD, OOM, reason="no memory", evidence=(exited, proof), lines=("CUDA out of memory", "  at x.py")
    )
    scene = Scene(done=["train/full/0", "train/full/1"], dead=["train/full/2"], ended=died)
    found = told(scene, [
        event("start", "train/full/0", n=1, epoch=1), event("start", "train/full/2", n=1, epoch=1),
        event("settle", "train/full/0", n=1, epoch=1), event("settle", "train/full/2", n=1, epoch=1),
        event("notice", "train/full/2", n=1, epoch=1),
        event("start", "train/full/2", n=2, epoch=1, retry_cause="cuda_oom; a person asked: smaller batch"),
        event("start", "train/full/1", n=1, epoch=1),
    ])  # fmt: skip
    assert [each.kind for each in found] == ["routine", "dead", "again", "routine"]
    death = found[1]
    assert (death.parts["cause"], death.parts["confidence"], death.parts["why"]) == (
        "cuda_oom",
        "probable",
        "no memory",
    )
    assert death.evidence == ("exit: exit 1 after 60 s",), "what it did not leave is no news"
    assert death.lines == ("CUDA out of memory", "  at x.py")
    assert death.paths == ("/log/train/full/2",)
    assert found[2].parts == {"n": "2", "why": "cuda_oom; a person asked: smaller batch"}


def test_what_is_missing_is_the_evidence_where_the_exit_was_fine() -> None:
    proof = Evidence("checkpoint", "proof", "saved at 1 % of the run", "fails")
    died = outcome(VerdictState.DEAD, Cause("early_exit"), evidence=(proof,))
    scene = Scene(dead=["train/full/2"], ended=died)
    (death,) = told(scene, [event("settle", "train/full/2", n=1, epoch=1)])
    assert death.evidence == ("checkpoint: saved at 1 % of the run",)


def test_deaths_of_one_cause_are_one_line_but_not_two_of_one_cell() -> None:
    dead = names("train", "full")
    scene = Scene(dead=dead)
    found = told(scene, [event("settle", cell, n=1, epoch=1) for cell in dead])
    assert [(each.kind, each.count, len(each.cells)) for each in found] == [("dead", 5, 5)]
    found = told(scene, [event("settle", dead[0], n=1, epoch=1)] * 2)
    assert len(found) == 2


def test_one_up_is_one_line() -> None:
    scene = Scene()
    ups = [
        event("campaign", reason="taken in", hash="a", with_up=True),
        event("intent", reason="muster up", intent="running"),
    ]
    only = event(
        "filter",
        reason="--only seed=3,4 leaves out 2 cells",
        only=[{"seed": ["3", "4"]}],
        left_out=["x", "y"],
        with_up=True,
    )
    assert [each.kind for each in told(scene, ups)] == ["up"]
    (line,) = told(scene, [ups[0], only, ups[1]])
    assert (line.kind, dict(line.parts)) == ("up_only", {"who": ME, "only": "--only seed=3,4", "left": "2"})
    (line,) = told(scene, [replace(each, void="the campaign is held: no") for each in ups])
    assert (line.kind, line.parts["what"], line.parts["why"]) == ("refused", "up", "the campaign is held: no")
    assert [each.kind for each in told(scene, ups * 3)] == ["up"], "asked three times, told once"


def test_controllers_that_ended_without_a_word() -> None:
    scene = Scene()
    one, two = (event("epoch", who=f"controller {pid}", reason="started", epoch=pid) for pid in (1, 2))
    command = event("epoch", who="pid 9", reason="a command decides", epoch=3)
    end = event("end", who="controller 1", reason="nothing runs and nothing may start: 3 DEAD", epoch=1, complete=False)
    down = event("intent", reason="muster down", intent="down")
    assert told(scene, [one]) == []
    (line,) = told(scene, [one, command, two])
    assert (line.kind, line.parts["who"], line.parts["before"]) == ("took_over", "controller 2", "controller 1")
    assert [each.kind for each in told(scene, [one, end, two])] == ["end_short"]
    assert told(scene, [one, end])[0].parts["why"] == "3 DEAD"
    assert [each.kind for each in told(scene, [one, down, two])] == ["down"]
    revived = event("epoch", who="controller 5", reason="revived by a shim", epoch=5)
    assert [each.kind for each in told(scene, [one, revived])] == ["revived"]
    guarded = replace(revived, decision=replace(revived.decision, reason="revived by the guard"))
    assert [each.kind for each in told(scene, [one, guarded])] == ["guarded"]


def test_quiet_is_counted_and_trouble_is_told() -> None:
    scene = Scene()
    story = EventStory(scene.state, lambda _: ())
    turn = {"n": 1, "epoch": 1}
    found = story.tell([
        event("verdict", "train/full/0", "RUNNING -> QUIET: log silent", **turn, **{"from": "RUNNING", "to": "QUIET"}),
        event("verdict", "train/full/0", "QUIET -> RUNNING: step 5", **turn, **{"from": "QUIET", "to": "RUNNING"}),
        event("verdict", "train/full/0", "RUNNING -> STALLED(waiting): no step", confidence="presumed", **turn,
              **{"from": "RUNNING", "to": "STALLED(waiting)"}),
        event("verdict", "train/full/0", "STALLED(waiting) -> RUNNING: step 6", **turn,
              **{"from": "STALLED(waiting)", "to": "RUNNING"}),
    ])  # fmt: skip
    assert [(each.kind, each.parts["why"]) for each in found] == [("trouble", "no step"), ("over", "step 6")]
    assert story.quiet == 1


def test_people_are_quoted_and_refusals_told() -> None:
    scene = Scene()
    pointed = {"file": "/c/when.py", "line": 41, "text": "    class Clock:"}
    found = told(scene, [
        event("note", reason="a clock", evidence=pointed),
        event("note", "train/full/0", "another"),
        event("hold", reason="you may look"),
        event("hold", reason="everything fails", who="controller 1", epoch=1),
        event("release", reason="released by a person"),
        event("release", reason="fixed"),
        event("giveup", "train/full/0", "no budget"), event("giveup", "train/full/1", "no budget"),
        event("retry", "train/full/2", "again", void="it is DONE and can't be retried"),
        event("found", "train/full/2", "an odd file", n=1, epoch=1),
        event("budget", reason="80 % used", who="controller 1", epoch=1),
    ])  # fmt: skip
    assert [each.kind for each in found] == [
        "note", "note_cell", "hold", "hold_itself", "release_plain", "release", "giveup", "refused", "found", "other",
    ]  # fmt: skip
    assert found[0].evidence == ("/c/when.py:41: class Clock:",)
    assert found[6].cells == ("train/full/0", "train/full/1")


def test_of_too_many_the_first_and_the_last_are_shown() -> None:
    many = [Observation("note", str(number)) for number in range(11)]
    shown, unseen = shorten_story(many, 4)
    assert ([each.at for each in shown], unseen) == (["0", "1", "9", "10"], 7)
    assert shorten_story(many, 11) == (many, 0)


# -- why cells are missing


def test_a_filter_is_named_with_who_and_when() -> None:
    only = ({"seed": ("3", "4")},)
    scene = Scene(done=names("train", "baseline"), only=only)
    scene.events = [event("filter", only=[{"seed": ["3", "4"]}], left_out=["train/full/2"], minute=42)]
    found = scene.why("train/full/2")
    assert found.why == "filter"
    assert (found.parts["only"], found.parts["who"], found.parts["at"][11:16]) == ("seed=3,4", ME, "02:42")
    assert set(found.cells) >= {"train/u_only/2", "train/cert_only/2", "train/full/2"}
    assert scene.why("train/full/3").why == "never_down"
    scene.state.only = ()
    assert scene.why("train/full/2").why == "filter_before"


def test_a_hold_does_not_hide_the_reason_behind_it() -> None:
    only = ({"seed": ("3", "4")},)
    scene = Scene(only=only, intent=Intent("held", "you may not rerun", "running"))
    scene.events = [
        event("filter", only=[{"seed": ["3", "4"]}], left_out=[]),
        event("hold", reason="you may not rerun", minute=9),
    ]
    assert scene.why("train/full/2").why == "filter"
    assert scene.why("eval/full/3").why == "blocked"
    assert (scene.why("train/full/3").why, scene.why("train/full/3").parts["reason"]) == ("held", "you may not rerun")


def test_dead_blocked_and_given_up() -> None:
    scene = Scene(done=names("train", "baseline"), dead=["train/full/0"], given_up=["train/full/1"])
    scene.events = [event("giveup", "train/full/1", "no budget", minute=7)]
    assert scene.why("train/full/0").parts["cause"] == "cuda_oom"
    assert scene.why("train/full/0").paths == ("/c/.muster/attempts/train/full/0/1/stderr.log",
                                               "/c/.muster/attempts/train/full/0/1/stdout.log")  # fmt: skip
    assert scene.why("eval/full/0").why == "blocked"
    assert "train/full/0" in scene.why("eval/full/0").parts["needs"].split(",")
    gone = scene.why("train/full/1")
    assert (gone.why, gone.parts["who"], gone.parts["reason"], gone.parts["at"][14:16]) == (
        "given_up",
        ME,
        "no budget",
        "07",
    )
    assert scene.why("eval/full/1").why == "blocked_for_ever"


def test_every_missing_cell_is_named_once() -> None:
    scene = Scene(done=names("train", "baseline"), dead=["train/full/0"], given_up=["train/full/1"])
    missing = [cell for each in scene.facts().absent for cell in each.cells]
    assert len(missing) == len(set(missing)) == 35
    text = _record_text(scene.status, scene.events, scene.sources())
    assert "35 are not" in text


# -- the fix


def commands(scene: Scene) -> list[str]:
    return [fix.command for fix in scene.facts().fixes]


def test_what_is_missing_is_run_and_spelled_out() -> None:
    scene = Scene(
        done=[*names("train", seeds="0134"), "train/baseline/2", *names("eval", seeds="0134"), "eval/baseline/2"]
    )
    (fix,) = scene.facts().fixes
    assert fix.command == "muster up"
    assert fix.parts["same"] == "muster up --only config=u_only,cert_only,full --only seed=2"
    assert len(fix.cells) == 6
    assert (fix.hours, fix.wall_hours, fix.money) == (6.0, 6.0, 12.0)
    assert gather_record_facts(scene.status, [], scene.sources(slots=4)).fixes[0].wall_hours == 2.0, (
        "an eval follows its train"
    )


def test_the_price_of_a_fix_is_the_one_that_cost_reckons() -> None:
    done = [*names("train", seeds="0134"), "train/baseline/2", *names("eval", seeds="0134"), "eval/baseline/2"]
    scene = Scene(done=done, campaign=replace(CAMPAIGN, money=Money(2.0, "CNY", "machine")))
    status, sources = scene.status, scene.sources(slots=4)
    (fix,) = gather_record_facts(status, [], sources).fixes
    assert status.spending is not None
    assert fix.money == expected_price(status.spending, fix.cells, 4) == 3.0, "six hours on four slots, two each hour"
    free = Scene(done=done, campaign=replace(CAMPAIGN, money=None))
    assert (free.facts().fixes[0].hours, free.facts().fixes[0].money) == (6.0, None)


def test_no_spelling_out_where_a_filter_would_let_more_through() -> None:
    scene = Scene(done=[*names("train", seeds="01"), *names("eval", "baseline")], dead=["train/full/2"])
    up = scene.facts().fixes[-1]
    assert (up.command, up.why, up.parts["same"]) == ("muster up", "up", "")


def test_the_dead_are_retried_by_their_cause_after_it_is_mended() -> None:
    scene = Scene(done=names("train", "baseline"), dead=["train/full/0", "train/full/1"])
    retry = scene.facts().fixes[0]
    assert retry.command == "muster retry train/full/0 train/full/1 --because 'WHAT WAS FIXED'"
    assert (retry.why, retry.parts["advice"]) == ("retry_advice", "use a smaller batch")


def test_complete_artifacts_are_accepted_not_retried() -> None:
    scene = Scene(
        dead=["train/full/0"], ended=outcome(VerdictState.DEAD, Cause("exit_code", "1"), note="artifacts complete")
    )
    assert [each for each in commands(scene) if "train/full/0" in each] == ["muster accept train/full/0"]


def test_a_hold_is_released_first_and_that_may_be_all() -> None:
    held = Intent("held", "no", "running")
    assert commands(Scene(intent=held)) == ["muster release"]
    assert commands(Scene(intent=Intent("held", "no", "down"))) == ["muster release", "muster up"]
    assert commands(Scene(intent=held, only=({"seed": ("1",)},))) == ["muster release", "muster up"]


def test_what_goes_on_by_itself_needs_nothing() -> None:
    assert commands(Scene(intent=Intent("running"))) == []
    scene = Scene(intent=Intent("running"))
    scene.state.at_rest = True
    assert commands(scene) == ["muster up"]
    assert commands(Scene(done=[*names("train"), *names("eval")])) == []


def test_without_a_finished_sibling_no_hours_are_made_up() -> None:
    (fix,) = Scene().facts().fixes
    assert (fix.hours, fix.money) == (None, None)
    assert "no sibling has finished" in _record_text(Scene().status, [], Scene().sources())


# -- scope and changes


def test_secrets_and_the_recorded_environment_stay_out() -> None:
    scene = Scene()
    text = _record_text(scene.status, [], scene.sources())
    assert "s3cret" not in text
    assert "/secret/env.json" not in text
    assert "`HF_TOKEN` (value not shown)" in text
    assert "`A=1`" in text


def test_texts_that_were_taken_in_with_what_changed() -> None:
    scene = Scene()
    scene.texts = {"a": "x: 1\ny: 2\n", "b": "x: 1\ny: 3\nz: 4\n", "c": "x: 1\ny: 3\nz: 4\n"}
    scene.events = [event("campaign", hash=name, minute=at) for at, name in enumerate("aabc")]
    first, second = scene.facts().texts
    assert (first.file, first.lines) == ("/c/.muster/campaigns/a.json", ())
    assert second.lines == ("-y: 2", "+y: 3", "+z: 4")
    scene.texts["d"] = "".join(f"{number}\n" for number in range(40))
    scene.events.append(event("campaign", hash="d"))
    assert (len(scene.facts().texts[-1].lines), scene.facts().texts[-1].more) == (12, 31)


def test_a_secret_that_was_changed_is_not_shown() -> None:
    train = replace(CAMPAIGN.job("train"), command=("python", "t.py", "--api-key", "abc-NOW", "X_TOKEN=abc-NOW"))
    axes = (Axis("config", (AxisValue("base", "base", args="--token abc-NOW --lr 1"),)), CAMPAIGN.axes[1])
    scene = Scene(campaign=replace(CAMPAIGN, jobs=(train,), axes=axes))
    old, new = (f'env: {{A: 1, WANDB_API_KEY: "abc-{which}"}}\n-- x\n' for which in ("OLD", "NEW"))
    scene.texts = {"a": old, "b": new}
    scene.events = [event("campaign", hash=name, minute=at) for at, name in enumerate("ab")]
    assert scene.facts().texts[1].lines == tuple(f"{sign}env: {{A: 1, WANDB_API_KEY: {HIDDEN_VALUE}}}" for sign in "-+")
    text = _record_text(scene.status, scene.events, scene.sources())
    assert "abc-" not in text
    assert "--lr 1" in text
    scene.texts["b"] = "-- y\n"
    assert scene.facts().texts[1].lines[-1] == "+-- y", "a line that starts like a diff's own head"


def test_the_code_of_the_attempts() -> None:
    scene = Scene(done=["train/full/0", "train/full/1"], adopted=["train/full/2"])
    orders = {"train/full/0": {"commit": "aaa", "dirty": None}, "train/full/1": {"commit": "aaa", "dirty": "ddd"}}
    sources = replace(scene.sources(), order_of=lambda cell, _: replace(ORDER, code=orders[cell]))
    found = gather_record_facts(scene.status, [], sources).code
    assert [(each.commit, each.dirty, each.attempts, each.diff) for each in found] == [
        ("aaa", None, 1, None), ("aaa", "ddd", 1, "/c/.muster/diffs/ddd.diff"),
    ]  # fmt: skip


def test_words_are_shown_as_a_person_would_type_them() -> None:
    assert (
        command_as_typed(["python", "t.py", "{config.args}", "--x", "a b", "it's"])
        == "python t.py {config.args} --x 'a b' 'it'\"'\"'s'"
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_language_is_the_campaigns(language: str) -> None:
    scene = Scene(campaign=replace(CAMPAIGN, language=language))  # type: ignore[arg-type]
    text = _record_text(scene.status, [], scene.sources())
    assert text.startswith({"en": "# Record: paper", "zh": "# 记录：paper"}[language])
    assert _record_text(scene.status, [], scene.sources(), language="en").startswith("# Record")
