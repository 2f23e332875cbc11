"""The tests pass however they are started: in a terminal, under `nohup`, by a script, files of any folders in any order."""

import signal
import sys

import pytest

from muster.bootstrap import install_local_services
from warm_muster import end_warm

_IN_THE_BACKGROUND = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


def _ignore_them_alone() -> None:
    """`nohup make test &` makes us ignore these, and what a process ignores its children ignore, too.

    A handler that does nothing keeps us as deaf as we were, and is gone in whatever we execute: there each signal does
    again what it does in a terminal.
    """
    for number in _IN_THE_BACKGROUND:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


_ignore_them_alone()
install_local_services()


def pytest_collectstart(collector: pytest.Collector) -> None:
    """`from conftest import ...` means the one beside the test, whichever folders were named on the command line."""
    if not isinstance(collector, pytest.Module):
        return
    beside = str(collector.path.with_name("conftest.py"))
    for plugin in collector.config.pluginmanager.get_plugins():
        if getattr(plugin, "__file__", None) == beside:
            sys.modules["conftest"] = plugin


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests that share a fixture of their module stay in one worker: it is made once."""
    info = getattr(item, "_fixtureinfo", None)
    shared = (made for defs in info.name2fixturedefs.values() for made in defs) if info else ()
    if any(made.scope == "module" for made in shared) and item.get_closest_marker("xdist_group") is None:
        item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def pytest_sessionfinish() -> None:
    end_warm()
