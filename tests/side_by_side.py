"""The tests that run side by side, their order, and those that run alone on the machine.

Tests are dealt out to workers in units: those that share a module's fixture are one, so that it is
made once; every other test is one by itself. A test marked `alone` waits until no other runs, in
any worker, and lets none begin: it measures, or its outcome depends on the machine's load. What
measures and then takes long over what it measured is best parted: an `alone` test that has the
fixture measure, and others that use it.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

# Many tests wait, for a process or a clock: a third worker uses the CPU that two leave.
WORKERS = 3
TURNS = Path(__file__).resolve().parent.parent / "build" / "turns"

LONGEST = [
    "test_nix_faults.py", "test_wsload.py", "test_python_of_nix.py",
    "test_snakemake.py", "test_trial.py", "test_paper.py", "test_card.py", "test_one_folder.py",
    "test_limits.py", "test_try.py", "test_sittings.py", "test_conformance.py",
    "test_check_server.py", "test_dataset.py", "test_history.py", "test_doors.py",
    "test_readiness.py", "test_clients.py", "test_shell.py",
]  # fmt: skip
"""The files with the longest units, these first, so that the workers end together.

The first is one unit. While a worker runs it, the other one runs all tests of wsload, which wait
for the same build.
"""

ONCE = {"written", "compiled"}
"""Fixtures that take minutes and are made once for all files: their tests are one unit."""

QUICK = [
    "test_analysis.py", "test_checks.py", "test_damaged.py", "test_diag.py",
    "test_findings.py", "test_good_answers.py", "test_histogram.py", "test_laws.py",
    "test_limits.py", "test_paired.py", "test_plateaus.py", "test_planted_ledgers.py",
    "test_prose.py", "test_quantities.py", "test_rounds.py",
    "test_stats.py", "test_steadiness.py", "test_style.py", "test_tally.py",
    "test_varied_values.py", "test_views.py",
]  # fmt: skip
"""Files whose tests, without those that run alone, take less than a minute together: -m quick."""


@contextlib.contextmanager
def turn(alone: bool, folder: Path = TURNS) -> Iterator[None]:
    """Hold the machine, with others or alone, for the time of the block.

    A test that waits to be alone holds the turnstile: later tests wait behind it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    turnstile, room = (os.open(folder / name, os.O_RDWR | os.O_CREAT) for name in ("next", "room"))
    try:
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(turnstile, fcntl.LOCK_UN)
        yield
    finally:
        os.close(room)
        os.close(turnstile)


def joined(needs: list[set]) -> list[int]:
    """Return for each set the number of its unit: those that share a member have one number."""
    unit_of: dict = {}
    units = list(range(len(needs)))
    for number, members in enumerate(needs):
        met = {units[unit_of[member]] for member in members if member in unit_of}
        units = [number if unit in met else unit for unit in units]
        unit_of |= dict.fromkeys(members, number)
    return units


def _shared(item: pytest.Item) -> set[tuple]:
    """Return the fixtures, with file and parameter, that others of its file may share, or any."""
    parameters = getattr(getattr(item, "callspec", None), "indices", {})
    return {
        (name not in ONCE and item.path, name, parameters.get(name))
        for name, made in item._fixtureinfo.name2fixturedefs.items()
        if name in ONCE or made[-1].scope in ("module", "class", "package")
    }


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One file, or tests of one, run in this process: their output comes as it is printed."""
    files = {word.partition("::")[0] for word in config.args}
    one = len(files) == 1 and files.pop().endswith(".py")
    return 0 if one else WORKERS


# Before xdist, which takes a unit for one only where it has its mark by then.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Deal out the units: first what may run beside others, the longest first.

    Before all those that have tests of both kinds: who is alone then keeps hardly anybody waiting.
    """
    units = joined([_shared(item) for item in items])
    alone = {item: item.get_closest_marker("alone") is not None for item in items}
    kinds: dict[int, set[bool]] = {}
    for item, unit in zip(items, units):
        kinds.setdefault(unit, set()).add(alone[item])
    turns = [{False, True}, {False}, {True}]
    places = {}
    for place, (item, unit) in enumerate(zip(items, units)):
        item.add_marker(pytest.mark.xdist_group(f"unit-{unit}"))
        if item.path.name in QUICK and not alone[item]:
            item.add_marker(pytest.mark.quick)
        rank = LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST)
        places[item] = (turns.index(kinds[unit]), rank, unit, not alone[item], place)
    items.sort(key=places.get)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    """Run a test with its fixtures in its turn; without workers there is nobody to wait for."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    with turn(item.get_closest_marker("alone") is not None):
        return (yield)
