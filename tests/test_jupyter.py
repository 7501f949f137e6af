"""`./shell jupyter lab` in a real browser: a notebook opens, runs, draws, and has its numbers."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import HUNG_S, STARTED, Tree, copy_tree, patient, wait_for
from playwright.sync_api import Page, expect


@pytest.fixture(scope="module")
def tree(tmp_path_factory, network) -> Tree:
    """A copy that holds one small dataset under three names."""
    tree = Tree(copy_tree(tmp_path_factory.mktemp("lab") / "tree"), network)
    for name in ("tiny", "other", "reference"):
        tree.miniature(name, ["storage"])
    return tree


@contextlib.contextmanager
def saying(log: Path, page: Page | None = None) -> Iterator[None]:
    """Add JupyterLab's last output, and what the page shows, to a failure."""
    try:
        yield
    except (Exception, pytest.fail.Exception) as error:
        error.add_note(f"JupyterLab said: {log.read_text()[-4000:]}")
        if page:
            error.add_note(f"The page shows: {page.locator('body').inner_text()[:4000]}")
        raise


@pytest.fixture(scope="module")
def log(tree) -> Path:
    return tree.write("lab.log", "")


@pytest.fixture(scope="module")
def lab(tree, log) -> str:
    """The address of a JupyterLab in the copy."""
    # The browser is not in the tests' network.
    tree.enter = []
    tree.environment["JUPYTER_CONFIG_PATH"] = str(tree.path / "config" / "jupyter")
    # Nothing in the user's home has a say.
    for kind in ("CONFIG", "DATA", "RUNTIME"):
        tree.environment[f"JUPYTER_{kind}_DIR"] = str(tree.path / "build" / "jupyter" / kind)
    words = ["jupyter", "lab", "--no-browser", "--port=0", "--IdentityProvider.token=test"]
    # Into a file: nobody reads a pipe while the tests go on, and a full one stops it.
    process = tree.start("sh", "-c", 'exec "$@" >"$0" 2>&1', log, *words)
    STARTED.remove(process)
    with saying(log):
        found = wait_for(
            lambda: re.search(r"http://127\.0\.0\.1:\d+", log.read_text()),
            "JupyterLab has an address", process,
        )  # fmt: skip
    yield f"{found[0]}/lab/tree/notebooks/06-storage.md?token=test"
    process.terminate()
    process.communicate(timeout=HUNG_S)


@pytest.fixture(scope="module")
def page(lab, browser) -> Page:
    page = patient(browser.new_page(viewport={"width": 1300, "height": 3000}))
    expect.set_options(timeout=HUNG_S * 1000)
    page.goto(lab)
    return page


def run_all(page: Page) -> None:
    # A kernel that still drops the cells after one that failed would drop these too.
    expect(page.locator(".jp-InputPrompt", has_text="[*]")).to_have_count(0)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


def choose(page: Page, cell: list[str]) -> None:
    """Write the lines into the first cell and run all."""
    page.locator(".jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Control+A")
    page.keyboard.type("\n".join(cell))
    expect(page.locator(".jp-CodeCell").first.locator(".cm-line")).to_have_text(cell)
    run_all(page)


def test_the_reference_is_shown_until_the_default_is_measured(tree: Tree):
    script = (
        "import altair as alt, polars as pl; from deathmatch.paper import display\n"
        "print(display.setup('quick'))\n"
        "chart = alt.Chart(pl.DataFrame({'x': [1]})).mark_point().encode(x='x')\n"
        "display.figure(chart, label='fig-a', caption='a', alt='a')\n"
    )
    said = tree.run("python", "-c", script).succeeded().text
    assert said.startswith(
        "data/quick was not measured here; this shows data/reference.\nreference\n"
    )
    # Neither in figures/quick/, as they are none of it, nor in place of those that git has.
    assert [file.parent for file in tree.path.rglob("fig-a.svg")] == [
        tree.path / "build/figures/reference"
    ]


def test_a_notebook_opens_runs_and_is_saved(page: Page, tree: Tree, log: Path):
    """One test: if JupyterLab hangs, only one test fails, and no other waits for it."""
    with saying(log, page):
        page.locator(".jp-FileBrowser .jp-DirListing-item", has_text="06-storage.md").wait_for()
        a_dataset_that_is_not_there_is_named_with_those_that_are(page)
        another_dataset_is_a_word_in_the_first_cell(page)
        a_number_of_the_prose_is_shown_as_the_paper_shows_it(page)
        saving_keeps_the_file_but_for_what_was_typed(page, tree)


def a_dataset_that_is_not_there_is_named_with_those_that_are(page: Page):
    # It opens as a notebook, not as Markdown, and with a kernel: else this waits for ever.
    choose(page, ['dataset = "absent"'])
    said = page.locator(".jp-OutputArea-output", has_text="the dataset 'absent' has no tables")
    said.wait_for()
    assert "measured here: other, reference, tiny; put one of these there" in said.inner_text()
    assert "Traceback" not in page.locator(".jp-Notebook").inner_text()
    assert page.locator("svg.marks").count() == 0


def another_dataset_is_a_word_in_the_first_cell(page: Page):
    choose(page, ['dataset = "tiny"'])
    chart = page.locator(".jp-OutputArea-output svg.marks").first
    chart.wait_for()
    # A browser shows the title of the mark under the pointer.
    shown = chart.locator("[role=graphics-symbol] > title").all_text_contents()
    assert shown and all(": " in text for text in shown), shown
    # A label that the browser's font makes longer goes on outside.
    assert chart.evaluate("chart => getComputedStyle(chart).overflow") == "visible"
    assert page.locator(".jp-OutputArea-output[data-mime-type*='stderr']").count() == 0


def a_number_of_the_prose_is_shown_as_the_paper_shows_it(page: Page):
    prose = page.locator(".jp-MarkdownCell")
    expect(prose.filter(has_text="Each store takes 100\u202f000 messages")).to_have_count(1)
    assert "{eval}" not in page.locator(".jp-Notebook").inner_text()


def saving_keeps_the_file_but_for_what_was_typed(page: Page, tree: Tree):
    notebook = tree.path / "notebooks" / "06-storage.md"
    before = notebook.read_text()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+S")
    expect(page.locator(".jp-mod-dirty")).to_have_count(0)
    typed = before.replace('dataset = "quick"', 'dataset = "tiny"')
    assert notebook.read_text() == typed
