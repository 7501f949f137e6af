"""The project's version is defined once, in CITATION.cff, and has release notes."""

import re
import subprocess

from conftest import ROOT

from deathmatch.plan import paths

SOURCES = (
    "*.py", "*.md", "*.toml", "*.nix", "*.js", "*.cff", "shell", "paper/source", ":!data",
)  # fmt: skip


def test_the_version_is_of_the_month_of_its_release_and_has_release_notes():
    year, month, number = map(int, paths.version().split("."))
    assert paths.project()["date-released"].startswith(f"{year}-{month:02}-") and number > 0
    notes = re.findall(r"^## Version (\S+)$", (ROOT / "experiments/CHANGELOG.md").read_text(), re.M)
    assert notes[0] == paths.version()


def test_no_other_source_repeats_the_version():
    search = ["git", "-C", str(ROOT), "grep", "--fixed-strings", "--files-with-matches"]
    files = subprocess.run(
        [*search, paths.version(), "--", *SOURCES], capture_output=True, text=True, check=True
    ).stdout.split()
    assert set(files) == {paths.CITATION, "experiments/CHANGELOG.md"}
