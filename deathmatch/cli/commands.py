"""The commands in the order of a user's work: a description, the module and an example of each."""

from dataclasses import dataclass

STEPS = "Single steps of a run (after ./shell snakemake --config dataset=smoke)"


@dataclass(frozen=True)
class Command:
    """A command of the command line.

    `module` has its `main(given)`; it is imported only when called, as polars alone takes half a
    second to load. `example` are arguments that work after the examples before it and
    `./shell snakemake --config dataset=smoke`.
    """

    about: str
    module: str
    example: str
    detail: str = ""


GROUPS: dict[str, dict[str, Command]] = {
    "Look around": {
        "list": Command(
            "list the servers, experiments, datasets, testbeds and notebooks",
            "cli.listing", "datasets",
            "Prints each name with its title; without a kind, only the names of every kind.",
        ),
        "audit": Command(
            "report what on a testbed would distort a measurement, and how to fix it",
            "run.audit", "netns",
            "Reads the settings and limits of each host, and watches for a second what else runs. "
            "Exits with 3 if a finding refuses a run.",
        ),
    },
    "Add a server": {
        "try": Command(
            "try any command as a server, in a minute and without a folder", "run.try_server",
            "'python3 -m http.server {port}'",
            "Prints the server's answers, its capacity, the cost of a reply compared with other "
            "servers, and what limits it. Exits with 3 if answers are wrong.",
        ),
        "new-server": Command(
            "make a server's folder from a template", "plan.new_server",
            "mine --kind one-request",
            "The folder has a small server that passes the checks; replace it by yours. "
            "servers/README.md describes the next steps.",
        ),
        "build": Command(
            "build one server", "builds.server_build", "mine",
            "Installs its packages, runs its build command and prints its version.",
        ),
        "check-server": Command(
            "check in seconds that a server answers as its experiments ask",
            "run.check_server", "null --experiment single-thread",
            "Builds and starts it, and prints the result of each check. Exits with 1 if a check "
            "fails.",
        ),
        "measure": Command(
            "measure a server compared with others, and write its card",
            "run.measure_server", "null mine --minutes 3",
            "Compares one server with yardsticks, or two servers or settings with each other, and "
            "writes paper/<name>/card.html.",
        ),
        "trial": Command(
            "run one trial", "run.run_trial",
            "data/smoke/backlog/mine/backlog=128,somaxconn=4096/1",
            "Builds the server, starts it, checks its answers and measures it at each rate. The "
            "folder then has trial.json, server.log and the load generator's reports.",
        ),
    },
    STEPS: {
        "tidy": Command(
            "write an experiment's tidy tables from its raw logs", "data.tidy",
            "data/smoke/backlog",
        ),
        "answer": Command(
            "answer a question of another machine about this copy of the project",
            "builds.clone",
            "'{\"what\": \"harness\"}'",
            "A run on several machines uses it; question and answer are JSON.",
        ),
        "ledger": Command(
            "decide every claim on a dataset", "analysis.claims",
            "--dataset smoke --out build/ledgers/smoke.pickle",
            "Writes the verdicts to a file that the notebooks and the explorer read.",
        ),
        "notebook": Command(
            "run one notebook on one dataset", "paper.notebook",
            "notebooks/01-backlog.md --dataset smoke --out paper/smoke/notebooks/01-backlog.ipynb",
            "Fills in the numbers of its prose, and writes its figures to --figures.",
        ),
        "paper": Command(
            "make the HTML and the PDF paper of a dataset", "paper.build",
            "--dataset smoke --notebooks paper/smoke/notebooks/*.ipynb --out paper/smoke",
            "Needs executed notebooks; `./shell snakemake paper` runs all of them first.",
        ),
        "explore": Command(
            "make a web page to explore every variant of a dataset", "paper.explorer",
            "--dataset smoke --out paper/smoke/explore.html",
            "Writes one HTML file that works offline; `./shell snakemake paper` makes it too.",
        ),
        "sitting": Command(
            "accept or refuse a measured sitting, and pack its trials",
            "run.end_sitting", "--help",
            "A run does this after a sitting's last trial. The criteria are in the dataset's file; "
            "each attempt is a row of data/<dataset>/sittings.json. A refused sitting is repeated.",
        ),
        "failures": Command(
            "list the servers that could not be measured", "run.failures",
            "smoke",
            "Prints the reason for each; exits with 1 if there is any.",
        ),
    },
    "Submit a dataset (.github/CONTRIBUTING.md)": {
        "check": Command(
            "check that a dataset can be compared with others", "data.check",
            "smoke",
            "It must be complete, from one machine and toolchain, without impossible counters, and "
            "free of personal names; --strict also recomputes every table from the raw logs. Exits "
            "with 3 if a check fails, and with 1 if it could not be checked.",
        ),
        "archive": Command(
            "pack a dataset's raw logs for git", "data.archive", "smoke",
            "Writes one raw.tar.xz for each experiment, next to its tables.",
        ),
        "unpack": Command(
            "restore the raw logs of a packed dataset", "data.unpack",
            "smoke",
            "A run then continues with the trials that are left, on a machine of the same kind.",
        ),
    },
}  # fmt: skip
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
