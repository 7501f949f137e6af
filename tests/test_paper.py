"""The paper, end to end: papermill, pandoc, typst and chromium on a notebook of made-up data.

The tests that hold for every paper use the paper of the miniature; the report of a part of the
study is tested here as well.
"""

import importlib
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import altair as alt
import nbformat
import polars as pl
import pytest
from conftest import MINIATURE, patient

from deathmatch.analysis import phrases, provenance
from deathmatch.errors import UserError
from deathmatch.paper import build, display, markdown, notebook, theme
from deathmatch.paper.display import MIME
from deathmatch.paper.theme import parts
from deathmatch.plan import paths
from deathmatch.plan.paths import ROOT

HERE = Path(__file__).parent / "paper"
HEADER = """---
kernelspec:
  name: python3
  display_name: Python 3
---
```{code-cell} ipython3
:tags: [parameters]
dataset = "quick"
```
"""


def make(out: Path) -> Path:
    """Run the sample notebook and build both papers from it with the command lines."""
    executed = out / "sample.ipynb"
    notebook.run(HERE / "sample.md", executed, "quick", out / "figures")
    command = [
        sys.executable, "-m", "deathmatch", "paper", "--dataset", "quick", "--notebooks",
        str(executed), "--figures", str(out / "figures"), "--front", str(HERE / "front.md"),
        "--references", str(HERE / "references.bib"), "--out", str(out),
    ]  # fmt: skip
    subprocess.run(command, cwd=ROOT, check=True)
    return out


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    return make(tmp_path_factory.mktemp("first"))


COMMITTED = ROOT / "paper" / "reference"


# The committed paper takes minutes: only .ci/run tests it.
@pytest.fixture(params=[MINIATURE.name, pytest.param("reference", marks=pytest.mark.once)])
def whole(request, written) -> Path:
    return COMMITTED if request.param == "reference" else written / "paper" / MINIATURE.name


# axe checks each element: minutes for a whole paper.
@pytest.fixture(params=["sample", pytest.param("reference", marks=pytest.mark.once)])
def asked(request, built) -> Path:
    return COMMITTED if request.param == "reference" else built


def told(*words: str | Path) -> str:
    """Return what a program of poppler prints."""
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def pages(pdf: Path) -> list[str]:
    return told("pdftotext", "-layout", pdf, "-").split("\f")[:-1]


def visit(browser, built: Path, **options):
    """Open the HTML paper and bring every chart to the screen; return page and complaints."""
    page = patient(browser.new_page(**options))
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url[:80])
            if not request.url.startswith(("file:", "data:")) else None)  # fmt: skip
    page.goto((built / "deathmatch.html").as_uri())
    page.eval_on_selector_all("details.chapter", "all => all.forEach(one => { one.open = true })")
    for chart in page.query_selector_all(".chart"):
        chart.scroll_into_view_if_needed()
        # A chart that leaves the screen before the next frame is never drawn.
        page.wait_for_function("chart => chart.querySelector('svg.marks')", arg=chart)
    return page, complaints


# The report ----------------------------------------------------------------------------------


@pytest.fixture
def report(written) -> Path:
    return written / "paper" / "part"


def test_a_report_has_six_pages_and_no_empty_statement(report):
    printed = pages(report / "report.pdf")
    assert len(printed) <= 6
    flat = " ".join("".join(printed).split())
    assert flat.startswith("Nine findings: ") and "What was measured" in flat
    for words in (phrases.NOT_MEASURED, "1 of 1", " inf", "nan", "No figure", "No table"):
        assert words not in flat
    assert not (report / "deathmatch.html").exists()


def test_a_report_fits_a_telephone(report, browser):
    page = patient(browser.new_page(viewport={"width": 390, "height": 800}))
    page.goto((report / "report.html").as_uri())
    assert page.get_by_role("link", name="PDF").get_attribute("href") == "report.pdf"
    rows = page.locator("#tbl-findings tbody tr").count()
    assert rows == 9
    wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert not page.evaluate(wide)


# The HTML paper ------------------------------------------------------------------------------


SCREENS = [(1400, "light", "rgb(253, 253, 251)"), (390, "dark", "rgb(23, 24, 26)")]
# On the dark telephone axe checks only the rules that depend on colour scheme or width, on the
# light screen all.
OF_THE_SCREEN = ["target-size", "scrollable-region-focusable", "meta-viewport", "color-contrast"]
STRUCTURE = {"heading-order", "html-has-lang", "svg-img-alt", "color-contrast"}


