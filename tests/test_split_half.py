"""What a dataset says without a random half of its trials, on planted tables."""

import random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deathmatch.analysis import claims, judging, selecting, split_half
from deathmatch.data import archive, table_files, tables
from deathmatch.plan import files

BYTES = "day-ets-bytes"


@pytest.fixture
def plant(tmp_path, monkeypatch):
    """Return a function that writes an experiment's points and trials as the dataset smoke's."""
    for module in (table_files, archive):
        monkeypatch.setattr(module, "ROOT", tmp_path)

    def planted(experiment: str, rows: list[dict]) -> str:
        folder = tmp_path / "data" / "smoke" / experiment
        folder.mkdir(parents=True)
        for table in ("points", "trials"):
            names = tables.columns(experiment, table)
            known = [{k: v for k, v in row.items() if k in names} for row in rows]
            frame = pl.DataFrame(known, schema=names).unique(maintain_order=True)
            tables.write(frame, experiment, table, folder)
        selecting.clear_caches()
        return "smoke"

    yield planted
    selecting.clear_caches()


def ets(sizes: list[float]) -> list[dict]:
    return [
        {"server": "otp-store", "variant": "ets", "configuration": "ets", "body_bytes": 100,
         "n": n, "messages": held, "outcome": "measured", "runtime_bytes": int(held * size)}
        for n, size in enumerate(sizes, 1)
        for held in (0, 1000)
    ]  # fmt: skip


def static(by_server: dict[str, list[int]]) -> list[dict]:
    factors = files.experiment("static").factors
    defaults = {name: factor.default for name, factor in factors.items()}
    return [
        defaults
        | {"server": server, "variant": server, "schedulers": "one", "readiness": "epoll",
           "n": n, "offered_rate_rps": 1000, "duration_us": 2_000_000, "replies": 2000,
           "server_cpu_ns": 2_000_000 * cost, "client_limited": False, "outcome": "measured",
           "client_state": "exit 0", "server_state": "ran"}
        for server, costs in by_server.items()
        for n, cost in enumerate(costs, 1)
    ]  # fmt: skip


def halves(dataset: str) -> split_half.Halves:
    return split_half.halves(dataset, claims.ledger(dataset))


# Which trials stay


@given(st.integers(1, 40), st.integers())
def test_half_of_the_trials_stays_and_the_odd_one(last, seed):
    stay = split_half.kept(last, random.Random(seed))
    assert len(stay) == (last + 1) // 2
    assert stay <= set(range(1, last + 1))


@given(st.sampled_from(split_half.RUNS), st.integers())
def test_a_variant_of_fewer_trials_keeps_its_half(at, seed):
    stay = split_half.kept(split_half.RUNS[-1], random.Random(seed))
    assert sum(n <= at for n in stay) == (at + 1) // 2


def test_halves_differ_and_are_the_same_every_time():
    assert split_half.draws(9) == split_half.draws(9)
    assert len(set(split_half.draws(9))) > split_half.DRAWS // 2


# What they say


def test_a_verdict_that_all_trials_give_stays(plant):
    found = halves(plant("storage", ets([345.0, 346.0, 347.0]))).verdicts.filter(claim=BYTES)
    assert found.select("verdict", "same", "other", "open").rows() == [
        (judging.NOT, split_half.DRAWS, 0, 0)
    ]


def test_a_verdict_that_one_half_turns_is_reported(plant):
    # The trials of one half are all below the threshold, the others far above it.
    low = split_half.draws(15)[0]
    sizes = [300.0 if n in low else 2000.0 for n in range(1, 16)]
    found = halves(plant("storage", ets(sizes))).verdicts
    row = found.filter(claim=BYTES).row(0, named=True)
    assert row["verdict"] == judging.NOT
    assert row["other"] > 0 and row["same"] + row["other"] + row["open"] == split_half.DRAWS


def test_an_order_that_all_trials_give_stays(plant):
    firm = {"nginx": [10, 11, 12], "yaws": [30, 31, 32], "mochiweb": [90, 91, 92]}
    rows = static(firm)
    found = halves(plant("static", rows)).orders.row(0, named=True)
    assert (found["experiment"], found["servers"], found["least"]) == ("static", 3, 1)


def test_an_order_that_halves_turn_is_told(plant):
    loose = {"nginx": [10, 11, 90], "yaws": [30, 31, 32], "mochiweb": [90, 20, 91]}
    found = halves(plant("static", static(loose))).orders.row(0, named=True)
    assert found["least"] < 1


def test_nothing_measured_has_no_rows(plant):
    dataset = plant("storage", ets([]))
    nothing = halves(dataset)
    assert nothing.verdicts.is_empty() and nothing.orders.is_empty()
    assert nothing.headlines.is_empty()
