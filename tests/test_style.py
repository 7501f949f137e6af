"""Rules that every file of the project must keep."""

import functools
import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, project_files
from imports import ours

FILES = project_files()
PYTHON = [path for path in FILES if path.suffix == ".py"]
# The packages, in the order in which data flows, and the lines that each may have.
BUDGETS = {
    name: int(most.replace(",", ""))
    for name, most in re.findall(
        r"^\| `([a-z_]+)/` \|.*\| ([\d,]+) \|$",
        (ROOT / "deathmatch" / "README.md").read_text(),
        re.MULTILINE,
    )
}


@functools.cache
def text_of(path: Path) -> str:
    """Return a file's text; "" of a binary file."""
    read = (ROOT / path).read_bytes()
    return "" if b"\0" in read else read.decode(errors="replace")


@pytest.mark.parametrize(
    "words",
    [
        ["ruff", "check"],
        ["ruff", "format", "--check"],
        ["snakefmt", "--check", "Snakefile", "workflow"],
    ],
    ids=" ".join,
)
def test_linter_passes(words):
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def lines_with(pattern: str, spared: str = "$^") -> list[str]:
    """Return file:line of every line that matches, but for those that match `spared`."""
    found = []
    for path in FILES:
        text = text_of(path)
        if not re.search(pattern, text):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(pattern, line) and not re.search(spared, line):
                found.append(f"{path}:{number}: {line.strip()[:120]}")
    return found


# Each pattern is written so that it does not match itself.
PLACES = r"/(work/(main|share[d])|roo[t]/|hom[e]/\w|User[s]/\w|tmp/(pytes[t]|bas[h]_))"
HOSTS = (
    r"pythonhos[t]ed|pypi[.]or[g]|npmj[s]\.|crates[.]i[o]|proxy[.]golan[g]|maven[.]or[g]"
    r"|repo1?[.]mave[n]|apache[.]org/mave[n]|deb[.]debia[n]|snapshot[.]debia[n]|hex[.]p[m]"
    r"|rubygem[s][.]|hackag[e]\.|artifactor[y]|nexu[s]\."
)


def test_no_file_names_a_place_on_somebodys_machine():
    assert lines_with(PLACES) == []
    assert lines_with(re.escape(f"{ROOT}/")) == []


def test_no_file_names_a_package_registry_host():
    # Cargo's lock names crates by the address of their index, whatever mirror is used.
    assert lines_with(HOSTS, spared=r"github\.com/rust-lang/crates[.]io-index") == []


def test_lock_files_carry_hashes_and_no_address():
    lists = ROOT / "toolchains" / "python"
    locks = [path.relative_to(ROOT) for path in lists.glob("*.txt")]
    assert len(locks) == 5
    locks += [path for path in FILES if path.name == "requirements.txt"]
    for path in locks:
        text = (ROOT / path).read_text()
        assert "://" not in text, path
        pinned = len(re.findall(r"^[a-zA-Z0-9._-]+(?:\[\S+\])?==", text, re.MULTILINE))
        blocks = re.split(r"^(?=[a-zA-Z0-9])", text, flags=re.MULTILINE)[1:]
        assert pinned == len(blocks) and all("--hash=sha256:" in block for block in blocks), path


def test_no_comment_postpones_work():
    assert lines_with(r"\b(TOD[O]|FIXM[E]|XX[X])\b") == []


def test_every_public_function_has_a_docstring():
    words = ["ruff", "check", "--select", "D100,D101,D102,D103,D419", "--isolated", "deathmatch"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_scripts_can_be_run_and_are_sound():
    for path in FILES:
        first = text_of(path)[:40].split("\n")[0]
        runs = bool((ROOT / path).stat().st_mode & 0o100)
        assert runs == first.startswith("#!/"), path
        if first == "#!/bin/sh":
            done = subprocess.run(["sh", "-n", path], cwd=ROOT, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr


def test_no_group_by_leaves_the_order_of_its_rows_to_chance():
    """A chart's bytes follow the order of its rows, and polars' own differs from run to run."""
    # These sort by all columns by which they group.
    spared = r"deathmatch/(load/wsload(_records)?|analysis/stats)\.py"
    inside = r"[^()]|\((?:[^()]|\([^()]*\))*\)"
    found = []
    for path in FILES:
        if path.parts[0] in ("deathmatch", "notebooks") and not re.match(spared, str(path)):
            calls = re.findall(rf"\.group_by\((?:{inside})*\)", text_of(path))
            found += [f"{path}: {call}" for call in calls if "maintain_order=True" not in call]
    assert found == []


def test_packages_import_only_those_before_them():
    """A package may change without those before it in the README's table."""
    order = ("errors", *BUDGETS)
    wrong, met = set(), set()
    for path in PYTHON:
        if path.parts[0] != "deathmatch" or path.name == "__main__.py":
            continue
        own = path.parts[1].removesuffix(".py").replace("__init__", order[0])
        met.add(own)
        before = order[: order.index(own) + 1]
        used = {name.split(".")[1] for name in ours(text_of(path))}
        wrong |= {f"{path}: {name}" for name in used - {*before}}
    assert wrong == set() and met == set(order)


MOST_LINES, MOST_MODULES = 30_000, 250


def test_each_package_keeps_to_its_budget():
    """The lines that each package may have are those of deathmatch/README.md."""
    modules = [path for path in PYTHON if path.parts[0] == "deathmatch"]
    lines = {path.parts[1]: 0 for path in modules if path.parts[2:]}
    for path in modules:
        if path.parts[2:]:
            lines[path.parts[1]] += len(text_of(path).splitlines())
    assert set(BUDGETS) == set(lines)
    over = {name: count for name, count in lines.items() if count > BUDGETS[name]}
    assert not over, f"over their budgets in deathmatch/README.md: {over}"
    assert sum(BUDGETS.values()) <= MOST_LINES and len(modules) <= MOST_MODULES
