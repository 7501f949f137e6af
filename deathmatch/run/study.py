"""The study that one call of Snakemake makes: its trials, tables, notebooks and paper."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import yaml

from deathmatch.builds import clients, server_build, server_commands, tool_differences
from deathmatch.data import sittings
from deathmatch.errors import UserError, as_typed
from deathmatch.hosts import hardware
from deathmatch.paper import report
from deathmatch.plan import files, matrix, paths
from deathmatch.plan.record import NOT_BUILT
from deathmatch.plan.selection import Choice
from deathmatch.plan.server import Server
from deathmatch.plan.trial import Trial
from deathmatch.run import progress
from deathmatch.run import sittings as run_sittings


def _found(*patterns: str) -> list[str]:
    found = (path for pattern in patterns for path in Path().glob(pattern))
    return sorted(str(path) for path in found if path.is_file())


PUBLISHED = _found("data/published/**/*.csv", "data/published/**/*.toml")
# The paper and the explorer show the version in CITATION.cff.
KINDS = ("html", "typ", "css", "lua", "md", "bib", "js")
PAPER = [paths.CITATION, *_found(*(f"paper/source/*.{kind}" for kind in KINDS))]
SERVERS = _found(paths.PLACES["server"].format("*"), paths.RELEASES.format("*"))
# The explorer's inputs besides tables and the paper's style; it shows the path of each server.
EXPLORER = [*_found("paper/source/explore/**/*"), *SERVERS]
LEDGERS = "build/ledgers"
# It has a file for each sitting that was judged and accepted.
JUDGED = "build/sittings"


@dataclass(frozen=True)
class Study:
    """A checked configuration; paths are relative to the project's root."""

    dataset: str
    testbed: str
    choice: Choice
    only_paper: bool = False
    """Whether only the paper is made, from the trials measured so far."""

    @cached_property
    def frozen(self) -> bool:
        """Whether the dataset is only read: measured before and kept in git."""
        return files.dataset(self.dataset).frozen

    @cached_property
    def trials(self) -> list[Trial]:
        """The trials to measure, in order; with `only_paper` the measured ones; none if frozen."""
        if self.frozen:
            return []
        wanted = self.choice.trials(self.dataset)
        if self.only_paper:
            return [trial for trial in wanted if (trial.path / "trial.json").exists()]
        spec, closed = files.dataset(self.dataset), sittings.accepted(self.dataset)
        return [t for t in wanted if spec.sitting_of(t.experiment.name, t.n) not in closed]

    @cached_property
    def sittings(self) -> dict[str, list[Trial]]:
        """The trials of each sitting to measure, by its name, in order; {} without sittings."""
        spec, found = files.dataset(self.dataset), {}
        for trial in self.trials if spec.sittings and not self.only_paper else ():
            name = spec.sitting_of(trial.experiment.name, trial.n)
            found.setdefault(name, []).append(trial)
        return found

    @cached_property
    def lacking(self) -> list[str]:
        """The sittings that the dataset lacks: there is no paper before it is complete."""
        return sittings.lacking(self.dataset)

    @cached_property
    def order(self) -> dict[str, tuple[int, Trial]]:
        """The place in the order, and the trial, by the trial's folder."""
        return {trial.folder: (place, trial) for place, trial in enumerate(self.trials)}

    @cached_property
    def specified(self) -> dict[Trial, dict]:
        """`progress.specified` of the whole dataset, whatever is chosen."""
        if self.frozen or not self.folder.is_dir():
            return {}
        return progress.specified(matrix.possible(self.dataset))

    @cached_property
    def records(self) -> dict[Trial, dict]:
        """The records of trials that need not be measured again.

        They have the present specification and testbed. A trial whose server could not be built is
        due once that is built.
        """
        measured = progress.on_testbed(self.specified, self.testbed)
        return {
            trial: record
            for trial, record in measured.items()
            if record["outcome"] != NOT_BUILT or not server_build.is_built(trial.server)
        }

    @property
    def kept(self) -> dict[Trial, dict]:
        """The records that will still be in the dataset after this run.

        Those that it measures again, on another testbed, are left out.
        """
        due = set() if self.only_paper else {t for t in self.trials if t not in self.records}
        return {trial: record for trial, record in self.specified.items() if trial not in due}

    @cached_property
    def served(self) -> list[str]:
        """The servers to measure."""
        return sorted({trial.server.name for trial in self.trials})

    @cached_property
    def built(self) -> list[str]:
        """The servers to build: those to measure, and those whose builds make load generators."""
        if self.only_paper or self.elsewhere:
            return []
        builders = (clients.builders(experiment) for experiment in self.measured)
        return sorted({*self.served}.union(*builders)) if self.trials else []

    @cached_property
    def elsewhere(self) -> bool:
        """Whether other machines measure, with their own builds and load generators."""
        return files.testbed(self.testbed).kind == "ssh"

    @cached_property
    def measured(self) -> list[str]:
        """The experiments of the dataset that the paper shows."""
        tabled = {path.parent.name for path in self.folder.glob("*/points.parquet")}
        if self.frozen:
            return sorted(tabled)
        if not self.only_paper and (self.lacking or not files.dataset(self.dataset).sittings):
            return self.tidied
        return sorted({*self.tidied, *tabled.intersection(self.choice.experiments or tabled)})

    @cached_property
    def tidied(self) -> list[str]:
        """The experiments that have trials, measured or planned, and so get tables."""
        return sorted({trial.experiment.name for trial in self.trials})

    def summary(self) -> str:
        """Return one line: how much there is to measure and how long it will take."""
        made = "the paper" if self.whole else "the report on part of the study"
        if self.frozen:
            return f"dataset {self.dataset}: already measured; only {made} is made"
        servers, trials = len(self.served), len(self.trials)
        about = f"dataset {self.dataset}, {servers} server{'' if servers == 1 else 's'}: "
        if self.only_paper:
            all_trials = len(self.choice.trials(self.dataset))
            return about + f"{trials} of {all_trials} trials are measured; only {made} is made"
        builds_s = progress.builds_s(self.unbuilt)
        return about + progress.line(progress.standing(self.trials, self.records, builds_s))

    @cached_property
    def unbuilt(self) -> list[Server]:
        """The servers to build that were never built."""
        return [
            files.server(name)
            for name in self.built
            if not (server_commands.build_dir(name) / server_build.GOOD).exists()
        ]

    def notes(self) -> Iterator[str]:
        """Yield lines on builds, on changed servers, and on chosen names that are not measured."""
        if self.unbuilt:
            wait = progress.duration(progress.builds_s(self.unbuilt))
            longest = max(self.unbuilt, key=progress.build_s)
            alone = progress.duration(progress.build_s(longest))
            yield (
                f"builds: {len(self.unbuilt)} before the first trial, about {wait};"
                f" the longest is {longest.name}, {alone}"
            )
        for name in self.built:
            if changes := server_build.changes(files.server(name)):
                yield f"{name}: {changes}; its trials are due"
        if not self.frozen:
            yield from self.choice.left_out(self.dataset, self.served)

    def listing(self) -> str:
        """Return a line for each variant: how many of its trials are measured."""
        counts: dict[tuple[str, str, str], list[bool]] = {}
        for trial in self.trials:
            key = (trial.experiment.name, trial.server.name, trial.variant.name)
            counts.setdefault(key, []).append(trial in self.records)
        return "\n".join(
            f"{' '.join(key)}: {sum(counts[key])} of {len(counts[key])} trials"
            for key in sorted(counts)
        )

    def check_toolchain(self, here: bool = True) -> None:
        """Raise UserError if an experiment has trials of two toolchains, or would after this run.

        Likewise if a round has two kinds of machine. Only the records that are `kept` count.
        Without `here`, this machine measures nothing.
        """
        records = [(str(trial.path), record) for trial, record in self.kept.items()]
        left = {
            (trial.experiment.name, trial.n, trial.server.name): trial.server
            for trial in self.trials
            if trial not in self.records
        }
        # Elsewhere, each trial asks its own hosts.
        asked = records and here and not self.elsewhere
        due = [(experiment, n, left[experiment, n, name]) for experiment, n, name in sorted(left)]
        now = tool_differences.on_this_machine(due if asked else [])
        tool_differences.check(self.dataset, [*records, *now])
        run_sittings.check_machine(self.dataset, [*records, *now])

    def check_clients(self) -> None:
        """Raise UserError if a load generator of a trial that is due cannot run."""
        if self.elsewhere:
            return
        left = sorted({t.experiment.name for t in self.trials if t not in self.records})
        wanted = {name: f"experiment {spec!r}" for spec in left for name in clients.needed(spec)}
        clients.check_programs(wanted, planned=True)

    @property
    def command(self) -> str:
        """The command that measures the chosen trials and makes their paper."""
        profile = "--profile profiles/slurm " if hardware.on_cluster() else ""
        # The default in config/config.yaml.
        bed = [] if self.testbed == "netns" else [f"testbed={self.testbed}"]
        chosen = [f"dataset={self.dataset}", *bed, *self.choice.settings]
        words = [f"snakemake {profile}--config", *chosen]
        return as_typed(" ".join(words))

    @property
    def folder(self) -> Path:
        """The dataset's folder."""
        return Path("data", self.dataset)

    @cached_property
    def whole(self) -> bool:
        """Whether the study has every experiment that the paper's notebooks name.

        It has not if servers or experiments are chosen, or an experiment is not measured.
        """
        named = (_header(path).get("experiments") for path in Path("notebooks").glob("*.md"))
        wanted = {name for names in named if isinstance(names, list) for name in names}
        return self.choice.whole and wanted <= set(self.measured)

    @property
    def paper(self) -> list[str]:
        """The files of the paper, or of the report if not `whole`; none if `lacking`."""
        if self.lacking:
            return []
        name = report.PAPER if self.whole else report.NAME
        return [f"paper/{self.dataset}/{name}.{kind}" for kind in ("html", "pdf")]

    @property
    def explorer(self) -> str:
        """The explorer's web page."""
        return f"paper/{self.dataset}/explore.html"

    @cached_property
    def notebooks(self) -> list[str]:
        """The notebooks that the dataset has data for, in order, without suffix."""
        return [
            path.stem
            for path in sorted(Path("notebooks").glob("*.md"))
            if set(experiments_of(path)) & set(self.measured)
            and (self.whole or path.stem == report.NOTEBOOK)
        ]

    @property
    def executed_notebooks(self) -> list[str]:
        """The files of the executed notebooks, in order."""
        return [f"paper/{self.dataset}/notebooks/{name}.ipynb" for name in self.notebooks]

    @property
    def trial_tables(self) -> list[str]:
        """The table of trials of each experiment."""
        return [f"{self.folder}/{name}/trials.parquet" for name in self.measured]

    def tables(self, notebook: str | None = None) -> list[str]:
        """Return the tables that a notebook reads; default: all."""
        wanted = files.names("experiment")
        if notebook:
            wanted = experiments_of(Path("notebooks", f"{notebook}.md"))
        spec = files.dataset(self.dataset)
        return [
            f"{self.folder}/{name}/{table}.parquet"
            for name in wanted if name in self.measured
            for table in spec.tables(name)
        ]  # fmt: skip

    @property
    def ledgers(self) -> list[str]:
        """The file of the verdicts on every claim; one job computes it for all its readers."""
        return [f"{LEDGERS}/{self.dataset}.pickle"]

    def ledgers_of(self, notebook: str) -> list[str]:
        """Return the ledgers that a notebook reads."""
        return self.ledgers if reads_ledger(Path("notebooks", f"{notebook}.md")) else []


@cache
def _header(notebook: Path) -> dict:
    """Return the key `deathmatch` of a notebook's header; {} without it."""
    header = re.match(r"---\n(.*?)\n---\n", notebook.read_text(), re.DOTALL)
    return yaml.safe_load(header[1]).get("deathmatch", {}) if header else {}


def reads_ledger(notebook: Path) -> bool:
    """Return whether a notebook's header has `ledger: true`."""
    return bool(_header(notebook).get("ledger"))


def experiments_of(notebook: Path) -> list[str]:
    """Return the experiments in a notebook's header, `deathmatch: experiments: […]` or `all`.

    Raises UserError if the header has none.
    """
    named = _header(notebook).get("experiments")
    if named == "all":
        return files.names("experiment")
    if not named:
        raise UserError(
            "the header names no experiment",
            where=f"{notebook}, line 1",
            remedy="add to the header:\ndeathmatch:\n  experiments: [backlog]",
        )
    return named
