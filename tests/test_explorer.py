"""The explorer in a browser, of parts of the miniature and of a dataset without a point."""

import csv
import hashlib
import importlib
import io
import itertools
import json
import os
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
import yaml
from conftest import MINIATURE, ROOT, Tree, copy_tree, patient
from playwright.sync_api import Page

from deathmatch.analysis import stats, views
from deathmatch.data import archive, tables
from deathmatch.errors import UserError
from deathmatch.load.generator import FIRST_WRONG
from deathmatch.paper import explorer, scripts
from deathmatch.paper.explore import variants
from deathmatch.plan import files, paths, selection
from deathmatch.plan.dataset import TABLES
from deathmatch.run import study

SERVERS = ["yucan", "tornado", "null", "c-readiness"]
EXPERIMENTS = ["backlog", "readiness"]
ROUNDS = 3
# Text that a dataset of somebody else may hold.
HOSTILE = (
    '</script><!--<script>window.PWNED=1</script>&amp;<img src="http://192.0.2.1/x" '
    'onerror="window.PWNED=2">'
)
SORRY = "status 200, content: <b>Sorry, busy!</b>"


def read(experiment: str, table: str) -> pl.DataFrame:
    return tables.read(MINIATURE.name, experiment, table)


def plant(
    tree: Tree, name: str, experiments: list[str], rounds: int, change=lambda frame, table: frame
) -> None:
    """Write a dataset: some servers of some experiments of the miniature."""
    for experiment in experiments:
        folder = tree.path / "data" / name / experiment
        folder.mkdir(parents=True)
        for table in TABLES:
            frame = read(experiment, table)
            frame = frame.filter(pl.col("server").is_in(SERVERS), pl.col("n") <= rounds)
            tables.write(change(frame, table), experiment, table, folder)


def hostile(frame: pl.DataFrame, table: str) -> pl.DataFrame:
    """The frame, in which a server of another's and what is known of trials are hostile text."""
    frame = frame.with_columns(server=pl.col("server").replace("null", HOSTILE))
    if table == "trials":
        texts = {name: pl.lit(HOSTILE) for name in ("version", "reason", "commit", "os")}
        titled = pl.col("title").replace("null server", HOSTILE)
        frame = frame.with_columns(**texts, title=titled)
    if table == "points":
        answered = pl.when(pl.col("replies") > 0, pl.col("server") == "yucan")
        wrong = {"replies_wrong_content": pl.lit(1, pl.Int64), FIRST_WRONG: pl.lit(SORRY)}
        frame = frame.with_columns(**{name: answered.then(value) for name, value in wrong.items()})
    return frame


def nothing(frame: pl.DataFrame, table: str) -> pl.DataFrame:
    """The frame as it is if no server could be built."""
    if table != "trials":
        return frame.clear()
    unknown = ("cpu", "cpus", "kernel", "os", "wall_us", "commit", "machines")
    return frame.with_columns(
        *(pl.lit(None, frame.schema[name]).alias(name) for name in unknown),
        outcome=pl.lit("not built"), reason=pl.lit("cc: no x.h\nand more"),
    )  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory, network, miniature) -> Path:
    """The folder with three explorers: of a dataset with raw logs, of one with hostile text, and
    of nothing measured.
    """
    tree = Tree(copy_tree(tmp_path_factory.mktemp("explorer") / "tree"), network)
    plant(tree, "small", EXPERIMENTS, ROUNDS)
    for experiment in EXPERIMENTS:
        packed = next(MINIATURE.glob(f"*/{archive.NAME}"))
        shutil.copy(packed, tree.path / "data" / "small" / experiment)
    plant(tree, "others", EXPERIMENTS[:1], 2, hostile)
    plant(tree, "nothing", EXPERIMENTS[:1], 1, nothing)
    for name in ("small", "others"):
        tree.dataset(name, ["yucan"], [1000], 1, trials=3)
        tree.replace(f"config/datasets/{name}.toml", "a test", f"{name} @ home")
    script = (
        "from pathlib import Path; from deathmatch.paper import explorer\n"
        "for name in ('small', 'others', 'nothing'):\n"
        "    explorer.write(name, Path('paper', name, 'explore.html'))"
    )
    tree.run("python", "-c", script).succeeded()
    return tree.path