@pytest.fixture(scope="module")
def looked_at(browser):
    """Return a function that opens a paper once for each screen; its callers must not change it."""
    pages = {}

    def look(paper: Path, width: int, scheme: str):
        if (paper, width, scheme) not in pages:
            screen = {"width": width, "height": 900}
            pages[paper, width, scheme] = visit(
                browser, paper, viewport=screen, color_scheme=scheme
            )
        return pages[paper, width, scheme]

    yield look
    for page, _ in pages.values():
        page.close()


def luminance(colour: str) -> float:
    """Return the relative luminance of a computed style's rgb(…), as WCAG 2.2 defines it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


OVER_WHAT = """all => all.filter(text => text.textContent.trim()).map(text => {
    const box = text.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    const bars = [...text.closest('svg').querySelectorAll('.mark-rect path')];
    const under = bars.filter(bar => {
        const at = bar.getBoundingClientRect();
        return at.left <= x && x <= at.right && at.top <= y && y <= at.bottom;
    }).pop();
    return [text.textContent, getComputedStyle(text).fill, getComputedStyle(under).fill];
})"""


@pytest.mark.parametrize("width, scheme, ground", SCREENS)
def test_html_draws_every_chart_without_a_request_or_an_error(
    looked_at, whole, width, scheme, ground
):
    page, complaints = looked_at(whole, width, scheme)
    assert complaints == []
    drawn = page.eval_on_selector_all(
        ".chart svg.marks",
        "all => all.map(svg => svg.querySelectorAll('[role=graphics-symbol] path, path').length)",
    )
    specs = page.locator("figure.figure > script[type='application/json']").count()
    assert len(drawn) == specs >= 3 and min(drawn) >= 4
    sideways = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert sideways <= 0, "the page scrolls sideways"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground
    # A chart that is drawn keeps its description.
    roots = page.eval_on_selector_all(
        ".chart", "all => all.map(c => [c.getAttribute('aria-label'),"
        " c.querySelector('[role=graphics-document]')?.getAttribute('aria-label')])",
    )  # fmt: skip
    assert all(len(alt) > 5 and alt == live for alt, live in roots), roots
    # axe does not check the text of an SVG.
    inks = page.eval_on_selector_all(
        ".chart svg.marks text",
        "all => [...new Set(all.filter(t => t.textContent.trim() && t.textContent !== '●'"
        " && !t.closest('.inside_marks'))"
        ".map(t => getComputedStyle(t).fill))]",
    )
    assert len(inks) >= 2 and [ink for ink in inks if contrast(ink, ground) < 4.5] == []
    # Text inside a bar has the bar's colour behind it in either scheme.
    inside = page.eval_on_selector_all(".chart svg.marks .inside_marks text", OVER_WHAT)
    assert [words for words in inside if contrast(*words[1:]) < 4.5] == []


@pytest.mark.parametrize("width, scheme, ground", SCREENS)
def test_html_is_accessible(looked_at, asked, width, scheme, ground):
    """axe-core: contrast, alt texts, order of headings, language, names of links and tables."""
    if os.environ["DEATHMATCH_TOOLCHAIN"].startswith("nix"):
        pytest.skip("nixpkgs has no package of axe-playwright-python: run it on Debian")
    axe = importlib.import_module("axe_playwright_python.sync_playwright")
    page, _ = looked_at(asked, width, scheme)
    # Naming every element that passes would take five minutes of six.
    options = {"resultTypes": ["violations"]}
    # Naming a rule that is off by default switches it on.
    if scheme == "dark":
        options["runOnly"] = {"type": "rule", "values": OF_THE_SCREEN}
    found = axe.Axe().run(page, options=options).response
    told = [(v["id"], v["help"], [n["html"][:80] for n in v["nodes"]]) for v in found["violations"]]
    assert told == []
    looked_for = {rule["id"] for rule in found["passes"] + found["inapplicable"]}
    assert looked_for >= ({*OF_THE_SCREEN} if scheme == "dark" else STRUCTURE)
    assert found["passes"], "no rule found anything that it is about"


def test_html_chart_answers_hover_and_picks_a_series(browser, built):
    page, _ = visit(browser, built, viewport={"width": 1400, "height": 900})
    figure = page.locator("#fig-reply")
    figure.locator(".mark-symbol path").first.hover(force=True)
    assert "offered (req/s)" in page.locator("#vg-tooltip-element").inner_text()
    faded = "#fig-reply .mark-line path[opacity='0.12']"
    assert page.locator(faded).count() == 0
    figure.locator(".mark-text text", has_text=re.compile("^yucan$")).click()
    page.wait_for_selector(faded, state="attached")
    assert page.locator(faded).count() == 3


def test_html_links_lead_somewhere_and_every_figure_has_its_own(looked_at, whole):
    page, _ = looked_at(whole, 1400, "light")
    broken = page.eval_on_selector_all(
        "a[href^='#']:not(.vega-actions a)",
        "all => all.map(a => a.hash.slice(1)).filter(id => !document.getElementById(id))",
    )
    assert broken == []
    ids = page.eval_on_selector_all("[id]", "all => all.map(e => e.id)")
    assert len(ids) == len(set(ids))
    labels = page.eval_on_selector_all("figure[id]", "all => all.map(e => e.id)")
    assert len(labels) >= 5
    for label in labels:
        assert page.locator(f"#{label} a.permalink[href='#{label}']").count() == 1


def test_html_contents_are_searched_and_headings_have_an_address(browser, built):
    page = patient(browser.new_page(viewport={"width": 1400, "height": 900}))
    page.goto((built / "deathmatch.html").as_uri())
    field = page.get_by_label("Search in all sections")
    field.fill("the MECHANISM")
    found = page.locator("#contents .found a").evaluate_all("all => all.map(a => a.hash)")
    assert "#sec-mechanism" in found
    marked = "[...CSS.highlights.get('found')].map(range => range.toString().toLowerCase())"
    assert set(page.evaluate(marked)) == {"the", "mechanism"}
    assert not page.locator("#contents details > ul:not(.found)").is_visible()
    field.fill("no such words")
    assert page.locator("#contents .found").inner_text() == "Nothing was found."
    field.fill("")
    assert page.evaluate(marked) == []
    assert page.locator("#contents details > ul:not(.found)").is_visible()
    assert page.locator("#sec-sample > a.anchor").get_attribute("href") == "#sec-sample"
    assert page.get_by_role("link", name="PDF").get_attribute("href") == "deathmatch.pdf"
    page.emulate_media(media="print")
    assert "deathmatch.pdf" in page.locator(".on-paper").inner_text()
    page.close()


def test_a_short_narrative_is_before_the_appendices_and_html_prints_as_the_pdf(
    browser, whole, tmp_path
):
    typeset = pages(whole / "deathmatch.pdf")
    begins = [bool(re.search(r"^ *Appendices$", page, re.M)) for page in typeset]
    assert 1 <= begins.index(True) <= 8, "printed pages"
    page = patient(browser.new_page())
    page.goto((whole / "deathmatch.html").as_uri())
    page.pdf(path=tmp_path / "printed.pdf", prefer_css_page_size=True)
    page.close()
    printed = pages(tmp_path / "printed.pdf")
    assert len(typeset) / 1.25 <= len(printed) <= 1.25 * len(typeset)


ON_SCREEN = """label => {
    const top = document.getElementById(label).getBoundingClientRect().top;
    return -5 < top && top < innerHeight;
}"""


def test_html_chapters_after_the_narrative_fold_and_links_open_them(browser, whole):
    address = (whole / "deathmatch.html").as_uri()
    page = patient(browser.new_page(viewport={"width": 1400, "height": 900}))
    page.goto(address)
    chapters = page.locator("details.chapter")
    assert chapters.count() >= 1 and page.locator("details.chapter[open]").count() == 0
    assert page.evaluate("document.body.scrollHeight / innerHeight") < 30, "screens on a desk"
    assert not chapters.locator("figure").first.is_visible()
    inside = page.eval_on_selector_all(
        "details.chapter h2[id], details.chapter figure[id]", "all => all.map(e => e.id)"
    )
    assert len(inside) >= 3
    for label in (inside[0], inside[-1]):
        page.evaluate("label => { location.hash = label }", label)
        page.locator(f"#{label}").wait_for(state="visible")
        page.wait_for_function(ON_SCREEN, arg=label)
    # The same link opens a chapter that was folded again, and so does the address of the page.
    page.evaluate("label => document.getElementById(label).closest('details').open = false", label)
    page.evaluate("label => document.querySelector(`a[href='#${label}']`).click()", label)
    page.locator(f"#{label}").wait_for(state="visible")
    page.close()
    page = patient(browser.new_page(viewport={"width": 1400, "height": 900}))
    page.goto(f"{address}#{label}")
    page.locator(f"#{label}").wait_for(state="visible")
    page.close()


def test_html_without_javascript_still_shows_pictures(browser, built):
    page = patient(browser.new_page(java_script_enabled=False))
    page.goto((built / "deathmatch.html").as_uri())
    page.locator("details.chapter > summary").first.click()
    images = page.locator(".chart img")
    assert images.count() == 3
    assert all(images.nth(i).bounding_box()["height"] > 80 for i in range(3))


def test_html_resolves_numbers_references_and_citations(built):
    html = (built / "deathmatch.html").read_text()
    prose = re.sub(r"<script.*?</script>|<[^>]+>", "", html, flags=re.S).replace("\u00a0", " ")
    prose = " ".join(prose.split())
    assert f"Version {paths.version()}, dataset quick" in prose
    assert "the best server reached 9,160 replies a second" in prose
    assert "Yucan reached 9,160 replies a second over 10 rates (Figure 1)" in prose
    assert "the mechanism is in Appendix A.1" in prose
    assert "Nobody measured" not in prose, "a sentence of the narrative whose number is missing"
    assert "Source: tests/paper/sample.md, data/quick/backlog/points.parquet." in prose
    assert "Walkin, Lev. 2009" in prose and "{eval}" not in prose and "{value}" not in prose
    assert html.count('<details class="code">') == 3, "cells without anything between are one"
    assert str(ROOT) not in html and str(built) not in html


# The PDF paper -------------------------------------------------------------------------------


def test_pdf_has_its_fonts_a_title_bookmarks_tags_and_upright_pages(whole):
    pdf = whole / "deathmatch.pdf"
    rows = told("pdffonts", pdf).splitlines()
    embedded = [row.split()[-5] for row in rows[2:]]
    assert len(embedded) >= 4 and set(embedded) == {"yes"}
    assert any("LiberationSans" in row for row in rows), "the figures' text is gone"
    about = told("pdfinfo", "-l", "9999", pdf)
    assert re.search(r"^Title: +\S+", about, re.M) and re.search(r"^Tagged: +yes", about, re.M)
    sizes = re.findall(r"^Page +\d+ size: +([\d.]+) x ([\d.]+)", about, re.M)
    assert len(sizes) >= 3 and all(float(wide) < float(high) for wide, high in sizes)
    assert b"/Outlines" in pdf.read_bytes()


def test_pdf_holds_captions_numbers_and_references(built):
    flat = " ".join("".join(pages(built / "deathmatch.pdf")).split())
    assert f"Version {paths.version()}, dataset quick" in flat
    assert "the best server reached 9,160 replies a second" in flat
    assert "Figure 1. Reply rate by offered rate; bands are 95% intervals." in flat
    assert "Table 2. A table of many columns" in flat
    assert "offered (req/s)" in flat, "the text of the charts"
    assert "A.1 The mechanism" in flat and "Walkin, Lev. 2009" in flat
    assert "import polars" not in flat
    assert "With --rate" in flat, "not a dash"


LEAST_PT = 7
ZOOM = 3  # the most that pdftohtml takes; it rounds to whole pixels, here thirds of a point


def sizes_in_figures(pdf: Path) -> dict[float, str]:
    """Return {size in pt: a text of that size} of what is set in the figures' font."""
    found = told("pdftohtml", "-xml", "-i", "-stdout", "-zoom", str(ZOOM), pdf)
    fonts = re.findall(r'<fontspec id="(\d+)" size="(\d+)" family="[^"]*LiberationSans', found)
    texts = dict(re.findall(r'<text [^>]*font="(\d+)">(.*?)</text>', found))
    return {int(size) / ZOOM: texts.get(font, "") for font, size in fonts}


