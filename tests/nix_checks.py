"""The checks of the flake, in the order in which they are tried: each raises Refused."""

import json
import re
import subprocess
from pathlib import Path

from nix_flake import DARWIN, PINS, SYSTEMS, Nix, checkers, closure, require, same, uses
from nix_servers import (
    ERAS,
    SHELLS,
    clients,
    compilers,
    debian_paths,
    modules,
    names,
    no_desktop,
    of_the_old_pin,
    others,
    prebuilt,
    programs,
    releases,
)  # fmt: skip

# Derivations of the first entry that no binary cache holds.
MOST_UNCACHED = 40


def nix_files(tree: Path) -> list[str]:
    """Return the flake's files and the stand-ins'."""
    paths = [*tree.glob("**/nix/**/*.nix"), *tree.glob("clients/*/*.nix")]
    return ["flake.nix", *(str(path.relative_to(tree)) for path in sorted(paths))]


def checker(tree: Path, *words: str) -> None:
    done = subprocess.run(
        ["env", f"PATH={checkers()}", *words, *nix_files(tree)],
        cwd=tree, capture_output=True, text=True,
    )  # fmt: skip
    require(done.returncode == 0, done.stdout + done.stderr)


def parse(nix: Nix, tree: Path) -> None:
    nix.run("nix-instantiate", "--parse", *(str(tree / name) for name in nix_files(tree)))


def formatting(nix: Nix, tree: Path) -> None:
    checker(tree, "nixfmt", "--check")


def dead_code(nix: Nix, tree: Path) -> None:
    checker(tree, "deadnix", "--fail")


def evaluation(nix: Nix, tree: Path) -> None:
    """All that the flake offers can be evaluated."""
    nix.outputs(tree)


def lock(nix: Nix, tree: Path) -> None:
    """flake.lock needs no change to fit flake.nix, and holds the recorded pins."""
    words = ["nix", "flake", "metadata", "--json", "--no-update-lock-file", f"path:{tree}"]
    nodes = json.loads(nix.run(*words))["locks"]["nodes"]
    same(nodes, [*PINS["inputs"], "root"], "inputs of flake.lock")
    for name, pin in PINS["inputs"].items():
        wanted = {"type": "github", "owner": "NixOS", "repo": "nixpkgs", **pin}
        require(nodes[name]["locked"] == wanted, f"flake.lock: {name} is not the recorded pin")


def light(nix: Nix, tree: Path) -> None:
    """The first entry makes few derivations that no binary cache holds, and no server."""
    for system in [*SYSTEMS, DARWIN]:
        shell = nix.outputs(tree)["devShells"][system]["default"]["drvPath"]
        count = sum(uncached(path) for path in closure(shell))
        require(
            0 < count < MOST_UNCACHED,
            f"devShells.{system}.default is made by {count} derivations that no cache holds",
        )


def uncached(derivation: Path) -> int:
    """Return how many derivations of the real nixpkgs this one of the stand-in is."""
    found = re.search(r'\("uncached","(\d+)"\)', derivation.read_text())
    require(found is not None, f"{derivation.name} is not of the stand-in of today's nixpkgs")
    return int(found[1])


def environment(nix: Nix, tree: Path) -> None:
    """Each shell has variables for its toolchain and the folder of its servers' packages."""
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


def hashes(nix: Nix, tree: Path) -> None:
    """Each hash is a recorded one."""
    paths = [*(tree / "nix").glob("**/*.nix"), *tree.glob("clients/*/*.nix")]
    pattern = r'"((?:[0-9a-f]{64})|sha256-[^"]*|[0-9a-f]{40})"'
    found = [value for path in paths for value in re.findall(pattern, path.read_text())]
    same(found, PINS["hashes"].values(), "hashes in nix/ and those in tests/nix/pins.json")


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
    parse, formatting, dead_code, evaluation, lock, names, programs, clients, modules,
    environment, light, no_desktop, compilers, prebuilt, releases, hashes, debian_paths, httperf,
]  # fmt: skip