def opened(browser, file: Path, fragment: str = "", **options) -> Page:
    """Return the page at a fragment; it keeps what the console said and what was asked for."""
    page = patient(browser.new_page(**({"viewport": {"width": 1400, "height": 900}} | options)))
    page.complaints = []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("request", lambda request: page.complaints.append(request.url[:80])
            if not request.url.startswith(("file:", "data:", "blob:")) else None)  # fmt: skip
    page.goto(file.as_uri() + fragment)
    return page


@pytest.fixture(scope="module")
def page(browser, made) -> Page:
    shown = opened(browser, made / "paper/small/explore.html")
    yield shown
    assert shown.complaints == []
    shown.close()


@pytest.fixture(scope="module")
def hostile_page(browser, made) -> Page:
    shown = opened(browser, made / "paper/others/explore.html")
    yield shown
    assert shown.complaints == []
    shown.close()


def go(page: Page, fragment: str) -> None:
    """Go to a view as a link would; it is there when this returns."""
    # The page's own listener, which is older, is called first.
    led = """to => new Promise(done => {
        addEventListener('hashchange', () => done(), {once: true});
        location.hash = to;
    })"""
    for to in ("#/elsewhere", fragment):
        page.evaluate(led, to)


def cells(page: Page, column: int) -> list[str]:
    return page.locator(f"table.grid tbody tr td:nth-child({column})").all_inner_texts()


def count(page: Page) -> str:
    return page.locator("output.count").inner_text().replace("\u202f", "")


def draw(page: Page) -> None:
    """Bring every chart to the screen."""
    for chart in page.query_selector_all(".chart"):
        chart.scroll_into_view_if_needed()
        page.wait_for_function("chart => chart.querySelector('svg.marks')", arg=chart)


def saved(page: Page, button: str) -> list[dict]:
    with page.expect_download() as download:
        page.get_by_role("button", name=button).click()
    return list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))


def rows_of(made: Path) -> dict:
    text = (made / "paper/small/explore.html").read_text()
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', text)[1]
    )


# The table of all variants ---------------------------------------------------------------------


def test_the_table_sorts_by_key_and_click_and_keeps_the_order_in_the_address(page, made):
    go(
        page,
        "#/variants?experiment=backlog&columns=server,variant,reply_rate_overload_rps",
    )
    trials = read("backlog", "trials")
    known = trials.filter(pl.col("server").is_in(SERVERS)).select("server", "variant").n_unique()
    assert count(page) == f"{known} of {len(rows_of(made)['variants']['rows'])} variants"
    heading = page.locator("table.grid th", has_text="reply rate in overload")
    order = heading.get_by_role("button")
    order.focus()
    page.keyboard.press("Enter")
    # The better side comes first.
    page.wait_for_selector("table.grid th[aria-sort=descending]:has-text('reply rate in overload')")
    assert "sort=-reply_rate_overload_rps" in page.evaluate("location.hash")
    found = page.locator("table.grid td:nth-child(3) b").all_inner_texts()
    rates = [int(re.sub(r"\D", "", text)) for text in found]
    assert rates == sorted(rates, reverse=True) and len(rates) >= 5
    heading.click()
    page.wait_for_selector("table.grid th[aria-sort=ascending]:has-text('reply rate in overload')")


def test_the_first_screen_has_the_chart_of_servers_and_clear_clears(page, made):
    go(page, "#/")
    draw(page)
    shown = rows_of(made)
    assert page.locator("h1").inner_text() == "Every server"
    drawn = page.locator(".chart svg.marks").text_content()
    assert files.server("yucan").title in drawn and files.server("null").title not in drawn
    assert {box.input_value() for box in page.locator(".filters select").all()} == {""}
    # Servers without a trial are folded.
    page.locator("summary", has_text="without a trial").click()
    page.wait_for_selector("details.folded tbody tr")
    folded = page.locator("details.folded tbody tr").count()
    servers = {row[shown["trials"]["columns"].index("server")] for row in shown["trials"]["rows"]}
    assert count(page) == f"{len(servers)} of {len(servers)} servers"
    assert folded == len(shown["servers"]) - len(servers)
    chosen = page.get_by_role("combobox", name="Experiment")
    chosen.select_option("readiness")
    assert "chart=readiness" in page.evaluate("location.hash")
    go(page, "#/variants")
    everything = count(page)
    page.get_by_role("combobox", name="Experiment").select_option("backlog")
    assert count(page) != everything
    # An instrument is no server of an order.
    page.get_by_role("combobox", name="Instruments").select_option("hidden")
    names = set(cells(page, 1))
    assert files.server("null").title not in names and files.server("yucan").title in names
    page.get_by_role("link", name="Clear").click()
    assert count(page) == everything and page.evaluate("location.hash") == "#/variants"
    assert "(MB)" in page.locator("fieldset").text_content()