def test_no_text_of_a_figure_is_too_small_in_print(whole):
    found = sizes_in_figures(whole / "deathmatch.pdf")
    assert len(found) >= 2 and max(found) < 12, "sizes are of the page, not of the zoom"
    assert {size: text for size, text in found.items() if size < LEAST_PT} == {}


def test_pdf_keeps_wide_tables_on_the_page_and_their_words_apart(built):
    boxes = told("pdftotext", "-bbox", built / "deathmatch.pdf", "-")
    found = re.findall(r'<page width="([\d.]+)"(.*?)</page>', boxes, re.S)
    assert len(found) >= 3
    for width, text in found:
        words = re.findall(r'xMin="([\d.]+)" yMin="([\d.]+)" xMax="([\d.]+)"', text)
        assert max(float(word[2]) for word in words) < float(width) - 40
        by_line = {}
        for left, top, right in words:
            by_line.setdefault(top, []).append((float(left), float(right)))
        for line in map(sorted, by_line.values()):
            assert all(a[1] <= b[0] + 0.5 for a, b in itertools.pairwise(line))


@pytest.mark.once
def test_the_same_notebook_gives_the_same_bytes(built, tmp_path):
    again = make(tmp_path)
    files = sorted(p.relative_to(built) for p in built.rglob("*") if p.is_file())
    assert len(files) == 3 + 3 * 4
    differing = [str(f) for f in files if (built / f).read_bytes() != (again / f).read_bytes()]
    assert differing == []


