"""The flake, evaluated by a real Nix against a stand-in for nixpkgs.

No binary cache is within reach here, so nothing of nixpkgs is built. Instead `tests/nix/` holds
`facts.json`, what evaluation of the real nixpkgs found of each attribute and builder, and a
stand-in made of it: what the facts do not name does not exist, and an argument that they do not
list is refused. What they cannot tell is decided by the rules below. `test_nix_faults.py` shows
which mistakes each of them finds.
"""

import ast
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conftest import Tree, copy_tree, project_files

from deathmatch.builds import debian
from deathmatch.hosts import sandbox
from deathmatch.plan import files as specs
from deathmatch.plan.root import ROOT

PARSING = threading.Lock()
FIXTURES = ROOT / "tests" / "nix"
PINS = json.loads((FIXTURES / "pins.json").read_text())
FACTS = json.loads((FIXTURES / "facts.json").read_text())
SYSTEMS = ["aarch64-linux", "x86_64-linux"]
DARWIN = "aarch64-darwin"
SHELLS = {"default", "full", "lab", "test"}
ERAS = {"era-R14B04", "era-R15B03", "era-R16B02"}
# The programs that make the paper, that measure, and that the tests run besides.
READING = {"deathmatch", "git", "python", "snakemake"}
MEASURING = READING | {
    "ip", "mount", "nsenter", "setpriv", "ss", "strace", "sysctl", "taskset", "tc", "unshare",
}  # fmt: skip
LAB = MEASURING | {"jupyter"}
TESTING = LAB | {
    "cargo", "cc", "chromium", "deadnix", "go", "nixfmt", "pdftoppm", "pdftotext", "pytest", "ruff",
    "snakefmt", "ssh", "ssh-keygen", "sshd",
}  # fmt: skip
# Derivations of the first entry that no binary cache holds.
MOST_UNCACHED = 40
# Modules that nixpkgs calls by another name, or brings with another.
MODULES = {
    "IPython": "ipython", "geventwebsocket": "gevent-websocket", "pydantic_core": "pydantic",
    "vl_convert": "vl-convert-python", "yaml": "pyyaml",
}  # fmt: skip
# A name with its number in [release] of a server.toml.
RELEASE = r"([A-Za-z][\w.:/+-]*) (\d[\w.+]*)"
# What [release] calls otherwise than nixpkgs does.
RELEASED_AS = {
    "ProtocolWebSocket": "protocol::websocket",
    "erlang-cowboy": "cowboy", "erlang-mochiweb": "mochiweb", "erlang-ranch": "ranch",
    "go_1_26": "go", "haskellPackages-ghc": "ghc", "jdk25": "openjdk",
    "nodejs": "node.js", "nodejs_24": "node.js", "pypy27": "pypy",
    "pypy311": "pypy", "python3": "python", "web": "web.py",
    "beam_minimal-packages-erlang_27-erlang": "otp",
    "beam_minimal-packages-erlang_28-erlang": "otp",
    "beam_minimal-packages-erlang_29-erlang": "otp",
}  # fmt: skip
# Servers whose release is of neither nixpkgs nor the flake, with the reason.
PINNED_BY_THE_SERVER = {"node-0.8": "npm fetches Node 0.8 in both toolchains"}
WHERE = {
    "nix": "installs Debian's package nix-bin",
    "nixfmt": "runs tests/nix/install",
    "deadnix": "runs tests/nix/install",
}


class Refused(AssertionError):
    """What a check found wrong."""


