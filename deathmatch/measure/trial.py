"""Run one trial: `python -m deathmatch trial data/<dataset>/<experiment>/<server>/<variant>/<n>`.

Start the server, check that it answers correctly, warm it up, sweep the offered rates, sample,
stop it, prove that nothing is left. What a server does, its death included, is a result and
ends in `trial.json` with status 0; status 1 means that the trial itself could not be run.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
import psutil

from deathmatch.control import progress
from deathmatch.errors import Truncated, UserError
from deathmatch.hosts import sandbox, testbed, throttle, toolchain
from deathmatch.load import registry
from deathmatch.measure import conformance, idle_connections, server, storage, system_calls
from deathmatch.measure.sampler import SCHEMA as SAMPLES
from deathmatch.measure.sampler import Sampler
from deathmatch.plan import files, matrix
from deathmatch.plan.root import ROOT
from deathmatch.plan.trial import Trial

PORT = 8080
WARM_UP_RATE_RPS = 500
DRAIN_S = 3
HANG_S = 5
SETTLE_S = 1
LEAST_FREE_BYTES = 200_000_000


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command line takes."""
    parser.add_argument("trial", help="data/<dataset>/<experiment>/<server>/<variant>/<n>")
    parser.add_argument("--testbed", default="netns", help="a file in config/testbeds/")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)


def main(given: argparse.Namespace) -> int:
    """Run the trial named on the command line; return the exit status."""
    os.chdir(ROOT)
    trial = matrix.find(given.trial.rstrip("/"))
    bed = trial.testbed(given.testbed)
    if given.inside:
        _run(trial, files.testbed(bed).as_written, bed)
        return 0
    _check_disk(trial.path)
    sandbox.die_with_owner()
    # Here, as a build may download and the sandbox has no network.
    for name in {trial.server.name, *registry.builders(trial.experiment.name)}:
        server.built(files.server(name))
    registry.check([trial.experiment.name])
    _check_tools(trial, given.testbed)
    command = [sys.executable, "-m", "deathmatch", "trial", "--inside"]
    words = [*command, "--testbed", given.testbed]
    return sandbox.run([*words, str(trial.path)])


def _check_disk(path: Path) -> None:
    folder = next(parent for parent in path.parents if parent.exists())
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        raise UserError(
            f"only {free // 1_000_000} MB of disk are left",
            where=str(folder),
            remedy=f"make room for {LEAST_FREE_BYTES // 1_000_000} MB and run again: "
            "finished trials are kept",
        )


def _check_tools(trial: Trial, bed: str) -> None:
    """Raise UserError if the dataset's other trials were measured with other tools."""
    try:
        others = progress.measured(matrix.trials(trial.dataset), bed)
    except UserError:
        # Another server's file may be broken meanwhile: this trial is measured all the same.
        return
    records = [(str(other.path), record) for other, record in others.items() if other != trial]
    now = server.on_this_machine([trial.server]) if records else []
    toolchain.check(trial.dataset, [*records, *now])


def _run(trial: Trial, bed: dict, bed_name: str) -> None:
    aside = trial.path.with_name(f".{trial.n}.partial")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    record = _measure(trial, bed, bed_name, aside)
    (aside / "trial.json").write_text(json.dumps(record, indent=2) + "\n")
    # What the server said may be published: it need not tell where this clone is.
    for log in aside.glob("*.log"):
        log.write_bytes(log.read_bytes().replace(f"{ROOT}/".encode(), b""))
    # The folder appears whole; one that a former run left is replaced.
    shutil.rmtree(trial.path, ignore_errors=True)
    aside.rename(trial.path)


def _measure(trial: Trial, bed: dict, bed_name: str, out: Path) -> dict:
    spec = trial.spec()
    built = server.built(trial.server)
    record = {
        "experiment": trial.experiment.name, "server": trial.server.name, "dataset": trial.dataset,
        "n": trial.n, "testbed": bed_name, "spec": spec, "version": built["version"],
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "descriptors": testbed.raise_descriptors(bed["descriptors"]),
        "tools": {"harness": toolchain.harness(), "server": built["tools"]},
    }  # fmt: skip
    if not built["ok"]:
        return record | {"outcome": "not built", "reason": built["log"], "points": []}
    began_ns = time.monotonic_ns()
    kind = _Trial if trial.experiment.client else storage.Trial
    run = kind(trial, bed, spec, out)
    record |= run.sweep()
    return record | {
        "wall_us": (time.monotonic_ns() - began_ns) // 1000,
        "offering_us": run.offering_us,
        "machine": _machine(),
        "sysctl": run.sysctls(),
        "cpus": run.cpus,
    }


