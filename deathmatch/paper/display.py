"""Show figures, tables and numbers in a notebook so that the paper can pick them up.

    from deathmatch.paper import display, theme
    dataset = display.setup(dataset)
    display.figure(chart, label="fig-backlog", caption="Reply rate by *backlog*.",
                   alt="Curves …", source="data/quick/backlog/points.parquet")
    display.table(frame, label="tbl-loss", caption="Where SYNs go.", source=…,
                  names={"server": "Server"}, decimals={"loss_percent": 1})
    display.values(best_backlog=best)     # {value}`01-backlog.best_backlog` in another's prose

Each call shows its object at once and returns None. A figure is written to
`figures/<dataset>/<label>.json`, `.svg`, `.png` and `.pdf`, the same bytes each time. What the
paper needs travels in the notebook's outputs under `MIME`, as
`{"kind": "figure" | "table" | "absent" | "values" | "eval", …}`.
"""

import html
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import altair
import polars as pl
import vl_convert
from great_tables import GT
from IPython import get_ipython
from IPython.display import display as show

from deathmatch.analysis import phrases, provenance
from deathmatch.data import table_files
from deathmatch.errors import UserError
from deathmatch.paper import MIME, theme, titles
from deathmatch.plan import paths
from deathmatch.plan.paths import ROOT

VEGALITE = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
# The dataset that the notebooks name first, and the one that JupyterLab shows until it is measured.
DEFAULT, FALLBACK = "quick", "reference"
# Set while a notebook is executed for the paper: the folder of its figures.
FIGURES = "DEATHMATCH_FIGURES"
_LABEL = re.compile(r"(fig|tbl)-[a-z0-9]+(-[a-z0-9]+)*")
_folder: Path | None = None


def setup(dataset: str, figures: Path | None = None) -> str:
    """Choose the theme and the folder for figures: `figures/<dataset>/` unless one is given.

    Returns the dataset. In JupyterLab, where no folder is given, it is the reference dataset if the
    notebooks' default was not measured; raises UserError if another dataset has no tables, shows
    any UserError as its sentence alone, and shows a number or text as the paper's prose does.
    """
    global _folder
    paths.check_dataset(dataset, "parameter dataset, in the first cell")
    given = figures or os.environ.get(FIGURES)
    theme.register()
    if given:
        _folder = Path(given)
    else:
        if shell := get_ipython():
            shell.set_custom_exc((UserError,), _say)
            # jupyterlab-myst shows an {eval} role by the plain text of its value.
            for kind in (str, int, float):
                shell.display_formatter.formatters["text/plain"].for_type(kind, _print_as_prose)
        asked, dataset = dataset, _measured(dataset)
        # The figures of FALLBACK must not replace those of the dataset that was asked for.
        _folder = ROOT / ("figures" if dataset == asked else "build/figures") / dataset
    return dataset


def _say(shell: Any, _kind: type, error: Exception, _trace: Any, tb_offset: Any = None) -> None:
    print(f"deathmatch: {error}", file=sys.stderr)


def _print_as_prose(thing: object, printer: Any, _cycle: bool) -> None:
    """Print a value as prose shows it; one inside a list or dict as Python does."""
    printer.text(text_of(thing) if len(printer.stack) == 1 else repr(thing))


def _measured(dataset: str) -> str:
    measured = table_files.measured()
    if dataset == DEFAULT and dataset not in measured and FALLBACK in measured:
        print(f"data/{DEFAULT} was not measured here; this shows data/{FALLBACK}.")
        return FALLBACK
    if dataset not in measured:
        raise UserError(
            f"the dataset {dataset!r} has no tables",
            where="parameter dataset, in the first cell",
            remedy=f"measured here: {', '.join(measured) or 'none'}; put one of these there, "
            f"or measure it: snakemake --config dataset={dataset}",
        )
    return dataset


