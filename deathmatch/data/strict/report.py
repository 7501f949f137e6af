"""A strict check's report, as text for a terminal or as JSON for programs."""

from dataclasses import dataclass

from deathmatch.checks import report as checks

VERDICTS = {
    checks.PASSED: "passed",
    checks.REJECTED: "rejected",
    checks.UNCHECKED: "could not be checked",
}


@dataclass(frozen=True)
class Report(checks.Report):
    """What all rules said of a dataset of so many trials.

    `unusable` of its `points` show the load generator or the testbed, not their server.
    """

    dataset: str
    trials: int
    points: int
    unusable: int

    def summary(self) -> str:
        """Return one line: whether the dataset passed, of how many trials, by how many rules."""
        counts = self.counts()
        return (
            f"data/{self.dataset}: {VERDICTS[self.status]}: {len(self.results)} rules, "
            f"{self.trials} trials, {self.unusable} of {self.points} points unusable"
            f"{': ' if counts else ''}{counts}"
        )

    def whole_text(self, width: int = 100) -> str:
        """Return the whole report, at most `width` columns wide as far as words allow."""
        parts = [
            self.text(width, lambda where: where.removeprefix(f"data/{self.dataset}/")),
            f"rules: {self.counts(checks.TITLES | checks.OTHERS)}",
            self.summary(),
        ]
        return "\n\n".join(part for part in parts if part)

    def as_json(self) -> dict:
        """Return the whole report, ready for JSON: the verdict, and what every rule saw."""
        return {
            "dataset": self.dataset,
            "verdict": VERDICTS[self.status],
            "trials": self.trials,
            "points": self.points,
            "unusable_points": self.unusable,
            "rules": [
                {
                    "id": result.rule.id,
                    "clause": result.rule.clause,
                    "severity": result.rule.severity,
                    "since": result.rule.since,
                    "statement": result.rule.statement,
                    "remedy": result.rule.remedy,
                    "verdict": result.verdict,
                    "waived": result.waived or None,
                    "older_trials": result.older,
                    "found": [{"where": seen.where, "seen": seen.what} for seen in result.findings],
                    "unknown": [{"where": seen.where, "why": seen.why} for seen in result.unknown],
                }
                for result in self.results
            ],
        }