# Captions of figures -------------------------------------------------------------------------


def test_a_figure_says_how_many_trials_which_interval_and_which_testbed(tmp_path, monkeypatch):
    monkeypatch.setattr("deathmatch.data.table_files.ROOT", tmp_path)
    folder = tmp_path / "data" / "mine" / "backlog"
    folder.mkdir(parents=True)
    trials = {
        "server": ["a", "a", "b", "b", "b"], "variant": "v", "testbed": "netns", "cpus": 2,
        "outcome": ["measured", "not built", "measured", "measured, with failures", "measured"],
        "cpu": "Sempron", "kernel": "6.1",
    }  # fmt: skip
    pl.DataFrame(trials).write_parquet(folder / "trials.parquet")
    source = ["data/mine/backlog/points.parquet", "data/published/walkin2009.csv"]
    expected = (
        "n = 1 to 3 trials a variant; bars and bands: the trials' range (their 95\u202f% bootstrap "
        "interval); testbed netns: 2 CPUs (Sempron), Linux 6.1."
    )
    assert provenance.sentence(source) == expected
    assert "bootstrap" not in provenance.sentence(source, drawn=False)
    assert provenance.sentence(["data/published/walkin2009.csv"]) == ""


def test_a_caption_names_the_testbed_if_it_differs_from_that_of_the_dataset(tmp_path, monkeypatch):
    monkeypatch.setattr("deathmatch.data.table_files.ROOT", tmp_path)

    def measured(experiment: str, beds: list[str], kernels: list[str], dataset: str = "mine",
                 cpus: str | list[str] = "Sempron"):  # fmt: skip
        """Write a table of trials; return the path of the points that it stands for."""
        folder = tmp_path / "data" / dataset / experiment
        folder.mkdir(parents=True)
        pl.DataFrame(
            {"server": "a", "variant": "v", "testbed": beds, "cpus": 2, "outcome": "measured",
             "cpu": cpus, "kernel": kernels}
        ).write_parquet(folder / "trials.parquet")  # fmt: skip
        return f"data/{dataset}/{experiment}/points.parquet"

    usual = measured("backlog", ["netns"] * 4, ["6.1"] * 4)
    both_beds = measured("c10k", ["netns", "four-hosts"], ["6.1", "6.1"])
    slow_bed = measured("dynamic", ["four-hosts"], ["6.1"])
    new_kernel = measured("static", ["netns", "netns"], ["6.1", "6.2"])
    other_dataset = measured("backlog", ["netns"], ["5.4"], dataset="theirs")
    published_numbers = "data/published/walkin2009.csv"

    most = provenance.usual_testbed("mine")
    assert most == ("netns", 2, "Sempron", "6.1")
    for sources in ([usual, published_numbers], [both_beds], []):
        assert provenance.difference(most, sources) == ""
    expected = {
        slow_bed: "Measured on testbed four-hosts: 2 CPUs (Sempron), Linux 6.1.",
        new_kernel: "Measured also on testbed netns: 2 CPUs (Sempron), Linux 6.2.",
        other_dataset: "Measured on testbed netns: 2 CPUs (Sempron), Linux 5.4.",
    }
    for source, text in expected.items():
        assert provenance.difference(most, [source]) == text
    with_other = provenance.difference(most, [usual, other_dataset])
    assert with_other == "Measured also on testbed netns: 2 CPUs (Sempron), Linux 5.4."
    assert provenance.usual_testbed("nothing") is None
    kinds = measured("history", ["netns"] * 2, ["6.1"] * 2, cpus=["Sempron", "Xeon"])
    assert provenance.difference(most, [kinds]) == "Measured on 2 kinds of CPU."
    # No trial ran, so none recorded its machine.
    unrecorded = tmp_path / slow_bed.replace("points", "trials")
    pl.read_parquet(unrecorded).with_columns(cpu=pl.lit(None, pl.String)).write_parquet(unrecorded)
    assert provenance.difference(most, [slow_bed]) == ""


