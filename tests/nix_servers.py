"""What the flake must offer of the servers and load generators: rules that evaluation cannot know.

Each takes a Nix and a tree, and raises Refused.
"""

import json
import re
import tomllib
from pathlib import Path

from imports import imported
from nix_flake import DARWIN, SYSTEMS, Nix, closure, require, same

from deathmatch.plan import files as specs

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
# A name with its number in [release] of a server.toml.
RELEASE = r"([A-Za-z][\w.:/+-]*) (\d[\w.+]*)"
# Packages with another name in [release] than in nixpkgs.
RELEASED_AS = {
    "ProtocolWebSocket": "protocol::websocket",
    "erlang-cowboy": "cowboy", "erlang-mochiweb": "mochiweb", "erlang-ranch": "ranch",
    "go_1_26": "go", "haskellPackages-ghc": "ghc", "jdk25": "openjdk", "jdk8": "openjdk",
    "nodejs": "node.js", "nodejs_24": "node.js", "pypy27": "pypy",
    "pypy311": "pypy", "python3": "python", "web": "web.py",
    "beam_minimal-packages-erlang_27-erlang": "otp",
    "beam_minimal-packages-erlang_28-erlang": "otp",
    "beam_minimal-packages-erlang_29-erlang": "otp",
}  # fmt: skip


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
    offered = {"x86_64-linux": servers, "aarch64-linux": servers - of_the_old_pin(tree)}
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
                f"{folder(tree, name)}/server.toml, key packages.tools: packages.{system}.{name} "
                f"lacks {sorted(lacks)}; correct packages.nix there, or nix/servers/{name}.nix",
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


def compilers(nix: Nix, tree: Path) -> None:
    """What is compiled for a program of an older nixpkgs is compiled by that one's own compiler.

    Python's headers include others of the C library that it was built with, and an installer may
    leave out a part in C that does not compile.
    """
    for name in specs.names("server", tree):
        named = attributes(tree, name)
        older = sorted(attribute for attribute in named if attribute.startswith("pkgs-20"))
        require(
            not older or "gcc" not in named,
            f"{folder(tree, name)}/server.toml, key packages.nix: {older} beside today's gcc; take "
            "gcc from there too",
        )


def prebuilt(nix: Nix, tree: Path) -> None:
    """No server runs a program that npm fetches for one system: it has no loader on NixOS."""
    offered = nix.outputs(tree)["packages"][SYSTEMS[-1]]
    for name in sorted({*specs.names("server", tree)} & set(offered)):
        if "npm" not in packages(tree, name).get("tools", []):
            continue
        lock = tree / folder(tree, name) / packages(tree, name)["npm"]
        fetched = json.loads(lock.read_text())["packages"]
        tied = sorted(package for package in fetched if "linux" in package)
        require(
            not tied,
            f"{folder(tree, name)}/server.toml, key packages.npm: {tied} are built for one system; "
            "say so in not_in_nix",
        )


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
        needed = imported([*(tree / folder(tree, name)).glob("**/*.py")])
        # A file that it is made from is a module of its own.
        needed -= {Path(source).stem for source in specs.server(name, tree).sources}
        lacks = needed - set(offered[name]["modules"]) - built_in(tree, name)
        require(not lacks, f"the Nix package of {name} lacks the Python modules {sorted(lacks)}")


def releases(nix: Nix, tree: Path) -> None:
    """Each number that [release] gives is that of the package, where the facts name it."""
    for system, offered in nix.outputs(tree)["packages"].items():
        for name in sorted({*specs.names("server", tree)} & set(offered)):
            stated = about(tree, name).get("release", {})
            text = stated.get("nix") or stated.get("name", "")
            given = versions(offered[name]["drvPath"])
            wrong = [
                f"{what} {number} (Nix gives {given[what.lower()]})"
                for what, number in re.findall(RELEASE, text)
                if given.get(what.lower(), number) != number
            ]
            require(
                not wrong,
                f"{folder(tree, name)}/server.toml, key release.nix: packages.{system}.{name} is "
                f"not {', '.join(wrong)}",
            )


def versions(derivation: str) -> dict[str, str]:
    """Return the versions of all that a package is made with, by the names in [release]."""
    made_with = [path.name[33:].removesuffix(".drv") for path in closure(derivation)]
    found = [match for name in made_with if (match := re.fullmatch(r"(.+?)-(\d[\w.+]*)", name))]
    plain = [(match[1].removeprefix("perlPackages-"), match[2]) for match in found]
    return {RELEASED_AS.get(name, name.lower()): version for name, version in plain}


def no_desktop(nix: Nix, tree: Path) -> None:
    """No server is made with the Erlang that brings wx, GTK and WebKit."""
    for system, offered in nix.outputs(tree)["packages"].items():
        for name, package in offered.items():
            made_from = [path.name for path in closure(package["drvPath"])]
            brought = [name for name in made_from if re.search(r"-beam-packages-.*-erlang-", name)]
            require(not brought, f"packages.{system}.{name} is made with {brought}")


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
                    f"{folder(tree, name)}/server.toml, key {key}: under Nix too it would take a "
                    f"file of the system: {line}",
                )


def about(tree: Path, name: str) -> dict:
    """Return what a server's file says, to be read only, with what it takes from its system's."""
    return specs.written("server", name, tree)


def folder(tree: Path, name: str) -> Path:
    """Return a server's folder, relative to the tree."""
    return specs.path_of("server", name, tree).parent.relative_to(tree)


def packages(tree: Path, name: str) -> dict:
    """Return what a server's file says of packages."""
    return about(tree, name).get("packages", {})


def attributes(tree: Path, name: str) -> list[str]:
    """Return the attributes that a server's file takes its tools from."""
    return packages(tree, name).get("nix", [])


def built_in(tree: Path, name: str) -> set[str]:
    """Return the Python packages that a server's own build installs from its locked lists."""
    if "pypi" in packages(tree, name):
        return set()
    lists = [tree / folder(tree, name) / file for file in ("requirements.txt", "sources.txt")]
    texts = [path.read_text() for path in lists if path.exists()]
    return {name for text in texts for name in re.findall(r"^([\w-]+)==", text, re.M)}
