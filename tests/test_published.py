"""The transcriptions fit totals that the posts state, and the claims fit both."""

import itertools
import json
import math
import re

import polars as pl
import pypandoc
import pytest

from deathmatch.analysis import (
    claims,
    findings,
    judging,
    ledger,
    published,
    selecting,
    verdict_words,
)
from deathmatch.analysis.by_trial import Values
from deathmatch.analysis.stats import Interval
from deathmatch.errors import UserError
from deathmatch.plan import files
from deathmatch.plan.paths import ROOT

load = published.load
CLAIMS = published.claims()
BY_ID = {claim.id: claim for claim in CLAIMS}
WITH_NUMBERS = [claim for claim in CLAIMS if claim.published]


def rows(source: str, **columns) -> pl.DataFrame:
    return load(source).filter(**columns)


def value(source: str, **columns) -> float:
    found = rows(source, **columns)["value"].to_list()
    assert len(found) == 1, f"{columns} selects {found}"
    return found[0]


def moritz(testbed: str) -> pl.DataFrame:
    """One row a server, in the printed order, columns as `handshake_time_mean`."""
    table = rows("moritz2012", testbed=f"moritz2012-{testbed}").drop_nulls("position")
    name = pl.concat_str("quantity", "statistic", separator="_")
    return table.with_columns(name.alias("column")).pivot(
        "column", index=["position", "system"], values="value"
    )


# The transcriptions


def test_row_counts_are_those_the_readme_states():
    readme = (published.FOLDER / "README.md").read_text()
    stated = dict(re.findall(r"\| `(\w+)\.csv` \| (\d+) \|", readme))
    files = published.FOLDER.glob("*.csv")
    counted = {path.stem: pl.read_csv(path, infer_schema=False).height for path in files}
    assert {name: int(count) for name, count in stated.items()} == counted
    others = {"testbeds", "quantities", "systems", "exploratory"}
    assert counted.keys() == {*published.FACTORS, *others}
    assert f"{len(CLAIMS)} claims" in readme
    assert f"{len(published.untested())} statements" in readme


READINGS = {"exact", "about", "at least", "at most", "order"}
STATISTICS = {
    "count", "maximum", "mean", "median", "minimum", "order", "p95", "p99", "p99.9",
    "plateau", "ratio", "setting", "single run", "stddev", "step", "unstated",
}  # fmt: skip


def test_rows_are_whole_and_every_definition_is_used():
    everything = pl.concat(map(load, published.FACTORS), how="diagonal")
    unit_of = dict(pl.read_csv(published.FOLDER / "quantities.csv")["quantity", "unit"].rows())
    assert set(unit_of.values()) <= {"1", "1/s", "us", "B"}
    beds = pl.read_csv(published.FOLDER / "testbeds.csv")
    used = everything.select("testbed", "source").unique()
    assert (
        set(used["testbed"]) == set(beds["testbed"]) and not beds["testbed"].is_duplicated().any()
    )
    own = used.join(beds, on="testbed")
    assert set(own.filter(pl.col("source") != pl.col("source_right"))["source_right"]) <= {"any"}
    for source, factors in published.FACTORS.items():
        rows = load(source)
        known = [name for name in rows.columns if name not in ("note", *factors)]
        assert rows.select(pl.col(known).null_count()).row(0) == (0,) * len(known), source
        assert set(rows["source"]) == {source} and rows["value"].is_finite().all(), source
        # The same number twice at the same place is a slip of transcription.
        assert not rows.drop("value", "note").is_duplicated().any(), source
        assert rows["unit"].to_list() == [unit_of[name] for name in rows["quantity"]], source
        times = rows.filter(unit="us")["value"]
        assert (times == times.round()).all(), source
    assert set(everything["quantity"]) == unit_of.keys()
    assert set(everything["statistic"]) <= STATISTICS and set(everything["reading"]) <= READINGS


