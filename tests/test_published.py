"""The transcriptions against what the posts state of themselves, and the claims against both."""

import functools
import itertools
import json
import math
import re
import shutil
import tomllib

import polars as pl
import pypandoc
import pytest
from scipy.stats import spearmanr

from deathmatch.analysis import (
    c10k,
    claims,
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
from deathmatch.quantities.definitions import QUANTITIES

LEDGER = tomllib.loads(published.CLAIMS.read_text())
CLAIMS = published.claims()
WITH_NUMBERS = [claim for claim in CLAIMS if "published" in claim]


load = functools.cache(published.load)


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
    counted = {source: load(source).height for source in published.FACTORS}
    counted["testbeds"] = published.testbeds().height
    counted["quantities"] = published.quantities().height
    assert {name: int(count) for name, count in stated.items()} == counted
    assert f"{len(CLAIMS)} claims" in readme


def test_every_file_belongs_to_a_source_and_every_definition_is_used():
    files = {path.stem for path in published.FOLDER.glob("*.csv")}
    assert files == {*published.FACTORS, "testbeds", "quantities"}
    everything = pl.concat([published.load(source) for source in published.FACTORS], how="diagonal")
    assert set(everything["quantity"]) == set(published.quantities()["quantity"])
    assert set(everything["testbed"]) == set(published.testbeds()["testbed"])


def test_wikipedia_chart():
    chart = rows("walkin2009", place="post: Wikipedia chart")
    assert chart["value"].to_list() == [8213, 3353, 2223, 2066, 785]
    assert chart["value"].is_sorted(descending=True)


def test_walkin_backlog_plateaus():
    def plateau(backlog: int, schedulers: str) -> float:
        where = {"place": "post: backlog graphs", "quantity": "reply_rate"}
        found = rows("walkin2009", **where, backlog=backlog, schedulers=schedulers)
        return found["value"].max()

    assert plateau(1, "all") < plateau(1, "one"), "1: SMP is the slower"
    assert plateau(5, "all") > plateau(5, "one")
    best = max([1, 5, 128, 256], key=lambda backlog: plateau(backlog, "all"))
    assert best == 128


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


def test_misultin_loses_requests_from_8000_on():
    table = rows("walkin2009", place="post: update, misultin-smp-30.csv", statistic="mean")
    lossy = table.filter(pl.col("quantity") == "error_rate", pl.col("value") > 0)
    assert lossy["offered_rate_rps"].to_list() == [8000, 9000, 10000]
    assert lossy["value"].to_list() == [0.16, 0.17, 0.27]


def test_httperf_sample_is_consistent():
    sample = {"place": "comment 2009-09-19 09:37/post author"}
    rate = value("walkin2009", **sample, quantity="connection_rate")
    interval_us = value("walkin2009", **sample, quantity="connection_interval")
    assert rate * interval_us / 1e6 == pytest.approx(1, abs=0.05)
    times = rows("walkin2009", **sample, quantity="connection_time")
    of = dict(times.select("statistic", "value").iter_rows())
    assert of["minimum"] < of["median"] < of["mean"] < of["maximum"] < 3_100_000


def test_williams_ranks_are_dense_and_name_all_servers():
    ranks = rows("williams2009", statistic="order").filter(pl.col("quantity").str.ends_with("rank"))
    three = ranks.filter(pl.col("place") != "post: Update 2")
    for key, group in three.group_by("place", "quantity"):
        assert set(group["system"]) == {"nginx", "Yaws", "MochiWeb"}, key
        assert group["value"].min() == 1, key
        assert group["value"].max() == group["value"].n_unique(), key
    nginx = three.filter(pl.col("quantity").is_in(["cpu_rank", "load_rank"]), system="nginx")
    assert nginx["value"].to_list() == [1] * 6, "three rounds, nginx lowest in both"


def test_williams_load():
    calls = value("williams2009", quantity="requests_per_connection")
    rates = rows("williams2009", quantity="offered_connection_rate")
    top = rates.filter(statistic="maximum")["value"][0] * calls
    slow = rows("williams2009", quantity="response_time", system="MochiWeb")
    assert slow["offered_rate_rps"].unique().to_list() == [top]
    assert slow.sort("kernel_poll")["value"].to_list() == [14_000, 65_000]


def test_ostinelli_peaks_and_load():
    peaks = rows("ostinelli2011", place="post: Test results", quantity="reply_rate")
    assert peaks["value"].to_list() == [1500, 3000, 4850, 8600, 9700]
    calls = value("ostinelli2011", quantity="requests_per_connection")
    for end in ("minimum", "maximum"):
        where = {"place": "post: method", "statistic": end}
        connections = value("ostinelli2011", **where, quantity="offered_connection_rate")
        assert connections * calls == value("ostinelli2011", **where, quantity="offered_rate")


@pytest.mark.parametrize(
    ("testbed", "timeouts", "without"), [("ec2", 10859, 6), ("local", 5220, 14)]
)
def test_moritz_tables(testbed, timeouts, without):
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


def test_moritz_measured_the_same_19_servers_twice():
    ec2, local = moritz("ec2"), moritz("local")
    assert set(ec2["system"]) == set(local["system"])
    assert ec2["system"][0] == "erlang-cowboy"
    assert value("moritz2012", quantity="servers", value=19.0) == ec2.height


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


def test_day_rates():
    def rate(system: str, place: str, **columns) -> float:
        return value("day2011", system=system, place=place, quantity="reply_rate", **columns)

    erlang, python = "post: Erlang table", "post: Python table"
    for system in ("eventlet echo", "eventlet wsgi", "eventlet wsgi webob"):
        assert rate(system, python, processes=2) > 1.7 * rate(system, python, processes=1)
    assert rate("Erlang openstack", erlang) > 3 * rate("webmachine", erlang)
    assert rate("Erlang echo", erlang) > rate("eventlet echo", python, processes=2)


def test_one_number_of_a_source_is_one():
    """Day gave his wrapper two rates: the post's, and that of a run two days later."""
    day = published.load("day2011")
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


def test_claims_cover_every_source_and_the_readers_objections():
    assert len(CLAIMS) >= 40
    assert {claim["source"] for claim in CLAIMS} == set(published.FACTORS)
    assert sum(claim["role"] == "objection" for claim in CLAIMS) >= 15
    experiments = {claim["experiment"] for claim in CLAIMS}
    known = json.loads((ROOT / "config/schemas/claims.json").read_text())
    assert experiments == set(known["$defs"]["experiment"]["enum"])


@pytest.mark.parametrize(
    "name",
    [
        "williams-client-is-saturated", "williams-results-scatter-past-1100",
        "williams-time-wait-exhausts-ports", "ostinelli-core-counts-unfair",
        "ostinelli-mean-hides-tail", "ostinelli-mean-hides-median", "walkin-active-mode-overloads",
        "walkin-native-code-no-difference", "ostinelli-url-parse-is-slow",
        "moritz-pypy-beats-cpython-tornado", "moritz-ec2-does-not-predict-metal",
        "ostinelli-errors-are-queueing",
    ],
)  # fmt: skip
def test_a_known_objection_is_in_the_ledger(name):
    assert name in {claim["id"] for claim in CLAIMS}


def test_every_defined_statistic_decides_something():
    used = set().union(*(published.statistics_of(claim["rule"]) for claim in CLAIMS))
    assert set(LEDGER["statistics"]) == used - set(QUANTITIES)


def test_every_comparison_names_its_statistic_on_each_side():
    for claim in CLAIMS:
        for rule in claim["rule"].get("rules", [claim["rule"]]):
            sides = [rule[side] for side in ("a", "b") if side in rule] or [{}]
            assert all("statistic" in rule or "statistic" in side for side in sides), claim["id"]


def test_no_rule_compares_a_thing_with_itself():
    for claim in CLAIMS:
        for rule in claim["rule"].get("rules", [claim["rule"]]):
            assert "b" not in rule or rule["a"] != rule["b"], claim["id"]


def test_places_of_claims_with_numbers_or_comments_exist():
    places = {source: set(load(source)["place"]) for source in published.FACTORS}
    for claim in WITH_NUMBERS:
        for row in claim["published"].values():
            assert row.get("place", claim["place"]) in places[claim["source"]], claim["id"]


@pytest.mark.parametrize("claim", WITH_NUMBERS, ids=lambda claim: claim["id"])
def test_the_sources_own_numbers_pass_the_rule(claim):
    effect = published.effect(claim)
    rule = claim["rule"].get("rules", [claim["rule"]])[0]
    if rule["kind"] == "within":
        assert rule["low"] < effect < rule["high"]
    else:
        assert (effect > rule["threshold"]) == (rule["direction"] == "above")
    if claim["rule"]["basis"] == "size" and claim["id"] != "ostinelli-node-gains-from-processes":
        half_and_double = sorted([math.sqrt(effect), effect**2])
        assert [rule["low"], rule["high"]] == pytest.approx(half_and_double, rel=0.01)


def test_a_range_that_is_stated_has_half_of_its_lower_and_double_of_its_higher_end():
    rule = rule_of("ostinelli-node-gains-from-processes")
    assert (rule["low"], rule["high"]) == (pytest.approx(math.sqrt(2), abs=0.01), 4**2)


def test_a_size_needs_the_effect_and_two_bounds():
    sizes = [claim for claim in CLAIMS if claim["rule"]["basis"] == "size"]
    assert {claim["id"] for claim in sizes} <= {claim["id"] for claim in WITH_NUMBERS}
    assert all(parts(claim["rule"])[0]["kind"] == "within" for claim in sizes)


def parts(rule: dict) -> list[dict]:
    return rule.get("rules", [rule])


def rule_of(name: str) -> dict:
    return next(claim["rule"] for claim in CLAIMS if claim["id"] == name)


def test_the_sources_own_orders_pass_the_rule():
    spelt = {
        "cherrypy": "CherryPy", "webpy-modwsgi": "web.py", "django-modwsgi": "Django",
        "tornado": "Tornado", "yaws-poll": "Yaws", "mochiweb-poll": "MochiWeb",
        "node": "Node.js", "mochiweb": "MochiWeb", "cowboy": "Cowboy", "misultin": "Misultin",
        "nginx": "nginx", "yaws": "Yaws", "sqlite": "Python sqlite3",
        "dict": "Python list/dict", "ets": "Erlang ets",
    }  # fmt: skip
    kept = {
        "walkin-chart-order": {"place": "post: Wikipedia chart"},
        "ostinelli-order": {"place": "post: Test results", "quantity": "reply_rate"},
        "williams-response-time-order": {
            "place": "post: Update, kernel polling off", "quantity": "response_time_rank",
        },
        "williams-mochiweb-slowest-by-default": {
            "place": "post: The Results", "quantity": "response_time_rank",
        },
        "williams-kernel-polling-yaws-leads": {
            "place": "post: Update, kernel polling on", "quantity": "reply_rate_rank",
        },
        "day-storage-order": {"place": "post: storage table", "quantity": "memory_per_message"},
    }  # fmt: skip
    orders = [
        (claim, rule)
        for claim in CLAIMS
        for rule in parts(claim["rule"])
        if rule["kind"] == "order"
    ]
    assert set(kept) == {claim["id"] for claim, _ in orders}
    for claim, rule in orders:
        if where := kept.get(claim["id"]):
            # Where the chart has Tornado twice, its last row is the single process.
            found = dict(rows(claim["source"], **where).select("system", "value").iter_rows())
            chosen = published.selectors(rule)
            names = [
                spelt.get(where.get("configuration"), spelt.get(where["server"]))
                for where in chosen
            ]
            values = [found[name] for name in names]
            assert all(low < high for low, high in itertools.pairwise(values)), claim["id"]


def test_moritz_own_tables_pass_the_rules_over_all_servers():
    ec2, local = moritz("ec2"), moritz("local")
    both = ec2.join(local, on="system", suffix="_local")
    median = "message_latency_median"
    assert (both[median] > both[f"{median}_local"]).all()
    spread = (ec2["message_latency_p95"] / ec2[median]).min()
    assert spread > rule_of("moritz-ec2-deviates-widely")["rules"][0]["threshold"]
    far, near = (
        both[f"message_latency_p95{end}"] - both[f"{median}{end}"] for end in ("", "_local")
    )
    assert (far > near).all()
    slow = rule_of("moritz-ec2-p95-over-a-second")["threshold"]
    assert (ec2["message_latency_p95"] > slow).all()
    assert ec2.sort("handshake_time_mean")["system"][0] == "erlang-cowboy"
    assert local.sort("connection_timeouts_count")["system"][-1] == "perl-ev"
    tied = rule_of("moritz-top-five-tie-on-metal")
    assert local["system"][:5].to_list() == [
        c10k.PUBLISHED_SYSTEM[name, "all"] for name in tied["levels"]
    ]
    means = local["handshake_time_mean"][:5]
    assert means.max() / means.min() < tied["threshold"]
    rank = spearmanr(both[median], both[f"{median}_local"]).statistic
    assert round(rank, 2) == 0.67
    assert rank < rule_of("moritz-ec2-does-not-predict-metal")["threshold"]


def test_selectors_fit_the_experiments_there_are():
    written = files.names("experiment")
    for claim in CLAIMS:
        for where in published.selectors(claim["rule"]):
            experiment = where.get("experiment", claim["experiment"])
            if experiment not in written:
                continue
            factors = files.experiment(experiment).factors
            levels = {name: factor.levels for name, factor in factors.items()}
            chosen = [*where.items(), *where.get("relative_to", {}).items()]
            for column, level in chosen:
                if column in (*selecting.OWN, "server", "configuration"):
                    continue
                if column in LEDGER["planned"]:
                    continue
                assert level in levels.get(column, ()), f"{claim['id']}: {column} = {level}"


def test_planned_columns_are_used_and_still_missing():
    chosen = {
        column
        for claim in CLAIMS
        for where in published.selectors(claim["rule"])
        for column in where
    }
    assert set(LEDGER["planned"]) <= chosen
    built = {
        factor
        for experiment in files.names("experiment")
        for factor in files.experiment(experiment).factors
    }
    assert not set(LEDGER["planned"]) & built, "an experiment has it now: strike it from [planned]"


# Mistakes of the next editor


@pytest.fixture
def copy(tmp_path):
    return shutil.copytree(published.FOLDER, tmp_path / "published")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (",785,exact", ",-inf,exact", "line 6: "),
        (",785,exact", ",785,roughly", "line 6, column reading"),
        (",785,exact", ",,exact", "line 6, column value"),
        ("reply_rate,1/s,unstated,785", "reply_rate,us,unstated,785", "line 6: "),
        ("reply_rate,1/s,unstated,785", "speed,1/s,unstated,785", "line 6, column quantity"),
        ("walkin2009-wikipedia", "my-laptop", "line 2, column testbed"),
        ("configuration,processes", "configuration,workers", "line 1"),
        (",785,exact", ",many,exact", "walkin2009.csv"),
    ],
)
def test_a_slip_in_a_csv_is_reported_with_its_place(copy, old, new, message):
    path = copy / "walkin2009.csv"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError) as failure:
        published.load("walkin2009", copy)
    assert "walkin2009.csv" in failure.value.where and message in str(failure.value)
    assert failure.value.remedy


