"""Lists of packages of npm, Cargo, Go and Maven: hashes of all that is needed, without addresses.

Each is written in a copy of the server's folder and comes into it only once it is whole. The
programs that lock are those that the server's own build uses, so it must have been built with them:
Node and Go come by `packages.pypi`, Cargo and Maven by `packages.debian`.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from deathmatch.builds import debian, locking, pypi
from deathmatch.errors import UserError
from deathmatch.plan.registries import OWN_NAMES
from deathmatch.plan.root import ROOT

WHAT = "these packages cannot be locked"
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
PYTHON_LIST = "requirements.txt"
# Of a Maven package: GROUP:ARTIFACT:VERSION.
COORDINATES = re.compile(r"([\w.-]+):([\w.-]+):([\w.-]+)")
POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>deathmatch</groupId>
  <artifactId>{name}</artifactId>
  <version>1</version>
  <dependencies>
{dependencies}  </dependencies>
</project>
"""
DEPENDENCY = """    <dependency>
      <groupId>{}</groupId>
      <artifactId>{}</artifactId>
      <version>{}</version>
    </dependency>
"""


def write(registry: str, folder: Path, packages: Sequence[str]) -> tuple[Path, Path]:
    """Write a server's list of a registry; return it and the file of names that it is made from.

    `packages` are added to those names; for Maven they replace them, as GROUP:ARTIFACT:VERSION.
    Raises UserError with what the registry's own program said if they cannot be locked.
    """
    lock, names, make = LOCKERS[registry]
    if not packages and not (folder / names).is_file():
        raise UserError(
            "no packages are named",
            where=str((folder / names).relative_to(ROOT)),
            remedy="name them on the command line",
        )
    with tempfile.TemporaryDirectory() as place:
        # Beside a copy of what Go's modules share, which go.mod names by a relative path.
        work = Path(place, "servers", folder.name)
        shutil.copytree(folder, work)
        for shared in folder.parent.glob("_*"):
            shutil.copytree(shared, work.parent / shared.name)
        make(work, packages, _environment(folder, Path(place)))
        # npm and Go keep names and hashes in two files each.
        for file in {names, lock, *(["go.sum"] if registry == "go" else [])}:
            if (work / file).is_file():
                shutil.copy(work / file, folder / file)
    return folder / lock, folder / names


def _environment(folder: Path, home: Path) -> dict[str, str]:
    """Return the variables of the locking programs, Node and Go of the folder's list installed."""
    venv = locking.HOME / folder.name
    listed = folder / PYTHON_LIST
    for command in pypi.commands(listed, venv) if listed.is_file() else []:
        locking.run(["sh", "-ec", command], "the programs that lock cannot be installed")
    return {key: value for key, value in os.environ.items() if key.startswith("PIP_")} | {
        "HOME": str(home),
        "PATH": f"{venv / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin",
        # Trust what the system trusts.
        "NODE_USE_SYSTEM_CA": "1",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-modcacherw",
    }


def _npm(folder: Path, packages: Sequence[str], env: dict[str, str]) -> None:
    quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts"]
    if not (folder / "package.json").is_file():
        (folder / "package.json").write_text(
            f'{{\n  "name": "deathmatch-{folder.name}",\n  "private": true\n}}\n'
        )
    (folder / "package-lock.json").unlink(missing_ok=True)
    words = ["npm", "install", "--package-lock-only", "--save-exact", *quiet]
    locking.run([*words, "--omit-lockfile-registry-resolved", *packages], WHAT, folder, env)


def _cargo(folder: Path, packages: Sequence[str], env: dict[str, str]) -> None:
    _debian(folder, "cargo", ["cargo-web"])
    if packages:
        locking.run(["cargo", "add", "--quiet", *packages], WHAT, folder, env)
    (folder / "Cargo.lock").unlink(missing_ok=True)
    locking.run(["cargo", "generate-lockfile", "--quiet"], WHAT, folder, env)


def _go(folder: Path, packages: Sequence[str], env: dict[str, str]) -> None:
    if not (folder / "go.mod").is_file():
        module = f"deathmatch.invalid/{folder.name}"
        locking.run(["go", "mod", "init", module], WHAT, folder, env)
    if packages:
        locking.run(["go", "get", *packages], WHAT, folder, env)
    locking.run(["go", "mod", "tidy"], WHAT, folder, env)


def _maven(folder: Path, packages: Sequence[str], env: dict[str, str]) -> None:
    _debian(folder, "mvn", ["maven"])
    if packages:
        (folder / "pom.xml").write_text(_pom(folder.name, packages))
    jars = folder / "jars"
    settings = [f"-Dmaven.repo.local={env['HOME']}/repository", f"-DoutputDirectory={jars}"]
    words = ["mvn", "--quiet", "--batch-mode", *settings, "-DincludeScope=runtime"]
    locking.run([*words, COPY_DEPENDENCIES], WHAT, folder, env)
    found = sorted(jars.glob("*.jar"))
    lines = [f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {jar.name}\n" for jar in found]
    (folder / "jars.sha256").write_text("".join(lines))


def _pom(name: str, packages: Sequence[str]) -> str:
    """Return a pom.xml that names the packages; UserError for one that is no coordinates."""
    made = ""
    for package in packages:
        found = COORDINATES.fullmatch(package)
        if not found:
            raise UserError(f"{package} is no package of Maven", remedy="GROUP:ARTIFACT:VERSION")
        made += DEPENDENCY.format(*found.groups())
    return POM.format(name=name, dependencies=made)


def _debian(folder: Path, program: str, packages: list[str]) -> None:
    """Install what a program needs that Debian gives; UserError if that fails."""
    locking.HOME.mkdir(parents=True, exist_ok=True)
    log = locking.HOME / f"{folder.name}.log"
    if not shutil.which(program, path="/usr/bin") and not debian.install(packages, log):
        raise UserError(f"{program} cannot be installed", where=str(log.relative_to(ROOT)))


# By registry: its list, the file of names that it is made from, and what makes it.
LOCKERS: dict[str, tuple[str, str, Callable[[Path, Sequence[str], dict[str, str]], None]]] = {
    "npm": (OWN_NAMES["npm"], "package.json", _npm),
    "cargo": (OWN_NAMES["cargo"], "Cargo.toml", _cargo),
    "go": (OWN_NAMES["go"], "go.mod", _go),
    "maven": (OWN_NAMES["maven"], "pom.xml", _maven),
}
