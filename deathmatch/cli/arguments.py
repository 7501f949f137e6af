"""What each command takes, with the help of every argument; `cli.commands` says what it is for."""

import argparse
from pathlib import Path

from deathmatch.plan.paths import PLACES
from deathmatch.plan.registries import LISTS
from deathmatch.plan.root import ROOT

SHELLS = ("bash", "zsh", "fish")


def named(parser: argparse.ArgumentParser, *flags: str, kind: str, **options) -> None:
    """Add an argument that shells complete with the names of a kind, a key of `places.PLACES`."""
    parser.add_argument(*flags, **options).kind = kind


def of_list(parser: argparse.ArgumentParser) -> None:
    """Declare what `list` takes."""
    parser.add_argument(
        "kind", nargs="?", choices=[f"{kind}s" for kind in PLACES], help="which; all if absent"
    )


def of_systems(parser: argparse.ArgumentParser) -> None:
    """Declare what `systems` takes."""
    named(parser, "dataset", kind="dataset", help="a file in config/datasets/ that is measured")


def of_audit(parser: argparse.ArgumentParser) -> None:
    """Declare what `audit` takes."""
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
    """Declare what every instrument takes (`instruments.instrument`)."""
    parser.add_argument("name", help=f"of the file to write, data/{kind}/<name>.json")
    parser.add_argument(
        "--repetitions", type=int, default=5, metavar="N", help=f"{repetitions}; 5 if absent"
    )
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)


def of_accepting(parser: argparse.ArgumentParser) -> None:
    """Declare what `accepting` takes."""
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


def of_connections(parser: argparse.ArgumentParser) -> None:
    """Declare what `connections` takes."""
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


def of_packets(parser: argparse.ArgumentParser) -> None:
    """Declare what `packets` takes."""
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


def of_profile(parser: argparse.ArgumentParser) -> None:
    """Declare what `profile` takes."""
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


def of_descriptors(parser: argparse.ArgumentParser) -> None:
    """Declare what `descriptors` takes."""
    _instrument(parser, "descriptors", "each a process and connections of its own")
    parser.add_argument(
        "--most", type=int, default=16_000, metavar="N",
        help="up to how many idle descriptors; 16000 if absent",
    )  # fmt: skip


def of_new_server(parser: argparse.ArgumentParser) -> None:
    """Declare what `new-server` takes."""
    parser.add_argument("name", nargs="?", default="", help="the new folder's name in servers/")
    named(
        parser, "--kind", kind="template", default="",
        help="what the server is like, a folder in servers/_template/; asked for if absent",
    )  # fmt: skip


def of_build(parser: argparse.ArgumentParser) -> None:
    """Declare what `build` takes."""
    named(parser, "server", kind="server", help="a folder in servers/")
    parser.add_argument(
        "--record", action="store_true",
        help="end with status 0 if the build fails: its record is a result, as Snakemake wants it",
    )  # fmt: skip
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)


def of_lock(parser: argparse.ArgumentParser) -> None:
    """Declare what `lock` takes."""
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


def of_trial(parser: argparse.ArgumentParser) -> None:
    """Declare what `trial` takes."""
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


def of_compare(parser: argparse.ArgumentParser) -> None:
    """Declare what `compare` takes."""
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


def of_answer(parser: argparse.ArgumentParser) -> None:
    """Declare what `answer` takes."""
    parser.add_argument(
        "question", nargs="?", default="", help="what to do, and with what; each line if absent"
    )


def _choice(parser: argparse.ArgumentParser) -> None:
    """Add what chooses some of a dataset's trials, as of Snakemake; `plan.selection` reads it."""
    for kind in ("server", "experiment"):
        named(
            parser, f"--{kind}s", kind=kind, default="all", metavar="NAMES",
            help=f"only these {kind}s, joined by commas; all if absent",
        )  # fmt: skip


def of_failures(parser: argparse.ArgumentParser) -> None:
    """Declare what `failures` takes."""
    named(parser, "dataset", kind="dataset", help="a file in config/datasets/")
    _choice(parser)
    parser.add_argument("--retry", action="store_true", help="forget them, so that they run again")


def of_tidy(parser: argparse.ArgumentParser) -> None:
    """Declare what `tidy` takes."""
    parser.add_argument("folder", help="an experiment's folder, data/<dataset>/<experiment>")


def of_notebook(parser: argparse.ArgumentParser) -> None:
    """Declare what `notebook` takes."""
    named(parser, "notebook", kind="notebook", type=Path, help="a file in notebooks/")
    named(parser, "--dataset", kind="dataset", required=True, help="the dataset that it reads")
    named(
        parser, "--compare", kind="dataset", default="",
        help="a second dataset to set beside the first",
    )  # fmt: skip
    parser.add_argument("--figures", type=Path, help="figures/<dataset> if absent")
    parser.add_argument("--out", type=Path, required=True, help="the executed .ipynb to write")


def of_paper(parser: argparse.ArgumentParser) -> None:
    """Declare what `paper` takes."""
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


def of_explore(parser: argparse.ArgumentParser) -> None:
    """Declare what `explore` takes."""
    named(parser, "--dataset", kind="dataset", required=True, help="the dataset that it is of")
    named(
        parser, "--compare", kind="dataset", default="",
        help="a second dataset to set beside the first",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, required=True, help="the page to write")


def of_check(parser: argparse.ArgumentParser) -> None:
    """Declare what `check` takes."""
    named(parser, "dataset", kind="dataset", help="a file in config/datasets/ that is measured")
    _choice(parser)
    parser.add_argument(
        "--strict", action="store_true",
        help="make every table again from the raw logs, and ask every rule; of the whole dataset",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="with --strict, print all as JSON")


def of_archive(parser: argparse.ArgumentParser) -> None:
    """Declare what `archive` takes."""
    named(parser, "dataset", kind="dataset", help="a file in config/datasets/ that is measured")
    _choice(parser)
    parser.add_argument(
        "--measured", action="store_true",
        help="pack the trials that are measured by now, to go on in another clone",
    )  # fmt: skip


def of_unpack(parser: argparse.ArgumentParser) -> None:
    """Declare what `unpack` takes."""
    named(parser, "dataset", kind="dataset", help="a file in config/datasets/ that is packed")


def of_certify(parser: argparse.ArgumentParser) -> None:
    """Declare what `certify` takes."""
    named(parser, "dataset", kind="dataset", help="a file in config/datasets/ that is measured")


def of_migrate(parser: argparse.ArgumentParser) -> None:
    """Declare what `migrate` takes."""
    named(parser, "dataset", kind="dataset", help="a folder in data/")


def of_docs(parser: argparse.ArgumentParser) -> None:
    """Declare nothing: `docs` takes nothing."""


def of_completion(parser: argparse.ArgumentParser) -> None:
    """Declare what `completion` takes."""
    parser.add_argument("shell", choices=SHELLS, help="the shell that you type in")


def of_complete(parser: argparse.ArgumentParser) -> None:
    """Declare what `complete` takes."""
    parser.add_argument("words", nargs="*", help="the words up to the cursor, the program's first")
