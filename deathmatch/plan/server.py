"""A server: one system under test, one folder `servers/<name>/` with its `server.toml`.

Another release of a system stands in `servers/releases/<name>/` and extends that system's folder.
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

# By the key of [packages]; None where any name will do.
OWN_NAMES = {
    "pypi": None,
    "npm": "package-lock.json",
    "cargo": "Cargo.lock",
    "go": "go.mod",
    "maven": "jars.sha256",
}
LISTS = tuple(OWN_NAMES)
FILE = "server.toml"


def _as_it_is(text: str) -> str:
    if found := CONTROL.search(text):
        raise ValueError(f"it holds the control character {found[0]!a}")
    return text


def _one_line(text: str) -> str:
    if re.search(r"[\n\t]", text) or not re.search(r"\w", text):
        raise ValueError("it must be one line with a letter or a digit, and without a tab")
    return text


# What is shown as it is written, text that says something, and what stands in tables and charts.
Shown = Annotated[str, AfterValidator(_as_it_is)]
Text = Annotated[str, Field(pattern=r"\S"), AfterValidator(_as_it_is)]
Line = Annotated[Text, AfterValidator(_one_line)]
Attribute = Annotated[str, Field(pattern=r"^[A-Za-z_][\w'-]*(\.[A-Za-z_][\w'-]*)*$")]


class Packages(Spec):
    """What a server needs installed."""

    tools: Many[Annotated[str, Field(pattern=r"^[^/\s]+$")]] = ()
    """Programs its commands use; under Nix, its package must hold them."""
    debian: Many[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+(:[a-z0-9]+)?$")]] = ()
    """Debian packages, which ./shell installs."""
    nix: Annotated[Many[Attribute], *DISTINCT] | None = None
    """Attributes that hold its tools, of nixpkgs or of the toolchain in nix/; a module, such as
    python3Packages.NAME or erlangLibs.NAME, brings its own interpreter. What takes more than names
    is written in nix/servers/<name>.nix instead."""
    pypi: str | None = None
    """A hash-locked requirements file in the server's folder; installed into {build}/venv, whose
    bin is first on PATH. Node's and Go's own releases come so too."""
    npm: str | None = None
    """package-lock.json of the server's folder, next to its package.json; installed into
    {build}/node_modules. Under Nix only where npm is among its tools."""
    cargo: str | None = None
    """Cargo.lock of the server's folder, which is a crate; its programs are compiled into
    {build}/bin."""
    go: str | None = None
    """go.mod of the server's folder, which is a module, with the hashes of its go.sum; its program
    is compiled into {build}/bin, under the module's last name."""
    maven: str | None = None
    """jars.sha256 of the server's folder: the jars that its pom.xml needs, put into {build}/jars
    and checked."""

    @property
    def lists(self) -> dict[str, str]:
        """The hash-locked lists in the server's folder, by the key that names them."""
        named = {key: getattr(self, key) for key in LISTS}
        return {key: file for key, file in named.items() if file}


class Release(Spec):
    """The release that a server runs on Debian, or else under Nix, and how old it is."""

    name: Line
    """What it is a release of, with its number: nginx 1.30."""
    nix: Line | None = None
    """The same under Nix, where that gives other numbers: nginx 1.28."""
    year: int | None = Field(None, ge=1990, le=2100)
    """When it was released, by the registry or the archive itself; left out where neither reports
    it; `remark` then says so."""
    series_year: int | None = Field(None, ge=1990, le=2100)
    """When its series was first released, or that of the runtime on which it stands if that is
    later: of Tornado 0.2 on Python 2.7.18, 2010; default: `year`."""
    system: Line | None = None
    """What it is a release of, in the words of figures over the years: Tornado. Folders that share
    it are releases of one system, which run the same program."""
    runtime: Line | None = None
    """The language's runtime below it, with its number: Python 2.7. Figures over the years mark
    where it changes; left out where the release is a runtime itself."""
    jump: Text | None = None
    """Why a request costs over a third more or less than with the release before it, with the
    changelog, the commit or the profile that says so."""
    origin: Line
    """Where it is from: Debian 12, a newer suite of Debian, or another registry."""
    remark: Text | None = None
    """Why it is older than a year: the time that it stands for, or what keeps a newer one from
    Debian 12."""


