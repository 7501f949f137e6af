"""Packages of servers from registries: the commands that install them, and their lists."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from deathmatch.builds import package_installs
from deathmatch.plan import files
from deathmatch.plan.server import OWN_NAMES

BUILD = ROOT / "build" / "servers" / "x"
# The word by which each registry's program is known in its command.
PROGRAMS = {
    "pypi": "-m venv", "npm": "npm ci", "cargo": "cargo install", "go": "GOBIN=",
    "maven": "toolchains/maven/fetch",
}  # fmt: skip


def installed(name: str, nixed: bool) -> list[str]:
    """Return the registries of which a server's build installs something, in their order."""
    server = files.server(name)
    # If the environment is there already, the command only says so.
    commands = package_installs.commands(server, BUILD, nixed)
    return [key for each in commands for key, word in PROGRAMS.items() if word in each]


@pytest.mark.parametrize(
    ("server", "debian", "nix"),
    [
        ("node-ws", ["pypi", "npm"], ["npm"]),
        # Under Nix the runtime comes from nixpkgs, not from the list.
        ("bun", ["pypi", "npm"], []),
        ("coder-ws", ["pypi", "go"], ["go"]),
        ("rust", ["cargo"], ["cargo"]),
        ("netty", ["maven"], ["maven"]),
        ("nginx", [], []),
    ],
)
def test_each_list_is_installed_by_its_own_program(server, debian, nix):
    assert installed(server, nixed=False) == debian
    assert installed(server, nixed=True) == nix


def test_every_list_in_a_folder_is_named_by_its_server():
    """A list that `[packages]` does not name would be installed by a build of the folder's own."""
    own = {name: key for key, name in OWN_NAMES.items() if name}
    found = 0
    for server in files.servers():
        for path in server.folder.iterdir():
            key = own.get(path.name)
            # That crate only carries the sources that the folder's build compiles.
            if key and server.name != "uwebsockets":
                assert server.packages.lists.get(key) == path.name, path
                found += 1
    assert found > 10 and set(own.values()) == set(OWN_NAMES) - {"pypi"}


def test_addresses_are_stripped_from_lists_and_nothing_else(tmp_path):
    own = (ROOT / "servers/node-ws/package-lock.json").read_text()
    resolved = r'\g<0>\1"resolved": "http://mirror.invalid/a.tgz",\n'
    list_ = tmp_path / "package-lock.json"
    list_.write_text(re.sub(r'( +)"version": .*\n(?= +"integrity")', resolved, own))
    assert "mirror.invalid" in list_.read_text()
    script = ROOT / "toolchains" / "strip_addresses.py"
    subprocess.run([sys.executable, script, list_], check=True)
    assert list_.read_text() == own


def test_every_server_of_a_post_but_instruments_has_a_release():
    theirs = [one for one in files.servers() if one.source != "ours" and not one.instrument]
    forgotten = [one.name for one in theirs if not one.release]
    assert not forgotten, f"no [release] in servers/{{{','.join(forgotten)}}}/server.toml"


def test_a_release_has_a_number_and_an_old_one_a_remark():
    for server in files.servers():
        release = server.release
        if release:
            assert any(letter.isdigit() for letter in release.name), server.name
            # A release that is old or has no date needs a remark.
            assert (release.year or 0) >= 2026 or release.remark, server.name


def test_the_number_of_a_release_is_that_of_its_list():
    named = 0
    for server in files.servers():
        if not server.release:
            continue
        for path in Path(ROOT, "servers", server.name).glob("requirements.txt"):
            for name, number in re.findall(r"^([\w.-]+)==(\S+)", path.read_text(), re.M):
                words = server.release.name.lower().replace(",", "").split()
                if name.lower() in words:
                    named += 1
                    assert number == words[words.index(name.lower()) + 1], (server.name, name)
    assert named > 10
