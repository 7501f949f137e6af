"""How long builds will take: of which kind they are, what was measured, and in which order."""

import json

import pytest
from conftest import Tree

from deathmatch.builds import nix, server_commands
from deathmatch.plan import files
from deathmatch.run import progress


@pytest.fixture
def unbuilt(tmp_path, monkeypatch):
    """A machine on which nothing was built yet; returns where a server's build would be."""
    monkeypatch.setattr(server_commands, "build_dir", lambda name: tmp_path / name)
    monkeypatch.setattr(nix, "chosen", lambda: False)
    return tmp_path


def test_a_build_takes_as_long_as_the_last_one_here(unbuilt):
    (unbuilt / "null").mkdir()
    (unbuilt / "null/built.json").write_text(json.dumps({"ok": True}))
    assert progress.build_s(files.server("null")) == progress.OWN_S
    (unbuilt / "null/built.json").write_text(json.dumps({"ok": True, "wall_us": 77_000_000}))
    assert progress.build_s(files.server("null")) == 77


def test_two_are_built_at_a_time_and_with_nix_one(unbuilt, monkeypatch):
    own_s, pypi_s, cargo_s = (
        progress.OWN_S,
        *map(progress.REGISTRY_S.get, ("pypi", "cargo")),
    )
    servers = [files.server(name) for name in ("null", "tornado", "gevent", "ws-null")]
    assert progress.builds_s([]) == 0
    assert progress.builds_s(servers[:3]) == max(pypi_s, own_s + pypi_s)
    assert progress.builds_s(servers) == cargo_s > own_s + 2 * pypi_s
    monkeypatch.setattr(nix, "chosen", lambda: True)
    assert progress.builds_s(servers) == cargo_s + own_s + 2 * pypi_s


def test_the_longest_build_begins_first(tree: Tree):
    for name in ("a", "b", "z"):
        tree.server(name, "ok")
    tree.dataset("tiny", ["a", "b", "z"], [100])
    tree.write("build/servers/b/built.json", json.dumps({"wall_us": 77_000_000}))
    targets = [f"build/servers/{name}/build.json" for name in ("a", "b", "z")]
    # One at a time, so that they end in the order in which they begin.
    tree.snakemake(*targets, "--cores=1", dataset="tiny").succeeded()
    ended = sorted(targets, key=lambda target: (tree.path / target).stat().st_mtime_ns)
    assert ended[0] == targets[1]
    assert json.loads((tree.path / targets[0]).read_text())["wall_us"] > 0