class _Trial:
    """The moving parts of one trial inside its sandbox."""

    def __init__(self, trial: Trial, bed: dict, spec: dict, out: Path):
        self.trial, self.bed, self.spec, self.out = trial, bed, spec, out
        self.generator = registry.load(spec["client"])
        self.host = testbed.host(bed)
        self.factors = trial.variant.factors
        self.holder = testbed.build(bed, spec["sysctl"])
        self.client: subprocess.Popen | None = None
        self.idle: idle_connections.Idle | None = None
        self.wanted_idle = self.factors.get(idle_connections.FACTOR, 0)
        self.offering_us = 0
        available = testbed.affinity()
        every = self.factors.get("schedulers") == "all"
        wanted = bed["server"].get("cpus_all") if every else None
        self.cpus = {
            "server": testbed.cpus(wanted or bed["server"]["cpus"], available),
            "client": testbed.cpus(bed["client"]["cpus"], available),
        }
        # The harness keeps off the server's CPUs as far as there are others.
        os.sched_setaffinity(0, self.cpus["client"])
        self.throttle = throttle.apply(bed["server"], "server0", len(self.cpus["server"]))
        self.values = trial.placeholders | {"workers": len(self.cpus["server"]) if every else 1}

    def sysctls(self) -> dict:
        """Return what was in force on each side."""
        wanted = {"server": {*self.bed["server"]["sysctl"], *self.spec["sysctl"]},
                  "client": set(self.bed["client"]["sysctl"])}  # fmt: skip
        prefix = {"server": [], "client": testbed.in_client()}
        return {side: testbed.sysctls(sorted(wanted[side]), prefix[side]) for side in wanted}

    def sweep(self) -> dict:
        """Return outcome, reason, conformance, points and stops."""
        self.stops: list[dict] = []
        self.counted: dict | None = None
        running, wrong = self._start()
        if wrong:
            self._stop(running)
            return self._ended("did not start", f"{wrong}\n{server.tail(running.log)}")
        cap = int(testbed.sysctls(["net.core.somaxconn"], [])["net.core.somaxconn"])
        checks = conformance.check_variant(
            self.host, PORT, self.spec["conformance"], self.factors, cap, self._pids
        )
        known = self.trial.server.deviations
        failed = [check for check in checks if not check["ok"] and check["name"] not in known]
        if self.wanted_idle and not failed:
            wrong = self._hold()
            name = f"holds {self.wanted_idle} idle connections"
            checks.append({"name": name, "ok": not wrong, "seen": wrong})
            failed = checks[-1:] if wrong else []
        # One that just crashed is not reaped at once.
        how = running.died(0.5 if failed else 0)
        if failed:
            self._stop(running)
            reason = "; ".join(f"{check['name']}: {check['seen']}" for check in failed)
            if how:
                reason += f"; it ended ({how})\n{server.tail(running.log)}"
            return self._ended("answers wrongly", reason) | {"conformance": checks}
        # Something else answered: the server may have found its port in use.
        if how:
            self._stop(running)
            reason = f"ended as it was checked ({how})\n{server.tail(running.log)}"
            return self._ended("did not start", reason) | {"conformance": checks}
        points = self._points(running)
        self._check_reports(points)
        died = [point for point in points if point["server"] != "ran"]
        outcome = "measured, with failures" if died else "measured"
        said = " ".join(f"{c['name']}: {known[c['name']]}" for c in checks if not c["ok"])
        ended = self._ended(outcome, said) | {"conformance": checks, "points": points}
        return ended | ({"system_calls": self.counted} if self.counted else {})

    def _ended(self, outcome: str, reason: str) -> dict:
        record = {"outcome": outcome, "reason": reason, "points": [], "stops": self.stops}
        if self.throttle.record:
            record["throttle"] = self.throttle.record | self.throttle.stalls()
            self.throttle.end()
        return record

    def _points(self, running: server.Running) -> list[dict]:
        points, start_ns = [], time.monotonic_ns()
        sampler = self._sampler(start_ns)
        with sampler:
            self._warm_up()
            fresh = True
            for rate_rps in self.spec["rates_rps"]:
                began_ns = time.monotonic_ns()
                # Its samples at either end make a point's counters exact.
                with sampler.offering(rate_rps, self.spec["duration_s"]):
                    client = self._offer(rate_rps)
                self.offering_us += (time.monotonic_ns() - began_ns) // 1000
                how = self._state(running)
                if condense := getattr(self.generator, "condense", None):
                    condense(self.out / client["log"], self.spec.get("keep_events", False))
                points.append({
                    "offered_rate_rps": rate_rps, "fresh_start": fresh,
                    "began_us": (began_ns - start_ns) // 1000, **client, "server": how,
                    "log_tail": "" if how == "ran" else server.tail(running.log),
                    **self._idle_held(),
                })  # fmt: skip
                fresh = how != "ran"
                if fresh:
                    # What the sampler runs is no leftover of the server.
                    with sampler.paused():
                        self._stop(running)
                    running, wrong = self._start()
                    wrong = wrong or self._hold()
                    if wrong:
                        points[-1]["server"] += f"; then {wrong}"
                        break
                    self._warm_up()
        if "system_calls_rate_rps" in self.spec and self.trial.n == 1 and not running.died():
            self._count_calls()
        self._stop(running)
        time.sleep(self.spec.get("cool_down_s", 0))
        pl.DataFrame(sampler.rows, schema=SAMPLES).write_csv(self.out / "samples.csv")
        return points

    def _check_reports(self, points: list[dict]) -> None:
        """Raise UserError if no report of the client is whole although the server ran throughout.

        What a server does to its client, by its end too, is a result.
        """
        if any(point["server"] != "ran" or self._reported(point) for point in points):
            return
        log, how = self.out / points[-1]["log"], points[-1]["client"]
        what = f"left no whole report of any of {len(points)} rates; at the last: {how}"
        raise self._client_failure(what, log)

    def _reported(self, point: dict) -> bool:
        log = self.out / point["log"]
        read = getattr(self.generator, "read", lambda file: file.read_text(errors="replace"))
        try:
            self.generator.parse(read(log), self.spec["duration_s"])
        except Truncated:
            return False
        return True

    def _client_failure(self, how: str, log: Path) -> UserError:
        said = server.tail(log)
        return registry.failure(self.spec["client"], how, said, str(self.trial.path))

    def _sampler(self, start_ns: int) -> Sampler:
        def pids(side: str) -> list[int]:
            if side == "client":
                return [self.client.pid] if self.client else []
            return self._pids()

        interval_s = self.bed["sample_interval_s"]
        cpus = self.cpus["server"]
        return Sampler(interval_s, start_ns, PORT, self.holder.pid, pids, cpus)

    def _spare(self) -> set[int]:
        ours = {self.holder.pid}
        if self.client:
            ours.add(self.client.pid)
        if self.idle:
            ours.add(self.idle.pid)
        return ours

    def _pids(self) -> list[int]:
        return [process.pid for process in server.processes(self._spare())]

    def _start(self) -> tuple[server.Running, str | None]:
        log = self.out / "server.log"
        running, wrong = server.start(
            self.trial.server, self.values, self.host, PORT, self.cpus["server"], log,
            self.throttle.prefix(),
        )  # fmt: skip
        # Some listen a moment before they can answer.
        deadline = time.monotonic() + SETTLE_S
        while not wrong and time.monotonic() < deadline:
            if conformance.check(self.host, PORT, [self._probe()])[0]["ok"]:
                break
            time.sleep(0.05)
        return running, wrong

    def _hold(self) -> str:
        """Open the idle connections, if there are to be any; return what went wrong."""
        if not self.wanted_idle:
            return ""
        prefix = testbed.in_client(*self._pinned())
        self.idle = idle_connections.Idle(
            prefix, self.host, PORT, self.spec["load"], self.wanted_idle
        )
        return self.idle.wrong

    def _idle_held(self) -> dict:
        return {"idle_held": idle_connections.established(PORT)} if self.wanted_idle else {}

    def _count_calls(self) -> None:
        rate_rps, client = self.spec["system_calls_rate_rps"], self.generator

        def offer(duration_s: float) -> int | None:
            load, report = self.spec["load"], self.out / "traced.txt"
            words = client.command(self.host, PORT, load, rate_rps, duration_s)
            self._client(words, report, client.time_limit_s(load, duration_s), self.out)
            try:
                replies = client.parse(report.read_text(), duration_s)["replies"]
            except Truncated:
                return None
            return replies if replies == round(rate_rps * duration_s) else None

        self.counted = system_calls.count(self._pids(), offer, self.out / "strace.txt")

    def _stop(self, running: server.Running) -> None:
        if self.idle:
            self.idle.release()
            self.idle = None
        self.stops.append(server.stop(running, self._spare()))

    def _warm_up(self) -> None:
        load, client = self.spec["load"], self.generator
        rate_rps = self.spec.get("warm_up_rate_rps", WARM_UP_RATE_RPS)
        duration_s = self.trial.warm_up_s
        words = client.command(self.host, PORT, load, rate_rps, duration_s)
        limit_s = client.time_limit_s(load, duration_s)
        with tempfile.TemporaryDirectory(dir=self.out) as aside:
            self._client(words, Path(aside, "warm-up.txt"), limit_s, Path(aside))

    def _offer(self, rate_rps: int) -> dict:
        """Offer one rate; return the client's log, exit status and command."""
        load, duration_s = self.spec["load"], self.spec["duration_s"]
        client = self.generator
        words = client.command(self.host, PORT, load, rate_rps, duration_s)
        name = f"{self.spec['client']}-{rate_rps}.txt"
        limit_s = client.time_limit_s(load, duration_s)
        status = self._client(words, self.out / name, limit_s, self.out)
        return {
            "log": name,
            "command": " ".join(words).replace(f"{ROOT}/", ""),
            "client": f"wedged: killed after {limit_s:g} s" if status is None else f"exit {status}",
        }

    def _client(self, words: list[str], log: Path, limit_s: float, folder: Path) -> int | None:
        """Run the client in its namespace on its CPUs; return its status, None if it wedged.

        `folder` is its working directory, for what it writes beside its log. Raises UserError if
        its program cannot run.
        """
        with log.open("w") as output:
            self.client = subprocess.Popen(
                testbed.in_client(*self._pinned(), *words), stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, cwd=folder,
            )  # fmt: skip
        try:
            status = self.client.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.client.kill()
            self.client.wait()
            return None
        finally:
            self.client = None
        if status in registry.NOT_RUN:
            raise self._client_failure(f"ended with exit status {status}", log)
        return status

    def _pinned(self) -> list[str]:
        return ["taskset", "--cpu-list", ",".join(map(str, self.cpus["client"]))]

    def _probe(self) -> dict:
        return conformance.probe(self.spec["conformance"])

    def _state(self, running: server.Running) -> str:
        """Let the queues drain, then return "ran", how the server died, or "hung"."""
        deadline = time.monotonic() + DRAIN_S
        while time.monotonic() < deadline and idle_connections.established(PORT) > self.wanted_idle:
            time.sleep(0.05)
        if how := running.died():
            return f"died: {how}"
        probe = self._probe()
        deadline = time.monotonic() + HANG_S
        while True:
            result = conformance.check(self.host, PORT, [probe])[0]
            if result["ok"]:
                return "ran"
            if how := running.died():
                return f"died: {how}"
            if time.monotonic() > deadline:
                return f"hung: {result['seen']}"


def _machine() -> dict:
    """Return what a reader must know of the machine to compare."""
    model = next(
        (line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
         if line.startswith("model name")),
        platform.processor(),
    )  # fmt: skip
    httperf = shutil.which("httperf")
    words = [httperf, "--version"] if httperf else ["true"]
    version = subprocess.run(words, capture_output=True, text=True).stdout
    return {
        "cpu": model,
        "cpus": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "os": platform.freedesktop_os_release().get("PRETTY_NAME", "Linux"),
        "toolchain": toolchain.name(),
        "python": platform.python_version(),
        "httperf": version.splitlines()[0] if version else "",
        "snakemake": os.environ.get("DEATHMATCH_SNAKEMAKE", ""),
        "commit": _commit(),
    }


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True
    )
    return done.stdout.strip()