def test_each_row_has_its_date_version_and_age_and_no_bound_an_upper_end(page):
    go(page, "#/variants?experiment=backlog")
    heads = page.locator("table.grid thead th").all_inner_texts()
    dates, ages = (cells(page, 1 + heads.index(name)) for name in ("Measured", "Age (years)"))
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\d", date) for date in dates)
    assert all(re.fullmatch(r"\d+|–", age) for age in ages) and set(ages) != {"–"}
    assert all(cells(page, 1 + heads.index("Version")))
    bounds = [each for each in page.locator(".measured-cell").all_inner_texts() if "≥" in each]
    assert bounds and not any(" to " in each for each in bounds)


def test_wrong_answers_stand_first_and_in_red_with_one_of_them(hostile_page):
    page = hostile_page
    go(page, "#/variants?experiment=backlog")
    heads = page.locator("table.grid thead th").all_inner_texts()
    assert {*heads[: heads.index("Wrong answers under load")]} == {"Server", "Variant"}
    points = read("backlog", "points").filter(
        pl.col("server") == "yucan", pl.col("n") <= 2, pl.col("replies") > 0
    )
    title = files.server("yucan").title
    said = re.compile(
        rf"{title} gave (\S+) wrong answers under load, the first: {re.escape(SORRY)}"
    )
    shown = page.locator("table.grid strong.wrong")
    red = "text => getComputedStyle(text).color"
    counts = {said.match(text)[1] for text in shown.all_inner_texts()}
    assert {int(re.sub(r"\D", "", each)) for each in counts} == {len(points)}
    assert shown.first.evaluate(red) == "rgb(179, 38, 30)"
    go(page, "#/servers/yucan")
    first = page.locator("main p").first
    assert said.search(first.inner_text()) and first.locator("strong.wrong").count() == 1
    go(page, "#/servers?q=yucan")
    assert "wrong answers under load" in page.locator("table.grid strong.wrong").all_inner_texts()


def test_a_link_shows_the_same_again(browser, page, made):
    go(page, "#/variants")
    page.get_by_role("combobox", name="Experiment").select_option("readiness")
    page.get_by_role("combobox", name="Mechanism").select_option("poll")
    page.get_by_role("searchbox", name="Text").fill("idle")
    page.locator("summary", has_text="Columns").click()
    page.get_by_role("checkbox", name="Conformance").check()
    page.locator("table.grid th", has_text="CPU per reply").click()
    page.wait_for_selector("table.grid th[aria-sort=ascending]:has-text('CPU per reply')")
    first, said = cells(page, 2), count(page)
    assert first and all("idle" in text for text in first)
    other = opened(browser, made / "paper/small/explore.html", page.evaluate("location.hash"))
    assert cells(other, 2) == first and count(other) == said
    assert other.get_by_role("searchbox", name="Text").input_value() == "idle"
    assert other.locator("table.grid th", has_text="Conformance").count() == 1
    assert other.complaints == []
    other.close()


def test_each_filter_stands_with_its_name_and_apart_from_the_others(page):
    go(page, "#/variants")
    boxes = page.locator(".filters .field").evaluate_all(
        """fields => fields.map(field => {
            const {top, left, right, bottom} = field.getBoundingClientRect();
            return [top, left, right, bottom];
        })"""
    )
    assert len(boxes) > 5
    # A field that is broken over two lines is as high as both.
    assert all(bottom - top < 40 for top, _, _, bottom in boxes), boxes
    for before, after in itertools.pairwise(boxes):
        assert after[0] > before[0] or after[1] - before[2] >= 8, boxes


def test_the_csv_has_what_the_tables_say(page):
    go(page, "#/variants?experiment=backlog&q=yucan")
    rows = saved(page, "Save as CSV")
    assert {row["server"] for row in rows} == {"yucan"}
    seen = views.Experiment(MINIATURE.name, "backlog")
    points = seen.valid_points.filter(pl.col("server") == "yucan", pl.col("n") <= ROUNDS)
    for row in rows:
        mine = points.filter(pl.col("variant") == row["variant"])
        trials = [trial for _, trial in mine.group_by("n", maintain_order=True)]
        costs = [trial["server_cpu_ns"].sum() / trial["replies"].sum() / 1e3 for trial in trials]
        expected = stats.interval(costs).estimate
        assert (float(row["cpu_us_per_reply"]) if row["cpu_us_per_reply"] else None) == (
            None if expected is None else pytest.approx(expected, rel=1e-4)
        )
    assert sum(bool(row["cpu_us_per_reply"]) for row in rows) >= 5


