"""The commands in the order of a user's work: what each takes, its help, and who does it."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from deathmatch.plan.looks import LOOKS
from deathmatch.plan.places import PLACES
from deathmatch.plan.registries import LISTS
from deathmatch.plan.root import ROOT

STEPS = "The same, step by step (after ./shell snakemake --config dataset=smoke)"
SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True)
class Command:
    """One command.

    `module` has its `main(given)`; it is imported only when called, as polars alone takes half a
    second to load. `arguments` declares what the command takes; `example` are words for it, which
    work when pasted after the examples before it and `./shell snakemake --config dataset=smoke`.
    """

    about: str
    module: str
    arguments: Callable[[argparse.ArgumentParser], None]
    example: str
    detail: str = ""


def named(parser: argparse.ArgumentParser, *flags: str, kind: str, **options) -> None:
    """Add an argument that shells complete with the names of a kind, a key of `places.PLACES`."""
    parser.add_argument(*flags, **options).kind = kind


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind", nargs="?", choices=[f"{kind}s" for kind in PLACES], help="which; all if absent"
    )


def _systems(parser: argparse.ArgumentParser) -> None:
    named(parser, "dataset", kind="dataset", help="a file in config/datasets/ that is measured")


def _audit(parser: argparse.ArgumentParser) -> None:
    named(parser, "testbed", kind="testbed", help="a file in config/testbeds/")
    named(
        parser, "--dataset", kind="dataset",
        help="whose load the hosts are to bear; that of config/config.yaml if absent",
    )  # fmt: skip
    parser.add_argument(
        "--accept", action="append", default=[], metavar="RULE",
        help="a rule that does not refuse; as often as wanted, beside `accepts` of the testbed",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print all as JSON")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)


def _instrument(parser: argparse.ArgumentParser, kind: str, repetitions: str) -> None:
    """Declare what every instrument takes (`control.instrument`)."""
    parser.add_argument("name", help=f"of the file to write, data/{kind}/<name>.json")
    parser.add_argument(
        "--repetitions", type=int, default=5, metavar="N", help=f"{repetitions}; 5 if absent"
    )
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)


def _accepting(parser: argparse.ArgumentParser) -> None:
    _instrument(parser, "accepting", "of each reading, in an order that is drawn")
    parser.add_argument(
        "--duration", type=int, default=3, metavar="S", dest="duration_s",
        help="how long each reading offers connections; 3 if absent",
    )  # fmt: skip
    parser.add_argument(
        "--threads", type=int, action="append", default=[], metavar="N",
        help="how many share the socket, as often as wanted; 1, 4 and 16 if absent",
    )  # fmt: skip
    parser.add_argument(
        "--backlog", type=int, action="append", default=[], metavar="N",
        help="of a server with work to do, as often as wanted; 8, 32, 128 and 512 if absent",
    )  # fmt: skip


def _connections(parser: argparse.ArgumentParser) -> None:
    _instrument(parser, "connections", "of each state, each with new namespaces")
    parser.add_argument(
        "--connections", type=int, default=20_000, metavar="N",
        help="how many to hold in each state; 20000 if absent",
    )  # fmt: skip
    parser.add_argument(
        "--held", type=int, default=200_000, metavar="N",
        help="how many to hold at once at the end; 200000 if absent, 0 for none",
    )  # fmt: skip
    parser.add_argument(
        "--memory-share", type=float, default=0.3, metavar="SHARE",
        help="of the available memory, which they may take; 0.3 if absent",
    )  # fmt: skip


def _packets(parser: argparse.ArgumentParser) -> None:
    _instrument(parser, "packets", "of each server and way, in an order that is drawn")
    parser.add_argument(
        "--server", action="append", default=[], metavar="NAME",
        help="what to measure, as often as wanted; null, nginx, yucan and tornado if absent",
    )  # fmt: skip
    parser.add_argument(
        "--rate", type=int, default=1000, metavar="N",
        help="connections a second, each with one request; 1000 if absent",
    )  # fmt: skip
    parser.add_argument(
        "--duration", type=int, default=4, metavar="S", dest="duration_s",
        help="how long each reading offers them; 4 if absent",
    )  # fmt: skip
    parser.add_argument("--mode", help=argparse.SUPPRESS)


def _profile(parser: argparse.ArgumentParser) -> None:
    _instrument(parser, "profile", "of each reading, in an order that is drawn")
    parser.add_argument(
        "--duration", type=int, default=5, metavar="S", dest="duration_s",
        help="for how long each reading is sampled; 5 if absent",
    )  # fmt: skip
    parser.add_argument(
        "--idle", type=int, action="append", default=[], metavar="N",
        help="idle connections, as often as wanted; 0, 900 and 8000 if absent",
    )  # fmt: skip
    parser.add_argument(
        "--mechanism", action="append", default=[], metavar="NAME",
        choices=("select", "poll", "epoll", "io_uring"),
        help="what the server waits with, as often as wanted; all four if absent",
    )  # fmt: skip


def _descriptors(parser: argparse.ArgumentParser) -> None:
    _instrument(parser, "descriptors", "each a process and connections of its own")
    parser.add_argument(
        "--most", type=int, default=16_000, metavar="N",
        help="up to how many idle descriptors; 16000 if absent",
    )  # fmt: skip


def _new_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", default="", help="the new folder's name in servers/")
    named(
        parser, "--kind", kind="template", default="",
        help="what the server is like, a folder in servers/_template/; asked for if absent",
    )  # fmt: skip


def _build(parser: argparse.ArgumentParser) -> None:
    named(parser, "server", kind="server", help="a folder in servers/")
    parser.add_argument(
        "--record", action="store_true",
        help="end with status 0 if the build fails: its record is a result, as Snakemake wants it",
    )  # fmt: skip
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)


def _lock(parser: argparse.ArgumentParser) -> None:
    named(parser, "server", kind="server", help="a folder in servers/")
    parser.add_argument(
        "packages", nargs="*", metavar="PACKAGE",
        help="a name, or one with a release such as flask==3.1.1; they replace requirements.in. Of "
        "npm, Cargo and Go they are added to package.json, Cargo.toml, go.mod; of Maven, as "
        "GROUP:ARTIFACT:VERSION, they replace pom.xml",
    )  # fmt: skip
    parser.add_argument(
        "--of", choices=LISTS,
        help="the registry; the one of which server.toml names a list, else pypi",
    )  # fmt: skip


def _trial(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "trial", help="its folder, data/<dataset>/<experiment>/<server>/<variant>/<n>"
    )
    named(
        parser, "--testbed", kind="testbed", default="netns",
        help="a file in config/testbeds/; netns if absent",
    )  # fmt: skip
    parser.add_argument(
        "--any-outcome", action="store_true",
        help="exit with 0 also where the server could not be built, started or did not conform",
    )  # fmt: skip
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)


def _compare(parser: argparse.ArgumentParser) -> None:
    for side in "ab":
        parser.add_argument(
            side, metavar=side.upper(), help="SERVER, or SERVER:FACTOR=LEVEL,FACTOR=LEVEL"
        )
    named(
        parser, "--experiment", kind="experiment",
        help="in which; the first that both serve if absent",
    )  # fmt: skip
    parser.add_argument(
        "--minutes", type=float, default=10, metavar="N",
        help="how long to measure, builds apart; 10 if absent",
    )  # fmt: skip
    parser.add_argument(
        "--rates", type=int, nargs="+", metavar="RPS",
        help="offered rates in requests per second; those of the dataset tour if absent",
    )  # fmt: skip
    parser.add_argument(
        "--duration", type=float, metavar="S", help="of each rate; that of tour if absent"
    )
    parser.add_argument(
        "--statistic", default="cpu_us_per_reply", metavar="NAME",
        help="what the verdict is about, as claims.toml names it; cpu_us_per_reply if absent",
    )  # fmt: skip
    named(
        parser, "--testbed", kind="testbed", default="netns",
        help="a file in config/testbeds/; netns if absent",
    )  # fmt: skip
    parser.add_argument("--name", help="of its dataset; compare-A-B if absent")
    parser.add_argument("--seed", type=int, help="of the blocks' order; drawn by chance if absent")


def _answer(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "question", nargs="?", default="", help="what to do, and with what; each line if absent"
    )


def _choice(parser: argparse.ArgumentParser) -> None:
    """Add what chooses some of a dataset's trials, as of Snakemake; `plan.choice` reads it."""
    for kind in ("server", "experiment"):
        named(
            parser, f"--{kind}s", kind=kind, default="all", metavar="NAMES",
            help=f"only these {kind}s, joined by commas; all if absent",
        )  # fmt: skip