def test_intervals_of_a_chart_are_seen():
    frame = pl.DataFrame({"x": [1, 2], "y": [1, 2], "low": [1, 1], "high": [2, 3], "s": ["a", "b"]})
    theme.register()
    plain = theme.lines(frame, "x", "y", "s").to_dict()
    drawn = theme.lines(frame, "x", "y", "s", low="low", high="high").to_dict()
    dots = theme.dots(frame, "y", "s", low="low", high="high").to_dict()
    assert [display._intervals(spec) for spec in (plain, drawn, dots)] == [False, True, True]


# The charts ----------------------------------------------------------------------------------


def test_labels_keep_their_distance_and_their_order():
    ends = pl.DataFrame({"x": [1] * 4, "y": [50.0, 50.5, 51.0, 90.0], "who": list("abcd")})
    placed = parts.labels(ends, "x", "y", "who", domain=(0, 100), height=300, gap=14)
    heights = dict(placed.select("who", "label_px").iter_rows())
    assert heights["c"] + 14 <= heights["b"] + 0.1 and heights["b"] + 14 <= heights["a"] + 0.1
    assert heights["d"] == 30.0, "a label without neighbours stays at its curve's end"
    assert heights["b"] == pytest.approx(148.5, abs=0.2), "the crowd spreads about its middle"


