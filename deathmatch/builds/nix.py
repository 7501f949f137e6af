"""Nix packages of servers, built by the flake when a server is first needed."""

import os
import shutil
import subprocess
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.plan import paths
from deathmatch.plan.paths import ROOT

FEATURES = ["--extra-experimental-features", "nix-command flakes"]


def chosen() -> bool:
    """Return whether the toolchain is a shell of the flake."""
    return os.environ.get("DEATHMATCH_TOOLCHAIN", "").startswith("nix")


def package(name: str) -> Path:
    """Return where the server's package is, or will be linked once it is built.

    $DEATHMATCH_SERVERS, which the shells of single servers and `.#full` set, is a folder of
    packages, which may lack this one.
    """
    folder = os.environ.get("DEATHMATCH_SERVERS")
    return Path(folder, name) if folder else ROOT / "build" / "servers" / name / "nix"


def require(name: str) -> None:
    """Raise UserError if neither the shell has packages of servers nor `nix` is on PATH."""
    if "DEATHMATCH_SERVERS" not in os.environ and not shutil.which("nix"):
        raise UserError(
            f"the server {name!r} cannot be built: there is no nix on PATH",
            remedy="enter `nix develop` from a shell that has nix on its PATH",
        )


def build(name: str, link: Path, log: Path) -> bool:
    """Build a server's package and link it; return whether that succeeded.

    Does nothing in a Nix shell that has packages of servers. The output is appended to `log`.
    Raises UserError if the flake has no such package.
    """
    if "DEATHMATCH_SERVERS" in os.environ:
        return True
    # As `.`, the root's path needs no encoding. Quotes keep the dot of a name such as node-0.10
    # from dividing it (nix3-flake(1), "attribute path").
    what, options = f'.#"{name}"', ["--out-link", str(link), "--print-build-logs"]
    words = ["nix", *FEATURES, "build", what, *options]
    with log.open("a") as output:
        output.write(f"$ {' '.join(words)}\n")
        output.flush()
        done = subprocess.run(
            words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    if done.returncode != 0 and "does not provide attribute" in log.read_text(errors="replace"):
        raise UserError(
            f"the flake has no package of the server {name!r}",
            where=f"{paths.folder(name)}/server.toml, key packages.nix",
            remedy="name its packages there, or in nix/servers/; `git add` the folder, as Nix sees "
            "only files that git knows; nix/README.md lists the servers that Nix does not offer",
        )
    return done.returncode == 0
