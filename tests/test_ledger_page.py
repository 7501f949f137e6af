"""The ledger in a browser: it filters, sorts and opens; without its script it is a table."""

import re

import polars as pl
import pytest
from conftest import patient
from playwright.sync_api import Page

from deathmatch.analysis import claims, judging, published
from deathmatch.paper import ledger_page
from deathmatch.plan.root import ROOT

SIDES = [
    {"what": "Yucan, backlog 128", "median": 8000.0, "low": 7000.0, "high": 9000.0, "trials": 3,
     "raw": "data/tiny/backlog/raw.tar.xz: yucan/backlog=128"},
    {"what": "Yucan, backlog 5", "median": 4000.0, "low": 3900.0, "high": 4100.0, "trials": 3,
     "raw": "data/tiny/backlog/raw.tar.xz: yucan/backlog=5"},
]  # fmt: skip
NEED = {"needed": "4 CPUs of the server beyond the client's", "there": "1", "met": False}
FOUND = {
    "now": judging.REPLICATED, "now_effect": 2.0, "now_low": 1.8, "now_high": 2.2, "now_trials": 3,
    "now_quantity": "highest reply rate", "now_unit": "req/s", "now_sides": SIDES,
    "now_direction": judging.REPLICATED, "now_why": "", "same": False,
    "then": judging.UNREACHED, "then_needs": [NEED | {"always": True}],
}  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Return three claims as nobody measured them, the first of them with both verdicts."""
    chosen = {"walkin-backlog-5-to-128-all-cores", "ostinelli-order", "day-ets-bytes"}
    made = [claims.row_of("never-measured", c) for c in published.claims() if c["id"] in chosen]
    made[0] |= FOUND
    return pl.DataFrame(made, schema=claims.LEDGER).with_columns(name="source")


@pytest.fixture
def page(rows, browser):
    body = "".join(
        f"<tr><td>{row['source']}</td><td>{row['now']}</td></tr>" for row in rows.to_dicts()
    )
    head = "<thead><tr><th>Source</th><th>Now</th></tr></thead>"
    table = f'<figure id="tbl-claims"><table>{head}<tbody>{body}</tbody></table></figure>'
    script = re.search(r"<script.*</script>", ledger_page.block(rows, "tbl-claims"))[0]
    code = (ROOT / "paper/source/ledger.js").read_text()
    shown = patient(browser.new_page())
    shown.set_content(f"{table}{script}<script>{code}</script>")
    return shown


def visible(page: Page) -> list[str]:
    found = page.locator("tbody tr:not(.opened):visible td:first-child").all_inner_texts()
    return [text.strip() for text in found]


def test_the_ledger_filters_sorts_and_opens(page):
    assert visible(page) == ["walkin2009", "ostinelli2011", "day2011"]
    page.get_by_role("button", name="Source").click()
    assert visible(page) == ["day2011", "ostinelli2011", "walkin2009"]
    page.get_by_label("Now").select_option(judging.REPLICATED)
    assert visible(page) == ["walkin2009"]
    assert page.locator("output").inner_text() == "1 of 3 claims"
    page.locator("tbody button:visible").click()
    opened = page.locator("tr.opened").inner_text()
    for text in (
        "1.41 to 4 times", "highest reply rate (req/s), Yucan, backlog 128 over Yucan, backlog 5",
        "8\u202f000 [7\u202f000, 9\u202f000] req/s, n = 3", "there: 1 (not met)",
        "data/tiny/backlog/raw.tar.xz: yucan/backlog=5", "Then: condition not reached",
    ):  # fmt: skip
        assert text in opened, text
    page.get_by_label("Source").select_option("day2011")
    assert visible(page) == [] and not page.locator("tr.opened").is_visible()


def test_a_claim_that_was_not_run_says_why(rows):
    of = ledger_page.details(rows.row(2, named=True))
    assert [verdict["heading"] for verdict in of["verdicts"]] == ["Then and now: not run"]
    assert of["verdicts"][0]["lines"][-1] == "Not run: the dataset has no experiment storage."