def test_a_number_given_twice_is_reported(copy):
    path = copy / "day2011.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines, lines[1]]))
    with pytest.raises(UserError, match=r"day2011\.csv, line"):
        published.load("day2011", copy)


def test_an_unknown_source_is_answered_with_the_nearest():
    with pytest.raises(UserError, match="did you mean 'day2011'"):
        published.load("day2010")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('rule.direction = "above"', 'rule.direction = "over"', "direction"),
        ("rule.low = 1.41\n", "", "low"),
        ('statistic = "died"', 'statistic = "dead"', "undefined statistic"),
        ('id = "day-ets-bytes"', 'id = "day-sqlite-bytes"', "there twice"),
        ('experiment = "storage"', 'experiment = "memory"', "experiment"),
        ('rule.basis = "size"', 'rule.basis = "guess"', "rule.basis"),
        (
            "needs.cpus = { at_least = 2",
            "needs.cores = { at_least = 2",
            "'cores' was unexpected",
        ),
        ("needs.cpus = { at_least = 2", "needs.cpus = { most = 2", "needs.cpus"),
        ('role = "result"', 'role = "result"\nnote = "x"', "'note' was unexpected"),
        ("[[claim]]", "[[claim", "not TOML"),
    ],
)
def test_a_slip_in_the_ledger_is_reported_with_its_place(copy, old, new, message):
    path = copy / "claims.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
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


