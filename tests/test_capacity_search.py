"""Capacities by search: planted ones are found or refused, from reports and from a real server."""

import json
import math
from pathlib import Path

import polars as pl
import pytest
from conftest import MINIATURE
from planted import ASKED, KINDS, Planted, planted, searched
from strict_sample import Sample, broken, unpack

from deathmatch.analysis import searched as analysis
from deathmatch.capacity_search import search
from deathmatch.capacity_search.search import Result
from deathmatch.data import probes, records, tables, tidy
from deathmatch.errors import UserError
from deathmatch.load import httperf
from deathmatch.plan import files, matrix
from deathmatch.plan.dataset import Search

SEARCHES = 25


@pytest.mark.parametrize("kind", KINDS)
def test_planted_capacities_are_found_or_refused(kind):
    """Within 2 % nearly all, within 4 % all; other load costs answers, and biases by its share."""
    found, usual = [], search.usual(ASKED)
    for one in planted(kind, SEARCHES):
        end, made = searched(one)
        if kind == "a sharp knee":
            took = len(made), sum(offer.duration_s for offer, _ in made)
            assert took == pytest.approx(usual, abs=6)
        if end.outcome == search.FOUND:
            found.append((end.rate_rps / one.capacity_rps - 1, end, one.capacity_rps))
        else:
            assert "other load" in end.reason and "foreign" in str(KINDS[kind])
    off = [abs(error) for error, *_ in found]
    # Load of a twentieth is less than what the two rates offered again can tell.
    small = kind.endswith("95 %")
    assert max(off) < (0.06 if small else 0.04)
    least = 0.5 if small else 0.7 if "minute" in kind or "10 %" in kind else 0.9
    assert sum(error <= 0.02 for error in off) >= least * SEARCHES
    covered = [end.low_rps <= capacity <= end.high_rps for _, end, capacity in found]
    assert sum(covered) >= 0.8 * len(covered)


def test_a_machine_that_wanders_needs_a_wider_margin():
    """With it nearly all searches find one, and the median of three starts is near."""
    found: dict[float, list[float]] = {}
    for margin in (1.08, 1.15):
        ends = [
            searched(Planted(5000, seed, width=0.05, wander=0.06), ASKED | {"margin": margin})[0]
            for seed in range(SEARCHES)
        ]
        found[margin] = [end.rate_rps for end in ends if end.outcome == search.FOUND]
    narrow, wide = found[1.08], found[1.15]
    assert len(narrow) < 0.9 * SEARCHES < len(wide)
    medians = [sorted(wide[at : at + 3])[1] for at in range(0, len(wide) - 2, 3)]
    assert all(abs(median / 5000 - 1) < 0.1 for median in medians)


def test_shares_of_what_was_found_are_offered_last():
    end, made = searched(Planted(5000, 7))
    last = [offer for offer, _ in made if offer.step == search.COST]
    assert last == [offer for offer, _ in made][-3:]
    assert [one.rate_rps for one in last] == [
        round(share * end.rate_rps) for share in ASKED["cost_shares"]
    ]
    longer = ASKED | {"cost_s": 5}
    _, made = searched(Planted(5000, 7), longer)
    assert [offer.duration_s for offer, _ in made][-3:] == [5, 5, 5]
    assert search.usual(longer)[1] == search.usual(ASKED)[1] + 3 * (5 - ASKED["probe_s"])


def test_a_clients_limit_is_no_capacity():
    end, made = searched(Planted(30_000, 1, client_rps=12_000))
    assert end.outcome == search.CLIENT and end.rate_rps == pytest.approx(12_000, rel=0.03)
    assert search.COST not in [offer.step for offer, _ in made]


def test_the_same_results_give_the_same_rates():
    end, made = searched(Planted(5000, 7, width=0.05))
    offers, told = [offer for offer, _ in made], [told for _, told in made]
    assert search.replayed(ASKED, told) == (offers, end)
    begun, none = search.replayed(ASKED, told[:-1])
    assert begun == offers and none is None
    other = [Result(1 - told[0].late_share, False), *told[1:]]
    assert search.replayed(ASKED, other)[0] != offers


@pytest.mark.parametrize(
    ("capacity_rps", "most_rps", "reason"),
    [
        (50_000, 4000, "in time at 4000 req/s, the most that it may offer: raise most_rps"),
        (40, 100_000, "late at 100 req/s, the least that is offered"),
    ],
)
def test_out_of_reach_is_refused(capacity_rps, most_rps, reason):
    end, _ = searched(Planted(capacity_rps, 1), ASKED | {"most_rps": most_rps})
    assert (end.outcome, end.reason) == (search.REFUSED, reason)