def _failures(parser: argparse.ArgumentParser) -> None:
    named(parser, "dataset", kind="dataset", help="a file in config/datasets/")
    _choice(parser)
    parser.add_argument("--retry", action="store_true", help="forget them, so that they run again")


def _rounds(parser: argparse.ArgumentParser) -> None:
    named(parser, "dataset", kind="dataset", help="a file in config/datasets/")
    parser.add_argument(
        "look", type=int, choices=LOOKS, help="after how many trials of each variant"
    )
    _choice(parser)


def _tidy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", help="an experiment's folder, data/<dataset>/<experiment>")


def _notebook(parser: argparse.ArgumentParser) -> None:
    named(parser, "notebook", kind="notebook", type=Path, help="a file in notebooks/")
    named(parser, "--dataset", kind="dataset", required=True, help="the dataset that it reads")
    named(
        parser, "--compare", kind="dataset", default="",
        help="a second dataset to set beside the first",
    )  # fmt: skip
    parser.add_argument("--figures", type=Path, help="figures/<dataset> if absent")
    parser.add_argument("--out", type=Path, required=True, help="the executed .ipynb to write")


def _paper(parser: argparse.ArgumentParser) -> None:
    source = ROOT / "paper" / "source"
    named(parser, "--dataset", kind="dataset", required=True, help="the dataset that it is of")
    parser.add_argument(
        "--notebooks", type=Path, nargs="+", required=True, help="executed .ipynb, in their order"
    )
    parser.add_argument("--figures", type=Path, help="figures/<dataset> if absent")
    parser.add_argument(
        "--front", type=Path, default=source / "front.md", help="title, abstract, opening sections"
    )
    parser.add_argument(
        "--references", type=Path, default=source / "references.bib", help="what it cites"
    )
    parser.add_argument("--out", type=Path, required=True, help="the folder to write into")