def test_labels_of_curves_that_end_at_nothing_stay_above_the_axis():
    ends = pl.DataFrame({"x": [1] * 3, "y": [0.0, 0.1, 0.2], "who": list("abc")})
    placed = parts.labels(ends, "x", "y", "who", domain=(0, 100), height=300, gap=14)
    assert placed["label_px"].sort().to_list() == [272.0, 286.0, 300.0]


def test_zero_on_a_log_axis_leaves_no_infinity_behind(tmp_path):
    """A browser reads no Infinity in JSON: the chart would stay a picture."""
    display.setup("quick", tmp_path)
    frame = pl.DataFrame({"n": [1, 2], "t_us": [5.0, 0.0], "server": ["a", "a"]})
    chart = theme.lines(frame, "n", "t_us", "server", log_y=True)
    display.figure(chart, label="fig-x", caption="C.", alt="A.")
    assert b"Infinity" not in (tmp_path / "fig-x.json").read_bytes()
    bad = alt.Chart(frame).mark_point().encode(x=alt.value(float("inf")))
    with pytest.raises(UserError, match="not finite"):
        display.figure(bad, label="fig-y", caption="C.", alt="A.")


def fields_on_logarithmic_axes(part: object) -> set[str]:
    """Return the fields that a chart's specification draws on a logarithmic axis."""
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else []
    fields = set().union(*map(fields_on_logarithmic_axes, inner))
    scale = part.get("scale") if isinstance(part, dict) else None
    if isinstance(scale, dict) and scale.get("type") == "log" and "field" in part:
        fields.add(part["field"])
    return fields


def without_place(spec: dict) -> list[tuple[str, float]]:
    """Return the values at or below zero that a chart draws on a logarithmic axis."""
    fields = fields_on_logarithmic_axes(spec)
    rows = [row for table in spec.get("datasets", {}).values() for row in table]
    drawn = [(field, row[field]) for row in rows for field in fields & row.keys()]
    return [(field, value) for field, value in drawn if value is not None and value <= 0]


def test_no_figure_draws_zero_on_a_logarithmic_axis():
    """Vega draws it at the axis's other end."""
    files = (ROOT / "figures" / "reference").glob("*.json")
    specs = {path.name: json.loads(path.read_text()) for path in files}
    assert any(map(fields_on_logarithmic_axes, specs.values()))
    assert {name: wrong for name, spec in specs.items() if (wrong := without_place(spec))} == {}


# Mistakes ------------------------------------------------------------------------------------


def build_prose(tmp_path: Path, prose: str, outputs: list | None = None, front: str = "") -> None:
    """Build a paper from one notebook, not executed, that holds `prose` and `outputs`."""
    made = nbformat.v4.new_notebook(metadata={"deathmatch": {"notebook": "notebooks/01-x.md"}})
    cell = nbformat.v4.new_code_cell("pass")
    cell.outputs = [nbformat.v4.new_output("display_data", {MIME: o}) for o in outputs or []]
    made.cells = [nbformat.v4.new_markdown_cell(prose), cell]
    path = tmp_path / "01-x.ipynb"
    nbformat.write(made, path)
    (tmp_path / "front.md").write_text(f"---\ntitle: T\n---\n{front}\n")
    build.build([path], "quick", tmp_path, tmp_path, tmp_path / "front.md", HERE / "references.bib")


TABLE = {"kind": "table", "label": "tbl-a", "caption": "C.", "source": [],
         "html": "<table><tr><td>1</td></tr></table>"}  # fmt: skip
FIGURE = {"kind": "figure", "label": "fig-a", "caption": "C.", "source": [], "alt": "A."}


