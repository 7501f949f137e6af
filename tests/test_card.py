"""`deathmatch measure`: small real runs of one server and of two, and the cards that they write."""

import json
import re
from types import SimpleNamespace

import polars as pl
import pytest
from conftest import Tree, copy_tree

from deathmatch.analysis import card as analysis
from deathmatch.analysis import paired, stats
from deathmatch.analysis.stats import Interval
from deathmatch.capacity_search import search
from deathmatch.cli import main
from deathmatch.cli.commands import COMMANDS
from deathmatch.errors import UserError
from deathmatch.plan import measure_design, paths
from deathmatch.quantities.quantity import RATE
from deathmatch.run import measure_server


@pytest.fixture(scope="module")
def tree(tmp_path_factory, network) -> Tree:
    """A copy in which a good server was measured, compared with a wrong one and the null server."""
    tree = Tree(copy_tree(tmp_path_factory.mktemp("card") / "tree"), network)
    tree.briefly()
    # Three blocks are planned with less time around a trial than a busy machine may take.
    for name in ("OVERHEAD_S", "START_STOP_S"):
        tree.replace("deathmatch/run/progress.py", f"\n{name} = 2 ", f"\n{name} = 0 ")
    tree.server("mine", "ok")
    tree.server("wrong", "wrong")
    words = ["mine", "wrong", "null", "--name", "mine", "--minutes", "0.1"]
    done = tree.deathmatch("measure", *words).succeeded()
    assert done.text.endswith("paper/mine/card.html\n")
    assert "no time for round 2 of 3" in done.text
    return tree


def test_a_card_begins_with_wrong_answers_and_with_the_cost_of_a_reply(tree: Tree):
    card = json.loads((tree.path / "paper/mine/card.json").read_text())
    servers = {row["server"]: row for row in card["servers"]}
    assert next(iter(servers)) == "mine" and set(servers) == {"mine", "wrong", "null"}
    # Whatever the load of the machine, each measured server has this number.
    assert all(servers[name]["cpu_us_per_reply"]["median"] > 0 for name in ("mine", "null"))
    assert card["verdict"].startswith(
        "mine takes " if servers["mine"]["counts"] else "No result for mine: "
    )
    [alarm] = card["alarm"]
    assert alarm.startswith("wrong answers wrongly: ")
    page = (tree.path / "paper/mine/card.html").read_text()
    assert page.index('<p class="alarm">wrong answers wrongly') < page.index('class="verdict"')
    assert "1 of 3 rounds were measured" in page and page.count("<svg") == 2 and ">mine<" in page
    assert f"version {paths.version()}, commit " in page
    assert "deathmatch measure mine wrong null --name mine --minutes 0.1<" in page
    assert not re.search(r"(src|href)=", page.replace("xlink:href", ""))
    queue = card["facts"]["Listen backlog"]
    assert re.match(r"the experiment sets none, the kernel has [\d\u202f]+", queue)
    # Each row has numbers; those of points that do not count are in parentheses.
    for row in card["servers"]:
        if row["outcome"] == "measured":
            cost = f"{row['cpu_us_per_reply']['median']:.1f}"
            assert (f"<td>({cost}" in page) is not row["counts"]


def test_no_ratio_is_formed_with_a_bound(tree: Tree):
    """The client is the limit of the null server: what is shown of it is a bound."""
    held = pl.DataFrame(
        [
            {"server": "a", "variant": "v", "n": n, "duration_us": 1, "outcome": outcome,
             "capacity_rps": rate, "capacity_low_rps": rate - 1, "capacity_high_rps": rate + 1,
             "reason": ""}
            for n, (outcome, rate) in enumerate(
                [(search.CLIENT, 20_000.0), (search.CLIENT, 22_000.0), (search.FOUND, 9_000.0)]
            )
        ]
    )  # fmt: skip
    assert analysis._capacity(held) == analysis.Capacity(stats.interval([20_000, 22_000]), True)
    single = analysis._capacity(held.tail(1))
    assert single == analysis.Capacity(Interval(1, 9_000, 8_999, 9_001))
    card = json.loads((tree.path / "paper/mine/card.json").read_text())
    for row in card["servers"]:
        ratio = row["subject_over_it"]["median"]
        if row["server"] != "mine" and row["counts"] and ratio is not None:
            mine = card["servers"][0]["cpu_us_per_reply"]["median"]
            assert ratio == pytest.approx(mine / row["cpu_us_per_reply"]["median"])


def test_the_cost_of_an_echo_has_no_handshake_in_it():
    """All are open after 4 of 15 s, which took 3 s of CPU; then each echo takes 10 us."""
    key = {"server": "a", "variant": "v", "n": 1, RATE: 10_000}
    samples = [
        key | {"time_us": 500_000 * half, "server_established": min(10_000, 1250 * half),
               "server_cpu_ns": int(1e9 * (3 * min(1, half / 8) + 0.1 * max(0, half / 2 - 4)))}
        for half in range(31)
    ]  # fmt: skip
    seconds = [
        key | {"quantity": "latency", "since_start_s": second, "count": 10_000}
        for second in range(4, 15)
    ]
    held = SimpleNamespace(
        name="c10k", samples=pl.DataFrame(samples), seconds=pl.DataFrame(seconds)
    )
    points = pl.DataFrame(
        [key | {"opening": level, "duration_us": 15_000_000} for level in (128, 0)]
    )
    [row] = analysis._costs(held, points).rows()
    assert row == ("a", 1, pytest.approx(10))


