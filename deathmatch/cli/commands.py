"""The commands in the order of a user's work: what each is for, and who does it."""

from dataclasses import dataclass

STEPS = "The same, step by step (after ./shell snakemake --config dataset=smoke)"


@dataclass(frozen=True)
class Command:
    """A command of the command line.

    `module` has its `main(given)`; it is imported only when called, as polars alone takes half a
    second to load. `example` are words for it, which work when pasted after the examples before it
    and `./shell snakemake --config dataset=smoke`.
    """

    about: str
    module: str
    example: str
    detail: str = ""


GROUPS: dict[str, dict[str, Command]] = {
    "Look around": {
        "list": Command(
            "list what has a name: servers, experiments, datasets, testbeds, notebooks",
            "cli.listing", "datasets",
            "Prints each name with its title; without a kind, the names of every kind.",
        ),
        "audit": Command(
            "report what on a testbed would spoil a measurement, and how to fix it",
            "run.audit", "netns",
            "Reads the settings and limits of each host, and looks for a second what else runs. "
            "Exits 3 if a finding refuses a run.",
        ),
    },
    "Add a server": {
        "try": Command(
            "try any command as a server, in a minute and without a folder", "run.try_server",
            "'python3 -m http.server {port}'",
            "Prints what it answers, its capacity, what a reply costs compared with others, and "
            "what limits it. Exits 3 if it answers wrongly.",
        ),
        "new-server": Command(
            "make a server's folder from a template", "plan.new_server",
            "mine --kind one-request",
            "The folder holds a small server that passes; put yours in its place. "
            "servers/README.md goes on from there.",
        ),
        "build": Command(
            "build one server", "builds.server_build", "mine",
            "Installs its packages, runs its build command and shows its version.",
        ),
        "check-server": Command(
            "check in seconds that a server answers as its experiments ask",
            "run.check_server", "null --experiment single-thread",
            "Builds and starts it, and prints each check with what was wrong. Exits 1 if a check "
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
            "folder then holds trial.json, server.log and the load generator's reports.",
        ),
    },
    STEPS: {
        "tidy": Command(
            "write an experiment's tidy tables from its raw logs", "data.tidy",
            "data/smoke/backlog",
        ),
        "answer": Command(
            "report to another machine's controller what this copy of the project has",
            "builds.clone",
            "'{\"what\": \"harness\"}'",
            "A run on several machines asks each of them; question and answer are JSON.",
        ),
        "ledger": Command(
            "decide every claim on a dataset", "analysis.claims",
            "--dataset smoke --out build/ledgers/smoke.pickle",
            "Writes the verdicts to a file that notebooks and the explorer of a run read.",
        ),
        "notebook": Command(
            "run one notebook on one dataset", "paper.notebook",
            "notebooks/01-backlog.md --dataset smoke --out paper/smoke/notebooks/01-backlog.ipynb",
            "The numbers of its prose are filled in; its figures are written to --figures.",
        ),
        "paper": Command(
            "make the HTML and the PDF paper of a dataset", "paper.build",
            "--dataset smoke --notebooks paper/smoke/notebooks/*.ipynb --out paper/smoke",
            "It needs executed notebooks; `./shell snakemake paper` runs all of them first.",
        ),
        "explore": Command(
            "make a web page to explore every variant of a dataset", "paper.explorer",
            "--dataset smoke --out paper/smoke/explore.html",
            "One HTML file that fetches nothing; `./shell snakemake paper` makes it too.",
        ),
        "sitting": Command(
            "judge a sitting that is measured: pack its trials, or set them aside to be repeated",
            "run.end_sitting", "--help",
            "A run does so after a sitting's last trial. By the criteria in the dataset's file; "
            "each attempt is a row of data/<dataset>/sittings.json.",
        ),
        "failures": Command(
            "list the servers that could not be measured", "run.failures",
            "smoke",
            "Prints the reason for each; exits 1 if there is any.",
        ),
    },
    "Hand in a dataset (.github/CONTRIBUTING.md)": {
        "check": Command(
            "check that a dataset is fit to be compared with others", "data.check",
            "smoke",
            "It must be complete, of one machine and toolchain, without impossible counters, and "
            "free of personal names; with --strict, every table is made again from the raw logs. "
            "Exits 3 if it is not, and 1 if it could not be checked.",
        ),
        "archive": Command(
            "pack a dataset's raw logs for git", "data.archive", "smoke",
            "One raw.tar.xz for each experiment, next to its tables.",
        ),
        "unpack": Command(
            "put a packed dataset's raw logs where they were measured", "data.unpack",
            "smoke",
            "A run then goes on with the trials that are left, on a machine of the same kind.",
        ),
    },
}  # fmt: skip
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
