"""A server: one system under test, one folder `servers/<name>/` with its `server.toml`.

Another release of the system is in `servers/releases/<name>/` and extends the system's folder.
"""

import hashlib
import re
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from deathmatch.errors import CONTROL
from deathmatch.plan import paths
from deathmatch.plan.paths import ROOT
from deathmatch.plan.spec import DISTINCT, Level, Many, NamedSpec, Spec, partly

# The name of the list by its key in [packages]; None: any name.
OWN_NAMES = {
    "pypi": None,
    "npm": "package-lock.json",
    "cargo": "Cargo.lock",
    "go": "go.mod",
    "maven": "jars.sha256",
}
FILE = "server.toml"


def _as_it_is(text: str) -> str:
    if found := CONTROL.search(text):
        raise ValueError(f"it holds the control character {found[0]!a}")
    return text


def _one_line(text: str) -> str:
    if re.search(r"[\n\t]", text) or not re.search(r"\w", text):
        raise ValueError("it must be one line with a letter or a digit, and without a tab")
    return text


# Text shown as it is written; text that must not be blank; a line for tables and charts.
Shown = Annotated[str, AfterValidator(_as_it_is)]
Text = Annotated[str, Field(pattern=r"\S"), AfterValidator(_as_it_is)]
Line = Annotated[Text, AfterValidator(_one_line)]
Attribute = Annotated[str, Field(pattern=r"^[A-Za-z_][\w'-]*(\.[A-Za-z_][\w'-]*)*$")]