# What differs between then and now, and why a claim was not run


# They stand for servers on another library, and are ranked by themselves.
OTHER_LIBRARIES = {"pypy-txws", "pypy-txws-0.7", "txws", "txws-0.7"}


def stand_ins(when: str) -> list[tuple[str, str]]:
    """Each server with another one that stands in for it, of any source or claim."""
    tables = [*LEDGER[when].values(), *(claim.get(when, {}) for claim in CLAIMS)]
    return sorted({
        (server, columns["server"])
        for table in tables
        for server, options in table.items()
        for columns in published.as_list(options)
        if "server" in columns
    })  # fmt: skip


def test_what_stands_for_then_is_no_newer_release_and_for_now_no_older_one():
    for server, other in stand_ins("then"):
        assert server in files.newest([server, other]), f"then: {other} is newer than {server}"
    for server, other in stand_ins("now"):
        assert other in files.newest([server, other]), f"now: {other} is older than {server}"


def test_a_folder_of_the_time_is_known_as_an_older_release_of_what_it_stands_for():
    """Else `now` would count it among today's servers, wherever a claim goes over all of them."""
    for server, other in stand_ins("then"):
        year = files.server(other).release.year
        if year and year < 2015 and other not in OTHER_LIBRARIES:
            assert other not in files.newest([server, other]), f"{other} lacks [release] system"


