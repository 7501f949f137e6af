"""Which tests a change needs, as pytest's -m takes it: `tests/changed.py [BASE | all]`.

A kind of KINDS is left out unless one of its files differs between the commit BASE and HEAD;
default: where HEAD left origin/main, or the commit before HEAD if that is main. None is left out
with `all`, nor where git does not know such a commit.
"""

import subprocess
import sys

# Each kind with git's patterns, in which * matches /, for the files that its tests are about.
KINDS = {
    "fuzz": [
        "deathmatch/agent", "deathmatch/analysis/published.py", "deathmatch/cli",
        "deathmatch/data", "deathmatch/errors.py", "deathmatch/load",
        "deathmatch/measure/server_process.py", "deathmatch/plan", "deathmatch/run/cli_config.py",
        "tests/fuzz", "tests/test_damaged.py",
    ],
    "nix": [
        ".github/workflows/nix-*", "clients/*.nix", "clients/*/client.toml",
        "config/datasets/reference.toml", "deathmatch/builds/nix.py", "flake.*", "nix",
        "pyproject.toml", "servers/*/server.toml", "tests/nix*", "tests/test_nix*",
        "tests/test_python_of_nix.py", "toolchains/python",
    ],
    "ssh": [
        "deathmatch/agent", "deathmatch/builds/clone.py", "deathmatch/builds/copy.py",
        "deathmatch/hosts", "tests/lab.py", "tests/sshd.py", "tests/test_remote.py",
        "tests/test_ssh_testbed.py",
    ],
    "timing": [
        "clients", "deathmatch/load", "tests/test_roundtrip.py", "tests/test_wsload.py",
    ],
    "workflows": [".github/workflows", "tests/workflows", "tests/test_workflows.py"],
}  # fmt: skip
# They need root, and some a cluster or many minutes: .ci/run never has them.
NEVER = ["chaos", "container", "slurm"]


def git(*words: str) -> str | None:
    """Return what git prints; None if it fails."""
    done = subprocess.run(["git", *words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def base(asked: str) -> str | None:
    """Return the commit to compare with; None where there is no such commit."""
    if asked:
        return git("rev-parse", "--verify", "--quiet", f"{asked}^{{commit}}")
    left = git("merge-base", "HEAD", "origin/main")
    if left is None or left == git("rev-parse", "HEAD"):
        left = git("rev-parse", "--verify", "--quiet", "HEAD~1")
    return left


def left_out(asked: str = "") -> list[str]:
    """Return the markers of tests that the change since a commit does not need."""
    since = None if asked == "all" else base(asked)
    if since is None:
        return NEVER
    unchanged = [
        kind for kind, files in KINDS.items()
        if git("diff", "--name-only", since, "HEAD", "--", *files) == ""
    ]  # fmt: skip
    return sorted([*NEVER, *unchanged])


if __name__ == "__main__":
    print(" and ".join(f"not {kind}" for kind in left_out(*sys.argv[1:2])))
