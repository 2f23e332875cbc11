"""What the log says about money: prices and when they held, what was told of the budget; old logs say nothing of it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from muster.engine.store.sqlite_store import SqliteStore
from muster.files import campaign_snapshots
from muster.ledger.prices_and_accounts import declared_prices
from muster.model.campaign import Axis, AxisValue, Campaign, Job, Money
from muster.model.decision import Decision

CHEAP, DEAR = Money(price=2.0, currency="CNY", budget=10.0), Money(price=4.0, currency="CNY", budget=10.0)


def taken(folder: Path, money: Money | None, at: str, *, told: bool = True) -> Decision:
    axis = Axis("seed", (AxisValue("0", 0),))
    made = Campaign("c", (axis,), (Job("train", ("seed",), ("true",)),), money=money)
    data = {"hash": campaign_snapshots.save_snapshot(folder, at, made, {"train/0": "h"}), "env_file": "/env"}
    if told:
        data["money"] = asdict(money) if money else None  # type: ignore[assignment]
    return Decision("campaign", "me", at=at, data=data)


def told(level: str, budget: float = 10.0) -> Decision:
    return Decision("budget", "controller 1", "told", epoch=1, data={"level": level, "budget": budget})


def test_each_price_holds_from_when_it_was_taken_in(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    first, second = "2026-02-22T02:00:00+08:00", "2026-02-23T02:00:00+08:00"
    store.commit([taken(tmp_path, CHEAP, first), taken(tmp_path, CHEAP, "2026-02-22T03:00:00+08:00")])
    store.commit([taken(tmp_path, DEAR, second)])
    state = store.load()
    assert state is not None
    assert state.prices == ((first, CHEAP), (second, DEAR))
    found = declared_prices(state)
    assert found is not None
    assert [period.price for period in found.periods] == [2.0, 4.0]
    store.close()


def test_a_log_of_an_older_version_has_the_price_of_its_campaign(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    store.commit([taken(tmp_path, CHEAP, "2026-02-22T02:00:00+08:00", told=False)])
    state = store.load()
    assert state is not None
    assert state.prices == ()
    found = declared_prices(state)
    assert found is not None
    assert [period.price for period in found.periods] == [2.0]
    store.close()


def test_a_campaign_without_money_has_no_price(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    store.commit([taken(tmp_path, None, "2026-02-22T02:00:00+08:00")])
    state = store.load()
    assert state is not None
    assert declared_prices(state) is None
    store.close()


def test_what_was_told_is_kept_and_does_not_wake_a_campaign_at_rest(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    epoch = Decision("epoch", "controller 1", epoch=1, data={"epoch": 1, "pid": 1})
    end = Decision("end", "controller 1", "over", epoch=1, data={"complete": False})
    store.commit([taken(tmp_path, CHEAP, "2026-02-22T02:00:00+08:00"), epoch, told("warn"), told("warn"), end])
    store.commit([told("at_cap"), told("warn", 20.0)])
    state = store.load()
    assert state is not None
    assert state.told == {(20.0, "warn")}  # of another budget everything is told again
    assert state.at_rest
    store.close()
