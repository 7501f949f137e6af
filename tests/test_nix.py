"""The flake, evaluated by a real Nix against a stand-in for nixpkgs.

No binary cache is within reach here, so nothing is built. Instead `tests/nix/` holds the names
recorded from the pinned trees and builders that check their arguments; what neither can see is
decided by the rules below. `test_nix_faults.py` shows which mistakes each of them finds.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import copy_tree

from deathmatch import config, sandbox

FIXTURES = config.ROOT / "tests" / "nix"
PINS = json.loads((FIXTURES / "pins.json").read_text())
SYSTEMS = ["aarch64-linux", "x86_64-linux"]
# What the flake offers beside the servers: no server may have these names.
OTHERS = {"default", "httperf", "paper", "wsload"}
ERAS = {"era-R14B04", "era-R15B03", "era-R16B02"}
# The programs that the study's own commands and tests run.
PROGRAMS = {
    "cargo", "cc", "chromium", "deadnix", "git", "httperf", "ip", "jupyter", "mount", "nixfmt",
    "pdftoppm", "pdftotext", "pytest", "python", "ruff", "setpriv", "snakefmt", "snakemake",
    "ss", "sysctl", "taskset", "tc", "unshare", "wsload",
}  # fmt: skip
# Modules that nixpkgs calls by another name.
MODULES = {
    "IPython": "ipython", "geventwebsocket": "gevent-websocket",
    "vl_convert": "vl-convert-python", "yaml": "pyyaml",
}  # fmt: skip
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

    def run(self, *words: str) -> str:
        """Return the output of a Nix command run without any network; Refused if it fails."""
        folders = {"STORE": "store", "STATE": "var", "LOG": "log", "CONF": "etc"}
        settings = {
            "experimental-features": "nix-command flakes",
            "substituters": "",
            "flake-registry": "",
            "build-users-group": "",
            "sandbox": "false",
            "fsync-metadata": "false",
        }
        done = subprocess.run(
            [*self.sandbox, *words],
            env={
                "HOME": str(self.home),
                "PATH": os.environ["PATH"],
                "NIX_CONFIG": "".join(f"{key} = {value}\n" for key, value in settings.items()),
                **{f"NIX_{name}_DIR": str(self.home / to) for name, to in folders.items()},
            },
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise Refused(done.stderr)
        return done.stdout

    def flake(self, verb: str, tree: Path, output: str = "", *words: str) -> str:
        """Run `nix VERB` on the flake in `tree`, its inputs replaced by the stand-ins."""
        inputs = [
            word
            for name in PINS["inputs"]
            for word in ("--override-input", name, f"path:{FIXTURES / name}")
        ]
        target = f"path:{tree}{output}"
        return self.run("nix", *verb.split(), target, *words, "--no-write-lock-file", *inputs)

    def outputs(self, tree: Path, output: str, attributes: str) -> dict:
        """Return those attributes of each derivation of one output: {system: {name: {...}}}."""
        show = f"builtins.mapAttrs (_: builtins.mapAttrs (_: of: {{ inherit (of) {attributes}; }}))"
        return json.loads(self.flake("eval --json", tree, f"#{output}", "--apply", show))


def tool(name: str) -> str:
    """Return the path of a program; fail the test, saying what installs it, if there is none."""
    places = os.pathsep.join([os.environ["PATH"], str(config.ROOT / "build" / "nix-tools" / "bin")])
    return shutil.which(name, path=places) or pytest.fail(
        f"{name} is not installed: run the tests inside ./shell, which {WHERE[name]}"
    )


def start(home: Path) -> Nix:
    tool("nix")
    return Nix(home, sandbox.command())


@pytest.fixture(scope="module")
def nix(tmp_path_factory) -> Nix:
    return start(tmp_path_factory.mktemp("nix"))


@pytest.fixture(scope="module")
def clean(tmp_path_factory) -> Path:
    """A copy of the project, so that nothing ignored by git gets into Nix's store."""
    return copy_tree(tmp_path_factory.mktemp("clean"))


def require(condition: bool, what: str) -> None:
    if not condition:
        raise Refused(what)


def same(found, wanted, what: str) -> None:
    found, wanted = set(found), set(wanted)
    require(
        found == wanted,
        f"{what}: missing {sorted(wanted - found)}, too many {sorted(found - wanted)}",
    )