def figure(
    chart: altair.TopLevelMixin | None,
    *,
    label: str,
    caption: str,
    alt: str,
    source: str | Path | list[str | Path] = (),
) -> None:
    """Write a chart in four formats and show it.

    `label` begins with "fig-" and is what prose cites as @fig-…; `caption` is Markdown; `alt`
    says in words what the chart shows; `source` names the data files drawn, from which a
    report also learns n and the testbed, and the paper how the testbed differs. Numbers in the
    chart are rounded to six significant digits.
    None, or a chart without a row of data, is `left_out`, as a table without a row is.
    Raises UserError before `display.setup`, for a bad label or an empty caption or alt text.
    """
    _check(label, "fig", caption)
    if not alt.strip():
        raise UserError("the figure has no alt text", label, "say in words what it shows")
    if _folder is None:
        raise UserError("a figure was made before display.setup(dataset)", label, "call it first")
    if chart is None:
        return left_out(label)
    try:
        spec = _rounded(chart.to_dict())
    except altair.MaxRowsError:
        raise UserError(
            "the chart holds more than 5000 rows", label, "summarise or thin the data first"
        ) from None
    if spec.get("datasets") and not any(spec["datasets"].values()):
        return left_out(label)
    try:
        files = render(spec)
    except ValueError:
        raise UserError(
            "the chart holds a number that is not finite", label, "leave such rows out"
        ) from None
    fonts = set(re.findall(rb"/BaseFont /(\S+)", files["pdf"]))
    if len(fonts) > 1:
        raise UserError(
            f"the chart uses {len(fonts)} fonts or weights", label,
            "keep to the theme's one font, and to characters that it has",
        )  # fmt: skip
    _folder.mkdir(parents=True, exist_ok=True)
    for suffix, content in files.items():
        aside = _folder / f".{label}.{suffix}.part"
        aside.write_bytes(content)
        aside.replace(_folder / f"{label}.{suffix}")
    shown = _sources(source)
    about = {"kind": "figure", "label": label, "caption": caption, "alt": alt, "source": shown}
    about["measured"] = provenance.sentence(shown, drawn=_intervals(spec))
    svg = files["svg"].decode()
    drawn = {"image/svg+xml": svg, "text/plain": label}
    if FIGURES not in os.environ:
        drawn["text/html"] = _inline(svg)
    show({MIME: about} | drawn, raw=True)


def _inline(svg: str) -> str:
    """Return a drawing as a part of JupyterLab's page: pointing at a mark shows its values.

    Labels that the browser's font makes longer are not cut off.
    """
    mark = r'<(path|line)( aria-label="([^"]*)" role="graphics-symbol"[^>]*?)/>'
    svg = re.sub(mark, r"<\1\2><title>\3</title></\1>", svg)
    return svg.replace("<svg ", '<svg style="overflow: visible" ', 1)


def left_out(label: str) -> None:
    """Say in place of a figure or table that the data have none; no paper is made of that."""
    if _folder is not None:
        for old in _folder.glob(f"{label}.*"):
            old.unlink()
    figure = label.startswith("fig-")
    text = "No figure: there is no point to draw." if figure else "No table: there is no row."
    show({MIME: {"kind": "absent", "label": label, "text": text},
          "text/plain": f"{label}: left out. {text}"}, raw=True)  # fmt: skip


def _intervals(spec: dict) -> bool:
    """Return whether a chart draws from one bound to another, as intervals do."""
    return re.search(r'"[xy]2": {"field": "high', json.dumps(spec)) is not None


def render(spec: dict) -> dict[str, bytes]:
    """Return a Vega-Lite specification as {"json", "svg", "png", "pdf"}; fetches nothing.

    Raises ValueError for a number that JSON has no word for, at which a browser would stop.
    """
    written = json.dumps(spec, sort_keys=True, separators=(",", ":"), allow_nan=False)
    svg = vl_convert.vegalite_to_svg(spec, vl_version=VEGALITE, allowed_base_urls=[])
    return {
        "json": written.encode(),
        "svg": svg.encode(),
        "png": vl_convert.svg_to_png(svg, scale=2),
        "pdf": _ordered(vl_convert.svg_to_pdf(svg)),
    }


def _ordered(pdf: bytes) -> bytes:
    """Return the PDF with its resources in order of name; vl-convert's order is a hash map's.

    Only whole lines swap places within a dictionary, so every object keeps its offset.
    """
    entries = rb"(?:^ +/\w+ \d+ 0 R\n){2,}"
    return re.sub(entries, lambda m: b"".join(sorted(m[0].splitlines(True))), pdf, flags=re.M)


