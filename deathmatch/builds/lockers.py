"""Lists of packages, as each registry's own program locks them: hashes, without addresses.

Each is written in a copy of the server's folder and comes into it only once it is whole. uv locks
Python's packages, Python 2's own pip those for Python 2.7. The programs of the other registries are
those that the server's own build uses, so it must have been built with them: Node and Go come by
`packages.pypi`, Cargo and Maven by `packages.debian`.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from deathmatch.builds import debian, package_installs
from deathmatch.errors import UserError
from deathmatch.plan.registries import OWN_NAMES, PYTHON_2, PYTHON_3
from deathmatch.plan.root import ROOT
from deathmatch.plan.typed import typed

HOME = ROOT / "build" / "lock"
UV = "uv==0.13.9"
PYTHON_LIST, NAMES = "requirements.txt", "requirements.in"
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
WHAT = "these packages cannot be locked"
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
# NAME-VERSION of an archive of Python's sources.
ARCHIVE = re.compile(r"(.+)-(\d[^-]*)\.(?:tar\.gz|tar\.bz2|tgz|zip)")
# GROUP:ARTIFACT:VERSION, of a Maven package.
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


def run(
    words: Sequence[str | Path], what: str, folder: Path = ROOT, env: dict[str, str] | None = None
) -> None:
    """Run a command in a folder; UserError with `what` and its output if it fails."""
    done = subprocess.run(
        list(map(str, words)), cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True,
        text=True,
    )  # fmt: skip
    if done.returncode != 0:
        output = (done.stderr.strip() or done.stdout.strip()).replace(f"{ROOT}/", "")
        raise UserError(f"{what}:\n{output}", remedy="correct what it says; it needs the network")


def uv() -> Path:
    """Return the program that locks, from its environment in build/; UserError if it fails."""
    if not (HOME / UV).exists():
        run([sys.executable, "-m", "venv", "--clear", HOME], "no place for the locking tool")
        run([HOME / "bin" / "pip", "install", "--quiet", UV], "the locking tool is not to be had")
        (HOME / UV).touch()
    return HOME / "bin" / "uv"


def compiled(words: list[str | Path], out: Path, folder: Path) -> None:
    """Write what `words`, input and options of `uv pip compile`, need to `out`, with hashes.

    Paths among the words are relative to `folder`. Neither an index nor a place of this machine
    gets into the list. Raises UserError with uv's message if there is no solution.
    """
    always = [
        "--quiet", "--upgrade", "--python-version", PYTHON_3, "--generate-hashes",
        "--no-emit-index-url", "--no-header", "--no-annotate",
    ]  # fmt: skip
    run([uv(), "pip", "compile", *always, *words, "--output-file", out], WHAT, folder)


def write(
    registry: str, folder: Path, packages: Sequence[str], named: str | None = None,
    python: str = PYTHON_3,
) -> tuple[Path, Path]:  # fmt: skip
    """Write a server's list of a registry; return it and the file of names that it is made from.

    `packages` are added to those names; for Python and Maven they replace them. `named` is the list
    that server.toml names, `python` the release that Python's packages are for.
    Raises UserError with the program's message if they cannot be locked.
    """
    names, make = LOCKERS[registry]
    if registry == "pypi" and python == PYTHON_2:
        make = _python_2
    lock = OWN_NAMES[registry] or (named if isinstance(named, str) else PYTHON_LIST)
    if not packages and not (folder / names).is_file():
        raise UserError(
            "no packages are named",
            where=str((folder / names).relative_to(ROOT)),
            remedy=f"name them: {typed(f'deathmatch lock {folder.name} PACKAGE...')}",
        )
    with tempfile.TemporaryDirectory() as place:
        # Go's modules share others, which go.mod names by a relative path.
        work = Path(place, "servers", folder.name)
        shutil.copytree(folder, work)
        for shared in folder.parent.glob("_*"):
            shutil.copytree(shared, work.parent / shared.name)
        make(work, packages, Path(place))
        # npm and Go keep names and hashes in two files each; uv writes a list of its own name.
        made = {names: names, OWN_NAMES[registry] or PYTHON_LIST: lock}
        for source, target in (made | ({"go.sum": "go.sum"} if registry == "go" else {})).items():
            if (work / source).is_file():
                shutil.copy(work / source, folder / target)
    return folder / lock, folder / names


def _environment(folder: Path, home: Path) -> dict[str, str]:
    """Return the variables of the locking programs, Node and Go of the folder's list installed."""
    venv = HOME / folder.name
    listed = folder / PYTHON_LIST
    for command in package_installs.venv_commands(listed, venv) if listed.is_file() else []:
        run(["sh", "-ec", command], "the programs that lock cannot be installed")
    return _own_environment(home, f"{venv / 'bin'}:{SYSTEM_PATH}")


def _own_environment(home: Path, path: str) -> dict[str, str]:
    """Return the variables of a locking program: a home of its own, and the caller's for pip."""
    return {key: value for key, value in os.environ.items() if key.startswith("PIP_")} | {
        "HOME": str(home),
        "PATH": path,
        # Trust what the system trusts.
        "NODE_USE_SYSTEM_CA": "1",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-modcacherw",
    }