DIFFERENCES = published.differences()


def test_differences_name_servers_levels_and_statistics_that_there_are():
    servers, experiments = files.names("server"), files.names("experiment")
    assert len({one["id"] for one in DIFFERENCES}) == len(DIFFERENCES)
    for one in DIFFERENCES:
        tells = one.get("tells", {})
        named = [tells[side]["server"] for side in ("a", "b") if side in tells]
        assert set([*one.get("servers", []), *named]) <= set(servers), one["id"]
        assert set(one.get("experiments", [])) <= set(experiments), one["id"]
        if tells:
            assert tells["experiment"] in experiments and tells["statistic"] in QUANTITIES
            for selector in (tells["a"], tells.get("b", {})):
                serves = files.server(selector.get("server", "null")).experiments
                assert tells["experiment"] in serves, one["id"]


def test_every_difference_touches_a_claim_and_knows_which_it_does_not():
    for one in DIFFERENCES:
        touched = [claim["id"] for claim in CLAIMS if claims.affects(one, claim)]
        assert 0 < len(touched) < len(CLAIMS), one["id"]
    of = {one["id"]: one for one in DIFFERENCES}
    by_id = {claim["id"]: claim for claim in CLAIMS}
    assert claims.affects(of["tornado"], by_id["ostinelli-node-leads-tornado"])
    assert not claims.affects(of["tornado"], by_id["day-ets-bytes"])
    assert claims.affects(of["cores"], by_id["walkin-yucan-scales-over-cores"])
    assert not claims.affects(of["cores"], by_id["walkin-backlog-5-to-128-one-core"])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("walkin-misultin-matches-yucan", "Misultin could not be run here"),
        ("williams-sendfile-saves-cpu", "no experiment has this column yet: Yaws with and without"),
        ("walkin-backlog-128-best", "the dataset has no experiment backlog"),
        (
            "moritz-handshakes-grow-logarithmically",
            "no client records this yet: handshake log advantage",
        ),
    ],
)
def test_a_claim_that_was_not_run_says_why(name, reason):
    claim = next(claim for claim in CLAIMS if claim["id"] == name)
    assert claims.not_run_reason("never-measured", claim).startswith(reason)


