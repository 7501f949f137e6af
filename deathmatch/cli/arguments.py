"""The arguments of each command, with their help; `cli.commands` has what each command does."""

import argparse
from pathlib import Path

from deathmatch.plan.paths import PLACES, ROOT


def listing(parser: argparse.ArgumentParser) -> None:
    """Declare what `list` takes."""
    parser.add_argument(
        "kind", nargs="?", choices=[f"{kind}s" for kind in PLACES], help="which kind; default: all"
    )


def audit(parser: argparse.ArgumentParser) -> None:
    """Declare what `audit` takes."""
    parser.add_argument("testbed", help="a file in config/testbeds/")
    parser.add_argument(
        "--dataset",
        help="the dataset whose load the hosts must carry; default: that of config/config.yaml",
    )  # fmt: skip
    parser.add_argument(
        "--accept", action="append", default=[], metavar="CHECK",
        help="a check that does not refuse the run; repeatable, added to `accepts` of the testbed",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def new_server(parser: argparse.ArgumentParser) -> None:
    """Declare what `new-server` takes."""
    parser.add_argument("name", help="name of the new folder in servers/")
    parser.add_argument(
        "--kind", default="one-request",
        help="kind of server, a folder in servers/_template/; default: one-request",
    )  # fmt: skip
    parser.add_argument(
        "--command",
        help="the command of your server, with {port}; the files that it names are copied",
    )


def build(parser: argparse.ArgumentParser) -> None:
    """Declare what `build` takes."""
    parser.add_argument("server", help="a folder in servers/")
    parser.add_argument(
        "--record", action="store_true",
        help="exit with 0 even if the build fails: its record is a result for Snakemake",
    )  # fmt: skip
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)


