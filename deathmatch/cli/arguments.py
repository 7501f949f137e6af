"""The arguments of each command, with their help; `cli.commands` has what each command does."""

import argparse
from pathlib import Path
from typing import Any

from deathmatch.plan.paths import PLACES, ROOT

Argument = tuple[str, dict[str, Any]]
"""A name or an option, and the keywords of `argparse.ArgumentParser.add_argument`."""

SOURCE = ROOT / "paper" / "source"


def _argument(name: str, text: str, **options: Any) -> Argument:
    return name, {"help": text, **options}


def _flag(name: str, text: str) -> Argument:
    return _argument(name, text, action="store_true")


def _out(text: str) -> Argument:
    return _argument("--out", text, type=Path, required=True)


SERVER = _argument("server", "a folder in servers/")
DATASET = _argument("--dataset", "the dataset", required=True)
MEASURED = _argument("dataset", "a file in config/datasets/ that is measured")
TESTBED = _argument("--testbed", "a file in config/testbeds/; default: netns", default="netns")
FIGURES = _argument("--figures", "folder of the figures; default: figures/<dataset>", type=Path)
JSON = _flag("--json", "print everything as JSON")
# They choose trials of a dataset, by `plan.selection`.
CHOICE = [
    _argument(
        option, f"only these {what}, separated by commas; default: all", default="all",
        metavar="NAMES",
    )
    for option, what in (
        ("--servers", "servers"),
        ("--experiments", "experiments"),
        ("--sitting", "sittings of the dataset"),
    )
]  # fmt: skip

ARGUMENTS: dict[str, list[Argument]] = {
    "list": [
        _argument(
            "kind", "the kind; default: all", nargs="?", choices=[f"{kind}s" for kind in PLACES]
        ),
    ],
    "audit": [
        _argument("testbed", "a file in config/testbeds/"),
        _argument(
            "--dataset",
            "the dataset whose load the hosts must carry; default: that of config/config.yaml",
        ),
        _argument(
            "--accept", "a check that must not refuse the run, in addition to the testbed's "
            "`accepts`; repeatable", action="append", default=[], metavar="CHECK",
        ),
        JSON,
    ],
    "try": [
        _argument(
            "command", "the server's command, with {port}, and {host} if it takes an address"
        ),
        _flag("--websocket", "the server echoes WebSocket messages; default: HTTP"),
    ],
    "new-server": [
        _argument("name", "the name of the new folder in servers/"),
        _argument(
            "--kind", "the kind of server, a folder in servers/_template/; default: one-request",
            default="one-request",
        ),
        _argument(
            "--command", "the server's command, with {port}; the files that it names are copied"
        ),
    ],
    "build": [
        SERVER,
        _flag("--record", "exit with 0 even if the build fails, as Snakemake needs its record"),
        _flag("--inside", argparse.SUPPRESS),
    ],
    "check-server": [
        SERVER,
        _argument("--experiment", "only this experiment; default: all that the server serves"),
    ],
    "measure": [
        _argument(
            "servers", "SERVER, or SERVER:FACTOR=LEVEL,FACTOR=LEVEL. One is compared with the null "
            "server and two others; two are compared in blocks, ABBA; of more, the first is "
            "compared with the others", nargs="+", metavar="SERVER",
        ),
        _argument("--experiment", "the experiment; default: the first that all of them serve"),
        _argument(
            "--minutes", "the time limit in minutes; the builds of two servers do not count; "
            "default: 10", type=float, default=10, metavar="N",
        ),
        _argument(
            "--rates", "offered rates in requests per second; default: those of the dataset tour "
            "for two servers, else shares of each server's capacity, which a search finds",
            type=int, nargs="+", metavar="RPS",
        ),
        _argument(
            "--duration", "the duration of each rate in seconds; default: that of the dataset "
            "tour, or what the time limit allows", type=float, metavar="S",
        ),
        _argument(
            "--statistic", "two servers only: the quantity to compare, as claims.toml names it; "
            "default: cpu_us_per_reply", metavar="NAME",
        ),
        _argument(
            "--fail-if", 'two servers only: a condition such as "slower-than 5 %%"; exit with 4 if '
            "the whole interval of --statistic shows that the second server is worse by more",
            nargs="+", metavar="WORDS",
        ),
        _flag("--json", "print only the numbers, as JSON"),
        _argument("--name", "the name of the dataset; default: the servers' names"),
        _argument("--seed", "the seed of the random order of trials", type=int),
        TESTBED,
    ],
    "trial": [
        _argument(
            "trial", "the trial's folder, data/<dataset>/<experiment>/<server>/<variant>/<n>"
        ),
        TESTBED,
        _flag(
            "--any-outcome",
            "exit with 0 even if the server was not built, did not start or gave wrong answers",
        ),
    ],
    "tidy": [
        _argument(
            "folder", "the folder of a dataset or an experiment, data/<dataset>[/<experiment>]"
        ),
    ],
    "answer": [_argument("question", "the question, as JSON")],
    "ledger": [DATASET, _out("the file to write")],
    "notebook": [
        _argument("notebook", "a file in notebooks/", type=Path),
        DATASET,
        FIGURES,
        _out("the executed notebook to write, .ipynb"),
    ],
    "paper": [
        DATASET,
        _argument(
            "--notebooks", "executed notebooks, in order", type=Path, nargs="+", required=True
        ),
        FIGURES,
        _argument(
            "--front", "the title, the abstract and the first sections", type=Path,
            default=SOURCE / "front.md",
        ),
        _argument(
            "--references", "the bibliography", type=Path, default=SOURCE / "references.bib"
        ),
        _out("the folder to write into"),
    ],
    "explore": [
        DATASET,
        _out("the page to write"),
        _argument(
            "--paper",
            "the paper's page in the same folder, without .html; default: %(default)s",
            default="deathmatch",
        ),
    ],
    "sitting": [
        _argument("dataset", "a file in config/datasets/ that has sittings"),
        _argument("sitting", "a sitting whose trials are all measured"),
        _argument(
            "--refuse", "refuse it whatever its numbers are, for a fault that was found later",
            metavar="WHY", default="",
        ),
    ],
    "failures": [
        _argument("dataset", "a file in config/datasets/"),
        *CHOICE,
        _flag("--retry", "remove these trials, so that they run again"),
    ],
    "check": [
        MEASURED,
        *CHOICE,
        _flag(
            "--strict",
            "recompute every table of the dataset from the raw logs, and apply every rule",
        ),
        JSON,
    ],
    "archive": [
        MEASURED,
        *CHOICE,
        _flag("--measured", "pack the trials measured so far, to continue in another clone"),
    ],
    "unpack": [_argument("dataset", "a file in config/datasets/ whose data are packed")],
}  # fmt: skip