class Packages(Spec):
    """The packages and programs that a server needs."""

    tools: Many[Annotated[str, Field(pattern=r"^[^/\s]+$")]] = ()
    """Programs that its commands use; under Nix, its package must hold them."""
    debian: Many[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+(:[a-z0-9]+)?$")]] = ()
    """Debian packages, which ./shell installs."""
    nix: Annotated[Many[Attribute], *DISTINCT] | None = None
    """Attributes of nixpkgs, or of the toolchain in nix/, that hold its tools; a module, such as
    python3Packages.NAME or erlangLibs.NAME, brings its interpreter. If it needs more than names,
    write nix/servers/<name>.nix instead."""
    pypi: str | None = None
    """A hash-locked requirements file in the server's folder; installed into {build}/venv, whose
    bin is first on PATH. Releases of Node and Go are installed from PyPI, too."""
    npm: str | None = None
    """package-lock.json of the server's folder, next to its package.json; installed into
    {build}/node_modules. Under Nix, npm must be among its tools."""
    cargo: str | None = None
    """Cargo.lock of the server's folder, which is a crate; its programs are compiled into
    {build}/bin."""
    go: str | None = None
    """go.mod of the server's folder, which is a module, with hashes in its go.sum; its program is
    compiled into {build}/bin, under the last part of the module's name."""
    maven: str | None = None
    """jars.sha256 of the server's folder, with the hashes of the jars that its pom.xml needs; they
    are put into {build}/jars."""

    @property
    def lists(self) -> dict[str, str]:
        """The hash-locked lists in the server's folder, by the key that names them."""
        named = {key: getattr(self, key) for key in OWN_NAMES}
        return {key: file for key, file in named.items() if file}


class Release(Spec):
    """The release that a server runs on Debian, or else under Nix, and its age."""

    name: Line
    """The system with the release's number: nginx 1.30."""
    nix: Line | None = None
    """The same under Nix, if it has another number: nginx 1.28."""
    year: int | None = Field(None, ge=1990, le=2100)
    """The year of the release, from the registry or the archive; left out where neither has it, and
    `remark` says so."""
    series_year: int | None = Field(None, ge=1990, le=2100)
    """The year of the first release of its series, or of its runtime's series if that is later:
    2010 for Tornado 0.2 on Python 2.7.18; default: `year`."""
    system: Line | None = None
    """The system's name in figures over the years: Tornado. Folders with the same name are releases
    of one system, which run the same program."""
    runtime: Line | None = None
    """The runtime of the language, with its number: Python 2.7. Figures over the years mark where
    it changes; left out where the release is a runtime itself."""
    jump: Text | None = None
    """Why a request costs over a third more or less than with the previous release, with the
    changelog, commit or profile that shows it."""
    origin: Line
    """Where it is from: Debian 12, a newer suite of Debian, or another registry."""
    remark: Text | None = None
    """Why it is older than a year: the time that it represents, or why Debian 12 cannot run a newer
    one."""


def _or_empty(schema: dict[str, Any]) -> None:
    """Allow an empty table, with which a release removes that of its system."""
    schema |= {"if": {"minProperties": 1}, "then": {"required": schema.pop("required")}}


def _of_a_file(schema: dict[str, Any]) -> None:
    """Allow an empty text for keys that are not required, as `_or_empty` does for tables."""
    for key, part in schema["properties"].items():
        if key not in schema["required"]:
            part.pop("pattern", None)
    partly(schema)


class Configuration(Spec):
    """A configuration of a server; each further key is a placeholder of its command."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_or_empty)
    __pydantic_extra__: dict[str, Level]

    about: Shown
    """What is different, and why it is measured."""
    title: Line | None = None
    """Its name in figures; default: its name here, with spaces for hyphens."""
    experiments: Many[str] | None = None
    """Only in these experiments; default: in all that the server serves."""
    first_in: Annotated[Many[str], *DISTINCT] = ()
    """The experiments in which it is the default one, whatever its place."""

    @property
    def placeholders(self) -> dict[str, Level]:
        """The values of its placeholders in the start command."""
        return self.model_extra


class Server(NamedSpec):
    """A system under test."""

    model_config = ConfigDict(json_schema_extra=_of_a_file)

    extends: str | None = None
    """The server of which it is another release: keys that are not in this file come from there,
    and its commands may use the files there."""
    title: Line
    """The name in tables and figures."""
    language: Line
    """The language that the server is written in."""
    source: Line
    """The post that measured it, as a key of paper/source/references.bib; "ours" if none did."""
    about: Text
    """What it is, and where it differs from what the source ran."""
    version: Text
    """A command that prints the version; its first line is recorded with every trial. If it fails,
    so does the build: it should import compiled parts that an installer may leave out, such as
    Tornado's tornado.speedups."""
    release: Release | None = None
    """The release that runs here, and its age. An instrument has none; a server of ours may."""
    experiments: Annotated[Many[str], *DISTINCT]
    """The experiments it serves, as names of files in experiments/."""
    not_run: Text | None = None
    """Why it cannot run on Debian here; its rows then give this reason instead of numbers."""
    not_in_nix: Text | None = None
    """Why Nix has no package of it; its rows then give this reason under that toolchain."""
    instrument: bool = False
    """It measures the harness or a mechanism and is not compared with servers that people run:
    tables and figures show it, but orders, counts and "every server" leave it out. A claim's rule
    may name it."""
    packages: Packages = Packages()
    """The packages and programs that it needs."""
    build: Text | None = None
    """A shell command run in {system}. It writes into {build} only; {folder} is the server's own
    folder."""
    sources: Many[str] = ()
    """Files and folders outside of {folder} and {system} that it is made from, relative to the
    project's root; when one changes, it is measured again."""
    slow_build: bool = False
    """Its build takes minutes: it is measured only where a dataset or a command names it."""
    run: Text
    """The start command, run without a shell in {build}; {host}, {port}, {folder}, {system} and its
    factors are filled in. It stays in the foreground and ends on SIGTERM."""
    ready_timeout_s: int = Field(20, ge=1)
    """How long it may take to listen, in seconds; default: 20."""
    warm_up_s: int = Field(1, ge=1)
    """How long it is warmed up before the first rate and after each restart, in seconds, at 500
    requests a second; default: 1. Give the reason in limits."""
    text_messages: bool = False
    """It gets text where the experiment has binary WebSocket messages, because it does not echo
    these as binary; `deviations` says what it does with them."""
    limits: dict[Shown, Shown] = Field({})
    """Each limit that would distort a test (connection caps, timeouts, access log), its setting,
    and the reason."""
    deviations: dict[Shown, Shown] = Field({})
    """Conformance checks that it is known to fail, by name, each with what it does instead and why
    it is measured nevertheless. Each trial records the failed check."""
    configurations: dict[
        Annotated[
            str,
            Field(
                pattern=r"^[a-z0-9][a-z0-9-]*$",
                description="A configuration's name has lower-case letters, digits and hyphens.",
            ),
        ],
        Configuration,
    ] = Field({})
    """Ways to run it that are compared as variants, such as tuned and defaults; the first is the
    default one, unless another is `first_in` the experiment."""
    factors: dict[str, Many[Level]] = Field({})
    """The factors that it can set, each with the list of its levels, the default first; [] means
    any level. Each is a placeholder of the commands."""

    @property
    def folder(self) -> Path:
        """Its own folder."""
        return ROOT / paths.folder(self.name)

    @property
    def system(self) -> Path:
        """The folder of the server that it extends; its own if it extends none."""
        return ROOT / paths.folder(self.extends or self.name)

    def list_in(self, file: str, root: Path = ROOT) -> Path:
        """Return the folder that holds a list of `[packages]`: its own, else its system's."""
        own = paths.path_of("server", self.name, root).parent
        there = (own / file).exists() or not self.extends
        return own if there else paths.path_of("server", self.extends, root).parent

    @cached_property
    def runs(self) -> bool:
        """Whether it can run here."""
        return self.not_run is None

    def configurations_in(self, experiment: str) -> list[str]:
        """Return the names of its configurations in an experiment, the default one first."""
        known = [
            name
            for name, configuration in self.configurations.items()
            if configuration.experiments is None or experiment in configuration.experiments
        ]
        return sorted(known, key=lambda name: experiment not in self.configurations[name].first_in)

    def called(self, configuration: str) -> str:
        """Return the name of a configuration in figures, even if it no longer exists."""
        known = self.configurations.get(configuration)
        return (known and known.title) or configuration.replace("-", " ")


def source_files(server: Server) -> list[str]:
    """Return the files that the server is made from, relative to the project's root, sorted.

    These are the files (`paths.below`) in its folder, in its system's and in `sources`, without
    those that git ignores, unless git ignores the server itself. A file of its own folder replaces
    that of its system's, except server.toml.
    """
    found = {path for place in server.sources for path in paths.below(ROOT / place)}
    found |= {
        path
        for path in paths.below(server.system)
        if path.name == FILE or not (server.folder / path.relative_to(server.system)).exists()
    }
    every = sorted(str(path.relative_to(ROOT)) for path in found.union(paths.below(server.folder)))
    if paths.is_ignored(str(server.folder.relative_to(ROOT) / FILE)):
        return every
    return [name for name in every if not paths.is_ignored(name)]


def digests(server: Server) -> dict[str, str]:
    """Return the start of a hash of each source's name, content and execute bit, by name."""
    return {name: hashlib.sha256(_content(name)).hexdigest()[:16] for name in source_files(server)}


@cache
def fingerprint(server: Server) -> str:
    """Return the SHA-256 of names, contents and execute bits of the server's sources, in hex."""
    digest = hashlib.sha256()
    for name in source_files(server):
        digest.update(_content(name))
    return digest.hexdigest()


def _content(name: str) -> bytes:
    content = (ROOT / name).read_bytes()
    runs = " x" if (ROOT / name).stat().st_mode & 0o100 else ""
    return f"{name} {len(content)}{runs}\n".encode() + content