def test_a_dataset_without_data_has_a_ledger_of_claims_not_run_or_out_of_reach():
    frame = ledger.frame(claims.ledger("never-measured"))
    assert dict(frame.schema) == ledger.COLUMNS and len(frame) == len(CLAIMS)
    for when in ledger.WHEN:
        words = [judging.UNREACHED if "out_of_reach" in c else judging.NOT_RUN for c in CLAIMS]
        assert frame[when].to_list() == words and "" not in frame[f"{when}_why"].to_list()
    told = claims.differences("never-measured")
    assert len(told) == len(DIFFERENCES) and set(told["trials"]) == {0}


@pytest.mark.parametrize(
    ("effect", "text"),
    [
        (Interval(), ""),
        (Interval(1, 1.034), "1.03, n = 1"),
        (Interval(3, 2.5, 2.25, 3.0), "2.5 [2.25, 3], n = 3"),
        (Interval(12, 1.0095, 1.0071, 1.0119), "1.01 [1.007, 1.012], n = 12"),
        (Interval(3, 2.5, 2.5, 2.5), "2.5 [2.5, 2.5], n = 3"),
        (Interval(3, 9876.5, 9000.0, 12000.0), "9\u202f876 [9\u202f000, 12\u202f000], n = 3"),
    ],
)
def test_effects_are_written_with_interval_and_n(effect, text):
    assert verdict_words.effect_text(effect) == text


