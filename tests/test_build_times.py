"""How long builds will take, by their kind and what was measured; test_busy.py has their order."""

import json

import pytest

from deathmatch.builds import nix, server_build
from deathmatch.plan import files
from deathmatch.run import progress


@pytest.fixture
def unbuilt(tmp_path, monkeypatch):
    """A machine on which nothing was built yet; returns where a server's build would be."""
    monkeypatch.setattr(server_build, "build_dir", lambda name: tmp_path / name)
    monkeypatch.setattr(nix, "chosen", lambda: False)
    return tmp_path


def test_a_build_takes_as_long_as_the_last_one_here(unbuilt):
    (unbuilt / "null").mkdir()
    (unbuilt / "null/built.json").write_text(json.dumps({"ok": True}))
    assert progress.build_s(files.server("null")) == progress.OWN_S
    (unbuilt / "null/built.json").write_text(json.dumps({"ok": True, "wall_us": 77_000_000}))
    assert progress.build_s(files.server("null")) == 77
    (unbuilt / "null/build.json").write_text('{"ok": tr')
    assert progress.build_s(files.server("null")) == 77, "a damaged record is none"


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