def _pypi(folder: Path, packages: Sequence[str], home: Path) -> None:
    names = folder / NAMES
    if packages:
        names.write_text("".join(f"{package}\n" for package in packages))
    compiled([names.name], folder / PYTHON_LIST, folder)


def _python_2(folder: Path, packages: Sequence[str], home: Path) -> None:
    """Write the list of archives that Python 2's own pip fetches for the names."""
    env = _own_environment(home, SYSTEM_PATH)
    names, tools, archives = folder / NAMES, HOME / f"python{PYTHON_2}", home / "archives"
    if packages:
        names.write_text("".join(f"{package}\n" for package in packages))
    installer = ROOT / "toolchains" / "python2" / "install"
    run([installer, tools.name, tools], "the locking tool cannot be installed", ROOT, env)
    pip = tools / "bin" / f"pip-{tools.name}"
    run([pip, "download", "--dest", archives, "--requirement", names], WHAT, folder, env)
    # The toolchain has setuptools, which what it builds often names as needed.
    needed = [each for each in archives.iterdir() if not each.name.startswith("setuptools-")]
    (folder / PYTHON_LIST).write_text("".join(sorted(map(_locked_archive, needed))))


def _locked_archive(archive: Path) -> str:
    """Return the lines of a list that name an archive's package, its release and its hash."""
    parts = ARCHIVE.fullmatch(archive.name)
    if not parts:
        raise UserError(
            f"{archive.name} is not an archive of Python's sources",
            remedy="name another release, which has one as .tar.gz, .tar.bz2 or .zip",
        )
    name, release = parts.groups()
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return f"{name.lower()}=={release} \\\n    --hash=sha256:{digest}\n"


def _npm(folder: Path, packages: Sequence[str], home: Path) -> None:
    env = _environment(folder, home)
    quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts"]
    if not (folder / "package.json").is_file():
        (folder / "package.json").write_text(
            f'{{\n  "name": "deathmatch-{folder.name}",\n  "private": true\n}}\n'
        )
    (folder / "package-lock.json").unlink(missing_ok=True)
    words = ["npm", "install", "--package-lock-only", "--save-exact", *quiet]
    run([*words, "--omit-lockfile-registry-resolved", *packages], WHAT, folder, env)


def _cargo(folder: Path, packages: Sequence[str], home: Path) -> None:
    env = _environment(folder, home)
    _debian(folder, "cargo", ["cargo-web"])
    if packages:
        run(["cargo", "add", "--quiet", *packages], WHAT, folder, env)
    (folder / "Cargo.lock").unlink(missing_ok=True)
    run(["cargo", "generate-lockfile", "--quiet"], WHAT, folder, env)


def _go(folder: Path, packages: Sequence[str], home: Path) -> None:
    env = _environment(folder, home)
    if not (folder / "go.mod").is_file():
        module = f"deathmatch.invalid/{folder.name}"
        run(["go", "mod", "init", module], WHAT, folder, env)
    if packages:
        run(["go", "get", *packages], WHAT, folder, env)
    run(["go", "mod", "tidy"], WHAT, folder, env)


def _maven(folder: Path, packages: Sequence[str], home: Path) -> None:
    env = _environment(folder, home)
    _debian(folder, "mvn", ["maven"])
    if packages:
        (folder / "pom.xml").write_text(_pom(folder.name, packages))
    jars = folder / "jars"
    settings = [f"-Dmaven.repo.local={env['HOME']}/repository", f"-DoutputDirectory={jars}"]
    words = ["mvn", "--quiet", "--batch-mode", *settings, "-DincludeScope=runtime"]
    run([*words, COPY_DEPENDENCIES], WHAT, folder, env)
    built = sorted(jars.glob("*.jar"))
    lines = [f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {jar.name}\n" for jar in built]
    (folder / "jars.sha256").write_text("".join(lines))


def _pom(name: str, packages: Sequence[str]) -> str:
    """Return a pom.xml that names the packages; UserError for a name that is not coordinates."""
    made = ""
    for package in packages:
        parts = COORDINATES.fullmatch(package)
        if not parts:
            raise UserError(f"{package} is not a package of Maven", remedy="GROUP:ARTIFACT:VERSION")
        made += DEPENDENCY.format(*parts.groups())
    return POM.format(name=name, dependencies=made)


def _debian(folder: Path, program: str, packages: list[str]) -> None:
    """Install what a program needs that Debian gives; UserError if that fails."""
    HOME.mkdir(parents=True, exist_ok=True)
    log = HOME / f"{folder.name}.log"
    if not shutil.which(program, path="/usr/bin") and not debian.install(packages, log):
        raise UserError(f"{program} cannot be installed", where=str(log.relative_to(ROOT)))


# By registry: the file of names that its list is made from, and the function that makes the list in
# a folder, given packages and a home for the program.
LOCKERS: dict[str, tuple[str, Callable[[Path, Sequence[str], Path], None]]] = {
    "pypi": (NAMES, _pypi),
    "npm": ("package.json", _npm),
    "cargo": ("Cargo.toml", _cargo),
    "go": ("go.mod", _go),
    "maven": ("pom.xml", _maven),
}