def _explore(parser: argparse.ArgumentParser) -> None:
    named(parser, "--dataset", kind="dataset", required=True, help="the dataset that it is of")
    named(
        parser, "--compare", kind="dataset", default="",
        help="a second dataset to set beside the first",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, required=True, help="the page to write")


def _check(parser: argparse.ArgumentParser) -> None:
    named(parser, "dataset", kind="dataset", help="a file in config/datasets/ that is measured")
    _choice(parser)
    parser.add_argument(
        "--strict", action="store_true",
        help="make every table again from the raw logs, and ask every rule; of the whole dataset",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="with --strict, print all as JSON")


def _archive(parser: argparse.ArgumentParser) -> None:
    named(parser, "dataset", kind="dataset", help="a file in config/datasets/ that is measured")
    _choice(parser)
    parser.add_argument(
        "--measured", action="store_true",
        help="pack the trials that are measured by now, to go on in another clone",
    )  # fmt: skip


def _unpack(parser: argparse.ArgumentParser) -> None:
    named(parser, "dataset", kind="dataset", help="a file in config/datasets/ that is packed")


def _certify(parser: argparse.ArgumentParser) -> None:
    named(parser, "dataset", kind="dataset", help="a file in config/datasets/ that is measured")


def _migrate(parser: argparse.ArgumentParser) -> None:
    named(parser, "dataset", kind="dataset", help="a folder in data/")


def _docs(parser: argparse.ArgumentParser) -> None:
    """It takes nothing."""


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell that you type in")


