"""Numbers in the paper's prose are computed, a source's own, or settings; no result is typed."""

import functools
import re
import tomllib
from pathlib import Path

import jupytext
import pytest
from conftest import ROOT

from deathmatch.analysis import published

TEXTS = [*sorted((ROOT / "paper/source").glob("*.md")), *sorted((ROOT / "notebooks").glob("*.md"))]

# Numbers that are no quantity, or computed in place.
SPARED = [
    r"\{(eval|value)\}`[^`]+`",  # computed
    r"`[^`]*`",  # code and names of files
    r"@[\w-]+(, ch\. \d+)?",  # citations and references
    r"\{[#.][^}]*\}",  # attributes of headings
    r"\b(19|20)\d\d\b",  # years
    # Names with a number.
    r"HTTP/1\.[01]|\b(OTP|Linux|Python|FreeBSD|Node|Tornado|CherryPy|Twisted) \d+(\.\d+)*",
    r"\b20\.3 takes",
    r"\b\d+ ?% (percentile|bootstrap|interval)|\b\d+th percentile",  # kinds of statistic
]

# Other numbers that may be typed, each with the reason.
ALLOWED = {
    "notebooks/00-method.md": {
        "about 18 % more throughput": "the abstract of Pariag and others, cited there",
        "174 of 380 frameworks within 1.5 %": "the thread cited there",
    },
    "notebooks/01-backlog.md": {
        "1 s, 3 s, 7 s": "the kernel's retries, from the book cited there",
        "1, 3 and 7 s": "likewise",
        "10 000": "the sources' highest rate, with a space",
    },
    "notebooks/10-accept-queue.md": {
        "1, 3 and 7 s": "the kernel's retries of a SYN",
        "0.2, 0.4, 0.8, 1.6 and 3.3 s": "the kernel's retries of a request, doubling from 0.2 s",
        "0.2 s": "the first of them",
        "1.15 to 2 s": "the window in which connections are counted",
        "within 0.15 s": "likewise",
        "means 512": "four queues of 128",
        "50 ms": "an example of a path, and what follows from it",
        "50 connections": "likewise",
    },
    "notebooks/06-storage.md": {
        "24 to 32 bytes": "sizes of CPython's int and float, by sys.getsizeof",
        "64 bytes": "OTP's limit of a heap binary",
    },
}


def prose(path: Path) -> str:
    """Return the text of a notebook or of a front without code and without what is computed."""
    if path.parent.name == "source":
        text = path.read_text()
    else:
        cells = jupytext.read(path).cells
        text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    for reason in ALLOWED.get(str(path.relative_to(ROOT)), {}):
        text = text.replace(reason, "")
    for pattern in SPARED:
        text = re.sub(pattern, "", text)
    return text


@functools.cache
def known(path: Path) -> set[float]:
    """Return the numbers of the sources that a text cites and those that the study is set to."""
    found = set()
    for source in published.FACTORS:
        if f"@{source}" not in path.read_text():
            continue
        frame = published.load(source)
        found |= set(frame["value"].abs())
        found |= {number(text) for line in frame["printed"] for text in NUMBER.findall(line)}
        for factor, kind in published.FACTORS[source].items():
            if kind.is_numeric():
                found |= set(frame[factor].drop_nulls())
    for folder in ("experiments", "config/testbeds"):
        for file in (ROOT / folder).glob("*.toml"):
            found |= set(leaves(tomllib.loads(file.read_text())))
    return found


def leaves(value: object) -> list[float]:
    """Return every number in a TOML value, those in its text included."""
    if isinstance(value, bool):
        return []
    if isinstance(value, int | float):
        return [float(value)]
    if isinstance(value, str):
        return [number(text) for text in NUMBER.findall(value)]
    inner = value.values() if isinstance(value, dict) else value
    return [leaf for part in inner for leaf in leaves(part)]


NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w])")


def number(text: str) -> float:
    return float(text.replace(",", ""))


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_every_number_in_the_prose_is_computed_published_or_a_setting(path):
    typed = [text for text in NUMBER.findall(prose(path)) if number(text) not in known(path)]
    assert typed == [], f"compute them with {{eval}}, or say in ALLOWED why not: {typed}"


# The maximum, minimum or first row of a filter may silently be another row of the source.
PICKED = re.compile(
    r"\b(?:walkin|williams|day|ostinelli|moritz|rate)\.filter\([^\n]*?\)\[.value.\]"
    r"(?:\.(?:max|min|first|item)\(|\[0)"
)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_a_number_of_a_source_is_picked_by_name(path):
    assert PICKED.findall(path.read_text()) == [], "published.single_value refuses two numbers"


def test_every_allowed_number_is_still_in_the_prose():
    for name, reasons in ALLOWED.items():
        text = (ROOT / name).read_text()
        assert [words for words in reasons if words not in text] == [], name