def _testbed(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the testbed."""
    parser.add_argument(
        "--testbed", default="netns",
        help="a file in config/testbeds/; default: netns",
    )  # fmt: skip


def check_server(parser: argparse.ArgumentParser) -> None:
    """Declare what `check-server` takes."""
    parser.add_argument("server", help="a folder in servers/")
    parser.add_argument(
        "--experiment",
        help="only as this experiment asks; default: each that the server serves",
    )  # fmt: skip


def measure(parser: argparse.ArgumentParser) -> None:
    """Declare what `measure` takes."""
    parser.add_argument(
        "servers", nargs="+", metavar="SERVER",
        help="SERVER, or SERVER:FACTOR=LEVEL,FACTOR=LEVEL. One: compared with the null server and "
        "two others. Two: compared in blocks, ABBA. More: the first, compared with the others",
    )  # fmt: skip
    parser.add_argument(
        "--experiment", help="the experiment; default: the first that all of them serve"
    )
    parser.add_argument(
        "--minutes", type=float, default=10, metavar="N",
        help="how long it may take, without the builds of two servers; default: 10",
    )  # fmt: skip
    parser.add_argument(
        "--rates", type=int, nargs="+", metavar="RPS",
        help="offered rates in requests per second; default: for two servers those of the dataset "
        "tour, else shares of each server's capacity, which a search finds",
    )  # fmt: skip
    parser.add_argument(
        "--duration", type=float, metavar="S",
        help="duration of each rate in seconds; default: that of tour, or as the time allows",
    )  # fmt: skip
    parser.add_argument(
        "--statistic", default="cpu_us_per_reply", metavar="NAME",
        help="of two: the quantity of the verdict, as claims.toml names it; default: "
        "cpu_us_per_reply",
    )  # fmt: skip
    parser.add_argument(
        "--fail-if", nargs="+", metavar="WORDS",
        help='of two: exit with 4 if the second is worse by more, such as "slower-than 5 %%": the '
        "whole interval of the --statistic must lie beyond",
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true", help="print the numbers as JSON, and nothing else"
    )
    parser.add_argument("--name", help="name of the dataset; default: the servers' names")
    parser.add_argument("--seed", type=int, help="seed of the order of the trials")
    _testbed(parser)


def try_server(parser: argparse.ArgumentParser) -> None:
    """Declare what `try` takes."""
    parser.add_argument(
        "command", help="the command that starts it, with {port}, and {host} if it can listen there"
    )
    parser.add_argument(
        "--websocket", action="store_true", help="it echoes WebSocket messages; default: HTTP"
    )


def trial(parser: argparse.ArgumentParser) -> None:
    """Declare what `trial` takes."""
    parser.add_argument(
        "trial", help="folder of the trial, data/<dataset>/<experiment>/<server>/<variant>/<n>"
    )
    _testbed(parser)
    parser.add_argument(
        "--any-outcome", action="store_true",
        help="exit with 0 even if the server was not built, did not start or did not conform",
    )  # fmt: skip


def answer(parser: argparse.ArgumentParser) -> None:
    """Declare what `answer` takes."""
    parser.add_argument("question", help="question as JSON")


def _choice(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose some of a dataset's trials; `plan.selection` reads them."""
    for kind in ("server", "experiment"):
        parser.add_argument(
            f"--{kind}s", default="all", metavar="NAMES",
            help=f"only these {kind}s, separated by commas; default: all",
        )  # fmt: skip
    parser.add_argument(
        "--sitting", default="all", metavar="NAMES",
        help="only these sittings of the dataset, separated by commas; default: all",
    )  # fmt: skip


def failures(parser: argparse.ArgumentParser) -> None:
    """Declare what `failures` takes."""
    parser.add_argument("dataset", help="a file in config/datasets/")
    _choice(parser)
    parser.add_argument(
        "--retry", action="store_true", help="forget these trials, so that they run again"
    )


def sitting(parser: argparse.ArgumentParser) -> None:
    """Declare what `sitting` takes."""
    parser.add_argument("dataset", help="a file in config/datasets/ that has sittings")
    parser.add_argument("sitting", help="the name of a sitting of which all trials are measured")
    parser.add_argument(
        "--refuse", metavar="WHY", default="",
        help="refuse it whatever its numbers are, for a fault that was found since",
    )  # fmt: skip


def tidy(parser: argparse.ArgumentParser) -> None:
    """Declare what `tidy` takes."""
    parser.add_argument(
        "folder", help="a dataset's or an experiment's folder, data/<dataset>[/<experiment>]"
    )


def ledger(parser: argparse.ArgumentParser) -> None:
    """Declare what `ledger` takes."""
    parser.add_argument("--dataset", required=True, help="the dataset")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")


def notebook(parser: argparse.ArgumentParser) -> None:
    """Declare what `notebook` takes."""
    parser.add_argument("notebook", type=Path, help="a file in notebooks/")
    parser.add_argument("--dataset", required=True, help="the dataset that it reads")
    parser.add_argument(
        "--figures", type=Path, help="folder of the figures; default: figures/<dataset>"
    )
    parser.add_argument("--out", type=Path, required=True, help="the executed .ipynb to write")


def paper(parser: argparse.ArgumentParser) -> None:
    """Declare what `paper` takes."""
    source = ROOT / "paper" / "source"
    parser.add_argument("--dataset", required=True, help="the dataset")
    parser.add_argument(
        "--notebooks", type=Path, nargs="+", required=True, help="executed notebooks, in order"
    )
    parser.add_argument(
        "--figures", type=Path, help="folder of the figures; default: figures/<dataset>"
    )
    parser.add_argument(
        "--front", type=Path, default=source / "front.md", help="title, abstract, opening sections"
    )
    parser.add_argument(
        "--references", type=Path, default=source / "references.bib", help="bibliography"
    )
    parser.add_argument("--out", type=Path, required=True, help="the folder to write into")


def explore(parser: argparse.ArgumentParser) -> None:
    """Declare what `explore` takes."""
    parser.add_argument("--dataset", required=True, help="the dataset")
    parser.add_argument("--out", type=Path, required=True, help="the page to write")
    parser.add_argument(
        "--paper",
        default="deathmatch",
        help="the page beside it, without .html; default: %(default)s",
    )


def check(parser: argparse.ArgumentParser) -> None:
    """Declare what `check` takes."""
    parser.add_argument("dataset", help="a file in config/datasets/ that is measured")
    _choice(parser)
    parser.add_argument(
        "--strict", action="store_true",
        help="recompute every table of the dataset from the raw logs, and apply every rule",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def archive(parser: argparse.ArgumentParser) -> None:
    """Declare what `archive` takes."""
    parser.add_argument("dataset", help="a file in config/datasets/ that is measured")
    _choice(parser)
    parser.add_argument(
        "--measured", action="store_true",
        help="pack the trials that are measured so far, to continue in another clone",
    )  # fmt: skip


def unpack(parser: argparse.ArgumentParser) -> None:
    """Declare what `unpack` takes."""
    parser.add_argument("dataset", help="a file in config/datasets/ that is packed")


def nothing(parser: argparse.ArgumentParser) -> None:
    """Declare nothing."""