def files(tree: Path) -> list[str]:
    """Return the flake's files and the stand-ins'."""
    return ["flake.nix", *(str(p.relative_to(tree)) for p in sorted(tree.glob("**/nix/**/*.nix")))]


def checker(tree: Path, *words: str) -> None:
    done = subprocess.run([*words, *files(tree)], cwd=tree, capture_output=True, text=True)
    require(done.returncode == 0, done.stdout + done.stderr)


def parse(nix: Nix, tree: Path) -> None:
    nix.run("nix-instantiate", "--parse", *(str(tree / name) for name in files(tree)))


def formatting(nix: Nix, tree: Path) -> None:
    checker(tree, tool("nixfmt"), "--check")


def dead_code(nix: Nix, tree: Path) -> None:
    checker(tree, tool("deadnix"), "--fail")


def evaluation(nix: Nix, tree: Path) -> None:
    """`nix flake check`, and what it leaves out: the Erlang libraries no server uses yet."""
    nix.flake("flake check", tree, "", "--no-build")
    for system in SYSTEMS:
        names = "builtins.mapAttrs (_: library: library.drvPath)"
        nix.flake("eval --json", tree, f"#legacyPackages.{system}.erlangLibs", "--apply", names)


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
    servers = set(config.names("server", tree))
    require(not OTHERS & servers, f"a server may not be called any of {sorted(OTHERS)}")
    lists = {path.stem: path.read_text() for path in (tree / "nix" / "servers").iterdir()}
    same(lists, servers, "nix/servers/<name>.nix must match servers/<name>/")
    offered = {
        "x86_64-linux": servers,
        "aarch64-linux": {name for name in servers if "pkgs-2014" not in lists[name]},
    }
    others = {"packages": OTHERS, "checks": OTHERS - {"default"}, "devShells": {"default"}}
    for output, more in others.items():
        found = nix.outputs(tree, output, "name")
        same(found, offered, output)
        for system, wanted in offered.items():
            left_out = unconfirmed(tree) if output == "checks" else set()
            eras = ERAS if (output, system) == ("devShells", "x86_64-linux") else set()
            same(found[system], wanted - left_out | more | eras, f"{output}.{system}")
    app = json.loads(nix.flake("eval --json", tree, "#apps.x86_64-linux.default"))
    require(app["type"] == "app" and app["program"].endswith("/bin/deathmatch"), "apps.default")


def programs(nix: Nix, tree: Path) -> None:
    """Each program that server.toml names is in the server's package, and ours in each shell."""
    for system, packages in nix.outputs(tree, "packages", "tools").items():
        for name in sorted({*config.names("server", tree)} & set(packages)):
            path = config.path_of("server", name, tree)
            wanted = tomllib.loads(path.read_text()).get("packages", {}).get("tools", [])
            lacks = set(wanted) - set(packages[name]["tools"])
            require(
                not lacks,
                f"servers/{name}/server.toml, key packages.tools: packages.{system}.{name} "
                f"lacks {sorted(lacks)}; mend nix/servers/{name}.nix",
            )
    for system, shells in nix.outputs(tree, "devShells", "tools").items():
        for name, shell in shells.items():
            lacks = PROGRAMS - set(shell["tools"])
            require(not lacks, f"devShells.{system}.{name} lacks {sorted(lacks)}")


def built_in(folder: Path) -> set[str]:
    """Return the Python packages that a server's own build installs from its locked list."""
    server = tomllib.loads((folder / "server.toml").read_text())
    lock = folder / "requirements.txt"
    if "pypi" in server.get("packages", {}) or not lock.exists():
        return set()
    return set(re.findall(r"^([\w-]+)==", lock.read_text(), re.M))


def modules(nix: Nix, tree: Path) -> None:
    """Each Python module that the study or a server imports is in its environment."""
    ours = [*tree.glob("deathmatch/*.py"), *tree.glob("tests/**/*.py"), tree / "Snakefile"]
    ours += [*tree.glob("workflow/*.smk"), *tree.glob("notebooks/*.md")]
    shells = nix.outputs(tree, "devShells", "modules")["x86_64-linux"]
    local = {"deathmatch", *(path.stem.replace("_", "-") for path in tree.glob("tests/*.py"))}
    lacks = imported(ours) - local - set(shells["default"]["modules"])
    require(not lacks, f"nix/tools.nix lacks the Python modules {sorted(lacks)}")
    packages = nix.outputs(tree, "packages", "modules")["x86_64-linux"]
    for name in sorted({*config.names("server", tree)} & set(packages)):
        needed = imported([*(tree / "servers" / name).glob("**/*.py")])
        lacks = needed - set(packages[name]["modules"]) - built_in(tree / "servers" / name)
        require(not lacks, f"nix/servers/{name}.nix lacks the Python modules {sorted(lacks)}")