def test_a_server_that_fails_its_checks_ends_the_run_at_once(tree: Tree):
    done = tree.deathmatch("measure", "wrong", "null", "mine", "--name", "first")
    assert done.status == 3 and "trial 2 of" not in done.text
    assert "wrong was not measured: answers wrongly: " in done.text
    assert "[1/3]" not in done.text
    card = json.loads((tree.path / "paper/first/card.json").read_text())
    assert card["verdict"].startswith("wrong was not measured: answers wrongly: ")


def test_a_card_fits_a_phone_and_two_sheets_of_paper(tree: Tree, browser, tmp_path):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto((tree.path / "paper/mine/card.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    # An A4 sheet less its margins.
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 703, "height": 1000})
    assert page.evaluate("document.documentElement.scrollWidth") <= 703
    cut = "[...document.querySelectorAll('.wide')].filter(box => box.scrollWidth > box.clientWidth)"
    assert page.evaluate(f"{cut}.length") == 0
    printed = page.pdf(format="A4", prefer_css_page_size=True)
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 2
    page.close()


def test_a_side_is_a_server_with_settings():
    side = measure_design.side("yucan:backlog=5,schedulers=all")
    assert str(side) == "yucan:backlog=5,schedulers=all"
    assert measure_design.levels(side, "backlog") == {"backlog": 5, "schedulers": "all"}
    [variant] = measure_design.variants(side, "backlog", card=False)
    assert variant.factors["somaxconn"] == 4096
    [light] = measure_design.variants(side, "backlog", card=True)
    assert light.factors == variant.factors | {"load_generator": "roundtrip"}
    paces = measure_design.variants(measure_design.side("ws-null"), "c10k", card=True)
    assert [variant.factors["opening"] for variant in paces] == [128, 0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("yucan:backlog", "names no server"),
        ("yucan:=5", "names no server"),
        ("yucann", "there is no server 'yucann'"),
        ("yucan:backlogs=5", "did you mean 'backlog'"),
        ("yucan:backlog=6", "its levels: 1, "),
    ],
)
def test_an_unknown_side_factor_or_level_is_refused(text, says):
    with pytest.raises(UserError) as error:
        measure_design.levels(measure_design.side(text), "backlog")
    assert says in str(error.value)


def test_both_sides_need_an_experiment_under_load():
    for names in (("ws-null", "yucan"), ("otp-store", "python-store")):
        with pytest.raises(UserError, match=r"no experiment measures .* under load"):
            measure_design.experiment([measure_design.side(name) for name in names], None)
    both = [measure_design.side(name) for name in ("null", "yucan")]
    assert measure_design.experiment(both, "single-thread") == "single-thread"
    with pytest.raises(UserError, match="'static' does not measure null, yucan"):
        measure_design.experiment(both, "static")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("null --name smoke", r"there is another dataset called 'smoke'(?s:.)*--name"),
        ("null --statistic nonsense", r"needs exactly two servers(?s:.)*measure A B --statistic"),
        ("null null --statistic nonsense", r"'nonsense' cannot be compared"),
        ("null null --minutes 0.1", r"--minutes: 0.1 minutes are too few for 3 blocks"),
        ("null null --fail-if slower", r"'slower' is not a condition\n  write \"slower-than 5 %\""),
    ],
)
def test_a_wrong_command_is_refused_before_anything_is_built(words, says):
    with pytest.raises(UserError, match=says):
        measure_server.main(main.parser("measure", COMMANDS["measure"]).parse_args(words.split()))


@pytest.mark.parametrize(
    ("statistic", "low", "high", "worse"),
    [
        ("cpu_us_per_reply", 1.06, 1.10, True),
        ("cpu_us_per_reply", 1.04, 1.10, False),
        ("reply_rate_overload_rps", 0.90, 0.94, True),
        ("reply_rate_overload_rps", 0.90, 0.96, False),
        ("cpu_us_per_reply", None, None, False),
    ],
)
def test_worse_is_what_the_whole_interval_says(statistic, low, high, worse):
    assert paired.worse_by({"statistic": statistic, "low": low, "high": high}, 0.05) == worse


def test_a_variant_against_itself_is_compared_and_its_trials_are_a_dataset(tree):
    done = tree.deathmatch(
        "measure", "null", "null", "--rates", "200", "--duration", "0.5", "--minutes", "0.32",
        "--seed", "3", "--experiment", "backlog", "--name", "twice",
        "--fail-if", "slower-than", "500", "%",
    ).succeeded()  # fmt: skip
    record = json.loads((tree.path / "paper/twice/card.json").read_text())
    assert record["verdict"] in done.text and "A against A" not in done.text
    comment = (tree.path / "paper/twice/card.md").read_text()
    assert comment.startswith(f"**{record['verdict']}**\n") and "| CPU per reply at 200" in comment
    blocks = done.text.count("trial 1 of 4")
    first = record["rows"][0]
    assert first["statistic"] == "cpu_us_per_reply" and first["offered_rate_rps"] == 200
    # A busy client may have been the limit: then the block does not count, and that is said.
    assert first["blocks"] <= blocks and "points do not count" in done.text
    assert set(record["rows"][0]) == set(paired.ROWS)
    page = (tree.path / "paper/twice/card.html").read_text()
    assert record["verdict"] in page
    trials = tree.trials("twice")
    assert sorted(n for _, n in trials) == list(range(1, 4 * blocks + 1))
    assert f"trials = {4 * blocks}" in (tree.path / "config/datasets/twice.toml").read_text()