def test_a_delayed_client_is_reported_as_other_load():
    """At the least rate it cannot be the limit; a search that begins again may find it gone."""
    told = [Result(0.0, True)] * 200
    offers, end = search.replayed(ASKED, told)
    assert end.reason.startswith(search.OTHER_LOAD) and offers[-1].round == search.ROUNDS
    first = sum(offer.round == 1 for offer in offers)
    later, none = search.replayed(ASKED, told[:first])
    assert none is None and (later[-1].round, later[-1].rate_rps) == (2, search.START_RPS)


def test_a_server_that_fails_is_over():
    assert Result(None, False).over and Result(0.0, True).over
    assert not Result(search.LATE_SHARE, False).over


def test_the_levels_of_a_known_course_give_their_mean():
    """Two levels in turn: the estimate is between them, the interval at least half a step."""
    rates = [1000 * search.STEP ** (number % 2) for number in range(24)]
    found = search.estimate(rates, [number % 2 == 1 for number in range(24)])
    assert found.rate_rps == pytest.approx(1000 * math.sqrt(search.STEP), rel=0.001)
    assert found.high_rps / found.rate_rps == pytest.approx(math.sqrt(search.STEP))
    assert found.drift == pytest.approx(1, abs=0.005)
    assert search.estimate(rates, [True] * 24) is None


def test_the_last_of_the_first_trials_that_end_alike_counts():
    levels, over = [3, 2, 1, 0, 1, 0], [True, True, True, False, True, False]
    found = search.estimate([1000 * search.STEP**level for level in levels], over)
    # From the third trial on, with the level that would come next: 1, 0, 1, 0, 1.
    assert found.rate_rps == pytest.approx(1000 * search.STEP**0.6)


REPORT = """Maximum connect burst length: 1

Connection lifetime histogram (time in ms):
             :
{bins}
Total: connections {due} requests {due} replies {answered} test-duration {duration_s:.3f} s

Connection rate: {rate}.0 conn/s (1.0 ms/conn, <=9 concurrent connections)
Connection time [ms]: min 0.1 avg 0.6 max 4.9 median 0.4 stddev 0.5
Connection time [ms]: connect 0.0
Connection length [replies/conn]: 1.000

Request rate: {rate}.0 req/s (1.0 ms/req)
Request size [B]: 81.0

Reply rate [replies/s]: min 0.0 avg 0.0 max 0.0 stddev 0.0 (0 samples)
Reply time [ms]: response 0.5 transfer 0.0
Reply size [B]: header 83.0 content 12.0 footer 0.0 (total 95.0)
Reply status: 1xx=0 2xx={good} 3xx=0 4xx=0 5xx={wrong}

CPU time [s]: user 0.16 system 0.25 (user 40.4% system 59.9% total 100.0%)
Net I/O: 86.0 KB/s (0.7*10^6 bps)

Errors: total {lost} client-timo {lost} socket-timo 0 connrefused 0 connreset 0
Errors: fd-unavail 0 addrunavail 0 ftab-full 0 other 0
"""


def report(rate_rps: int, duration_s: float, late: int, lost: int = 0, wrong: int = 0) -> str:
    """Return httperf's report: `late` connections took 50 ms, `lost` had no answer."""
    due = max(1, round(rate_rps * duration_s))
    counts = {"0.305": due - late - lost, "50.005": late}
    bins = "".join(f"{ms:>16} {count}\n" for ms, count in counts.items() if count)
    return REPORT.format(
        bins=bins, due=due, answered=due - lost, duration_s=duration_s, rate=rate_rps, lost=lost,
        good=due - lost - wrong, wrong=wrong,
    )  # fmt: skip


def test_lateness_is_counted_over_all_that_was_due(tmp_path):
    """A request with no answer, or with a wrong one, is late for good."""
    log = tmp_path / "probe-01.txt"
    log.write_text(report(1000, 1, late=30, lost=20, wrong=10))
    read = httperf.GENERATOR.read(log)
    timed = httperf.GENERATOR.timed(read, httperf.GENERATOR.parse(read, 1))
    assert (timed.due, timed.wrong) == (1000, 10)
    assert probes.late(timed, search.LIMIT_US) == 60
    assert probes.late(timed, search.LONG_US) == 30


