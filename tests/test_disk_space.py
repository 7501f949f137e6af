"""What a run may take of the disk: from the plan, against what is free."""

import re
import shutil

import pytest
from conftest import ROOT, Tree

from deathmatch.errors import UserError
from deathmatch.plan import files, matrix
from deathmatch.plan.server import Packages
from deathmatch.run import disk_space

TRIALS = matrix.trials("smoke", ["null"], ["backlog"])
RATES = len(TRIALS[0].plan.rates_rps)


def test_a_trial_takes_as_its_client_does_and_a_build_as_its_registry():
    need = disk_space.needed(TRIALS, map(files.server, ["null", "go-gonet"]))
    points = len(TRIALS) * RATES
    assert need.bytes_of["data"] == points * disk_space.POINT_BYTES["httperf"]
    assert need.bytes_of["build"] == disk_space.OWN_BYTES + disk_space.BUILD_BYTES["go"]
    assert need.total_bytes == sum(need.bytes_of.values()) > need.bytes_of["data"]
    for many in matrix.trials("smoke", ["ws-null"], ["c10k"]):
        messages = sum(many.plan.rates_rps) * many.duration_s
        wanted = disk_space.POINT_BYTES["wsload"] + messages * disk_space.EVENT_BYTES
        assert disk_space.needed([many], []).bytes_of["data"] == round(wanted)


def test_each_load_generator_has_a_size():
    names = {files.experiment(name).client for name in files.names("experiment")} - {None}
    assert names == set(disk_space.POINT_BYTES)
    assert set(disk_space.BUILD_BYTES) <= set(Packages.model_fields)


def test_it_is_said_and_refused_only_if_it_clearly_does_not_fit(tmp_path):
    free = shutil.disk_usage(tmp_path).free
    little = disk_space.Need({"data": 1_000_000, "build": 0, "paper": 2_000_000}, 1, 0)
    assert re.fullmatch(
        r"disk: up to 3 MB for 1 trial and the paper; [\d.]+ [GM]B are free",
        disk_space.line(little, tmp_path),
    )
    disk_space.check(little, tmp_path)
    tight = disk_space.Need({"data": free, "build": free // 2, "paper": 0}, 2, 3)
    said = disk_space.line(tight, tmp_path)
    assert "for 2 trials, 3 builds and the paper" in said
    assert "which may not do: make room, or choose less" in said
    disk_space.check(tight, tmp_path)
    much = disk_space.Need({"data": 2 * free, "build": free, "paper": 0}, 2, 3)
    with pytest.raises(UserError, match=r"of disk, and .* are free\n  make room, or choose less"):
        disk_space.check(much, tmp_path)


def test_a_run_says_it_in_its_first_lines(shared_tree: Tree):
    done = shared_tree.snakemake("-n", dataset="smoke", servers="null").succeeded()
    about, disk = re.findall(r"^(?:dataset|disk).*$", done.text, re.MULTILINE)[:2]
    assert about.startswith("dataset smoke") and disk.startswith("disk: up to ")
    assert f"{ROOT}" not in disk
