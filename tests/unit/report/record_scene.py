"""The reference story as facts: 17 of 20 trainings, three left out by a filter, and all that a record can hold."""

from __future__ import annotations

from muster.app.facts.record_facts import (
    AbsentCells,
    CodeUse,
    EvidencePlace,
    FilterSet,
    JobScope,
    Observation,
    ProposedFix,
    RecordFacts,
    SeedTally,
    TextChange,
)

ROOT = "/home/me/paper_sprint"
STATE = f"{ROOT}/.muster"
ME = "me@gpu7"
CONFIGS = ("v2_baseline", "v2_u_only", "v2_cert_only", "v2_full")
LEFT_OUT = tuple(f"train/{config}/2" for config in CONFIGS[1:])


def at(day: int, time: str) -> str:
    return f"2026-02-{day}T{time}+08:00"


def reference(language: str) -> RecordFacts:
    done = dict(zip(CONFIGS, ("01234", "0134", "0134", "013"), strict=True))
    seeds34 = tuple(f"train/{config}/{seed}" for config in CONFIGS for seed in "34")
    log = f"{STATE}/attempts/train/v2_baseline/3/1/stderr.log"
    return RecordFacts(
        campaign="paper-sprint",
        folder=ROOT,
        language=language,  # type: ignore[arg-type]
        at=at(25, "03:16:00.512"),
        version="0.1.0",
        declared=26,
        counts={"DONE": 16, "DEAD": 1, "HELD": 0, "PENDING": 3, "BLOCKED": 5, "GIVEN_UP": 1},
        intent="held",
        alive=False,
        axes=(("config", CONFIGS), ("seed", tuple("01234")), ("split", ("id", "ood"))),
        jobs=(
            JobScope(
                "train", (("config", 4), ("seed", 5)), 20, 0,
                "python SafeDreamer/train.py {config.args} --seed {seed} --run.steps {steps}",
                "conda run --no-capture-output -n safedreamer", "/home/me/SafeDreamer_v2",
                (("CUDA_DEVICE_ORDER", "PCI_BUS_ID"), ("WANDB_API_KEY", None)), (), 120000, True,
            ),
            JobScope("eval", (("config", 4), ("seed", 5), ("split", 2)), 5, 35, "python eval.py --out {out}", "", ROOT,
                     needs=("train",)),
            JobScope("plots", (), 1, 0, "python `which plots.py`", cwd=ROOT, needs=("eval",)),
        ),
        slots="gpus: [0], cpus: 1",
        values=(
            ("config", "v2_full", "--configs v2_full", "", ""),
            ("split", "ood", "--hallu.level 2", "", "hallu.level=2 stands for out-of-distribution"),
        ),
        env=(("JAX_PLATFORM_NAME", "gpu"), ("MUJOCO_GL", "egl")),
        price=(1.98, "CNY", "gpu", 200.0),
        hold=(at(25, "03:10:00"), ME, "you may look, you may not rerun"),
        code=(
            CodeUse("/home/me/SafeDreamer_v2", "474413721a19893a0000", None, 8),
            CodeUse("/home/me/SafeDreamer_v2", "474413721a19893a0000", "1f254778c36b", 2, f"{STATE}/diffs/1f254778c36b.diff"),
            CodeUse(ROOT, "", None, 3),
        ),
        texts=(
            TextChange(at(21, "20:00:00"), ME, f"{STATE}/campaigns/aa.json"),
            TextChange(at(22, "02:29:00"), ME, f"{STATE}/campaigns/bb.json",
                       ("-  seed: [0, 1]", "+  seed: [0, 1, 2, 3, 4]"), 3),
        ),
        filters=(FilterSet(at(23, "17:42:07"), ME, "seed=3,4", ("train/v2_baseline/2", *LEFT_OUT)),),
        people={"hold": 1, "retry": 1, "giveup": 1, "note": 1},
        files={"state": (14, 16_800_000), "attempt": (90, 410_000), "adopted": (34, 5_400_000_000)},
        seen=(
            Observation("taken", at(21, "20:00:00"), parts={"who": ME}),
            Observation("adopt", at(21, "20:00:01"), at(21, "20:00:02"), {"who": ME},
                 tuple(f"train/{config}/{seed}" for config in CONFIGS for seed in "01"), 8),
            Observation("up", at(22, "02:30:37"), parts={"who": ME}),
            Observation("routine", at(22, "02:30:40"), at(22, "05:39:12"), cells=("train/v2_baseline/2", "train/v2_baseline/3"),
                 count=2, done=1),
            Observation("dead", at(22, "05:41:00"), cells=("train/v2_baseline/3",),
                 parts={"n": "1", "cause": "hangup", "confidence": "proven", "why": "the terminal was closed", "took": "107"},
                 evidence=("exit: signal 1 (SIGHUP)", "tree: empty"), lines=("Epoch 3 | `loss` 0.41",), paths=(log,)),
            Observation("again", at(22, "06:00:00"), cells=("train/v2_baseline/3",), parts={"n": "2", "why": "hangup"}),
            Observation("trouble", at(22, "19:21:50"), cells=("train/v2_baseline/3",),
                 parts={"now": "STALLED(waiting)", "confidence": "presumed", "why": "no step for 45 min", "n": "2", "was": "QUIET"}),
            Observation("over", at(22, "19:40:00"), cells=("train/v2_baseline/3",),
                 parts={"now": "RUNNING", "was": "STALLED(waiting)", "why": "step 3,005 to 19,096", "n": "2"}),
            Observation("revived", at(23, "06:43:55"), parts={"who": "controller 610", "before": "controller 77"}),
            Observation("note_cell", at(23, "17:30:00"), cells=("train/v2_baseline/3",),
                 parts={"who": ME, "why": "log_every counts *seconds*: a quiet file is no stalled run"},
                 evidence=("/home/me/SafeDreamer_v2/embodied/core/when.py:41: class Clock:",)),
            Observation("up_only", at(23, "17:42:07"), parts={"who": ME, "only": "--only seed=3,4", "left": "4"}),
            Observation("routine", at(23, "17:42:10"), at(24, "07:08:00"), cells=seeds34, count=8, done=7),
            Observation("dead", at(24, "07:08:30"), cells=("train/v2_full/4",), evidence=("exit: exit 1 after 0.2 s",),
                 parts={"n": "1", "cause": "cuda_oom", "confidence": "probable", "why": "the GPU's memory did not suffice",
                        "took": "0.2"}),
            Observation("dead_unstarted", at(24, "07:09:00"), at(24, "07:09:30"), cells=("eval/v2_full/3/id", "eval/v2_full/3/ood"),
                 count=2, parts={"n": "1", "cause": "never_started", "confidence": "probable", "why": "no such file", "took": ""}),
            Observation("retry", at(24, "07:30:00"), cells=("train/v2_full/4",), parts={"who": ME, "why": "nobody else is on it now"}),
            Observation("giveup", at(24, "08:00:00"), cells=("eval/v2_full/3/id",), parts={"who": ME, "why": "no budget"}),
            Observation("refused", at(24, "08:01:00"), cells=("train/v2_full/3",),
                 parts={"who": ME, "what": "retry", "why": "it is DONE and can't be retried"}),
            Observation("end_short", at(24, "08:02:00"), parts={"who": "controller 610", "why": "1 DEAD, 5 BLOCKED, 3 PENDING, 1 GIVEN_UP"}),
            Observation("hold", at(25, "03:10:00"), parts={"who": ME, "why": "you may look, you may not rerun"}),
        ),
        quiet=12,
        tallies=(
            *(SeedTally("train", config, "seed", tuple(done[config]), 5) for config in CONFIGS),
            *(SeedTally("eval", name, "seed", (), count) for name, count in (("v2_u_only/id", 1), ("v2_full/id", 2))),
            SeedTally("plots", "", "", (), 1),
        ),
        absent=(
            AbsentCells(LEFT_OUT, "PENDING", "filter", {"only": "seed=3,4", "who": ME, "at": at(23, "17:42:07")}),
            AbsentCells(("train/v2_full/4",), "DEAD", "dead",
                   {"n": "2", "cause": "cuda_oom", "confidence": "probable", "reason": "the GPU's memory did not suffice",
                    "next": "held; `muster retry train/v2_full/4 --because ...`"}, (f"{STATE}/attempts/train/v2_full/4/2/stderr.log",)),
            AbsentCells(("eval/v2_u_only/2/id", "eval/v2_u_only/2/ood", "eval/v2_full/2/id", "eval/v2_full/2/ood"), "BLOCKED",
                   "blocked", {"needs": "train/v2_u_only/2,train/v2_full/2"}),
            AbsentCells(("eval/v2_full/3/id",), "GIVEN_UP", "given_up", {"who": ME, "at": at(24, "08:00:00"), "reason": "no budget"}),
            AbsentCells(("plots",), "BLOCKED", "blocked_for_ever", {"needs": "eval/v2_full/3/id"}),
        ),
        adopted=8,
        outdated=1,
        fixes=(
            ProposedFix("muster release", "release", {"reason": "you may look, you may not rerun"}),
            ProposedFix("muster retry train/v2_full/4 --because 'WHAT WAS FIXED'", "retry_advice",
                {"cause": "cuda_oom", "advice": "use a smaller batch"}, ("train/v2_full/4",), 1.65, 1.65, 3.27),
            ProposedFix("muster up", "up_same", {"same": "muster up --only config=v2_u_only,v2_cert_only,v2_full --only seed=2"},
                LEFT_OUT, 4.95, 2.475, 9.801),
        ),
        currency="CNY",
        places=(
            EvidencePlace("log", f"{STATE}/decisions.jsonl"),
            EvidencePlace("noted", "/home/me/SafeDreamer_v2/embodied/core/when.py:41"),
            EvidencePlace("attempts", f"{STATE}/attempts"),
            EvidencePlace("attempt", f"{STATE}/attempts/train/v2_full/4/2", "train/v2_full/4@2"),
            EvidencePlace("adopted", "/home/me/runs/20260222-023040_v2_baseline_x_0", "train/v2_baseline/0"),
        ),
        more_places=11,
    )  # fmt: skip