def add_search(folder: Path, capacity_rps: float, asked: dict, load: dict) -> None:
    """Give a trial's folder a search of a simulated server, as a trial would leave it."""
    end, made = searched(Planted(capacity_rps, 3, width=0.03), asked)
    record = json.loads((folder / "trial.json").read_text())
    rows, found, now_us = [], [], 0
    for number, (offer, told) in enumerate(made, 1):
        due = round(offer.rate_rps * offer.duration_s)
        text = report(offer.rate_rps, offer.duration_s, round(told.late_share * due))
        log = folder / f"probe-{number:02}.txt"
        words = httperf.GENERATOR.command(
            "10.77.0.1", 8080, search.load_of(offer.step, load), offer.rate_rps, offer.duration_s
        )
        log.write_text(f"{' '.join(words)}\n{text}")
        ended_us = now_us + round((offer.duration_s + 0.04) * 1e6)
        counter = {"offered_rate_rps": offer.rate_rps, "accept_queue_limit": 4096}
        used_ns = due * CPU_US * 1000
        rows.append({"time_us": now_us, "client_active_opens": 0, "server_cpu_ns": 0} | counter)
        counter |= {"client_active_opens": due, "server_cpu_ns": used_ns}
        rows.append({"time_us": ended_us} | counter)
        found.append({
            "offered_rate_rps": offer.rate_rps, "duration_s": offer.duration_s,
            "step": offer.step, "round": offer.round, "began_us": now_us, "ended_us": ended_us,
            "log": log.name, "command": " ".join(words), "client_state": "exit 0",
            "server_state": "ran", "fresh_start": number == 1,
        })  # fmt: skip
        now_us = ended_us + 1
    pl.DataFrame(rows).write_csv(folder / probes.SAMPLES_CSV)
    record["spec"]["search"] = asked
    record["search"] = {
        "outcome": end.outcome, "rate_rps": end.rate_rps, "low_rps": end.low_rps,
        "high_rps": end.high_rps, "reason": end.reason, "wall_us": now_us, "probes": found,
    }  # fmt: skip
    (folder / "trial.json").write_text(json.dumps(record))


CPU_US = 150
SMALL = ASKED | {"probes": 12, "backlog": 4096}
STATIC = "null/backlog=128,schedulers=one/1"


@pytest.fixture(scope="module")
def sample(tmp_path_factory, miniature) -> Sample:
    """A trial of the miniature that also searched, of a simulated server of 800 req/s."""
    folder = tmp_path_factory.mktemp("searched") / MINIATURE.name
    unpack("static", lambda name: name.startswith("null/") and "/1/" in name, folder)
    made = Sample(folder, "static")
    made.today()
    load = json.loads((made.trial / "trial.json").read_text())["spec"]["load"]
    # Reports of one call a connection are shorter to write.
    load["requests_per_connection"] = 1
    made.record(lambda record: record["spec"]["load"].update(requests_per_connection=1))
    add_search(made.trial, 800, SMALL, load)
    return made


def test_a_search_becomes_a_table(sample, tmp_path):
    frame = tidy.frames("static", sample.files)["probes"]
    tables.check(frame, "static", "probes", "here")
    told = records.read(sample.trial / "trial.json")["search"]
    assert frame["probe"].to_list() == list(range(1, len(told["probes"]) + 1))
    assert frame["report"].unique().to_list() == ["whole"]
    assert not frame["client_limited"].any()
    assert frame["accept_queue_limit"].unique().to_list() == [4096]
    (end,) = frame.drop_nulls("outcome").to_dicts()
    assert end["probe"] == len(frame)
    assert (end["outcome"], end["capacity_rps"]) == (search.FOUND, told["rate_rps"])
    assert end["capacity_rps"] == pytest.approx(800, rel=0.03)
    tables.write(frame, "static", "probes", tmp_path)
    assert pl.read_parquet(tmp_path / "probes.parquet").equals(frame)


def test_the_cost_of_a_reply_at_shares_of_the_capacity(sample):
    frame = tidy.frames("static", sample.files)["probes"].with_columns(label=pl.lit("Null"))
    cost = analysis.costs(frame, ["server", "label"])
    assert cost["share_percent"].to_list() == [100 * share for share in SMALL["cost_shares"]]
    assert cost["median"].to_list() == [CPU_US] * 3
    found = analysis.capacities(frame, ["server", "label"])
    printed = analysis.table(found, cost)
    assert printed.select("cpu_us_10", "cpu_us_50", "cpu_us_90").row(0) == (CPU_US,) * 3
    assert analysis.headings(printed)["cpu_us_90"] == "CPU per reply at 90 % of it (µs)"
    assert set(analysis.headings(printed)) == set(printed.columns)


def test_a_search_is_replayed_by_the_strict_check(sample, tmp_path):
    copy = sample.copy(tmp_path / MINIATURE.name)
    copy.tidy()
    assert "DM-SEARCH" not in broken(copy.report())
    whole = copy.trial / "trial.json"
    sound = whole.read_text()
    for change, seen in (
        (lambda found: found["probes"][-3].update(offered_rate_rps=5), "was due"),
        (lambda found: found.update(rate_rps=1.01 * found["rate_rps"]), "its probes give found"),
        (lambda found: found["probes"].pop(), "its probes give refused, None req/s"),
    ):
        copy.record(lambda record, change=change: change(record["search"]))
        assert seen in " ".join(broken(copy.report())["DM-SEARCH"])
        whole.write_text(sound)