# A server, a comparison, the claims, the rest ----------------------------------------------------


def test_a_server_has_a_page_with_its_file_its_curves_and_its_trials(page):
    go(page, "#/variants?experiment=backlog")
    page.locator("table.grid a", has_text=re.compile("^Yucan$")).first.click()
    page.wait_for_function("document.activeElement.tagName === 'H1'")
    assert page.locator("h1").inner_text() == files.server("yucan").title
    assert page.title().startswith("Yucan")
    text = page.locator("main").inner_text()
    for name, why in files.server("yucan").limits.items():
        assert name in text and why in text
    assert "servers/yucan/server.toml" in text and "Claims" in text
    assert re.search(r"Version measured\s+\S", text)
    draw(page)
    drawn = page.eval_on_selector_all(
        ".chart svg.marks",
        "all => all.map(svg => svg.querySelectorAll('.mark-symbol path').length)",
    )
    assert len(drawn) >= 6 and min(drawn) >= 2
    page.locator("summary", has_text="trials").click()
    assert "data/small/backlog/raw.tar.xz: yucan/" in page.locator("main").inner_text()
    trials = saved(page, "Trials as CSV")
    assert {row["server"] for row in trials} == {"yucan"} and trials[0]["raw"].startswith("data/")
    assert all(row["raw"] for row in trials)
    rates = saved(page, "Rates as CSV")
    assert {"rate_rps", "reply_rate_rps", "reply_rate_rps_low"} <= set(rates[0])


def test_servers_stand_side_by_side(page):
    go(page, "#/compare?servers=yucan")
    page.get_by_role("combobox", name="Add a server").select_option("tornado")
    page.wait_for_function("location.hash.includes('tornado')")
    heads = page.locator("table thead th").all_inner_texts()
    for server in ("yucan", "tornado"):
        assert any(head.startswith(files.server(server).title) for head in heads), heads
    draw(page)
    assert page.locator(".chart svg.marks").count() >= 3
    page.get_by_role("button", name=f"Remove {files.server('yucan').title}").click()
    page.wait_for_function("!location.hash.includes('yucan')")


def test_a_claim_opens_to_its_rule_and_its_evidence(page):
    go(page, "#/claims?then=replicated")
    assert page.locator("table.grid tbody tr").count() >= 1
    go(page, "#/claims?experiment=backlog")
    page.locator("table.grid a").first.click()
    page.wait_for_function("document.activeElement.tagName === 'H1'")
    text = page.locator("main").inner_text()
    assert "Rule" in text and re.search(r"(Then|Now).*\n", text)


def test_the_about_page_has_machine_citation_and_how_to_add_a_server(page):
    go(page, "#/about")
    text = page.locator("main").inner_text()
    trials = read("backlog", "trials")
    assert trials["cpu"].drop_nulls()[0] in text and trials["kernel"].drop_nulls()[0] in text
    assert f"Version {paths.version()} of Deathmatch made this" in text
    assert f"dataset small. Version {paths.version()}. " in text
    assert "@misc{deathmatch-small" in text and "./shell deathmatch new-server mine" in text


def test_text_of_another_is_shown_as_it_is_written(hostile_page, made):
    page = hostile_page
    written = (made / "paper/others/explore.html").read_text()
    assert HOSTILE not in written and str(ROOT) not in written and str(made) not in written
    for view in ("#/variants?rows=-1", "#/servers", "#/about", "#/claims"):
        go(page, view)
    go(page, "#/variants?q=pwned&sort=server")
    names, planted = cells(page, 1), read("backlog", "trials").filter(server="null")
    named = planted.filter(pl.col("n") <= 2)["variant"].n_unique()
    assert named and names[:named] == [HOSTILE] * named and HOSTILE not in names[named:]
    page.locator("table.grid a").first.click()
    page.wait_for_function("document.activeElement.tagName === 'H1'")
    assert page.locator("h1").inner_text() == HOSTILE
    draw(page)
    page.locator("summary", has_text="trials").click()
    assert page.evaluate("typeof window.PWNED") == "undefined"
    assert page.locator("main img, main script").count() == 0
    assert saved(page, "Trials as CSV")[0]["version"] == HOSTILE