def _or_empty(schema: dict[str, Any]) -> None:
    """Allow an empty table, which takes away that of a release's system."""
    schema |= {"if": {"minProperties": 1}, "then": {"required": schema.pop("required")}}


def _of_a_file(schema: dict[str, Any]) -> None:
    """Allow an empty text for what need not be there, as `_or_empty` does."""
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
    """What figures call it; default: its name, hyphens as spaces."""
    experiments: Many[str] | None = None
    """Only in these experiments; default: in all that the server serves."""
    first_in: Annotated[Many[str], *DISTINCT] = ()
    """In these experiments it is the default one, wherever it stands."""

    @property
    def placeholders(self) -> dict[str, Level]:
        """What it fills into the start command."""
        return self.model_extra


class Server(NamedSpec):
    """A system under test."""

    model_config = ConfigDict(json_schema_extra=_of_a_file)

    extends: str | None = None
    """The server that holds what this file does not say, and whose commands and files it may use:
    that of the system of which it is another release."""
    title: Line
    """The name that tables and figures show."""
    language: Line
    """What the server is written in."""
    source: Line
    """The post that measured it, as a key of paper/source/references.bib; "ours" if none did."""
    about: Text
    """What it is, and where it differs from what the source ran."""
    version: Text
    """A command that prints the version; its first line is recorded with every trial. Its failure
    is the build's: where an installer leaves out a compiled part that does not build, such as
    Tornado's tornado.speedups, it imports that part."""
    release: Release | None = None
    """What stands for it here, and its age. An instrument has none; a server of ours may."""
    experiments: Annotated[Many[str], *DISTINCT]
    """The experiments it serves, as names of files in experiments/."""
    not_run: Text | None = None
    """Why it cannot run on Debian here; its rows then give this reason instead of numbers."""
    not_in_nix: Text | None = None
    """Why Nix has no package of it; its rows then give this reason under that toolchain."""
    instrument: bool = False
    """It exists to measure the harness or a mechanism, not to be compared with servers that people
    run: tables and figures show it, but no order, no "every server", no best and no count includes
    it. A claim's rule may name it."""
    packages: Packages = Packages()
    """What it needs installed."""
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
    """How long it may take to listen; default: 20."""
    warm_up_s: int = Field(1, ge=1)
    """How long it is asked before the first rate and after each restart, at 500 requests a second;
    default: 1. Say why in limits."""
    text_messages: bool = False
    """Clients send it text where the experiment sends WebSocket messages of binary data, which it
    does not send back as such; `deviations` says what it does with those."""
    limits: dict[Shown, Shown] = Field({})
    """Each limit that would distort a test (connection caps, timeouts, access log), what it is set
    to, and why."""
    deviations: dict[Shown, Shown] = Field({})
    """Conformance checks that it is known to fail, by name, each with what it does instead and why
    it is measured all the same. Each trial records the failed check."""
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
    default one, where none is `first_in` the experiment."""
    factors: dict[str, Many[Level]] = Field({})
    """The factors it can set, each as the list of levels it knows, its default first; [] means any
    level. Each is a placeholder of the commands."""

    @property
    def folder(self) -> Path:
        """Its own folder."""
        return ROOT / paths.folder(self.name)

    @property
    def system(self) -> Path:
        """The folder of the server that it extends; its own where it extends none."""
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
        """Return what figures call one of its configurations; a former one by its name."""
        known = self.configurations.get(configuration)
        return (known and known.title) or configuration.replace("-", " ")


def source_files(server: Server) -> list[str]:
    """Return the files that the server is made from, relative to the project's root, sorted.

    They are those of its folder, of its system's and of what `sources` of its server.toml names:
    `paths.below`, without what git ignores. A server that git ignores itself, someone's own, has
    all of them. What its own folder has too is not taken from its system's, but for server.toml.
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
    """Return the start of a hash of each of the server's sources, and of whether it may be run."""
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
