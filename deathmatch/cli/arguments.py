"""The arguments of each command, with their help; `cli.commands` has what each command does."""

import argparse
from pathlib import Path
from typing import Any

from deathmatch.plan.paths import PLACES, ROOT

Argument = tuple[str, dict[str, Any]]
"""A name or an option, and the keywords of `argparse.ArgumentParser.add_argument`."""

SOURCE = ROOT / "paper" / "source"
TESTBED: Argument = (
    "--testbed",
    {"default": "netns", "help": "a file in config/testbeds/; default: netns"},
)
SERVER: Argument = ("server", {"help": "a folder in servers/"})
DATASET: Argument = ("--dataset", {"required": True, "help": "the dataset"})
MEASURED: Argument = ("dataset", {"help": "a file in config/datasets/ that is measured"})
JSON: Argument = ("--json", {"action": "store_true", "help": "print everything as JSON"})
FIGURES: Argument = (
    "--figures",
    {"type": Path, "help": "folder of the figures; default: figures/<dataset>"},
)
# They choose trials of a dataset, by `plan.selection`.
CHOICE: list[Argument] = [
    (
        option,
        {
            "default": "all", "metavar": "NAMES",
            "help": f"only these {what}, separated by commas; default: all",
        },
    )
    for option, what in (
        ("--servers", "servers"),
        ("--experiments", "experiments"),
        ("--sitting", "sittings of the dataset"),
    )
]  # fmt: skip


def _out(text: str) -> Argument:
    return "--out", {"type": Path, "required": True, "help": text}


ARGUMENTS: dict[str, list[Argument]] = {
    "list": [
        ("kind", {
            "nargs": "?", "choices": [f"{kind}s" for kind in PLACES],
            "help": "the kind; default: all",
        }),
    ],
    "audit": [
        ("testbed", {"help": "a file in config/testbeds/"}),
        ("--dataset", {
            "help": "the dataset whose load the hosts must carry; default: that of "
            "config/config.yaml",
        }),
        ("--accept", {
            "action": "append", "default": [], "metavar": "CHECK",
            "help": "a check that must not refuse the run, in addition to the testbed's `accepts`; "
            "repeatable",
        }),
        JSON,
    ],
    "try": [
        ("command", {
            "help": "the server's command, with {port}, and {host} if it takes an address",
        }),
        ("--websocket", {
            "action": "store_true", "help": "the server echoes WebSocket messages; default: HTTP",
        }),
    ],
    "new-server": [
        ("name", {"help": "the name of the new folder in servers/"}),
        ("--kind", {
            "default": "one-request",
            "help": "the kind of server, a folder in servers/_template/; default: one-request",
        }),
        ("--command", {
            "help": "the server's command, with {port}; the files that it names are copied",
        }),
    ],
    "build": [
        SERVER,
        ("--record", {
            "action": "store_true",
            "help": "exit with 0 even if the build fails, as Snakemake needs its record",
        }),
        ("--inside", {"action": "store_true", "help": argparse.SUPPRESS}),
    ],
    "check-server": [
        SERVER,
        ("--experiment", {
            "help": "only this experiment; default: all that the server serves",
        }),
    ],
    "measure": [
        ("servers", {
            "nargs": "+", "metavar": "SERVER",
            "help": "SERVER, or SERVER:FACTOR=LEVEL,FACTOR=LEVEL. One is compared with the null "
            "server and two others; two are compared in blocks, ABBA; of more, the first is "
            "compared with the others",
        }),
        ("--experiment", {"help": "the experiment; default: the first that all of them serve"}),
        ("--minutes", {
            "type": float, "default": 10, "metavar": "N",
            "help": "the time limit in minutes; the builds of two servers do not count; "
            "default: 10",
        }),
        ("--rates", {
            "type": int, "nargs": "+", "metavar": "RPS",
            "help": "offered rates in requests per second; default: those of the dataset tour for "
            "two servers, else shares of each server's capacity, which a search finds",
        }),
        ("--duration", {
            "type": float, "metavar": "S",
            "help": "the duration of each rate in seconds; default: that of the dataset tour, or "
            "what the time limit allows",
        }),
        ("--statistic", {
            "default": "cpu_us_per_reply", "metavar": "NAME",
            "help": "two servers only: the quantity to compare, as claims.toml names it; default: "
            "cpu_us_per_reply",
        }),
        ("--fail-if", {
            "nargs": "+", "metavar": "WORDS",
            "help": 'two servers only: a condition such as "slower-than 5 %%"; exit with 4 if the '
            "whole interval of --statistic shows that the second server is worse by more",
        }),
        ("--json", {"action": "store_true", "help": "print only the numbers, as JSON"}),
        ("--name", {"help": "the name of the dataset; default: the servers' names"}),
        ("--seed", {"type": int, "help": "the seed of the random order of trials"}),
        TESTBED,
    ],
    "trial": [
        ("trial", {
            "help": "the trial's folder, data/<dataset>/<experiment>/<server>/<variant>/<n>",
        }),
        TESTBED,
        ("--any-outcome", {
            "action": "store_true",
            "help": "exit with 0 even if the server was not built, did not start or gave wrong "
            "answers",
        }),
    ],
    "tidy": [
        ("folder", {
            "help": "the folder of a dataset or an experiment, data/<dataset>[/<experiment>]",
        }),
    ],
    "answer": [("question", {"help": "the question, as JSON"})],
    "ledger": [DATASET, _out("the file to write")],
    "notebook": [
        ("notebook", {"type": Path, "help": "a file in notebooks/"}),
        DATASET,
        FIGURES,
        _out("the executed notebook to write, .ipynb"),
    ],
    "paper": [
        DATASET,
        ("--notebooks", {
            "type": Path, "nargs": "+", "required": True, "help": "executed notebooks, in order",
        }),
        FIGURES,
        ("--front", {
            "type": Path, "default": SOURCE / "front.md",
            "help": "the title, the abstract and the first sections",
        }),
        ("--references", {
            "type": Path, "default": SOURCE / "references.bib", "help": "the bibliography",
        }),
        _out("the folder to write into"),
    ],
    "explore": [
        DATASET,
        _out("the page to write"),
        ("--paper", {
            "default": "deathmatch",
            "help": "the paper's page in the same folder, without .html; default: %(default)s",
        }),
    ],
    "sitting": [
        ("dataset", {"help": "a file in config/datasets/ that has sittings"}),
        ("sitting", {"help": "a sitting whose trials are all measured"}),
        ("--refuse", {
            "metavar": "WHY", "default": "",
            "help": "refuse it whatever its numbers are, for a fault that was found later",
        }),
    ],
    "failures": [
        ("dataset", {"help": "a file in config/datasets/"}),
        *CHOICE,
        ("--retry", {
            "action": "store_true", "help": "remove these trials, so that they run again",
        }),
    ],
    "check": [
        MEASURED,
        *CHOICE,
        ("--strict", {
            "action": "store_true",
            "help": "recompute every table of the dataset from the raw logs, and apply every rule",
        }),
        JSON,
    ],
    "archive": [
        MEASURED,
        *CHOICE,
        ("--measured", {
            "action": "store_true",
            "help": "pack the trials measured so far, to continue in another clone",
        }),
    ],
    "unpack": [("dataset", {"help": "a file in config/datasets/ whose data are packed"})],
}  # fmt: skip