@pytest.mark.parametrize(
    "prose, outputs, front, where, what",
    [
        ("See [@nobody1999].", [], "", "notebooks/01-x.md", "unknown citation @nobody1999"),
        ("See @fig-gone.", [], "", "notebooks/01-x.md", "unknown reference @fig-gone"),
        ("See [x](#sec-gone).", [], "", "notebooks/01-x.md", "unknown reference #sec-gone"),
        ("A", [], "{value}`01-x.best`", "front.md", "there is no value '01-x.best'"),
        ("{eval}`1 + 1`", [], "", "notebooks/01-x.md", "{eval}`1 + 1` is not understood"),
        ("A", [], "{show}`fig-gone`", "front.md", "there is no figure or table 'fig-gone' to show"),
        ("A", [TABLE, TABLE], "", "notebooks/01-x.md", "duplicate label tbl-a"),
        ("A", [FIGURE], "", "notebooks/01-x.md", "missing figure fig-a"),
    ],
)
def test_mistakes_in_prose_are_named_with_their_place(tmp_path, prose, outputs, front, where, what):
    with pytest.raises(UserError) as caught:
        build_prose(tmp_path, prose, outputs, front)
    assert caught.value.where == where and what in caught.value.what and caught.value.remedy
    assert not (tmp_path / "deathmatch.html").exists()


def test_a_paper_of_data_that_lack_a_part_is_refused(tmp_path):
    absent = {"kind": "absent", "label": "fig-none", "text": "No figure."}
    lacking = {"kind": "values", "values": {"best": phrases.NOT_MEASURED}}
    for outputs, what in (([absent], "01-x, fig-none"), ([lacking], "01-x.best")):
        with pytest.raises(UserError, match=f"no data for 1 parts of the paper, the first: {what}"):
            build_prose(tmp_path, "A", outputs)


def test_a_figure_or_table_without_rows_is_left_out_with_its_old_files(tmp_path, capsys):
    display.setup("quick", tmp_path)
    frame = pl.DataFrame({"n": [1, 2], "t_us": [5.0, 1.0], "server": ["a", "a"]})
    for rows in (frame, frame.clear()):
        chart = theme.lines(rows, "n", "t_us", "server")
        display.figure(chart, label="fig-x", caption="C.", alt="A.")
        assert len(list(tmp_path.glob("fig-x.*"))) == 4 * len(rows) // 2
    display.table(frame.clear(), label="tbl-a", caption="C.")
    said = capsys.readouterr().out
    assert "fig-x: left out" in said and "tbl-a: left out" in said


def test_published_numbers_are_not_drawn_alone(tmp_path, capsys):
    display.setup("quick", tmp_path)
    theirs = pl.DataFrame({"n": [1, 2], "t_us": [5.0, 1.0], "server": ["a", "a"]})
    nulls = theirs.with_columns(own_us=pl.lit(None, pl.Float64), published_us="t_us")
    for chart in (
        theme.lines(theirs.clear(), "n", "t_us", "server", published=theirs),
        theme.dots(nulls, "own_us", "server", published="published_us"),
    ):
        display.figure(chart, label="fig-x", caption="C.", alt="A.")
        assert "fig-x: left out" in capsys.readouterr().out and not list(tmp_path.glob("fig-x.*"))


@pytest.mark.parametrize(
    "body, place",
    [
        (
            "```{code-cell} ipython3\nx = 1\nopen('gone')\n```\n",
            "line 13: the cell that begins 'x = 1' fails: FileNotFoundError: [Errno 2] No such",
        ),
        ("Text.\n\nThe rate is {eval}`nothing`.\n", "line 13: the prose fails: {eval}`nothing`"),
    ],
)
def test_failing_cell_or_expression_names_its_line(tmp_path, body, place):
    source = tmp_path / "bad.md"
    source.write_text(f"{HEADER}\n{body}")
    with pytest.raises(UserError, match=re.escape(f"bad.md, {place}")):
        notebook.run(source, tmp_path / "bad.ipynb", "quick", tmp_path)
    assert not (tmp_path / "bad.ipynb").exists()


def test_output_of_a_cell_that_does_not_arrive_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(notebook, "OUTPUT_WITHIN_S", 1)
    source = tmp_path / "mute.md"
    mute = "get_ipython().kernel.iopub_thread.send_multipart = lambda *_, **__: None"
    cell = f"```{{code-cell}} ipython3\n{mute}\n```\n"
    source.write_text(f"{HEADER}\n{cell}")
    with pytest.raises(UserError, match="what a cell printed did not arrive within 1 s"):
        notebook.run(source, tmp_path / "mute.ipynb", "quick", tmp_path)
    assert not (tmp_path / "mute.ipynb").exists()