def test_misultin_csv_adds_up():
    table = rows("walkin2009", place="post: update, misultin-smp-30.csv")
    assert table["offered_rate_rps"].unique().sort().to_list() == list(range(1000, 10001, 1000))
    assert table.height == 10 * 10
    for (rate,), point in table.group_by("offered_rate_rps"):

        def cell(quantity: str, statistic: str, point=point) -> list[float]:
            return point.filter(quantity=quantity, statistic=statistic)["value"].to_list()

        replies, errors = cell("reply_rate", "single run"), cell("error_rate", "single run")
        assert len(replies) == len(errors) == 3
        # The post's script truncates its means: 5999.67 is printed as 5999.
        assert cell("reply_rate", "mean") == [math.floor(sum(replies) / 3)], rate
        per_mille = cell("normalised_error_rate", "mean")[0]
        assert per_mille == pytest.approx(sum(errors) / 3, abs=1e-4), rate
        assert cell("error_rate", "mean")[0] == pytest.approx(per_mille, abs=0.01), rate
        assert cell("request_rate", "mean") == [rate]


@pytest.mark.parametrize(
    ("testbed", "timeouts", "without"), [("ec2", 10859, 6), ("local", 5220, 14)]
)
def test_tables_of_moritz(testbed, timeouts, without):
    table = moritz(testbed)
    assert table.shape == (19, 2 + 13)
    assert table.null_count().sum_horizontal()[0] == 0
    assert table["connection_timeouts_count"].sum() == timeouts
    assert (table["connection_timeouts_count"] == 0).sum() == without
    for time in ("handshake_time", "message_latency"):
        tail = [table[f"{time}_{q}"] for q in ("median", "p95", "p99", "p99.9")]
        assert all((low <= high).all() for low, high in itertools.pairwise(tail))
    # "rows are sorted by connection timeout, handshake time and stddev, …"
    order = ["connection_timeouts_count", "handshake_time_mean", "handshake_time_stddev"]
    assert table.sort(order)["position"].to_list() == list(range(1, 20))


def test_times_were_converted_from_the_printed_milliseconds():
    tables = load("moritz2012").drop_nulls("position").filter(unit="us")
    assert tables.height == 38 * 12
    printed_us = tables["printed"].cast(pl.Float64) * 1000
    assert (printed_us - tables["value"]).abs().max() < 1e-6


def test_day_storage_table():
    parts = ["key", "ttl", "hide", "body"]
    sizes = [value("day2011", system=f"raw message, {part}") for part in parts]
    raw = value("day2011", system="raw message")
    assert sum(sizes) == raw == 132
    for system in ("Python list/dict", "Python sqlite3", "Erlang ets"):
        size = value("day2011", system=system, quantity="memory_per_message")
        overhead = value("day2011", system=system, quantity="memory_overhead")
        assert size / raw - 1 == pytest.approx(overhead, abs=0.005), system


def test_a_number_of_a_source_must_be_selected_uniquely():
    """Day gave his wrapper two rates: the post's, and that of a run two days later."""
    day = load("day2011")
    wrapper = {"system": "Erlang openstack", "quantity": "reply_rate"}
    assert published.single_value(day, place="post: Erlang table", **wrapper) == 24154
    with pytest.raises(UserError, match="2 different values"):
        published.single_value(day, **wrapper)
    with pytest.raises(UserError, match="0 different values"):
        published.single_value(day, system="nobody")


def test_day_rerun_rates_are_requests_over_time():
    rerun = rows("day2011", place="reply 2011-03-07/Eric Day").drop_nulls("requests_per_connection")
    requests = value("day2011", quantity="requests")
    timed = rerun.filter(quantity="duration")
    assert timed.height == 7
    for system, duration_us in timed.select("system", "value").iter_rows():
        same = rerun.filter(system=system, quantity="reply_rate").sort("value")["value"][-1]
        # The time is printed to 10 ms.
        assert same == pytest.approx(requests / duration_us * 1e6, rel=0.001), system
        shares = rerun.filter(pl.col("quantity").str.starts_with("cpu_"), system=system)["value"]
        assert shares.sum() == pytest.approx(1), system