def imported(sources: list[Path]) -> set[str]:
    """Return nixpkgs' names of the modules imported, neither Python's own nor beside the source."""
    found = set()
    for source in sources:
        beside = {path.stem for path in source.parent.iterdir()}
        found |= {name for name in _imports(source) if name not in beside}
    return {MODULES.get(name, name.replace("_", "-")) for name in found - sys.stdlib_module_names}


def _imports(source: Path) -> Iterator[str]:
    text = source.read_text()
    if source.suffix != ".py":
        yield from re.findall(r"^\s*(?:import|from) (\w+)", text, re.MULTILINE)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.partition(".")[0]


def environment(nix: Nix, tree: Path) -> None:
    """Each shell tells the runner its toolchain and the folder of its servers' packages."""
    packages = nix.outputs(tree, "packages", "outPath")
    for system, shells in nix.outputs(tree, "devShells", "variables context").items():
        for name, shell in shells.items():
            here = f"devShells.{system}.{name}"
            toolchain = f"nix-{name}" if name in ERAS else "nix"
            found = shell["variables"].get("DEATHMATCH_TOOLCHAIN")
            require(found == toolchain, f"{here}: DEATHMATCH_TOOLCHAIN is {found}")
            farm = shell["context"].get("DEATHMATCH_SERVERS", [])
            require(len(farm) == 1, f"{here}: DEATHMATCH_SERVERS is not one package")
            linked = uses(Path(farm[0]))
            if name in ERAS:
                same(linked, {"null", "yaws", "yucan"}, f"{here}: servers")
                continue
            offered = set(packages[system]) - OTHERS - unconfirmed(tree)
            offered = offered if name == "default" else {name}
            wanted = {each: packages[system][each] for each in offered}
            require(linked == wanted, f"{here}: DEATHMATCH_SERVERS must link {sorted(wanted)}")


def uses(derivation: Path) -> dict[str, str]:
    """Return the variable `uses` of a derivation's file, where the stand-in keeps its arguments."""
    text = re.search(r'\("uses",("(?:[^"\\]|\\.)*")\)', derivation.read_text())[1]
    return json.loads(json.loads(text))


def hashes(nix: Nix, tree: Path) -> None:
    """Each hash is a recorded one; each placeholder has its reason, and its place in the README."""
    texts = {path: path.read_text() for path in (tree / "nix").glob("**/*.nix")}
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
    listed = re.search(r"^## Needs one build with network$(.*?)(?=^## |\Z)", readme, re.M | re.S)
    require(listed is not None, "nix/README.md: no heading 'Needs one build with network'")
    return re.findall(r"^- `erlangLibs\.([\w-]+)`", listed[1], re.M)


def unconfirmed(tree: Path) -> set[str]:
    """Return the servers with such a library: the default shell must do without them."""
    used = "|".join(re.escape(f"erlangLibs.{library}") + r"\b" for library in placeholders(tree))
    lists = (tree / "nix" / "servers").glob("*.nix")
    return {path.stem for path in lists if used and re.search(used, path.read_text())}


def httperf(nix: Nix, tree: Path) -> None:
    """Both toolchains build httperf alike: clients/httperf/build is where its flags are decided."""
    script = (tree / "clients" / "httperf" / "build").read_text()
    recipe = (tree / "nix" / "httperf.nix").read_text()
    flags, rest = re.search(r'^\./configure --quiet CFLAGS="(.*?)" (.*)$', script, re.M).groups()
    made = re.search(r"^make -s (\S+)", script, re.M)[1]
    wanted = [*flags.split(), *rest.split(), made, re.search(r"^sha256=(.*)$", script, re.M)[1]]
    wanted += [re.search(r"^tarball=(.*)$", script, re.M)[1], "deathmatch.patch"]
    lacks = [word for word in wanted if word not in recipe]
    require(not lacks, f"nix/httperf.nix lacks {lacks} of clients/httperf/build")


CHECKS = [
    parse, formatting, dead_code, evaluation, lock, names, programs, modules, environment, hashes,
    httperf,
]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_flake(check, nix, clean):
    check(nix, clean)