def test_a_notebook_that_warns_runs_with_temporary_files_in_a_folder_of_a_long_name(tmp_path):
    """No socket of its kernel can have such a path; the warning does not hide the number."""
    source, made, folder = tmp_path / "x.md", tmp_path / "x.ipynb", tmp_path / ("long" * 30)
    warns = "```{code-cell} ipython3\nimport warnings\n```"
    number = "{eval}`warnings.warn('beware') or 1 + 1`"
    source.write_text(f"{HEADER}\n{warns}\n\nTwo is {number}.\n")
    folder.mkdir()
    words = [sys.executable, "-m", "deathmatch", "notebook", source, "--dataset", "quick"]
    words += ["--figures", tmp_path / "figures", "--out", made]
    own = {"TMPDIR": str(folder)}
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=os.environ | own)
    assert done.returncode == 0, done.stderr
    text = made.read_text()
    assert "Two is 2." in text and MIME not in text and list(folder.iterdir()) == []


def test_an_appendix_begins_at_its_heading_and_takes_the_code():
    prose = "# A {#sec-a}\n\nAnswer.\n\n# B {#sec-b .appendix}\n\nRest."
    blocks = [("code", "c1"), ("prose", prose), ("fig-a", "F"), ("code", "c2")]
    told, rest = markdown.parted(blocks)
    assert told == "# A {#sec-a}\n\nAnswer."
    assert [text for _, text in rest] == ["# B {#sec-b .appendix}", "c1", "Rest.", "F", "c2"]
    assert markdown.parted(blocks[2:]) == ("F\n\nc2", [])


def test_a_number_of_the_narrative_stands_alone():
    told = (
        "3\u202f109 µs (interval 2\u202f779 to 4\u202f702, n = 3), 5 in 2009 (n = 1) and 7 (see B)."
    )
    alone = re.sub(r"\{.*?\}", "", markdown.running(told))
    assert alone == "[3\u202f109 µs], 5 in [2009] and 7 (see B)."
    assert 'title="interval 2\u202f779 to 4\u202f702, n = 3"' in markdown.running(told)


def test_the_front_orders_the_chapters_and_names_each_once():
    texts = {"front.md": "Front.\n\n{chapter}`02-b`\n{chapter}`01-a`\n", "n/01-a.md": "A",
             "n/02-b.md": "B", "n/03-c.md": ""}  # fmt: skip
    ordered = markdown.in_order(texts, "front.md")
    assert list(ordered.items()) == [
        ("front.md", "Front.\n\n"), ("n/02-b.md", "B"), ("n/01-a.md", "A"), ("n/03-c.md", ""),
    ]  # fmt: skip
    with pytest.raises(UserError, match="no chapter is 03-c"):
        markdown.in_order(texts | {"n/03-c.md": "C"}, "front.md")
    with pytest.raises(UserError, match="there is no chapter 02-b"):
        markdown.in_order(texts | {"n/02-b.md": ""}, "front.md")


def test_a_notebook_that_sets_no_dataset_is_an_error(tmp_path):
    source = tmp_path / "bad.md"
    source.write_text(HEADER.replace("dataset =", "color ="))
    with pytest.raises(UserError, match="no cell tagged parameters sets the dataset"):
        notebook.run(source, tmp_path / "x.ipynb", "quick", tmp_path)


def test_a_click_in_one_panel_selects_in_all():
    """Each panel holds a view that the selection names, and all share one selection."""
    frame = pl.DataFrame({"x": [1, 2] * 2, "y": [1, 2, 3, 4], "of": ["a", "a", "b", "b"]})
    panels = [theme.lines(frame.head(rows), "x", "y", "of") for rows in (2, 3, 4)]
    for columns in (1, 2):
        spec = theme.together(panels, columns).to_dict()
        (chosen,) = spec["params"]
        for panel in spec["vconcat" if columns == 1 else "concat"]:
            assert len({layer.get("name") for layer in panel["layer"]} & set(chosen["views"])) == 1


def test_second_font_in_a_figure_is_refused(tmp_path):
    display.setup("quick", tmp_path)
    chart = alt.Chart(pl.DataFrame({"x": [1]}), title=alt.Title("bold", fontWeight="bold"))
    with pytest.raises(UserError, match="2 fonts"):
        display.figure(chart.mark_point().encode(x="x"), label="fig-x", caption="C.", alt="A.")


@pytest.mark.parametrize(
    "arguments, what",
    [
        ({"label": "reply", "caption": "C."}, "'reply' is no label"),
        ({"label": "tbl-x", "caption": " "}, "the caption is empty"),
        ({"label": "tbl-x", "caption": "C.", "names": {"b": "B"}}, "no column 'b'"),
    ],
)
def test_bad_tables_are_refused(arguments, what):
    with pytest.raises(UserError, match=what):
        display.table(pl.DataFrame({"a": [1]}), **arguments)
