"""The narrative's numbers, recomputed from the committed tables without the code of the paper.

The test uses polars on the tables in `data/`, scipy's bootstrap and Python's formats, and nothing
of `deathmatch`. A sentence that the committed paper lacks is a disagreement between the paper and
its tables, or between the paper and its own definitions; where the prose alone was changed, change
the sentence here too. A new number needs a sentence in a chapter's function, or a pattern in TYPED.
"""

import html
import json
import re
import tomllib
from functools import cache
from math import ceil, exp, inf, log
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from conftest import ROOT
from scipy.stats import bootstrap, t, ttest_1samp

DATA = ROOT / "data" / "reference"
PAPER = ROOT / "paper" / "reference" / "deathmatch.html"
REPLY, RATE = "reply_rate_offered_window_rps", "offered_rate_rps"
# The law whose break leaves out a part of a point only, the times of its replies.
IN_PART = ["LAW-STEADY"]

pytestmark = pytest.mark.skipif(not PAPER.is_file(), reason="no paper is committed")


@pytest.fixture(scope="module")
def narrative() -> str:
    """Return the text of the committed paper before its appendices, with plain spaces."""
    return plain_text(PAPER.read_text())


def plain_text(page: str) -> str:
    """Return the prose without charts, tables, captions, references and the numbers of headings."""
    start, end = page.index('<section class="abstract"'), page.index('id="sec-appendices"')
    prose = re.sub(
        r"<(script|style|svg|table|figcaption)\b.*?</\1>", "", page[start:end], flags=re.S
    )
    prose = re.sub(r'<a\s[^>]*class="ref".*?</a>', "", prose, flags=re.S)
    prose = re.sub(r'<span class="header-section-number">.*?</span>', "", prose, flags=re.S)
    # What pointing at a number shows stands after it, in brackets.
    prose = re.sub(
        r'<span\s+class="estimate"\s+title="([^"]*)"[^>]*>(.*?)</span>',
        r"\2 (\1)",
        prose,
        flags=re.S,
    )
    text = html.unescape(re.sub(r"<[^>]+>", "", prose.rpartition("<")[0]))
    # What the correction of all tests together leaves of a finding is not recomputed here.
    text = re.sub(r",\s+fragile\s+\(Holm[^)]*\)", "", text)
    return " ".join(text.replace("’", "'").split())


def table(experiment: str, name: str = "points") -> pl.DataFrame:
    """Return a table without the load generator in the variants' names.

    Where both clients of an experiment measured a trial, that of the experiment's own is there.
    """
    frame = pl.read_parquet(DATA / experiment / f"{name}.parquet")
    other = pl.col("variant").str.contains("load_generator=")
    renamed = frame.filter(other).with_columns(
        pl.col("variant").str.replace(r",?load_generator=[^,]*", "").str.strip_chars(",")
    )
    own = frame.filter(~other)
    return pl.concat([own, renamed.join(own, on=["server", "variant", "n"], how="anti")])


def lawful(points: pl.DataFrame) -> pl.DataFrame:
    broken = pl.col("laws_broken").list.set_difference(IN_PART).list.len()
    return points.filter(broken.fill_null(0) == 0)