# The claims


def test_untested_statements_are_in_no_count():
    names = [one.id for one in published.untested()]
    assert len(set(names)) == len(names) and not set(names) & set(BY_ID)


def test_the_exploratory_verdicts_are_on_claims_of_today():
    found = published.exploratory()
    assert set(found["claim"]) == set(BY_ID)
    assert {*found["then"], *found["now"]} <= set(judging.VERDICTS)


def test_systems_of_a_post_are_servers_here():
    found = published.systems()
    assert all(files.exists("server", name) for name in found["server"])
    assert set(found["system"]) <= set(published.load("moritz2012")["system"])


def test_no_comparison_is_of_a_thing_with_itself_or_leaves_everything_open():
    for claim in CLAIMS:
        for one in (*claim.every, *claim.condition, *claim.condition_then):
            assert one.a != one.b, claim.id
            assert (one.low, one.high) != (-math.inf, math.inf), claim.id
        assert all(one.what for one in (*claim.condition, *claim.condition_then)), claim.id


def test_now_compares_what_then_compares():
    """Less where no client offers a server of today enough."""
    for claim in CLAIMS:
        if claim.then:
            asked = [
                [(one.statistics, one.low, one.high, one.least_s) for one in claim.compared(when)]
                for when in ledger.WHEN
            ]
            assert all(one in asked[0] for one in asked[1]), claim.id


@pytest.mark.parametrize("claim", WITH_NUMBERS, ids=lambda claim: claim.id)
def test_the_sources_own_numbers_pass_the_rule(claim):
    effect, first = published.effect(claim), claim.now[0]
    places = set(load(claim.source)["place"])
    assert all(row.get("place", claim.place) in places for row in claim.published.values())
    assert first.low < effect < first.high
    if claim.basis == "size":
        half_and_double = sorted([math.sqrt(effect), effect**2])
        assert [first.low, first.high] == pytest.approx(half_and_double, rel=0.01)
    if claim.basis == "equivalence":
        assert [first.low, first.high] == pytest.approx([0.9 * effect, 1.1 * effect], rel=0.01)


def test_a_size_needs_the_effect_and_two_bounds():
    sizes = [claim for claim in CLAIMS if claim.basis == "size"]
    assert {claim.id for claim in sizes} <= {claim.id for claim in WITH_NUMBERS}
    assert all(math.isfinite(c.now[0].low) and math.isfinite(c.now[0].high) for c in sizes)


def test_moritz_own_tables_pass_the_rules_over_all_servers():
    local = moritz("local")
    assert local.sort("connection_timeouts_count")["system"][-1] == "perl-ev"
    tied = BY_ID["moritz-top-five-tie-on-metal"].compared("then")
    servers = dict.fromkeys(side["server"] for one in tied for side in one.sides)
    assert len(servers) == 5 and len(tied) == 10
    means = local["handshake_time_mean"][:5]
    assert means.max() / means.min() < tied[0].high


def test_selectors_fit_the_experiments_there_are():
    every = [
        (claim.id, claim.experiment, selector)
        for claim in CLAIMS
        for one in (*claim.every, *claim.condition, *claim.condition_then)
        for selector in one.sides
    ]
    every += [
        (finding.name, finding.experiment, selector)
        for finding in findings.load() for one in finding.comparisons for selector in one.sides
    ]  # fmt: skip
    for name, experiment, where in every:
        experiment = where.get("experiment", experiment)
        factors = files.experiment(experiment).factors
        servers = [where["server"], where.get("relative_to", {}).get("server", where["server"])]
        assert all(experiment in files.server(server).experiments for server in servers), name
        assert all(files.server(server).runs for server in servers), name
        for column, level in [*where.items(), *where.get("relative_to", {}).items()]:
            if column in (*selecting.OWN, "server"):
                continue
            levels = factors[column].levels if column in factors else ()
            if column == "configuration":
                levels = [c for s in servers for c in files.server(s).configurations_in(experiment)]
            assert level in levels, f"{name}: {column} = {level}"


