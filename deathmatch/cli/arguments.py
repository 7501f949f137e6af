"""The arguments of each command, with their help; `cli.commands` has what each command does."""

import argparse
from pathlib import Path
from typing import Any

from deathmatch.plan.paths import PLACES, ROOT

Argument = tuple[str, dict[str, Any]]
"""A name or an option, and what `argparse.ArgumentParser.add_argument` takes besides."""

SOURCE = ROOT / "paper" / "source"
TESTBED: Argument = (
    "--testbed",
    {"default": "netns", "help": "a file in config/testbeds/; default: netns"},
)
DATASET: Argument = ("--dataset", {"required": True, "help": "the dataset"})
FIGURES: Argument = (
    "--figures",
    {"type": Path, "help": "folder of the figures; default: figures/<dataset>"},
)
# Some of a dataset's trials; `plan.selection` reads them.
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

ARGUMENTS: dict[str, list[Argument]] = {
    "list": [
        ("kind", {
            "nargs": "?", "choices": [f"{kind}s" for kind in PLACES],
            "help": "which kind; default: all",
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
            "help": "a check that does not refuse the run; repeatable, added to `accepts` of the "
            "testbed",
        }),
        ("--json", {"action": "store_true", "help": "print everything as JSON"}),
    ],
    "try": [
        ("command", {
            "help": "the command that starts it, with {port}, and {host} if it can listen there",
        }),
        ("--websocket", {
            "action": "store_true", "help": "it echoes WebSocket messages; default: HTTP",
        }),
    ],
    "new-server": [
        ("name", {"help": "name of the new folder in servers/"}),
        ("--kind", {
            "default": "one-request",
            "help": "kind of server, a folder in servers/_template/; default: one-request",
        }),
        ("--command", {
            "help": "the command of your server, with {port}; the files that it names are copied",
        }),
    ],
    "build": [
        ("server", {"help": "a folder in servers/"}),
        ("--record", {
            "action": "store_true",
            "help": "exit with 0 even if the build fails: its record is a result for Snakemake",
        }),
        ("--inside", {"action": "store_true", "help": argparse.SUPPRESS}),
    ],
    "check-server": [
        ("server", {"help": "a folder in servers/"}),
        ("--experiment", {
            "help": "only as this experiment asks; default: each that the server serves",
        }),
    ],
    "measure": [
        ("servers", {
            "nargs": "+", "metavar": "SERVER",
            "help": "SERVER, or SERVER:FACTOR=LEVEL,FACTOR=LEVEL. One: compared with the null "
            "server and two others. Two: compared in blocks, ABBA. More: the first, compared with "
            "the others",
        }),
        ("--experiment", {"help": "the experiment; default: the first that all of them serve"}),
        ("--minutes", {
            "type": float, "default": 10, "metavar": "N",
            "help": "how long it may take, without the builds of two servers; default: 10",
        }),
        ("--rates", {
            "type": int, "nargs": "+", "metavar": "RPS",
            "help": "offered rates in requests per second; default: for two servers those of the "
            "dataset tour, else shares of each server's capacity, which a search finds",
        }),
        ("--duration", {
            "type": float, "metavar": "S",
            "help": "duration of each rate in seconds; default: that of tour, or as the time "
            "allows",
        }),
        ("--statistic", {
            "default": "cpu_us_per_reply", "metavar": "NAME",
            "help": "of two: the quantity of the verdict, as claims.toml names it; default: "
            "cpu_us_per_reply",
        }),
        ("--fail-if", {
            "nargs": "+", "metavar": "WORDS",
            "help": "of two: exit with 4 if the second is worse by more, such as "
            '"slower-than 5 %%": the whole interval of the --statistic must lie beyond',
        }),
        ("--json", {"action": "store_true", "help": "print the numbers as JSON, and nothing else"}),
        ("--name", {"help": "name of the dataset; default: the servers' names"}),
        ("--seed", {"type": int, "help": "seed of the order of the trials"}),
        TESTBED,
    ],
    "trial": [
        ("trial", {
            "help": "folder of the trial, data/<dataset>/<experiment>/<server>/<variant>/<n>",
        }),
        TESTBED,
        ("--any-outcome", {
            "action": "store_true",
            "help": "exit with 0 even if the server was not built, did not start or did not "
            "conform",
        }),
    ],
    "tidy": [
        ("folder", {
            "help": "a dataset's or an experiment's folder, data/<dataset>[/<experiment>]",
        }),
    ],
    "answer": [("question", {"help": "question as JSON"})],
    "ledger": [DATASET, ("--out", {"type": Path, "required": True, "help": "the file to write"})],
    "notebook": [
        ("notebook", {"type": Path, "help": "a file in notebooks/"}),
        DATASET,
        FIGURES,
        ("--out", {"type": Path, "required": True, "help": "the executed .ipynb to write"}),
    ],
    "paper": [
        DATASET,
        ("--notebooks", {
            "type": Path, "nargs": "+", "required": True, "help": "executed notebooks, in order",
        }),
        FIGURES,
        ("--front", {
            "type": Path, "default": SOURCE / "front.md",
            "help": "title, abstract, opening sections",
        }),
        ("--references", {
            "type": Path, "default": SOURCE / "references.bib", "help": "bibliography",
        }),
        ("--out", {"type": Path, "required": True, "help": "the folder to write into"}),
    ],
    "explore": [
        DATASET,
        ("--out", {"type": Path, "required": True, "help": "the page to write"}),
        ("--paper", {
            "default": "deathmatch",
            "help": "the page beside it, without .html; default: %(default)s",
        }),
    ],
    "sitting": [
        ("dataset", {"help": "a file in config/datasets/ that has sittings"}),
        ("sitting", {"help": "the name of a sitting of which all trials are measured"}),
        ("--refuse", {
            "metavar": "WHY", "default": "",
            "help": "refuse it whatever its numbers are, for a fault that was found since",
        }),
    ],
    "failures": [
        ("dataset", {"help": "a file in config/datasets/"}),
        *CHOICE,
        ("--retry", {
            "action": "store_true", "help": "forget these trials, so that they run again",
        }),
    ],
    "check": [
        ("dataset", {"help": "a file in config/datasets/ that is measured"}),
        *CHOICE,
        ("--strict", {
            "action": "store_true",
            "help": "recompute every table of the dataset from the raw logs, and apply every rule",
        }),
        ("--json", {"action": "store_true", "help": "print everything as JSON"}),
    ],
    "archive": [
        ("dataset", {"help": "a file in config/datasets/ that is measured"}),
        *CHOICE,
        ("--measured", {
            "action": "store_true",
            "help": "pack the trials that are measured so far, to continue in another clone",
        }),
    ],
    "unpack": [("dataset", {"help": "a file in config/datasets/ that is packed"})],
}  # fmt: skip