def table(
    frame: pl.DataFrame | None,
    *,
    label: str,
    caption: str,
    source: str | Path | list[str | Path] = (),
    names: dict[str, str] | None = None,
    decimals: dict[str, int] | None = None,
) -> None:
    """Show a frame.

    `names` maps columns to headings (default: the column's name with its unit), and `decimals`
    sets digits after the point (default: integers with thousands separated, other numbers to three
    significant digits). Null shows as an en dash; text is Markdown. None, or a frame without a
    row, is `left_out`.
    """
    _check(label, "tbl", caption)
    if frame is None:
        return left_out(label)
    made = _formatted(frame, names or {}, decimals or {})
    if frame.is_empty():
        return left_out(label)
    raw = made.with_id(label).as_raw_html()
    about = {"kind": "table", "label": label, "caption": caption, "html": plain_table(raw)}
    show({MIME: about | {"source": _sources(source)}, "text/html": raw, "text/plain": label},
         raw=True)  # fmt: skip


def _formatted(frame: pl.DataFrame, names: dict, decimals: dict) -> GT:
    for column in [*names, *decimals]:
        if column not in frame.columns:
            raise UserError(
                f"the table has no column {column!r}", remedy=f"it has {', '.join(frame.columns)}"
            )
    made = GT(titles.without_html(frame)).cols_label(
        {c: names.get(c, theme.title(c)) for c in frame.columns}
    )
    for column, kind in frame.schema.items():
        if column in decimals:
            made = made.fmt_number(column, decimals=decimals[column], sep_mark=phrases.THIN)
        elif kind.is_integer():
            made = made.fmt_integer(column, sep_mark=phrases.THIN)
        elif kind.is_float():
            made = made.fmt_number(column, n_sigfig=3, sep_mark=phrases.THIN)
        elif kind == pl.String:
            made = made.fmt_markdown(column)
        elif kind == pl.Boolean:
            made = made.fmt_tf(column, tf_style="yes-no")
    return made.sub_missing(missing_text="–")


def plain_table(raw: str) -> str:
    """Return the bare `<table>` of great_tables' HTML: no styling, links to the explorer alone."""

    def clean(tag: re.Match) -> str:
        name, attributes = tag[1], tag[2]
        keep = re.findall(r'(?:col|row)span="[2-9]\d*"|href="explore\.html#[^"]*"', attributes)
        side = re.search(r"gt_(right|center|left)", attributes)
        if name in ("td", "th") and side:
            keep.append(f'style="text-align: {side[1]}"')
        return f"<{' '.join([name, *keep])}>"

    return re.sub(r"<(\w+)([^>]*)>", clean, re.search(r"<table.*?</table>", raw, re.S)[0])


def values(**named: object) -> None:
    """Record numbers or phrases for {value} roles, as `<notebook>.<name>`, of any other text."""
    texts = {name: text_of(thing) for name, thing in named.items()}
    shown = "\n".join(f"{name} = {text}" for name, text in texts.items())
    show({MIME: {"kind": "values", "values": texts}, "text/plain": shown}, raw=True)


def evaluate(expressions: list[str], names: dict[str, Any]) -> None:
    """Evaluate prose's {eval} roles at their place in the notebook; used by `notebook`."""
    results = []
    for expression in expressions:
        try:
            results.append(text_of(eval(expression, names)))
        except Exception as error:
            raise UserError(
                f"{{eval}}`{expression}` fails: {type(error).__name__}: {error}"
            ) from None
    show({MIME: {"kind": "eval", "texts": results}, "text/plain": ""}, raw=True)


def text_of(thing: object) -> str:
    """Return what prose shows for a value: floats to three significant digits, else str()."""
    if isinstance(thing, bool) or not isinstance(thing, int | float):
        return str(thing)
    return phrases.number(thing) if isinstance(thing, int) else f"{thing:.3g}"


def _check(label: str, prefix: str, caption: str) -> None:
    if not _LABEL.fullmatch(label) or not label.startswith(f"{prefix}-"):
        raise UserError(
            f"{label!r} is no label for this",
            remedy=f"use {prefix}- and lower-case letters, digits and hyphens",
        )
    if not caption.strip():
        raise UserError("the caption is empty", label, "say what it shows and under what load")


def _sources(source: str | Path | list[str | Path]) -> list[str]:
    paths = [source] if isinstance(source, str | Path) else list(source)
    shown = []
    for path in map(Path, paths):
        inside = path.is_absolute() and path.is_relative_to(ROOT)
        shown.append(html.escape(str(path.relative_to(ROOT) if inside else path), quote=False))
    return shown


def _rounded(spec: dict) -> dict:
    """Return a specification with its numbers to six significant digits."""
    return json.loads(json.dumps(spec), parse_float=lambda text: float(f"{float(text):.6g}"))