@dataclass
class Nix:
    """Nix with a store, a configuration and an empty home of its own."""

    home: Path
    sandbox: list[str]
    stand_ins: Path
    known: dict[Path, dict] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """Return the variables that keep Nix within `home`, without any other configuration."""
        folders = {"STORE": "store", "STATE": "var", "LOG": "log", "CONF": "etc"}
        settings = {
            "experimental-features": "nix-command flakes",
            "substituters": "",
            "flake-registry": "",
            "build-users-group": "",
            "sandbox": "false",
            "fsync-metadata": "false",
        }
        return {
            "HOME": str(self.home),
            "NIX_CONFIG": "".join(f"{key} = {value}\n" for key, value in settings.items()),
            **{f"NIX_{name}_DIR": str(self.home / to) for name, to in folders.items()},
        }

    def run(self, *words: str) -> str:
        """Return the output of a Nix command run without any network; Refused if it fails."""
        done = subprocess.run(
            [*self.sandbox, *words],
            env=self.environment() | {"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise Refused(done.stderr)
        return done.stdout

    def flake(self, verb: str, target: str, *words: str, prefix: str = "") -> str:
        """Run `nix VERB` on a flake, inputs of the study's replaced by the stand-ins.

        `prefix` is the path of inputs that leads to the study's flake from that one.
        """
        inputs = [
            word
            for name in PINS["inputs"]
            for word in ("--override-input", prefix + name, f"path:{self.stand_ins / name}")
        ]
        words = (*verb.split(), target, *words, "--no-write-lock-file", *inputs)
        return self.run("nix", *words)

    def outputs(self, tree: Path) -> dict:
        """Return what the checks read: {output: {system: {name: {attribute: ...}}}}.

        One evaluation serves all checks of a tree.
        """
        if tree not in self.known:
            target = f"path:{self.stand_ins / 'outputs'}#all"
            study = ("--override-input", "study", f"path:{tree}")
            text = self.flake("eval --json", target, *study, prefix="study/")
            self.known[tree] = json.loads(text)
        return self.known[tree]


def tool(name: str) -> str:
    """Return the path of a program; fail the test, saying what installs it, if there is none."""
    places = os.pathsep.join([os.environ["PATH"], str(ROOT / "build" / "nix-tools" / "bin")])
    return shutil.which(name, path=places) or pytest.fail(
        f"{name} is not installed: run the tests inside ./shell, which {WHERE[name]}"
    )


def start(home: Path) -> Nix:
    """Return a Nix with a store and the stand-ins, each with the facts: an input holds no more."""
    tool("nix")
    stand_ins = home / "stand-ins"
    for name in PINS["inputs"]:
        shutil.copytree(FIXTURES / name, stand_ins / name)
        shutil.copy(FIXTURES / "facts.json", stand_ins / name)
    shutil.copytree(FIXTURES / "outputs", stand_ins / "outputs")
    nix = Nix(home, sandbox.command(), stand_ins)
    # Two commands that both found no database would disturb each other.
    nix.run("nix-store", "--init")
    return nix


@pytest.fixture(scope="module")
def nix(tmp_path_factory) -> Nix:
    return start(tmp_path_factory.mktemp("nix"))


@pytest.fixture(scope="module")
def clean(tmp_path_factory) -> Path:
    """A copy of the project, so that nothing ignored by git gets into Nix's store."""
    return copy_flake(tmp_path_factory.mktemp("clean"))


def copy_flake(to: Path) -> Path:
    """Copy the project without its measurements, whose folders nix/paper.nix names."""
    copy_tree(to)
    for dataset in ("first", "reference"):
        (to / "data" / dataset).mkdir()
    return to


def require(condition: bool, what: str) -> None:
    if not condition:
        raise Refused(what)


def same(found, wanted, what: str) -> None:
    found, wanted = set(found), set(wanted)
    require(
        found == wanted,
        f"{what}: missing {sorted(wanted - found)}, too many {sorted(found - wanted)}",
    )


def nix_files(tree: Path) -> list[str]:
    """Return the flake's files and the stand-ins'."""
    paths = [*tree.glob("**/nix/**/*.nix"), *tree.glob("clients/*/*.nix")]
    return ["flake.nix", *(str(path.relative_to(tree)) for path in sorted(paths))]


def checker(tree: Path, *words: str) -> None:
    done = subprocess.run([*words, *nix_files(tree)], cwd=tree, capture_output=True, text=True)
    require(done.returncode == 0, done.stdout + done.stderr)


def parse(nix: Nix, tree: Path) -> None:
    nix.run("nix-instantiate", "--parse", *(str(tree / name) for name in nix_files(tree)))


def formatting(nix: Nix, tree: Path) -> None:
    checker(tree, tool("nixfmt"), "--check")


def dead_code(nix: Nix, tree: Path) -> None:
    checker(tree, tool("deadnix"), "--fail")


def evaluation(nix: Nix, tree: Path) -> None:
    """All that the flake offers can be evaluated."""
    nix.outputs(tree)


def schema(nix: Nix, tree: Path) -> None:
    """`nix flake check`: each output is of the kind that its name promises."""
    nix.flake("flake check", f"path:{tree}", "--no-build")


def lock(nix: Nix, tree: Path) -> None:
    """flake.lock needs no change to fit flake.nix, and holds the recorded pins."""
    words = ["nix", "flake", "metadata", "--json", "--no-update-lock-file", f"path:{tree}"]
    nodes = json.loads(nix.run(*words))["locks"]["nodes"]
    same(nodes, [*PINS["inputs"], "root"], "inputs of flake.lock")
    for name, pin in PINS["inputs"].items():
        wanted = {"type": "github", "owner": "NixOS", "repo": "nixpkgs", **pin}
        require(nodes[name]["locked"] == wanted, f"flake.lock: {name} is not the recorded pin")


def names(nix: Nix, tree: Path) -> None:
    """Both systems offer a package, a check and a shell for each folder of servers/."""
    servers = set(specs.names("server", tree))
    besides = others(tree)
    require(not besides & servers, f"a server may not be called any of {sorted(besides)}")
    lists = {path.stem: path.read_text() for path in (tree / "nix" / "servers").iterdir()}
    named = {name for name in servers if attributes(tree, name)}
    twice = sorted(named & set(lists))
    require(not twice, f"both [packages] nix and nix/servers/<name>.nix for {twice}: keep one")
    lacking = {name for name in servers if about(tree, name).get("not_in_nix")}
    reasoned = sorted(lacking & (named | set(lists)))
    require(not reasoned, f"not_in_nix of {reasoned}, which Nix does offer")
    what = "servers/<name>/ with [packages] nix, nix/servers/<name>.nix or not_in_nix"
    same(named | set(lists) | lacking, servers, what)
    servers -= lacking
    offered = {
        "x86_64-linux": servers,
        "aarch64-linux": servers - of_the_old_pin(tree),
    }
    checked = besides - {"default"} | {"nix-files", "paper-of-data"}
    for output, more in {"packages": besides, "checks": checked, "devShells": SHELLS}.items():
        found = nix.outputs(tree)[output]
        on_darwin = ["default"] if output == "devShells" else []
        same(found.get(DARWIN, {}), on_darwin, f"{output}.{DARWIN}")
        same(set(found) - {DARWIN}, offered, output)
        for system, wanted in offered.items():
            left_out = of_the_old_pin(tree) if output == "checks" else set()
            eras = ERAS if (output, system) == ("devShells", "x86_64-linux") else set()
            same(found[system], wanted - left_out | more | eras, f"{output}.{system}")


def load_generators(tree: Path) -> dict[str, dict]:
    """Return what each load generator's own file says, by the name of its folder."""
    paths = sorted(tree.glob("clients/*/client.toml"))
    return {path.parent.name: tomllib.loads(path.read_text()) for path in paths}


def others(tree: Path) -> set[str]:
    """Return what the flake offers beside the servers: no server may have these names."""
    return {"default", "paper", *load_generators(tree)}


def of_the_old_pin(tree: Path) -> set[str]:
    """Return the servers with a package of nixpkgs of 2014, which only x86_64 has.

    No cache holds such a package, and hosts of its sources no longer answer: neither the checks nor
    the shell with all servers may build it.
    """
    return {
        name
        for name in specs.names("server", tree)
        if any(attribute.startswith("pkgs-2014.") for attribute in attributes(tree, name))
    }


def programs(nix: Nix, tree: Path) -> None:
    """Each program that server.toml names is in the server's package, and ours in each shell."""
    for system, offered in nix.outputs(tree)["packages"].items():
        for name in sorted({*specs.names("server", tree)} & set(offered)):
            lacks = set(packages(tree, name).get("tools", [])) - set(offered[name]["tools"])
            require(
                not lacks,
                f"servers/{name}/server.toml, key packages.tools: packages.{system}.{name} "
                f"lacks {sorted(lacks)}; mend packages.nix there, or nix/servers/{name}.nix",
            )
    for system, shells in nix.outputs(tree)["devShells"].items():
        for name, shell in shells.items():
            usual = READING | {"jupyter"} if system == DARWIN else MEASURING
            wanted = {"lab": LAB, "test": TESTING}.get(name, usual)
            lacks = wanted - set(shell["tools"])
            require(not lacks, f"devShells.{system}.{name} lacks {sorted(lacks)}")


def clients(nix: Nix, tree: Path) -> None:
    """Each load generator is in every shell, or in the package of the server that brings it."""
    for client, said in load_generators(tree).items():
        builder = said.get("built_by")
        for system in SYSTEMS:
            output = "packages" if builder else "devShells"
            places = nix.outputs(tree)[output][system]
            for name in [builder] if builder else places:
                require(
                    name in places and said["program"] in places[name]["tools"],
                    f"{output}.{system}.{name} lacks the load generator {client}",
                )


def light(nix: Nix, tree: Path) -> None:
    """The first entry makes few derivations that no binary cache holds, and no server."""
    for system in [*SYSTEMS, DARWIN]:
        shell = nix.outputs(tree)["devShells"][system]["default"]["drvPath"]
        count = sum(uncached(path) for path in closure(nix, shell))
        require(
            0 < count < MOST_UNCACHED,
            f"devShells.{system}.default is made by {count} derivations that no cache holds",
        )


def no_desktop(nix: Nix, tree: Path) -> None:
    """No server is made with the Erlang that brings wx, GTK and WebKit."""
    for system, offered in nix.outputs(tree)["packages"].items():
        for name, package in offered.items():
            made_from = [path.name for path in closure(nix, package["drvPath"])]
            brought = [name for name in made_from if re.search(r"-beam-packages-.*-erlang-", name)]
            require(not brought, f"packages.{system}.{name} is made with {brought}")


def releases(nix: Nix, tree: Path) -> None:
    """Each number that [release] gives is that of the package, where the facts name it."""
    for system, offered in nix.outputs(tree)["packages"].items():
        for name in sorted(
            {*specs.names("server", tree)} & set(offered) - set(PINNED_BY_THE_SERVER)
        ):
            stated = about(tree, name).get("release", {})
            text = stated.get("nix") or stated.get("name", "")
            given = versions(nix, offered[name]["drvPath"])
            wrong = [
                f"{what} {number} (Nix gives {given[what.lower()]})"
                for what, number in re.findall(RELEASE, text)
                if given.get(what.lower(), number) != number
            ]
            require(
                not wrong,
                f"servers/{name}/server.toml, key release.nix: packages.{system}.{name} is not "
                f"{', '.join(wrong)}",
            )


def versions(nix: Nix, derivation: str) -> dict[str, str]:
    """Return the versions of all that a package is made with, by the names in [release]."""
    made_with = [path.name[33:].removesuffix(".drv") for path in closure(nix, derivation)]
    found = [match for name in made_with if (match := re.fullmatch(r"(.+?)-(\d[\w.+]*)", name))]
    plain = [(match[1].removeprefix("perlPackages-"), match[2]) for match in found]
    return {RELEASED_AS.get(name, name.lower()): version for name, version in plain}


def closure(nix: Nix, derivation: str) -> list[Path]:
    """Return the derivations that one is made from, itself included."""
    found = nix.run("nix-store", "--query", "--requisites", derivation).split()
    return [Path(path) for path in found if path.endswith(".drv")]


def uncached(derivation: Path) -> int:
    """Return how many derivations of the real nixpkgs this one of the stand-in is."""
    found = re.search(r'\("uncached","(\d+)"\)', derivation.read_text())
    require(found is not None, f"{derivation.name} is not of the stand-in of today's nixpkgs")
    return int(found[1])


def about(tree: Path, name: str) -> dict:
    """Return a server's own file."""
    return parsed_toml(specs.path_of("server", name, tree).read_text())


@functools.cache
def parsed_toml(text: str) -> dict:
    """Return what a file says, to be read only: each is asked for often, and is alike in copies."""
    return tomllib.loads(text)


def packages(tree: Path, name: str) -> dict:
    """Return what a server's own file says of packages."""
    return about(tree, name).get("packages", {})


def attributes(tree: Path, name: str) -> list[str]:
    """Return the attributes that a server's own file takes its tools from."""
    return packages(tree, name).get("nix", [])


def built_in(folder: Path) -> set[str]:
    """Return the Python packages that a server's own build installs from its locked lists."""
    server = tomllib.loads((folder / "server.toml").read_text())
    if "pypi" in server.get("packages", {}):
        return set()
    lists = [folder / name for name in ("requirements.txt", "sources.txt")]
    texts = [path.read_text() for path in lists if path.exists()]
    return {name for text in texts for name in re.findall(r"^([\w-]+)==", text, re.M)}


def modules(nix: Nix, tree: Path) -> None:
    """Each Python module that the study or a server imports is in its environment."""
    ours = [*tree.glob("deathmatch/**/*.py"), *tree.glob("tests/**/*.py"), tree / "Snakefile"]
    ours += [*tree.glob("workflow/*.smk"), *tree.glob("notebooks/*.md")]
    shells = nix.outputs(tree)["devShells"]
    tests = [name for p in tree.glob("tests/**/*.py") for name in (p.stem, p.parent.name)]
    local = {"deathmatch", *(name.replace("_", "-") for name in tests)}
    untested = imported([path for path in ours if path.parts[len(tree.parts)] != "tests"])
    for system, name, wanted in (
        ("x86_64-linux", "test", imported(ours)),
        ("x86_64-linux", "default", untested),
        (DARWIN, "default", untested),
    ):
        lacks = wanted - local - set(shells[system][name]["modules"])
        place = f"devShells.{system}.{name}"
        require(not lacks, f"pyproject.toml: {place} has no modules {sorted(lacks)}")
    offered = nix.outputs(tree)["packages"]["x86_64-linux"]
    for name in sorted({*specs.names("server", tree)} & set(offered)):
        needed = imported([*(tree / "servers" / name).glob("**/*.py")])
        lacks = needed - set(offered[name]["modules"]) - built_in(tree / "servers" / name)
        require(not lacks, f"the Nix package of {name} lacks the Python modules {sorted(lacks)}")


def imported(sources: list[Path]) -> set[str]:
    """Return nixpkgs' names of the modules imported, neither Python's own nor beside the source."""
    found = set()
    for source in sources:
        beside = {path.stem for path in source.parent.iterdir()}
        found |= {name for name in _imports(source) if name not in beside}
    return {MODULES.get(name, name.replace("_", "-")) for name in found - sys.stdlib_module_names}


def _imports(source: Path) -> set[str]:
    text = source.read_text()
    if source.suffix != ".py":
        return set(re.findall(r"^\s*(?:import|from) (\w+)", text, re.MULTILINE))
    # Two threads that parse at once break Python 3.11's parser.
    with PARSING:
        return _imports_of_python(text)


@functools.cache
def _imports_of_python(text: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module.partition(".")[0])
    return found


def environment(nix: Nix, tree: Path) -> None:
    """Each shell tells the runner its toolchain and the folder of its servers' packages."""
    built = nix.outputs(tree)["packages"]
    left_out = others(tree) | of_the_old_pin(tree)
    for system, shells in nix.outputs(tree)["devShells"].items():
        for name, shell in shells.items():
            here = f"devShells.{system}.{name}"
            toolchain = f"nix-{name}" if name in ERAS else "nix"
            found = shell["variables"].get("DEATHMATCH_TOOLCHAIN")
            require(found == toolchain, f"{here}: DEATHMATCH_TOOLCHAIN is {found}")
            farm = shell["context"].get("DEATHMATCH_SERVERS", [])
            if name in SHELLS - {"full"}:
                # There a server is built when it is needed.
                require("DEATHMATCH_SERVERS" not in shell["variables"], f"{here} brings servers")
                continue
            require(len(farm) == 1, f"{here}: DEATHMATCH_SERVERS is not one package")
            linked = uses(Path(farm[0]))
            if name in ERAS:
                same(linked, {"null", "otp-echo", "otp-http", "yaws", "yucan"}, f"{here}: servers")
                continue
            offered = set(built[system]) - left_out
            offered = offered if name == "full" else {name}
            wanted = {each: built[system][each]["out"] for each in offered}
            require(linked == wanted, f"{here}: DEATHMATCH_SERVERS must link {sorted(wanted)}")


def uses(derivation: Path) -> dict[str, str]:
    """Return the variable `uses` of a derivation's file, where the stand-in keeps its arguments."""
    text = re.search(r'\("uses",("(?:[^"\\]|\\.)*")\)', derivation.read_text())[1]
    return json.loads(json.loads(text))


def hashes(nix: Nix, tree: Path) -> None:
    """Each hash is a recorded one; each placeholder has its reason, and its place in the README."""
    paths = [*(tree / "nix").glob("**/*.nix"), *tree.glob("clients/*/*.nix")]
    texts = {path: path.read_text() for path in paths}
    pattern = r'"((?:[0-9a-f]{64})|sha256-[^"]*|[0-9a-f]{40})"'
    found = [value for text in texts.values() for value in re.findall(pattern, text)]
    same(found, PINS["hashes"].values(), "hashes in nix/ and those in tests/nix/pins.json")

    unbuilt = []
    for path, text in texts.items():
        lines = text.splitlines()
        for place in [at for at, line in enumerate(lines) if "fakeHash" in line]:
            reason = lines[place - 1].strip()
            require(reason.startswith("# "), f"{path.name}, line {place + 1}: say why above it")
            above = "\n".join(lines[:place])
            unbuilt.append(re.findall(r'\b(?:pname|name) = "([^"]*)"', above)[-1])
    same(placeholders(tree), unbuilt, "nix/README.md's list of placeholders")


def placeholders(tree: Path) -> list[str]:
    """Return the Erlang libraries that nix/README.md lists as having no confirmed hash."""
    readme = (tree / "nix" / "README.md").read_text()
    heading = "Libraries without a confirmed hash"
    listed = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", readme, re.M | re.S)
    require(listed is not None, f"nix/README.md: no heading {heading!r}")
    return re.findall(r"^- `unconfirmed\.([\w-]+)`", listed[1], re.M)


def facts(nix: Nix, tree: Path) -> None:
    """The programs noted of packages are of packages that the facts name; so are the old pins'."""
    for kind in ("packages", "python", "perl", "ruby"):
        known = {name for name, fact in FACTS[kind].items() if isinstance(fact, dict)}
        noted = json.loads((FIXTURES / "nixpkgs" / "programs.json").read_text())[kind]
        unknown = sorted(set(noted) - known)
        require(not unknown, f"tests/nix/nixpkgs/programs.json: facts.json has no {unknown}")
    noted = json.loads((FIXTURES / "nixpkgs-2014" / "programs.json").read_text())
    unknown = sorted(set(noted) - set(FACTS["nixpkgs-2014"]))
    require(not unknown, f"tests/nix/nixpkgs-2014/programs.json: facts.json has no {unknown}")


def paper(nix: Nix, tree: Path) -> None:
    """packages.paper makes the paper: by its dates, all one in the store, it would be current."""
    recipe = (tree / "nix" / "paper.nix").read_text()
    command = re.search(r"^ *(snakemake paper .*)$", recipe, re.M)
    require(command is not None, "nix/paper.nix runs no `snakemake paper`")
    words = command[1].split()
    require("--forceall" in words, f"nix/paper.nix: `{command[1]}` makes nothing in the store")
    require("dataset=reference" in words, f"nix/paper.nix: `{command[1]}` is of another dataset")


def debian_paths(nix: Nix, tree: Path) -> None:
    """No server takes a file of the system that it runs on where Nix has one of its own.

    Its build may link one where Nix is not the toolchain, or where no such program is on PATH: the
    runner then refuses what is not of Nix.
    """
    for name in specs.names("server", tree):
        server = about(tree, name)
        for key in ("version", "run", "build"):
            for line in server.get(key, "").splitlines():
                guarded = key == "build" and ("nix*)" in line or "command -v" in line)
                require(
                    guarded or not re.search(r"(?<![\w}*])/usr/", line),
                    f"servers/{name}/server.toml, key {key}: under Nix too it would take a file "
                    f"of the system: {line}",
                )


def httperf(nix: Nix, tree: Path) -> None:
    """Both toolchains build httperf alike: clients/httperf/build is where its flags are decided."""
    script = (tree / "clients" / "httperf" / "build").read_text()
    recipe = (tree / "clients" / "httperf" / "httperf.nix").read_text()
    flags, rest = re.search(r'^\./configure --quiet CFLAGS="(.*?)" (.*)$', script, re.M).groups()
    made = re.search(r"^make -s (\S+)", script, re.M)[1]
    wanted = [*flags.split(), *rest.split(), made, re.search(r"^sha256=(.*)$", script, re.M)[1]]
    wanted += [re.search(r"^tarball=(.*)$", script, re.M)[1], "deathmatch.patch"]
    lacks = [word for word in wanted if word not in recipe]
    require(not lacks, f"httperf.nix lacks {lacks} of build, both in clients/httperf/")


CHECKS = [
    parse, formatting, dead_code, facts, evaluation, lock, names, programs, clients, modules,
    environment, light, no_desktop, releases, hashes, debian_paths, httperf, paper, schema,
]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_flake(check, nix, clean):
    check(nix, clean)


def test_a_folder_is_all_that_nix_needs(nix, tmp_path):
    """A copy of the template, with a library of Python, is a package without any other file."""
    tree = copy_flake(tmp_path)
    template = tree / "servers" / "_template" / "one-request"
    shutil.copytree(template, tree / "servers" / "mine")
    toml = tree / "servers" / "mine" / "server.toml"
    nixed = 'nix = ["gcc", "python3Packages.tornado", "apacheHttpdPackages.mod_wsgi3"]'
    toml.write_text(toml.read_text().replace('nix = ["python3"]', nixed))
    for system in SYSTEMS:
        mine = nix.outputs(tree)["packages"][system]["mine"]
        assert {"cc", "python3"} <= set(mine["tools"]) and mine["modules"] == ["tornado"]
    names(nix, tree)
    programs(nix, tree)


@pytest.mark.parametrize("made_by", ["nix", "build"])
def test_a_folder_is_all_that_a_load_generator_needs(made_by, nix, tmp_path):
    """By an expression or by its build script it is a package, a check and in every shell."""
    tree = copy_flake(tmp_path)
    folder = shutil.copytree(tree / "clients" / "roundtrip", tree / "clients" / "mine")
    about = 'title = "mine"\nprogram = "shoot"\nversion = "shoot --version"\n'
    if made_by == "nix":
        about += 'nix = "mine.nix"\n'
        text = 'pkgs: pkgs.writeShellApplication {\n  name = "shoot";\n  text = "true";\n}\n'
        (folder / "mine.nix").write_text(text)
    (folder / "client.toml").write_text(about)
    clients(nix, tree)
    for system in SYSTEMS:
        for output in ("packages", "checks"):
            assert nix.outputs(tree)[output][system]["mine"]["tools"] == ["shoot"]


def test_an_attribute_that_nixpkgs_lacks_is_named_with_its_file(nix, tmp_path):
    tree = copy_flake(tmp_path)
    toml = tree / "servers" / "nginx" / "server.toml"
    toml.write_text(toml.read_text().replace('nix = ["nginx"]', 'nix = ["ngnix"]'))
    said = "servers/nginx/server.toml, key packages.nix: there is no ngnix; nix/README.md says"
    with pytest.raises(Refused, match=said):
        evaluation(nix, tree)


@pytest.mark.parametrize("library", ["misultin", "webmachine"])
def test_a_library_without_a_confirmed_hash_names_the_command_that_prints_it(library, nix, clean):
    attribute = f"legacyPackages.x86_64-linux.erlangLibs.{library}.drvPath"
    with pytest.raises(Refused, match=f"`nix build .#unconfirmed.{library}` fails and prints"):
        nix.flake("eval", f"path:{clean}#{attribute}")
    command = f"path:{clean}#unconfirmed.{library}"
    assert nix.flake("build --dry-run", command) == ""


def test_an_old_erl_is_not_given_later_flags(tmp_path):
    """With today's erl and a flag that it does not know in the place of one that is too new."""
    if not shutil.which("erl", path="/usr/bin"):
        assert debian.install(["erlang-base"], tmp_path / "install.log")
    script = tmp_path / "erl"
    text = (ROOT / "nix" / "era-erl").read_text()
    script.write_text(text.replace("@erl@", "/usr/bin/erl").replace("+sbwtdio", "+nosuch"))
    flags = tmp_path / "vm.args"
    flags.write_text("# of all servers\n+sbwt none # known\n+nosuch none\n")
    words = ["-args_file", flags, "+S", "1:1", "+nosuch", "1", "-noshell", "-eval"]
    code = 'io:format("~p ~s", [erlang:system_info(schedulers), "a  b"]), halt().'
    done = subprocess.run(["sh", script, *words, code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "1 a  b"), done.stderr


def test_the_paper_is_made_where_all_files_have_one_date(tmp_path, network):
    """As in Nix's store: what Snakemake would take for current is made by the recipe's command."""
    for name in project_files():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
        os.utime(tmp_path / name, (1, 1))
    tree = Tree(tmp_path, network)
    recipe = (ROOT / "nix" / "paper.nix").read_text()
    words = re.search(r"^ *(snakemake paper .*)$", recipe, re.M)[1].split()
    without = [word for word in words if word != "--forceall"]
    # Only the figures' links are left to make; the paper itself is not.
    assert "write_paper" not in planned(tree, without)
    made = planned(tree, words)
    assert made["write_paper"] == 1
    assert made["notebook"] == len(list((tmp_path / "notebooks").glob("*.md")))


def planned(tree: Tree, words: list[str]) -> dict[str, int]:
    """Return how many jobs of each rule a dry run of the command plans."""
    text = tree.run(*words, "--dry-run", "--quiet", "reason").succeeded().text
    return {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", text, re.M)}