# Mistakes in the ledger


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("low = 1.07, high = 1.31", "low = 2, high = 1.31", "low is not below high"),
        ('statistic = "died"', 'statistic = "dead"', "statistic"),
        ('statistic = "died"', 'b = { server = "null" }, statistic = "died"', "has no ratio"),
        ('a = { server = "yucan", ', "a = { ", "names no server"),
        ('id = "day-ets-bytes"', 'id = "day-sqlite-bytes"', "there twice"),
    ],
)
def test_a_slip_in_the_ledger_is_reported_with_its_place(tmp_path, old, new, message):
    text, path = published.CLAIMS.read_text(), tmp_path / "claims.toml"
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UserError) as failure:
        published.claims(path)
    assert message in str(failure.value) and "claims.toml" in failure.value.where


# The bibliography


def test_bibliography_is_read_by_pandoc_and_holds_every_source():
    path = ROOT / "paper" / "source" / "references.bib"
    written = re.findall(r"^@\w+\{(\w+),", path.read_text(), re.M)
    read = json.loads(pypandoc.convert_file(path, "csljson", format="biblatex"))
    assert sorted(written) == sorted(entry["id"] for entry in read)
    assert len(written) == len(set(written))
    assert set(published.FACTORS) <= set(written)
    for entry in read:
        assert entry.get("title") and entry.get("author"), entry["id"]
        assert {"URL", "DOI", "ISBN"} & set(entry), entry["id"]
        assert "issued" in entry or entry["type"] == "software", entry["id"]


# Then and now, and claims that were not run


def test_then_compares_no_newer_release_than_now():
    for claim in CLAIMS:
        for then, now in zip(claim.then, claim.now):
            for old, new in zip(then.sides, now.sides):
                pair = old["server"], new["server"]
                release = [files.server(name).release for name in pair]
                if release[0] and release[1] and release[0].system == release[1].system:
                    assert pair[1] in files.newest(pair), claim.id


def test_a_dataset_without_data_has_a_ledger_of_claims_not_run():
    frame = ledger.frame(claims.ledger("never-measured"))
    assert len(frame) == len(CLAIMS)
    for when in ledger.WHEN:
        assert set(frame[when]) == {judging.NOT_RUN}
        assert all(why.startswith("the dataset has no experiment ") for why in frame[f"{when}_why"])


def test_an_effect_with_an_unlimited_side_is_a_bound():
    at_least, known = (
        Values(dict.fromkeys((1, 2, 3), 9900.0), at_least=frozenset((1, 2, 3))),
        Values({1: 4000.0, 2: 4100.0, 3: 4200.0}),
    )
    higher, lower, neither = (
        judging.effect(sides)
        for sides in ((at_least, known), (known, at_least), (at_least, at_least))
    )
    said = list(map(verdict_words.effect_text, (higher, lower, neither)))
    assert said == ["at least 2.36, n = 3", "at most 0.424, n = 3", "no limit reached, n = 3"]
    # A narrow interval needs more digits to show that it excludes 1.
    narrow = Interval(12, 1.0095, 1.0071, 1.0119)
    assert verdict_words.effect_text(narrow) == "1.01 [1.007, 1.012], n = 12"


def test_rounding_widens_a_ratio_of_response_times():
    def trials(*times_us: int) -> dict:
        return Values(dict(enumerate(times_us, 1)), step=100)

    even = judging.effect([trials(100, 100, 100)] * 2)
    assert (even.low, even.estimate, even.high) == (pytest.approx(1 / 3), 1.0, 3.0)
    unbounded = judging.effect([trials(100, 200, 300), trials(0, 50, 100)])
    assert unbounded.high == judging.INFINITE