def test_probes_are_compared_with_their_logs(sample, tmp_path):
    """An experiment that asks for a search has a table more, made again from the raw logs."""
    copy = sample.copy(tmp_path / "copy" / MINIATURE.name)
    copy.tidy()
    dataset = files.dataset(MINIATURE.name)
    plan = dataset.experiments["static"].model_copy(
        update={"search": files.dataset("full").experiments["static"].search}
    )
    asks = dataset.model_copy(
        update={
            "experiments": {**dataset.experiments, "static": plan}, "frozen": False, "waives": {},
        }
    )  # fmt: skip
    assert asks.tables("static") == (*dataset.tables("static"), "probes")
    assert "probes.parquet: gone" in " ".join(broken(copy.report(asks))["DM-TABLES"])
    frame = tidy.frames("static", copy.files)["probes"]
    frame.write_parquet(copy.table("probes"))
    sound = broken(copy.report(asks))
    assert not {"DM-TABLES", "DM-SEARCH", "DM-WHOLE"} & set(sound)
    late = frame.with_columns(late_10_ms=pl.col("late_10_ms") + 1)
    late.write_parquet(copy.table("probes"))
    (said,) = broken(copy.report(asks))["DM-TABLES"]
    assert "probes.late_10_ms" in said
    frame.write_parquet(copy.table("probes"))
    (copy.trial / "probe-04.txt").unlink()
    assert "probe-04.txt: gone" in " ".join(broken(copy.report(asks))["DM-WHOLE"])


def ended(rates: list[float | None], outcome: str = search.FOUND) -> pl.DataFrame:
    """Return the rows of probes of one server's starts, each with its end."""
    rows = [
        {
            "server": "one", "variant": "v", "n": number, "label": "One", "duration_us": 2_000_000,
            "outcome": outcome if rate else search.REFUSED, "capacity_rps": rate,
            "capacity_low_rps": rate and 0.99 * rate, "capacity_high_rps": rate and 1.01 * rate,
            "reason": "" if rate else "other load",
        }
        for number, rate in enumerate(rates, 1)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema_overrides=probes.END, infer_schema_length=None)


@pytest.mark.parametrize(
    ("rates", "outcome", "found", "capacity", "reason"),
    [
        ([990, 1000, 1030], search.FOUND, "found", (1000, 990, 1030), ""),
        ([999.0, 1000, 1001], search.FOUND, "found", (1000, 990, 1010), ""),
        ([990, 1000, None, 1030], search.FOUND, "found", (1000, 990, 1030),
         "1 of 4 refused, the first: other load"),
        ([990, 1000, None], search.FOUND, "refused", None,
         "2 found one, where 3 must; 1 of 3 refused, the first: other load"),
        ([40e3, 41e3, 42e3], search.CLIENT, "at least", (41e3, 40e3, 42e3), ""),
        ([40e3, 41e3], search.CLIENT, "refused", None,
         "0 found one, where 3 must; 2 of 2 at the client's limit"),
    ],
)  # fmt: skip
def test_a_capacity_is_that_of_three_starts(rates, outcome, found, capacity, reason):
    (row,) = analysis.capacities(ended(rates, outcome), ["server", "label"]).to_dicts()
    assert (row["outcome"], row["reason"], row["search_s"]) == (found, reason, 2)
    assert capacity is None or [row["median"], row["low"], row["high"]] == pytest.approx(capacity)
    assert capacity is not None or row["median"] is None


def test_a_search_is_planned_only_where_it_is_asked_for():
    """A search has the deepest backlog, and only variants with the kernel's defaults have one.

    The specification of the others is the same as without: they are not measured again.
    """
    asked = {"search": Search(probe_s=1, probes=12, servers=("null", "acceptors"))}
    usual = {"backlog": 128, "somaxconn": 4096, "abort_on_overflow": 0, "syncookies": 1}
    searching = set()
    for trial in matrix.trials("full", experiments=["accept-queue"]):
        planned = trial.model_copy(update={"plan": trial.plan.model_copy(update=asked)})
        if usual.items() <= trial.variant.factors.items() and trial.server.name != "node-accept":
            assert planned.search["backlog"] == 4096
            searching.add(trial.server.name)
        else:
            assert planned.search is None and planned.spec() == trial.spec()
    assert searching == {"null", "acceptors"}
    smoke = files.dataset("smoke")
    plan = smoke.experiments["c10k"].model_copy(update=asked)
    with pytest.raises(UserError, match="'c10k' offers no rate, so") as refused:
        matrix._experiment(smoke, "c10k", plan, files.servers())
    assert refused.value.where == "config/datasets/smoke.toml, key experiments.c10k.search"