def _complete(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", help="the words up to the cursor, the program's first")


GROUPS: dict[str, dict[str, Command]] = {
    "Look around": {
        "list": Command(
            "list what has a name: servers, experiments, datasets, testbeds, notebooks",
            "cli.listing", _list, "datasets",
            "Each name with its title; alone, the names of every kind.",
        ),
        "systems": Command(
            "print a Markdown row for every system", "analysis.systems", _systems, "reference",
            "Which version ran, in which variants, whether it answered as each experiment asks, "
            "one figure for each experiment, or why it did not run.",
        ),
        "audit": Command(
            "say what on a testbed would spoil a measurement, and how to mend it",
            "control.audit", _audit, "netns",
            "Reads the settings and counters of each host, and measures the link under test for "
            "a moment. Exits 3 if it found what refuses a run.",
        ),
        "accepting": Command(
            "measure how long a connection waits to be accepted, and who is woken",
            "control.accepting", _accepting, "mine --backlog 128 --threads 16",
            "Offers connections to a server in C that counts its own waits and switches, and that "
            "reads from the kernel's time stamps how long each request was there before it was "
            "read; by backlog and load, and by the way in which threads share the socket. Writes "
            "data/accepting/<name>.json. It says first how long it takes, and leaves nothing.",
        ),
        "connections": Command(
            "measure what a TCP connection costs the kernel in each state",
            "control.connections", _connections,
            "mine --connections 2000 --held 0 --repetitions 2",
            "Holds connections between two namespaces, and writes what the kernel's caches grew "
            "by to data/connections/<name>.json. Root alone may read these caches; without, "
            "only differences of the whole machine's memory are written. It says first how much "
            "it will hold and how long it takes, sets nothing outside its namespaces, and leaves "
            "nothing.",
        ),
        "descriptors": Command(
            "measure what a wait costs by the number of idle descriptors",
            "control.descriptors", _descriptors, "mine --most 1000 --repetitions 2",
            "Times select, poll and epoll_wait over more and more idle connections, with the "
            "caches as the last wait left them, after others used them, and woken from sleep, and "
            "writes the CPU time of a wait to data/descriptors/<name>.json. It says first how long "
            "it takes, and leaves nothing.",
        ),
        "packets": Command(
            "measure whose CPU time the kernel's work on packets is",
            "control.packets", _packets, "mine --server nginx",
            "Offers servers the same rate of connections over a plain veth pair, with packets "
            "steered to each side's CPUs, and with kernel threads that handle each side's, and "
            "writes the CPU time of each to data/packets/<name>.json. It says first how long it "
            "takes.",
        ),
        "profile": Command(
            "measure in which of the kernel's functions a request's time goes",
            "control.profile", _profile, "mine --idle 900 --repetitions 1",
            "Samples the call chains of a server in C with perf, for each readiness mechanism, by "
            "idle connections and rate, and writes how many samples were taken where to "
            "data/profile/<name>.json. Needs perf, and root where the kernel lets no one else see "
            "its functions. It says first how long it takes, and leaves nothing.",
        ),
    },
    "Add a server": {
        "new-server": Command(
            "make a server's folder from a template", "plan.new_server", _new_server,
            "mine --kind one-request",
            "The folder holds a small server that passes; put yours in its place. "
            "servers/README.md goes on from there.",
        ),
        "lock": Command(
            "lock the packages that a server takes from a registry, with hashes", "hosts.lock",
            _lock, "mine h11",
            "Writes the list of each package that these need, its release and its hashes: "
            "requirements.txt for packages.pypi of server.toml, or package-lock.json, Cargo.lock, "
            "go.sum, jars.sha256. It needs the network.",
        ),
        "build": Command(
            "build one server", "hosts.server_build", _build, "mine",
            "Installs its packages, runs its build command and shows its version.",
        ),
        "trial": Command(
            "run one trial", "control.run_trial", _trial,
            "data/smoke/backlog/mine/backlog=128,somaxconn=4096/1",
            "Builds the server, starts it, checks its answers and measures it at each rate. The "
            "folder then holds trial.json, server.log and the load generator's reports; "
            "`./shell snakemake -n` lists the trials of a dataset.",
        ),
        "compare": Command(
            "compare two servers, or two settings of one", "control.comparison", _compare,
            "null mine --minutes 3",
            "Measures A and B in blocks of four trials, ABBA or BAAB by chance, until the time is "
            "over: the ratio with its interval, the difference that would have shown, and A "
            "against A. To compare two versions of your server, copy its folder. The trials are "
            "a dataset of their own.",
        ),
    },
    STEPS: {
        "tidy": Command(
            "write an experiment's tidy tables from its raw logs", "data.tidy", _tidy,
            "data/smoke/backlog",
        ),
        "answer": Command(
            "tell another machine's controller what this copy of the project has", "hosts.answer",
            _answer, "'{\"what\": \"harness\"}'",
            "A run on several machines asks it of each; question and answer are JSON.",
        ),
        "notebook": Command(
            "run one notebook on one dataset", "paper.notebook", _notebook,
            "notebooks/01-backlog.md --dataset smoke --out paper/smoke/notebooks/01-backlog.ipynb",
            "The numbers of its prose are filled in; its figures are written beside.",
        ),
        "paper": Command(
            "make the HTML and the PDF paper of a dataset", "paper.build", _paper,
            "--dataset smoke --notebooks paper/smoke/notebooks/*.ipynb --out paper/smoke",
            "Of executed notebooks; `./shell snakemake paper` runs all of them first.",
        ),
        "explore": Command(
            "make the page on which to look at every variant of a dataset", "paper.explorer",
            _explore, "--dataset smoke --out paper/smoke/explore.html",
            "One HTML file that fetches nothing: a table to sort and filter, a page for each "
            "server, comparisons, the claims. `./shell snakemake paper` makes it beside the paper.",
        ),
        "failures": Command(
            "list the servers that could not be measured", "control.failures", _failures,
            "smoke",
            "With the reason of each; exits 1 if there is one.",
        ),
    },
    "Hand in a dataset (.github/CONTRIBUTING.md)": {
        "check": Command(
            "check that a dataset is fit to be compared with others", "data.check", _check,
            "smoke",
            "Complete, of one toolchain and one machine, plausible, and free of names and places "
            "of yours. Exits 1 if it is not. With --strict, it exits 3 if a rule rejects the "
            "dataset and 1 if it could not be checked.",
        ),
        "archive": Command(
            "pack a dataset's raw logs for git", "data.archive", _archive, "smoke",
            "One raw.tar.xz for each experiment, beside its tables.",
        ),
        "unpack": Command(
            "put a packed dataset's raw logs where they were measured", "data.unpack", _unpack,
            "smoke",
            "A run then goes on with the trials that are left, in any clone on a machine of the "
            "same kind. What is measured there already stays as it is.",
        ),
        "certify": Command(
            "give a dataset checksums, a citation, a codecheck.yml and an RO-Crate",
            "data.certificate", _certify, "smoke",
            "Only if it passes `check --strict`; else it writes nothing and exits as that does.",
        ),
    },
    "Keep the project in order": {
        "migrate": Command(
            "rename what an earlier version of this project named otherwise", "data.migrate",
            _migrate, "reference",
            "Its tables get today's columns, its trials' folders today's factors; what was "
            "measured stays as it was written.",
        ),
        "docs": Command(
            "write the schemas and the reference in servers/README.md", "plan.docs", _docs, "",
            "Both are made from the models in deathmatch/plan/.",
        ),
        "completion": Command(
            "print what makes a shell complete names with the Tab key", "cli.completion",
            _completion, "bash",
            "For this session, from the project's folder:\n"
            '  bash, zsh   eval "$(bin/deathmatch completion bash)"    or zsh\n'
            "  fish        bin/deathmatch completion fish | source\n"
            "Put the same line, with the path of your clone, into ~/.bashrc, ~/.zshrc (after "
            "compinit) or ~/.config/fish/config.fish to keep it.",
        ),
    },
}  # fmt: skip
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}

# What completion and the workflow call; nobody types it.
HIDDEN = {
    "complete": Command("print completions", "cli.complete", _complete, ""),
    "rounds": Command(
        "decide which variants go on in a dataset of adaptive rounds", "control.decision",
        _rounds, "",
    ),
}  # fmt: skip