def test_a_peak_that_nothing_limited_leaves_its_end_open():
    at_least, known = (
        Values(dict.fromkeys((1, 2, 3), 9900.0), at_least=frozenset((1, 2, 3))),
        Values({1: 4000.0, 2: 4100.0, 3: 4200.0}),
    )
    higher, lower, neither = (
        judging.effect(sides)
        for sides in ((at_least, known), (known, at_least), (at_least, at_least))
    )
    assert verdict(higher, 2, "above") == judging.REPLICATED
    assert verdict(higher, 3, "above") == judging.OPEN
    assert verdict(lower, 0.5, "above") == judging.NOT
    for direction in ("above", "below"):
        assert verdict(neither, 0.9, direction) == judging.OPEN
    said = list(map(verdict_words.effect_text, (higher, lower, neither)))
    assert said == ["at least 2.36, n = 3", "at most 0.424, n = 3", "no limit reached, n = 3"]


def verdict(interval: Interval, threshold: float, direction: str) -> str:
    return judging._judged(interval, *judging.claimed_range(threshold, direction)).verdict


def test_what_rounding_hides_widens_a_ratio_of_response_times():
    def trials(*times_us: int) -> dict:
        return Values(dict(enumerate(times_us, 1)), step=100)

    even = judging.effect([trials(100, 100, 100)] * 2)
    assert (even.low, even.estimate, even.high) == (pytest.approx(1 / 3), 1.0, 3.0)
    assert verdict(even, 1.1, "below") == judging.OPEN
    unbounded = judging.effect([trials(100, 200, 300), trials(0, 50, 100)])
    assert unbounded.high == judging.INFINITE
    far = judging.effect([trials(300_000, 310_000, 320_000), trials(10_000, 10_000, 10_000)])
    assert verdict(far, 29, "above") == judging.REPLICATED
