"""Hostile text in a dataset, a name or a file does nothing to a reader."""

import html

import polars as pl
import pytest
from conftest import patient

from deathmatch.paper import build, display, notebook
from deathmatch.plan.paths import ROOT

HOSTILE = (
    "x<script>window.PWNED=1</script>"
    '<img src=x onerror="window.PWNED=2"><svg onload="window.PWNED=3">'
    "`<script>window.PWNED=4</script>`{=html}"
    '[c]{onmouseover="window.PWNED=5" .hover}'
    "[d](javascript:window.PWNED=6)![e](http://192.0.2.1/e.png)"
    "</script><!--<script>"
)
NOTEBOOK = """---
kernelspec:
  name: python3
  display_name: Python 3
---
```{code-cell} ipython3
:tags: [parameters]
dataset = "quick"
```
```{code-cell} ipython3
hostile = HOSTILE
```
# What a title may hold {#sec-hostile}

It was {eval}`hostile`. See @fig-hostile and @tbl-hostile.

```{code-cell} ipython3
:tags: [remove-input]
import altair as alt
import polars as pl
from IPython.display import Markdown, display as show
from deathmatch.paper import display
display.setup(dataset)
frame = pl.DataFrame({"label": [hostile, "b"], "rate_rps": [1, 2]})
chart = alt.Chart(frame).mark_point().encode(x="rate_rps", y="label", tooltip="label")
display.figure(chart, label="fig-hostile", caption=hostile, alt=hostile, source="data/x")
display.table(frame, label="tbl-hostile", caption=hostile, source="data/x")
show(Markdown(hostile))
print(hostile)
```
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory, browser):
    """The paper of a notebook whose every text is hostile, in a browser that points at all."""
    folder = tmp_path_factory.mktemp("hostile")
    source = folder / "hostile.md"
    source.write_text(NOTEBOOK.replace("HOSTILE", repr(HOSTILE)))
    executed = folder / "hostile.ipynb"
    notebook.run(source, executed, "quick", folder / "figures")
    here = ROOT / "tests" / "paper"
    (folder / "front.md").write_text("---\ntitle: A title\n---\n")
    build.build(
        [executed], "quick", folder, folder / "figures", folder / "front.md",
        here / "references.bib",
    )  # fmt: skip
    shown = patient(browser.new_page())
    shown.asked = []
    shown.on("request", lambda request: shown.asked.append(request.url))
    shown.goto((folder / "deathmatch.html").as_uri())
    shown.wait_for_function("document.querySelector('.chart svg.marks')")
    return shown


def test_the_text_of_a_version_is_shown_as_it_is():
    text = "1. <b>x</b> *y* {eval}`1+1` & 'q' -- [z](javascript:1)"
    frame = pl.DataFrame({"version": [text], "reason": [text]})
    shown = display._formatted(frame, {}, {}).as_raw_html()
    assert shown.count(html.escape(text, quote=False)) == 2


def test_a_title_of_another_dataset_runs_no_script_and_fetches_nothing(page):
    for element in page.query_selector_all(".hover, a, td"):
        element.dispatch_event("mouseover")
    assert page.evaluate("typeof window.PWNED") == "undefined"
    assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []
    handlers = "all => all.flatMap(e => [...e.attributes]).filter(a => /^on/.test(a.name)).length"
    assert page.eval_on_selector_all("body *", handlers) == 0
    assert page.query_selector_all("a[href^=javascript], [src*='192.0.2.1']") == []


def test_a_title_of_another_dataset_is_shown_as_it_is_written(page):
    for place in ("figcaption", "td", "p"):
        assert any("<script>window.PWNED=1" in text for text in
                   page.locator(place).all_inner_texts()), place  # fmt: skip