# For everybody -----------------------------------------------------------------------------------

VIEWS = ["#/variants?experiment=backlog", "#/servers", "#/servers/yucan",
         "#/compare?servers=yucan,tornado", "#/claims?source=Walkin", "#/about"]  # fmt: skip
# axe takes seconds for a view; in the dark it looks at one with charts and tables.
SCREENS = [(1400, "light", VIEWS), (390, "dark", VIEWS[2:3])]


@pytest.mark.parametrize("width, scheme, looked_at", SCREENS, ids=["desk", "phone"])
def test_each_view_is_accessible_and_fits_the_screen(browser, made, width, scheme, looked_at):
    screen = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    page = opened(browser, made / "paper/small/explore.html", **screen)
    axe = None
    if not os.environ["DEATHMATCH_TOOLCHAIN"].startswith("nix"):
        axe = importlib.import_module("axe_playwright_python.sync_playwright").Axe()
    for view in VIEWS:
        go(page, view)
        if page.locator(".chart").count():
            page.locator(".chart").first.scroll_into_view_if_needed()
            page.wait_for_function("document.querySelector('.chart svg.marks')")
        sideways = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert sideways <= 0, f"{view} scrolls sideways"
        if axe and view in looked_at:
            found = axe.run(page).response
            told = [
                (v["id"], [n["html"][:90] for n in v["nodes"]][:4]) for v in found["violations"]
            ]
            assert told == [], view
            assert "color-contrast" in {rule["id"] for rule in found["passes"]}
    assert page.complaints == []
    page.close()


def test_a_dataset_without_a_point_says_so(browser, made):
    page = opened(browser, made / "paper/nothing/explore.html")
    assert page.locator(".chart").count() == 0
    go(page, "#/variants")
    assert "0 were measured" in page.locator("main").inner_text()
    assert "not built, cc: no x.h" in page.locator("table.grid").inner_text()
    go(page, "#/servers?q=yucan")
    assert "not built" in page.locator("table.grid tr", has_text="Yucan").first.inner_text()
    go(page, "#/servers/yucan")
    text = page.locator("main").inner_text()
    assert "not built in 1 of 1 trials: cc: no x.h" in text or "not built in" in text
    assert "No point of these trials shows the server" in text
    assert page.locator(".chart").count() == 0
    go(page, "#/compare?servers=yucan,tornado")
    go(page, "#/about")
    assert "no machine is recorded" in page.locator("main").inner_text()
    assert page.complaints == []
    page.close()


# How it is made ----------------------------------------------------------------------------------


def test_a_page_that_would_not_open_at_once_is_refused():
    explorer.check_size(explorer.LARGEST_BYTES, "huge")
    with pytest.raises(UserError, match=r"the explorer would take 7\.2 MB") as caught:
        explorer.check_size(7_200_000, "huge")
    assert caught.value.where == "data/huge" and caught.value.remedy


def test_the_table_library_is_the_one_that_is_locked():
    origin = json.loads((scripts.DATATABLES.parent / "origin.json").read_text())
    assert scripts.DATATABLES.name == Path(origin["file"]).name
    assert hashlib.sha256(scripts.DATATABLES.read_bytes()).hexdigest() == origin["sha256"]


def test_the_published_files_are_those_that_the_study_makes():
    workflow = yaml.safe_load((ROOT / ".github/workflows/pages.yml").read_text())
    script = " ".join(step.get("run", "") for step in workflow["jobs"]["publish"]["steps"])
    made = study.Study("reference", "netns", selection.Choice(), only_paper=True)
    assert all(path in script for path in (*made.paper, made.explorer))


def test_a_quantity_knows_its_interval_and_what_is_only_a_lower_bound():
    assert variants.measured([None]) is None
    assert variants.measured([0.25], 100) == [25, None, None, 1]
    assert variants.measured([9000.0, 8000.0], at_least=True) == [8500, 8000, 9000, 2, 1]


def test_a_curve_goes_over_the_factor_of_numbers_with_most_levels():
    frame = pl.DataFrame({"idle": [0, 1, 2], "backlog": [1, 1, 5], "readiness": list("abc")})
    assert variants.axis(frame, ["idle", "backlog", "readiness"]) == "idle"
    assert variants.axis(frame, ["backlog", "readiness"]) is None