def counted(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points that show the server and not the limit of the client or the testbed."""
    return lawful(points).filter(
        ~pl.col("client_limited"),
        pl.col("limit").ne_missing("testbed"),
        pl.col("report") == "whole",
    )


def number(value: float, digits: int = 0) -> str:
    return f"{value:,.{digits}f}".replace(",", " ")


def median(values: pl.Series, unit: str = "", digits: int = 0) -> str:
    """Return the median as the paper writes it, with the interval and n."""
    known = values.drop_nulls().to_numpy().astype(float)
    low, high = known[0], known[0]
    if np.ptp(known):
        drawn = bootstrap(
            (known,), np.median, n_resamples=2000, method="percentile",
            rng=np.random.default_rng(2009),
        ).confidence_interval  # fmt: skip
        low, high = drawn.low, drawn.high
    ends = f"interval {number(low, digits)} to {number(high, digits)}, n = {len(known)}"
    return f"{number(np.median(known), digits)}{unit and ' '}{unit} ({ends})"


def paired(points: pl.DataFrame, above: pl.Expr, below: pl.Expr, column: str = REPLY) -> pl.Series:
    """Return a ratio for each round that has both sides."""
    sides = [points.filter(side).select("n", column).sort("n") for side in (above, below)]
    both = sides[0].join(sides[1], on="n", suffix="_below", validate="1:1", maintain_order="left")
    return both[column] / both[f"{column}_below"]


def times(ratios: pl.Series) -> str:
    return median(ratios, "times", 2)


def student(ratios: pl.Series, level: float = 0.05) -> tuple[float, float, float]:
    """Return the geometric mean and the ends of Student's interval."""
    logs = ratios.log()
    error = logs.std() / len(logs) ** 0.5
    half = t.ppf(1 - level / 2, len(logs) - 1) * error
    return exp(logs.mean()), exp(logs.mean() - half), exp(logs.mean() + half)


def as_of_a_claim(ratios: pl.Series, digits: int = 2) -> str:
    """Return the geometric mean with Student's interval, as the paper writes it."""
    return with_interval(*student(ratios), len(ratios), digits)


def with_interval(mean: float, low: float, high: float, trials: int, digits: int = 2) -> str:
    mean, low, high = (number(value, digits) for value in (mean, low, high))
    return f"{mean} times (interval {low} to {high}, n = {trials})"


def alone(text: str) -> str:
    """Return a number without its interval and n."""
    return text.partition(" (")[0]


def missing(sentences: list[str], narrative: str) -> list[str]:
    return [sentence for sentence in sentences if sentence not in narrative]


def yucan() -> pl.DataFrame:
    """Return the longest points of Walkin's server, with the share of connections that failed."""
    points = counted(table("backlog")).filter(server="yucan", somaxconn=4096)
    longest = points.filter(pl.col("duration_us") == pl.col("duration_us").max())
    return longest.with_columns(failed=100 * pl.col("errors_total") / pl.col("connections"))


def lost(points: pl.DataFrame, backlog: int) -> str:
    failed = points.filter(backlog=backlog)["failed"]
    ends = dict.fromkeys(number(end, 1) for end in (failed.min(), failed.max()))
    return f"{' to '.join(ends)} % of the connections"


def backlog() -> list[str]:
    points = yucan()
    ((rate, duration_us),) = points.select(RATE, "duration_us").unique().rows()
    return [
        f"At {number(rate)} new connections a second for {duration_us / 1e6:g} s, "
        f"{lost(points, 1)} had no answer within 5 s with a backlog of 1, and "
        f"{lost(points, 128)} with 128",
    ]


def served_at_steady_rate() -> pl.DataFrame:
    """Return the points of the open loop that were served, with `us`, the CPU time of a reply."""
    points = counted(table("readiness"))
    steady = points.filter(pl.col(RATE) > 0)[RATE].min()
    due = steady * pl.col("duration_us") / 1e6
    served = points.filter(pl.col(RATE) == steady, pl.col("replies") >= 0.95 * due)
    return served.with_columns(
        us=pl.col("server_cpu_ns") / pl.col("replies") / 1000,
        share=pl.col("server_cpu_ns") / pl.col("duration_us") / 1000,
    )


def readiness() -> list[str]:
    served = served_at_steady_rate()
    (steady,) = served[RATE].unique()
    ours = served.filter(server="c-readiness")
    by_poll = ours.filter(readiness="poll").group_by("idle_connections").agg(pl.median("share"))
    most = by_poll.filter(pl.col("share") < 0.9)["idle_connections"].max()

    def cost(mechanism: str, idle: int) -> str:
        return median(ours.filter(readiness=mechanism, idle_connections=idle)["us"], "µs")

    def added(idle: int) -> str:
        poll = ours.filter(readiness="poll")
        sides = [poll.filter(idle_connections=held).select("n", "us") for held in (idle, 0)]
        both = sides[0].join(sides[1], on="n", suffix="_none")
        return median((both["us"] - both["us_none"]) / idle * 1000, "ns")

    poll, epoll = cost("poll", most), cost("epoll", most)
    poll_none, epoll_none = cost("poll", 0), cost("epoll", 0)
    return [
        f"At {steady} requests a second and with no idle connection, a request costs it "
        f"{poll_none} of CPU time with poll and {epoll_none} with epoll; "
        f"with 900 idle ones, {cost('select', 900)} with select, "
        f"{cost('poll', 900)} with poll and {cost('epoll', 900)} with epoll; "
        f"with {number(most)}, {poll} with poll and {epoll} with epoll.",
        f"Each idle connection adds {added(most)} to a request with poll",
    ]


def epoll_over_select() -> list[str]:
    """Return what Tornado answers in a closed loop with epoll, over what it does with select."""
    points = counted(table("readiness")).filter(pl.col(RATE) == 0, idle_connections=900)
    mechanism = pl.col("readiness")
    today = as_of_a_claim(
        paired(points.filter(server="tornado"), mechanism == "epoll", mechanism == "select")
    )
    return [f"with 900 idle connections, today's Tornado answers {today} as many requests with"]


def deaths_of_select() -> list[str]:
    trials = (
        table("select-overload")
        .group_by("server", "readiness", "variant", "n")
        .agg(died=pl.col("server_state").str.starts_with("died").any())
    )
    died = {
        key: f"{part['died'].sum()} of {len(part)} trials"
        for key, part in trials.group_by("server", "readiness")
    }
    select, oldest = died["tornado-1", "select"], died["tornado-0.2", "select"]
    return [
        f"Under overload, Tornado 1.2.1 died in {select} on select and in "
        f"{died['tornado-1', 'epoll']} on epoll; Tornado 0.2 died in {oldest} on select.",
    ]


def accept_queue() -> list[str]:
    key = ["server", "variant", "n"]
    points = counted(table("accept-queue"))
    top = points.filter(server="acceptors")[RATE].max()
    at_top = points.filter(
        pl.col(RATE) == top, somaxconn=4096, syncookies=1, schedulers="one"
    ).with_columns(pl.col("accept").fill_null(pl.col("configuration")))
    no_abort = at_top.filter(abort_on_overflow=0)
    one = no_abort.filter(accept="one")
    backlog, accept = pl.col("backlog"), pl.col("accept")
    shorter = times(paired(one, backlog == 5, backlog == 128))
    longer = times(paired(one, backlog == 256, backlog == 128))
    usual = no_abort.filter(backlog=128)
    drain = times(paired(usual, accept == "many", accept == "one"))
    served = usual.filter(accept="one")
    capacity = served["server_passive_opens"].sum() / served["server_cpu_ns"].sum() * 1e9
    (duration_us,) = points["duration_us"].unique()
    surplus = (top - capacity) * duration_us / 1e6
    waits = [number(1000 * length / capacity) for length in (128, 4096)]
    aborted = at_top.filter(abort_on_overflow=1, accept="one", backlog=128)
    resets = 100 * aborted["errors_connection_reset"].sum() / aborted["connections"].sum()
    quick = table("accept-queue", "times").filter(
        pl.col(RATE) == top, pl.col("quantity") == "connection_time", pl.col("time_us") < 1_000_000
    )

    def at_once(length: int) -> str:
        mine = one.filter(backlog=length)
        answered = quick.join(mine, on=key, how="semi")["count"].sum()
        return number(100 * answered / mine["connections"].sum())

    return [
        f"A server in C that can answer some {number(round(capacity, -2))} requests a second was "
        f"offered {number(top)}: {number(round(surplus, -2))} connections more than it can answer "
        f"in {number(duration_us / 1e6)} s.",
        f"With a backlog of 5 it answers {shorter} as many as with 128, and with 256, {longer}",
        f"Of 100 connections, {at_once(5)} are answered within a second with a backlog of 5, "
        f"{at_once(128)} with 128 and {at_once(4096)} with 4096",
        f"moves the queue from the kernel into the server and answers {drain} as many",
        f"here {waits[0]} ms with a backlog of 128 and {waits[1]} ms with 4096.",
        f"with it, {number(resets, 1)} of 100 connections were reset.",
    ]


@cache
def servers() -> dict[str, dict]:
    """Return what each server's file says; a release's, what its system's does where it does not.

    Of the tables, `configurations` alone is taken key by key, less what is empty there.
    """
    paths = [path for at in ("*", "releases/*") for path in ROOT.glob(f"servers/{at}/server.toml")]
    own = {path.parent.name: tomllib.loads(path.read_text()) for path in sorted(paths)}
    found = {}
    for name, server in own.items():
        under = own.get(server.get("extends"), {})
        found[name] = under | server
        both = under.get("configurations", {}) | server.get("configurations", {})
        known = {key: table for key, table in both.items() if table}
        found[name]["configurations"] = known if server.get("configurations") != {} else {}
    return found


def websockets() -> list[str]:
    specs = servers()
    releases = {
        name: (spec["release"]["system"], spec["release"]["year"])
        for name, spec in specs.items()
        if {"system", "year"} <= spec.get("release", {}).keys()
    }
    points = as_opened = lawful(table("c10k")).filter(opening=128, run="planned")
    subjects = {name for name in points["server"] if not specs[name].get("instrument")}
    last = dict(sorted(releases[name] for name in subjects if name in releases))
    older = {
        name for name in subjects & releases.keys() if releases[name][1] < last[releases[name][0]]
    }
    titles = dict(table("c10k", "trials").select("server", "title").iter_rows())
    points = points.filter(
        pl.col("server").is_in(subjects), pl.col("schedulers").fill_null("one") == "one"
    )
    plain = points.filter(~pl.col("server").is_in(older))
    held = plain.group_by("server").agg(
        whole=(
            (pl.col("outcome_completed") == 10_000) & (pl.col("connection_timeouts") == 0)
        ).all(),
        kept=pl.median("outcome_completed"),
    )
    whole = f"{held['whole'].sum()} of {len(held)}"
    short = held.filter(~pl.col("whole")).select("server", "kept").rows()
    p95 = counted(points).with_columns(ms=pl.col("message_latency_p95_us") / 1000)
    steady = p95.filter(~pl.col("laws_broken").list.contains("LAW-STEADY").fill_null(False))
    today = steady.filter(~pl.col("server").is_in(older)).group_by("server").agg(pl.median("ms"))
    floor = counted(as_opened).filter(
        ~pl.col("laws_broken").list.contains("LAW-STEADY").fill_null(False),
        server="ws-null",
    )
    null = median(floor["message_latency_p95_us"] / 1000, "ms", 1)
    return [
        f"On one CPU, {whole} servers held all ten thousand,",
        *(f"{titles[server]} held {number(kept)} (median of its trials)" for server, kept in short),
        f"Of {len(today)} servers of today on one CPU, {(today['ms'] < 0.5).sum()} have "
        f"a 95th percentile of message latency below 0.5 ms; that of the null server is {null}, so",
        *handshakes_at_pace(),
    ]


def handshakes_at_pace() -> list[str]:
    """Return what is said of connections begun as the post's client did."""
    at_pace = table("c10k").filter(opening=0)
    points = counted(at_pace)
    five = ["erlang-cowboy-otp29", "gevent-websocket", "node-ws", "pypy-tornado", "tornado-ws"]
    wide = points.filter(pl.col("server").is_in(five), schedulers="all").pivot(
        "server", index="n", values="handshake_time_mean_us"
    )
    slowest, fastest = (choose(five, key=lambda name: wide[name].mean()) for choose in (max, min))
    ratio = (wide[slowest] / wide[fastest]).drop_nulls()
    # One of the ten pairs refutes at a tenth of the level.
    level = 0.05 / 10
    lost = pl.col("connection_timeouts")
    one = lawful(at_pace).filter(
        pl.col("schedulers").fill_null("one") == "one", pl.col("server") != "ws-null"
    ).group_by("server", "variant").agg(lost, middle=lost.median())  # fmt: skip
    (values, _), *others = one.sort("middle", descending=True).select(lost, "middle").rows()
    with_any = sum(any(each) for each, _ in others)
    return [
        f"nearly tied differ by up to {with_interval(*student(ratio, level), len(ratio), 2)}.",
        f" lost {median(pl.Series(values))} of ten thousand, and {with_any} of {len(others)} "
        "others lost any",
    ]


def searches(experiment: str) -> pl.DataFrame:
    """Return the searches that found a capacity."""
    return table(experiment, "probes").filter(outcome="found")


def capacity_over(found: pl.DataFrame, above: pl.Expr, below: pl.Expr) -> str:
    return as_of_a_claim(paired(found, above, below, "capacity_rps"))


def servers_on_one_cpu() -> list[str]:
    known, found, server = classes_on_one_cpu(), searches("single-thread"), pl.col("server")
    points = counted(table("single-thread")).filter(pl.col(RATE) == 16_000)
    points = points.with_columns(us=pl.col("server_cpu_ns") / pl.col("replies"))
    passive, native = (
        as_of_a_claim(paired(points, server == above, server == below, "us"))
        for above, below in (("yucan-passive", "yucan"), ("yucan", "yucan-nojit"))
    )
    today = capacity_over(found, server == "tornado", server == "yucan-otp29")
    old = capacity_over(found, server == "tornado-0.2", server == "yucan-otp23")
    yaws = found.filter(server="yaws")
    ways = [pl.col("configuration") == name for name in ("production", "bare")]
    return [
        f"{len(known)} servers fall into {len(set(known.values()))} classes;",
        f"today's Tornado has {today} the capacity of Yucan on today's Erlang, and Tornado 0.2 "
        f"{old} that of Yucan on the Erlang of 2020.",
        f"with passive sockets takes {passive} the CPU time of one with active ones, one with "
        f"native code {native} that without, and the capacity of Yaws in a production "
        f"configuration is {capacity_over(yaws, *ways)} that of Yaws bare",
    ]


def newest(names: set[str]) -> set[str]:
    """Return the servers of the last release of each system; others are systems of their own."""
    specs = servers()
    releases = {
        name: (spec["release"]["system"], spec["release"]["year"])
        for name, spec in specs.items()
        if name in names and {"system", "year"} <= spec.get("release", {}).keys()
    }
    last = dict(sorted(releases.values()))
    return {
        name
        for name in names
        if name not in releases or releases[name][1] == last[releases[name][0]]
    }


def classes_on_one_cpu() -> dict[str, int]:
    """Return the class of each server of today in its first variant, by its capacity.

    The best in no class yet is an anchor; others join it until Student's interval of the ratios
    within rounds, at 5 % over the number of pairs, excludes 1.
    """
    found = searches("single-thread")
    subjects = {name for name in set(found["server"]) if not servers()[name].get("instrument")}
    values = {}
    for name in newest(subjects):
        mine = found.filter(usual("single-thread", {"server": name, "backlog": None}))
        each = dict(mine.select("n", "capacity_rps").iter_rows())
        if len(each) >= 5:
            values[name] = each
    level = 0.05 / (len(values) * (len(values) - 1) / 2)
    ordered = sorted(values, key=lambda name: -student(pl.Series(values[name].values()))[0])
    classes, anchor, place = {}, {}, 0
    for name in ordered:
        shared = sorted(anchor.keys() & values[name].keys())
        ratios = pl.Series([values[name][n] / anchor[n] for n in shared])
        if not anchor or (len(shared) >= 5 and student(ratios, level)[2] < 1):
            anchor, place = values[name], place + 1
        classes[name] = place
    return classes


def dynamic() -> list[str]:
    offered = table("dynamic", "probes").filter(
        ~pl.col("client_limited"), pl.col("due") > 0, capacity_share=2.5
    )
    errors = pl.col("errors_total")
    timeouts = pl.when(errors > 0).then(pl.col("errors_client_timeout") / errors)
    variants = offered.group_by("server", "variant").agg(
        failed=(1 - pl.col("replies") / pl.col("due")).median(), timeouts=timeouts.median()
    )
    with_errors = variants.filter(pl.col("failed") > 0)
    only_timeouts = with_errors.filter(pl.col("timeouts") > 0.95)
    return [
        f"of {len(with_errors)} variants with errors at 2.5 times their capacity, nearly all "
        f"errors are time-outs in {len(only_timeouts)}",
        *by_server(searches("dynamic").select("server", "configuration", "n", rps="capacity_rps")),
        f"at two thirds of its capacity, is {tail_over_mean()} their mean.",
    ]


def tail_over_mean() -> str:
    """Return the 99th percentile over the mean of the times of Node.js's connections."""
    of_node = {"server": "node", "configuration": first_configuration("node", "dynamic")}
    node = searches("dynamic").filter(**of_node)
    key = ["server", "variant", "n", RATE]
    rows = table("dynamic").filter(**of_node).select(key)
    wanted = node["capacity_rps"].median() * 0.667
    nearest = min(rows[RATE].unique(), key=lambda rate: abs(log(rate / wanted)))
    each = table("dynamic", "times").filter(pl.col(RATE) == nearest, quantity="connection_time")
    each = each.join(rows, on=key, how="semi").drop_nulls("time_us")
    trials = each.select("n", pl.col("time_us").repeat_by("count")).explode("time_us")
    parts = trials.sort("n", "time_us").partition_by("n", maintain_order=True)
    tails = pl.Series([one["time_us"][ceil(0.99 * len(one)) - 1] for one in parts])
    return as_of_a_claim(tails / pl.Series([one["time_us"].mean() for one in parts]))


def by_server(capacities: pl.DataFrame) -> list[str]:
    """Return the highest rates in the post, and capacities of today, each over the next one's."""
    post = pl.read_csv(ROOT / "data" / "published" / "ostinelli2011.csv", infer_schema_length=None)
    plateaus = dict(post.filter(statistic="plateau").select("system", "value").iter_rows())
    his = [plateaus[name] for name in ("Cowboy", "MochiWeb", "Node.js")]
    pairs = ("cowboy-otp29", "mochiweb-otp29"), ("mochiweb-otp29", "node"), ("node", "tornado")
    plain = pl.concat(
        capacities.filter(
            pl.col("configuration").eq_missing(
                pl.lit(first_configuration(name, "dynamic"), pl.String)
            ),
            server=name,
        )
        for name in dict.fromkeys(name for pair in pairs for name in pair)
    )
    cowboy, mochiweb, node = (
        as_of_a_claim(paired(plain, *(pl.col("server") == name for name in pair), "rps"))
        for pair in pairs
    )
    return [
        f"His Cowboy answered {his[0] / his[1]:.1f} times as many requests as his MochiWeb, "
        f"and his MochiWeb {his[1] / his[2]:.1f} times as many as Node.js;",
        f"by capacity, today's Cowboy answers {cowboy} as many as MochiWeb, MochiWeb {mochiweb} as "
        f"many as Node.js, and Node.js {node} as many as Tornado",
    ]


def first_configuration(server: str, experiment: str) -> str | None:
    """Return a server's default configuration, as servers/README.md defines; None without any."""
    configurations = servers()[server].get("configurations", {})
    known = [
        name
        for name, about in configurations.items()
        if experiment in about.get("experiments", [experiment])
    ]
    known.sort(key=lambda name: experiment not in configurations[name].get("first_in", []))
    return known[0] if known else None


def static() -> list[str]:
    points = table("static")

    def by_default(server: str) -> pl.DataFrame:
        configuration = first_configuration(server, "static")
        return counted(points).filter(server=server, configuration=configuration)

    def cost(points: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
        shared = points.join(others, on=["n", RATE], how="semi")
        us = pl.col("server_cpu_ns").sum() / pl.col("replies").sum()
        return shared.group_by("n").agg(us=us).with_columns(server=pl.lit(points["server"][0]))

    def over_nginx(server: str) -> str:
        mine, nginx = by_default(server), by_default("nginx")
        costs = pl.concat([cost(mine, nginx), cost(nginx, mine)])
        return times(paired(costs, pl.col("server") == server, pl.col("server") == "nginx", "us"))

    yaws, mochiweb = over_nginx("yaws"), over_nginx("mochiweb")
    on_time = points.filter(~pl.col("client_limited"))
    return [
        f"Yaws with its cache takes {yaws} the CPU time of the tuned nginx for a reply, "
        f"and the tuned MochiWeb {mochiweb},",
        f"Our client kept its schedule at {len(on_time)} of {len(points)} points, up to "
        f"{number(points[RATE].max())} requests a second.",
    ]


def overhead() -> list[str]:
    closed = lawful(table("overhead")).filter(pl.col(RATE) == 0, schedulers="one")

    def over(above: str, below: str) -> str:
        return times(paired(closed, pl.col("server") == above, pl.col("server") == below))

    return [
        f"OTP's HTTP parser keeps {over('otp-http', 'otp-echo')} the rate of OTP's echo.",
        f"Day's thin Erlang wrapper answers {over('otp-http', 'eventlet-wsgi')} as many requests",
    ]


def stored_bytes() -> list[str]:
    points = table("storage").filter(body_bytes=100)

    def each(store: str) -> str:
        mine = points.filter(configuration=store).sort("n", "messages")
        grown = mine.group_by("n", maintain_order=True).agg(
            (pl.last("runtime_bytes") - pl.first("runtime_bytes")) / pl.last("messages")
        )
        return median(grown["runtime_bytes"], "bytes")

    return [
        f"SQLite takes {each('sqlite')}, Erlang's ets {each('ets')} and a Python dictionary "
        f"{each('dict')}, each"
    ]


def dataset_and_laws() -> list[str]:
    trials = pl.concat(
        pl.read_parquet(path, columns=["server", "variant", "n", "cpus"]).with_columns(
            of=pl.lit(path.parent.name)
        )
        for path in sorted(DATA.glob("*/trials.parquet"))
    )
    sizes = trials.group_by("of", "server", "variant").len()["len"]
    least, most = sizes.min(), sizes.max()
    holds = [f"{100 * (1 - 2 ** (1 - size)):.0f} %" for size in (least, most)]
    every = [pl.read_parquet(path) for path in sorted(DATA.glob("*/points.parquet"))]
    columns = ["laws_judged", "laws_broken"]
    # No law judges what a store holds.
    points = pl.concat(frame.select(columns) for frame in every).drop_nulls("laws_judged")
    limits = pl.concat(frame["limit"] for frame in every if {REPLY, "limit"} <= {*frame.columns})
    limits = limits.fill_null("unknown")
    names = {
        "client": "the load generator", "testbed": "the testbed",
        "other load": "other work on the machine", "server": "the server", "none": "nothing",
        "unknown": "not known",
    }  # fmt: skip
    of_limit = [f"{name} at {number((limits == limit).sum())}" for limit, name in names.items()]
    broken = pl.col("laws_broken").list
    times_only = points.select(broken.contains(*IN_PART).sum()).item()
    n = f"{least} to {most} of each variant"
    (cpus,) = trials["cpus"].drop_nulls().unique()
    return [
        f"were measured on testbed netns: {cpus} CPUs",
        f"The dataset holds {number(len(trials))} trials, in random order;",
        f"one machine of {cpus}",
        f"contains the true median some {holds[0]} to {holds[1]} of the time.",
        f"the dataset has {number(len(trials))} trials, {n}, in random order.",
        f"Of {number(len(limits))} points the limit was {', '.join(of_limit[:-1])} and "
        f"{of_limit[-1]}.",
        f"Every point must also obey {points['laws_judged'].explode().n_unique()} laws",
        f"{len(points) - len(lawful(points))} of {number(len(points))} points break a law "
        "that excludes them",
        f"at {times_only} points only the times of replies are excluded,",
    ]


# Claims that cannot both hold: one question, of which the second counts if it alone is decided.
OPPOSED = {
    "walkin-epoll-no-faster-without-idle-connections": "walkin-epoll-much-faster-at-thousands",
    "walkin-active-mode-overloads": "walkin-active-mode-harmless",
}


AGES = {
    "then, of the time": ("then", pl.col("then_of_the_time")),
    "then, oldest that runs": ("then", ~pl.col("then_of_the_time")),
    "now": ("now", pl.lit(True)),
}


def questions(age: str) -> pl.DataFrame:
    """Return source, role, verdict and what it does not survive, of the ledger's claims of an age.

    The verdicts are the ledger's. Of two that oppose each other one is there.
    """
    when, of_age = AGES[age]
    ledger = pl.read_parquet(ROOT / "figures" / "reference" / "claims.parquet").filter(of_age)
    verdicts = dict(ledger.select("claim", when).iter_rows())
    for first, second in OPPOSED.items():
        if {first, second} <= verdicts.keys():
            decided = [
                verdicts[claim] in ("replicated", "not replicated") for claim in (first, second)
            ]
            del verdicts[first if decided == [False, True] else second]
    kept = ledger.filter(pl.col("claim").is_in(list(verdicts)))
    return kept.select("source", "role", verdict=when, fragile=f"{when}_fragile")


def verdicts() -> list[str]:
    """How many results of the posts hold on today's releases, and those of each post."""
    results = questions("now").filter(role="result")
    told = results.filter(fragile="").with_columns(pl.col("source").str.strip_chars("0123456789"))
    yes, no = (
        results["verdict"].to_list().count(word) for word in ("replicated", "not replicated")
    )
    sentences = [
        f"Of {len(results)} results of the posts, {yes} are replicated on today's software and "
        f"{no} are not;"
    ]
    for source in ("williams", "walkin", "day", "ostinelli", "moritz"):
        whole = len(results.filter(pl.col("source").str.starts_with(source)))
        mine = told.filter(source=source)["verdict"].to_list()
        hold, fail = mine.count("replicated"), mine.count("not replicated")
        word = (
            "holds"
            if hold >= 2 * fail
            else "does not hold"
            if fail >= 2 * hold
            else "holds in part"
        )
        if 2 * (hold + fail) < whole:
            word = "could not be told"
        sentences.append(
            f": {word}; of {whole} results, {hold} hold and {fail} do not, {whole - hold - fail} "
            "could not be told."
        )
    return sentences


def posted(source: str, **levels: str) -> float:
    """Return the one number of a post, from its table as text."""
    frame = pl.read_csv(ROOT / "data" / "published" / f"{source}.csv", infer_schema=False)
    (value,) = frame.filter(**levels)["value"].unique()
    return float(value)


def posts() -> list[str]:
    rate = {"quantity": "reply_rate"}
    yucan = rate | {"system": "Yucan"}
    short = number(posted("walkin2009", **yucan, backlog="1", schedulers="one"))
    long = number(posted("walkin2009", **yucan, place="post: Yucan and Yaws"))
    at_tornado = rate | {"place": "post: Tornado", "schedulers": "one"}
    tornado, slower = (
        number(posted("walkin2009", **at_tornado, system=name)) for name in ("Tornado", "Yucan")
    )
    thin = posted("day2011", **rate, place="post: Erlang table", system="Erlang openstack")
    python = rate | {"place": "post: Python table", "system": "eventlet wsgi", "processes": "2"}
    raw = {
        "quantity": "memory_per_message",
        "place": "post: storage table",
        "system": "raw message",
    }
    moritz = pl.read_csv(ROOT / "data" / "published" / "moritz2012.csv", infer_schema=False)
    tested = moritz.filter(quantity="connection_timeouts", testbed="moritz2012-ec2")["system"]
    post = pl.read_csv(ROOT / "data" / "published" / "ostinelli2011.csv", infer_schema_length=None)
    order = post.filter(statistic="plateau").sort("value", descending=True)["system"]
    return [
        f"answered {short} requests a second with a backlog of 1 on one core, and {long} with 128",
        f"Walkin measured {tornado} replies a second from Tornado and {slower} from his Erlang",
        f"he measured {thin / posted('day2011', **python):.2f} times, with two threads",
        f"For a message of {number(posted('day2011', **raw))} bytes,",
        f"opened ten thousand connections to each of {tested.n_unique()} servers;",
        f"His order by the highest reply rate was {' > '.join(order)}.",
    ]


def products() -> list[str]:
    """Rate × mean time over the number of connections, where a law has it equal."""
    key = ["server", "variant", "n", RATE]
    connections = {"overhead": 4, "readiness": 8}
    ratios = []
    for experiment, at_once in connections.items():
        closed = table(experiment).filter(pl.col(RATE) == 0, pl.col("errors_total") == 0)
        services = table(experiment, "times").filter(quantity="service_time")
        spent = services.group_by(key).agg(us=(pl.col("time_us") * pl.col("count")).sum())
        joined = closed.join(spent, on=key)
        ratios.append(joined["us"] / joined["test_duration_us"] / at_once)
    off = (pl.concat(ratios) - 1).abs() > 0.1
    return [f"here the two differ by more than 10 % in {off.sum()} of {len(off)} points."]


BOTH = "then and now"


def ratios() -> list[dict]:
    """Return each ratio that a verdict rests on, with its interval."""
    ledger = pl.read_parquet(ROOT / "figures" / "reference" / "claims.parquet")
    names = ("effect", "low", "high", "trials", "as_claimed", "sides")
    found = []
    for row in ledger.to_dicts():
        for when in ["now"] if row["same"] else ["then", "now"]:
            known = {name: row[f"{when}_{name}"] for name in names}
            ends = [known[name] for name in ("effect", "low", "high")]
            bounded = all(end is not None and 0 < end < inf for end in ends)
            if bounded and len(known["sides"]) == 2 and not known["as_claimed"]:
                about = {"claim": row["claim"], "when": BOTH if row["same"] else when}
                found.append(about | known | {"verdict": row[when]})
    return found


def numbers_in(name: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", name)]


def releases() -> dict[str, list[dict]]:
    """Return the releases of each system, by year, then by the numbers of library and runtime."""
    systems: dict[str, list[dict]] = {}
    for name, server in servers().items():
        release = server.get("release", {}) | {"server": name}
        series = None if "runtime" in release else release.get("series_year")
        release["year"] = series or release.get("year")
        release["library"] = re.split(r",| on ", release.get("name", ""))[0]
        release.setdefault("runtime", "its own")
        if "history" in server["experiments"] and release.get("system") and release["year"]:
            systems.setdefault(release["system"], []).append(release)
    order = ("library", "runtime")
    return {
        system: sorted(
            systems[system], key=lambda row: (row["year"], *(numbers_in(row[key]) for key in order))
        )
        for system in sorted(systems, key=str.lower)
    }


def before(release: dict, earlier: list[dict]) -> dict:
    """Return the same release on another runtime, else the last one, on its runtime if there is."""
    for key in ("library", "runtime"):
        if alike := [row for row in earlier if row[key] == release[key]]:
            return alike[-1]
    return earlier[-1]


def costs_of_releases() -> pl.DataFrame:
    """Return the CPU time of a reply in each trial that has every rate, in microseconds."""
    points = counted(table("history")).filter(pl.col("replies") > 0)
    whole = pl.col(RATE).n_unique().over("server", "n") == points[RATE].n_unique()
    us = pl.col("server_cpu_ns").sum() / pl.col("replies").sum() / 1000
    return points.filter(whole).group_by("server", "n").agg(us=us)


def beyond_one(ratios: dict[str, pl.Series]) -> tuple[int, int]:
    """Return how many ratios have an interval above 1, and how many one below."""
    ends = [student(ratio) for ratio in ratios.values()]
    return sum(low > 1 for _, low, _ in ends), sum(high < 1 for _, _, high in ends)


def standing(ratios: dict[str, pl.Series]) -> int:
    """Return how many ratios differ from 1 by Holm's correction of Student's test."""
    chances = sorted(ttest_1samp(ratio.log().to_numpy(), 0).pvalue for ratio in ratios.values())
    for place, chance in enumerate(chances):
        if chance > 0.05 / (len(chances) - place):
            return place
    return len(chances)


def span(rows: list[tuple[str, pl.Series]]) -> str:
    """Return the least and the largest ratio with their names."""
    rows = sorted(rows, key=lambda row: row[1].log().mean())
    return " to ".join(f"{as_of_a_claim(rows[end][1])} ({rows[end][0]})" for end in (0, -1))


def fifteen_years() -> list[str]:
    """What releases cost."""
    costs = costs_of_releases()

    def ratios(after: dict, earlier: dict) -> pl.Series:
        sides = (pl.col("server") == row["server"] for row in (after, earlier))
        return paired(costs, *sides, column="us").drop_nulls()

    def short(release: dict) -> str:
        return re.split(r",| on ", release["name"])[0]

    since, changes = {}, []
    for system, rows in releases().items():
        measured = [row for row in rows if row["server"] in costs["server"]]
        if len(measured) > 1:
            since[system] = ratios(measured[-1], measured[0])
        for place, after in enumerate(measured[1:], start=1):
            earlier = before(after, measured[:place])
            ratio = ratios(after, earlier)
            if earlier["library"] != after["library"]:
                changes.append((abs(ratio.log().mean()), earlier, after, ratio))
    largest = [
        f"{short(after)} takes {as_of_a_claim(ratio)} the CPU time of {short(earlier)}"
        for _, earlier, after, ratio in sorted(changes, key=lambda row: -row[0])[:2]
    ]
    more, less = beyond_one(since)
    return [
        f"a reply takes more CPU time with the last release in {more} of {len(since)} systems "
        f"and less in {less}; for the others these trials do not decide",
        f"two pairs of consecutive releases differ most: {' and '.join(largest)};",
    ]


def rates_of_posts() -> pl.DataFrame:
    """Return the most that one process answered in each post: system, year, rps."""
    published = [
        pl.read_csv(ROOT / "data" / "published" / f"{source}.csv", infer_schema=False)
        .with_columns(year=pl.lit(int(source[-4:])))
        for source in ("walkin2009", "day2011", "ostinelli2011")
    ]  # fmt: skip
    one = [
        pl.col(name).fill_null(alone).is_in([alone, ""])
        for name, alone in (("schedulers", "one"), ("processes", "1"))
    ]
    rates = pl.concat(published, how="diagonal").filter(
        pl.col("place").str.starts_with("post:"), pl.col("quantity") == "reply_rate", *one
    )
    known = {"Yucan": "OTP", "eventlet wsgi": "eventlet"}
    return rates.group_by(pl.col("system").replace(known), "year").agg(
        rps=pl.col("value").cast(pl.Float64).max()
    )


def highest_rates() -> list[str]:
    """How the rate that each release answers in time changed."""
    searched = table("history", "probes").drop_nulls("outcome")
    found = searched.filter(outcome="found").select("server", "n", "capacity_rps")
    since, of_posts = {}, []
    posts = {(system, year): rps for system, year, rps in rates_of_posts().rows()}
    for system, rows in releases().items():
        measured = [row["server"] for row in rows if row["server"] in searched["server"]]
        sides = (pl.col("server") == measured[end] for end in (-1, 0))
        ratios = paired(found, *sides, column="capacity_rps").drop_nulls()
        if len(measured) > 1 and len(ratios) >= 3:
            since[system] = ratios
        for (name, year), rps in posts.items():
            near = [row for row in rows if name == system and abs(row["year"] - year) <= 3]
            near.sort(key=lambda row: abs(row["year"] - year))
            rates = found.filter(pl.col("server").is_in([row["server"] for row in near[:1]]))
            if len(rates) >= 3:
                of_posts.append(rates["capacity_rps"].median() / rps)
    higher, lower = beyond_one(since)
    return [
        f"than that of the oldest in {lower} of {len(since)} systems, and higher in {higher}.",
        f"The last release has {span(list(since.items()))} the capacity of the first",
        f"{standing(since)} of the {len(since)} differences survive Holm's correction.",
        f"answer {min(of_posts):.2g} to {max(of_posts):.2g} times the highest rate that the posts "
        "report for one process",
    ]


def costs(experiment: str, at_rps: int, *servers: str) -> pl.Series:
    """Return the CPU time of a reply of the first server over that of the second, by round."""
    points = counted(table(experiment)).filter(pl.col(RATE) == at_rps)
    points = points.filter(pl.col("server").is_in(servers))
    plain = {"schedulers": "one", "readiness": "epoll", "values": "repeated"}
    for name, level in plain.items():
        if name in points.columns:
            points = points.filter(pl.col(name).fill_null(level) == level)
    for server in servers:
        first = first_configuration(server, experiment)
        is_first = pl.col("configuration").eq_missing(pl.lit(first, pl.String))
        points = points.filter((pl.col("server") != server) | is_first)
    points = points.with_columns(us=pl.col("server_cpu_ns") / pl.col("replies"))
    return paired(points, *(pl.col("server") == server for server in servers), "us")


def headlines() -> dict[tuple[str, str, str], tuple]:
    """Return each finding's number: by name, load and axis the value, digits and unit."""
    points = yucan()
    ((rate, duration_us),) = points.select(RATE, "duration_us").unique().rows()
    sides = [pl.col("backlog") == length for length in (1, 128)]
    one = table("backlog", "times").filter(
        pl.col(RATE) == rate, quantity="connection_time"
    ).join(points.filter(backlog=1), on=["server", "variant", "n"], how="semi")  # fmt: skip
    each = one.drop_nulls("time_us").sort("n", "time_us").partition_by("n", maintain_order=True)
    tails = [
        trial.filter(pl.col("count").cum_sum() >= ceil(0.99 * trial["count"].sum()))["time_us"][0]
        for trial in each
    ]
    ours = served_at_steady_rate().filter(server="c-readiness", idle_connections=8000)
    ways = [pl.col("readiness") == way for way in ("poll", "epoll")]
    closed = counted(table("overhead")).filter(pl.col(RATE) == 0, schedulers="one")
    layers = [pl.col("server") == name for name in ("eventlet-wsgi", "eventlet-echo")]
    stored = table("storage").filter(server="python-store", body_bytes=100).sort("messages")
    grown = stored.group_by("configuration", "n", maintain_order=True).agg(
        bytes=pl.last("rss_bytes") - pl.first("rss_bytes")
    )
    kinds = [pl.col("configuration") == kind for kind in ("sqlite", "dict")]
    p95 = counted(table("c10k")).filter(
        server="node-ws", opening=128, run="planned", schedulers="one"
    )["message_latency_p95_us"]
    at = f"at {number(rate)} req/s, {duration_us / 1e6:g} s each"
    capacities = {name: searches(name) for name in ("dynamic", "history")}
    server = pl.col("server")
    node = pl.col("configuration") == first_configuration("node", "dynamic")
    by_name = {
        ("short_backlog", at, "backlog 1 over 128"): (paired(points, *sides), 2, "times"),
        ("idle_connections", "at 200 req/s, 5 s each", "poll over epoll, 8 000 idle"):
            (paired(ours, *ways, "us"), 1, "times"),
        ("accept_queue", at, "backlog 1"): (pl.Series(tails).cast(pl.Float64), 0, "ms"),
        ("dynamic_order", "", "Node.js over Tornado"):
            (paired(capacities["dynamic"], (server == "node") & node, server == "tornado",
                    "capacity_rps"), 2, "times"),
        ("static_cpu", "at 1 000 req/s, 5 s each", "nginx over Yaws"):
            (costs("static", 1000, "nginx", "yaws"), 2, "times"),
        ("framework", "closed loop, 5 s each", "eventlet, WSGI over eventlet, echo"):
            (paired(closed, *layers), 2, "times"),
        ("bytes_per_message", "", "SQLite over dict"):
            (paired(grown, *kinds, "bytes"), 2, "times"),
        ("websockets", "at 10 000 req/s, 15 s each", "95 of 100 messages, node-ws"):
            (p95.cast(pl.Float64), 0, "µs"),
        ("releases", "", "capacity, Tornado over Tornado 0.2"):
            (paired(capacities["history"], server == "tornado", server == "tornado-0.2",
                    "capacity_rps"), 2, "times"),
    }  # fmt: skip
    return {key: (student(values)[0], *rest) for key, (values, *rest) in by_name.items()}


SHARES = {
    "a tenth": 1 / 10, "a fifth": 1 / 5, "a quarter": 1 / 4, "a third": 1 / 3, "two fifths": 2 / 5,
    "half": 1 / 2, "three fifths": 3 / 5, "two thirds": 2 / 3, "three quarters": 3 / 4,
    "four fifths": 4 / 5, "nine tenths": 9 / 10,
}  # fmt: skip


def in_words(ratio: float) -> str:
    """Return how the first page says a ratio."""
    if 0.97 <= ratio <= 1.03:
        return "about the same"
    share = min(
        SHARES, key=lambda name: abs(log(SHARES[name] / (ratio if ratio < 1 else ratio - 1)))
    )
    if ratio < 1.85:
        return f"about {share}" if ratio < 1 else f"about {share} more"
    times = round(2 * ratio) / 2 if ratio < 9.75 else float(f"{ratio:.1g}")
    names = {2: "twice", 3: "three times", 4: "four times", 5: "five times", 6: "six times"}
    return f"about {names.get(times, f'{times:g} times')}"


def findings() -> list[str]:
    """Return the sentences of the nine findings on the first page.

    There are those that survive the correction of all tests, which is not recomputed here.
    """
    page = plain_text(PAPER.read_text())
    stated = tomllib.loads((ROOT / "data" / "published" / "findings.toml").read_text())["finding"]
    stated = {finding["name"]: finding for finding in stated}
    sentences = []
    for (name, where, _), (value, digits, unit) in headlines().items():
        said = stated[name]["sentence"]
        figure = f"{number(value / 1000 if unit == 'ms' else value, digits)} {unit}"
        if f"{said}: " in page:
            words = in_words(value) if unit == "times" else figure
            sentences.append(f"{said}: {words}{', ' if where else ''}{where} ().")
    return sentences


CHAPTERS = (
    findings, dataset_and_laws, posts, backlog, servers_on_one_cpu, dynamic,
    static, overhead, stored_bytes, websockets, readiness, epoll_over_select, deaths_of_select,
    accept_queue, products, verdicts, fifteen_years, highest_rates,
)  # fmt: skip


@pytest.mark.parametrize("sentences", CHAPTERS, ids=lambda chapter: chapter.__name__)
def test_a_chapter_has_the_numbers_of_its_tables(narrative, sentences):
    assert missing(sentences(), narrative) == []


def captions(page: str) -> list[str]:
    return [
        " ".join(html.unescape(re.sub(r"<[^>]+>", "", caption)).split())
        for caption in re.findall(r"<figcaption>(.*?)</figcaption>", page, re.S)
    ]


def test_a_caption_counts_the_trials_of_its_tables():
    page = PAPER.read_text()
    drawn = captions(page[: page.index('id="sec-appendices"')])
    drawn = [text for text in drawn if "points.parquet" in text and "/*/" not in text]
    assert len(drawn) >= 8
    for caption in drawn:
        named = re.findall(r"data/[\w-]+/[\w-]+(?=/points\.parquet)", caption)
        trials = [pl.read_parquet(ROOT / folder / "trials.parquet") for folder in named]
        sizes = pl.concat(
            frame.filter(pl.col("outcome").str.starts_with("measured"))
            .group_by("server", "variant")
            .len()["len"]
            for frame in trials
        )
        least, most = sizes.min(), sizes.max()
        n = f"{least}" if least == most else f"{least} to {most}"
        # A caption states what differs from the paper's default.
        stated = re.findall(r"n = ([\d to]+) trials a variant|median of ([\d to]+) trials", caption)
        assert all(n == (one or other) for one, other in stated), caption
        machines = pl.concat(frame.select("testbed", "cpus", "cpu", "kernel") for frame in trials)
        known = {
            f"{testbed}: {cpus} CPUs ({cpu}), Linux {kernel}"
            for testbed, cpus, cpu, kernel in machines.drop_nulls().unique().iter_rows()
        }
        stated = re.findall(r"testbed (\S+: \d+ CPUs \([^)]*\), Linux [\w.-]+?)[;.] ", caption)
        assert set(stated) <= known, caption


def printed_table(label: str) -> list[list[str]]:
    """Return the cells of the rows of a table of the paper."""
    page = PAPER.read_text()
    rows = re.search(r"<table.*?</table>", page[page.index(f'id="{label}"') :], re.S)
    return [
        [" ".join(html.unescape(re.sub(r"<[^>]+>", "", cell)).split()) for cell in cells]
        for row in re.findall(r"<tr.*?</tr>", rows[0], re.S)
        if (cells := re.findall(r"<t[hd].*?</t[hd]>", row, re.S))
    ]


def test_the_table_of_verdicts_counts_the_ledger():
    header, *rows = printed_table("tbl-claims-count")
    assert header[:2] == ["Role", "On"] and len(rows) == 15
    for role, age, *counts in rows:
        asked = questions(age).filter(pl.lit(role == "All") | (pl.col("role") == role.lower()))
        found = asked["verdict"].to_list()
        assert counts == [str(found.count(verdict.lower())) for verdict in header[2:]], (role, age)


def stated_claims() -> dict:
    return tomllib.loads((ROOT / "data" / "published" / "claims.toml").read_text())


def one_ratio(claim: dict, when: str) -> dict | None:
    """Return the comparison of a claim then, or now; None unless it is one, with two sides."""
    compared = claim.get("then", claim["now"]) if when == "then" else claim["now"]
    return compared[0] if len(compared) == 1 and "b" in compared[0] else None


# The statistics of rules that one expression over the points of a trial defines.
STATISTICS = {
    "reply_rate_rps": pl.mean(REPLY),
    "context_switches_per_reply": pl.sum("context_switches") / pl.sum("replies"),
    "cpu_us_per_reply": pl.sum("server_cpu_ns") / pl.sum("replies") / 1000,
    "message_latency_mean_us": pl.mean("message_latency_mean_us"),
}


def plain_ratios() -> list[tuple[dict, dict, dict]]:
    """Return claims of one ratio with that comparison, and what the ledger has of it."""
    claims = {claim["id"]: claim for claim in stated_claims()["claim"]}
    plain = []
    for row in ratios():
        claim = claims[row["claim"]]
        one = one_ratio(claim, row["when"])
        known = one and one.get("statistic") in STATISTICS
        if known and not {"relative_to", "experiment"} & {*one["a"], *one["b"]}:
            plain.append((claim, one, row))
    return plain


def usual(experiment: str, side: dict) -> list[pl.Expr]:
    """Return which points are of a side, with defaults of the factors that it does not name."""
    spec = tomllib.loads((ROOT / "experiments" / f"{experiment}.toml").read_text())
    levels = {name: factor["default"] for name, factor in spec["factors"].items()}
    levels |= {"configuration": first_configuration(side["server"], experiment)} | side
    return [
        pl.col(name).is_null() | (pl.col(name) == level)
        for name, level in levels.items()
        if level is not None
    ]


def of_each_trial(claim: dict, statistic: str, side: dict) -> pl.DataFrame:
    """Return `n` and `value`, a statistic in each trial of one side of a comparison.

    Factors that the side does not name are at their defaults. A trial without the highest rate that
    the testbed can offer does not count.
    """
    experiment = claim["experiment"]
    points = table(experiment).filter(usual(experiment, side))
    reached = points.filter((pl.col("limit").ne_missing("testbed")).all().over(RATE))[RATE]
    hardest = 0 if 0 in reached else reached.max()
    valid = counted(points)
    if "latency" in statistic:
        valid = valid.filter(~pl.col("laws_broken").list.contains("LAW-STEADY").fill_null(False))
    whole = (pl.col(RATE) == hardest).any()
    return valid.group_by("n").agg(value=STATISTICS[statistic], whole=whole).filter("whole")


def test_ratios_are_those_of_their_tables():
    """An interval is as computed, or wider: where a server answered a rate in full."""
    exact = 0
    for claim, one, row in plain_ratios():
        above, below = (of_each_trial(claim, one["statistic"], one[key]) for key in "ab")
        both = above.join(below, on="n", suffix="_below")
        mean, *ends = student(both["value"] / both["value_below"])
        where = claim["id"], row["when"]
        assert len(both) == row["trials"], where
        assert mean == pytest.approx(row["effect"], rel=1e-5), where
        assert row["low"] <= ends[0] * 1.00001 and row["high"] >= ends[1] * 0.99999, where
        exact += ends == pytest.approx([row["low"], row["high"]], rel=1e-5)
    assert exact >= 6


def medians_by(points: pl.DataFrame, column: str, *keys: str) -> dict:
    """Return the median over trials by the levels of `keys`, with a chart's six digits."""
    medians = points.group_by(*keys).agg(pl.median(column))
    return {tuple(key): float(f"{value:.6g}") for *key, value in medians.iter_rows()}


def drawn_medians(figure: str, column: str, *keys: str, **levels: str) -> dict:
    """Return what a chart has in `column`, by `keys`."""
    chart = json.loads((ROOT / "figures" / "reference" / f"{figure}.json").read_text())
    rows = [row for data in chart["datasets"].values() for row in data]
    return {
        tuple(row[key] for key in keys): row[column]
        for row in rows
        if {*keys, column} <= row.keys() and levels.items() <= row.items()
    }


def test_figures_draw_the_medians_of_the_tables():
    closed = lawful(table("overhead")).filter(pl.col(RATE) == 0)
    keys = ("server", "schedulers")
    assert drawn_medians("fig-overhead-closed", "reply_rate_rps", *keys) == medians_by(
        closed, REPLY, *keys
    )
    key = ("server", "configuration")
    stored = table("storage").filter(body_bytes=100).sort("messages")
    grown = (pl.last("runtime_bytes") - pl.first("runtime_bytes")) / pl.last("messages")
    stored = stored.group_by(*key, "n", maintain_order=True).agg(grown)
    assert drawn_medians("fig-storage-bytes", "runtime_bytes", *key) == medians_by(
        stored, "runtime_bytes", *key
    )
    key = ("readiness", "idle_connections")
    ours = served_at_steady_rate().filter(server="c-readiness")
    drawn = drawn_medians("fig-readiness-three", "median", *key, title="C")
    assert len(drawn) >= 10 and drawn == {
        at: us for at, us in medians_by(ours, "us", *key).items() if at in drawn
    }
    drawn = drawn_medians("fig-findings", "value", "what", of="reference")
    for (_, _, what), (value, *_) in headlines().items():
        assert drawn[(what,)] == float(f"{value:.6g}"), what


def test_memory_of_the_figure_is_that_of_the_trials():
    chart = json.loads((ROOT / "figures" / "reference" / "fig-c10k-cost.json").read_text())
    (drawn,) = chart["datasets"].values()
    titles = table("c10k", "trials").select("server", "title").unique()
    plain = table("c10k").filter(opening=128, run="planned")
    points = lawful(plain).join(titles, on="server").drop_nulls("server_rss_per_connection_bytes")
    medians = dict(
        points.filter(pl.col("schedulers").fill_null("one") == "one")
        .group_by("title")
        .agg(pl.median("server_rss_per_connection_bytes") / 1024)
        .iter_rows()
    )
    compared = {row["label"]: row["memory_kib"] for row in drawn if row["label"] in medians}
    assert len(compared) >= 20
    assert compared == {label: float(f"{medians[label]:.6g}") for label in compared}


def spans(pattern: str, text: str) -> list[tuple[int, int]]:
    return [found.span() for found in re.finditer(pattern, text)]


NUMBER = r"(?<![\w.])\d[\d ]*(?:\.\d+)*"
# What stands for itself wherever the narrative repeats it: an interval, a part, a large number.
REPEATED = r"\d[\d.]*(?: \d{3})*(?: \S+)? \(interval [^)]*\)|\d+ of \d+|\d[\d ]*\d{3}\b|\d{3,}"
# Numbers that no table has: settings, names, dates, and what the sources did.
TYPED = [
    r"\b(19|20)\d\d\b", r"Tornado (0\.2|1\.2\.1)", r"listen\(2\)", r"\d+th percentile",
    r"10 000 requests a second", r"(backlog of|one of|with|than|to|found|saw|as) (1|5|128|256)\b",
    r"(more than|over|within) 5 s", r"message of 33 bytes", r"95 of 100 messages", r"With 900",
    r"at most 128 handshakes", r"at most 1 000 connections a second", r"at 2\.5 times",
    r"room for 1024 descriptors", r"hold 8000 descriptors", r"get_value/2",
    r"within 10 ms", r"Linux [\w.-]+", r"family \d+ model \d+",
]  # fmt: skip


def unwalked(narrative: str, sentences: list[str]) -> list[str]:
    """Return the numbers of the narrative, in their context, that nothing accounts for."""
    known = [span for sentence in sentences for span in spans(re.escape(sentence), narrative)]
    values = {value[0] for text in sentences for value in re.finditer(REPEATED, text)}
    for pattern in [*(rf"(?<!\d ){re.escape(value)}" for value in values), *TYPED]:
        known += spans(pattern, narrative)
    return [
        narrative[max(0, start - 40) : end + 20]
        for start, end in spans(NUMBER, narrative)
        if not any(low <= start and end <= high + 1 for low, high in known)
    ]


def test_every_number_of_the_narrative_is_recomputed_or_typed(narrative):
    sentences = [sentence for chapter in CHAPTERS for sentence in chapter()]
    assert unwalked(narrative, sentences) == []
    assert unwalked("it answers 1 234 or 5.67 times", sentences) != []


def texts(part: object) -> list[str]:
    """Return every text in a notebook, of its cells and of their outputs."""
    if isinstance(part, str):
        return [part]
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else []
    return [text for value in inner for text in texts(value)]


def experiments(notebook: str) -> list[Path]:
    """Return the folders of the experiments that a notebook reads, by its header."""
    measured = sorted(path.parent for path in DATA.glob("*/trials.parquet"))
    (named,) = re.findall(r"^  experiments: (.*)$", (ROOT / notebook).read_text(), re.M)
    names = re.findall(r"[\w-]+", named)
    return [folder for folder in measured if named == "all" or folder.name in names]


def test_every_number_leads_to_its_cell_and_to_raw_logs(narrative):
    """One hop: an executed notebook. Two hops: the raw logs of the experiments that it reads."""
    cells = {}
    for path in sorted((PAPER.parent / "notebooks").glob("*.ipynb")):
        notebook = json.loads(path.read_text())
        name = notebook["metadata"]["deathmatch"]["notebook"]
        cells[name] = " ".join(" ".join(texts(notebook["cells"])).split())
    values = {found[0] for found in re.finditer(REPEATED, narrative)}
    assert len(values) >= 80
    for value in sorted(values):
        homes = [name for name, text in cells.items() if value in text]
        read = {experiment for name in homes for experiment in experiments(name)}
        assert read, f"no cell has {value!r}"
        lost = [folder.name for folder in read if not (folder / "raw.tar.xz").is_file()]
        assert lost == [], f"{value!r} of {homes} has no raw logs"
