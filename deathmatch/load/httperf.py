"""httperf: its command line and its results (httperf(1), 0.9.0 with our patch)."""

from collections.abc import Mapping, Sequence

import polars as pl

from deathmatch.load import generator, histogram, httperf_report
from deathmatch.load.generator import WHOLE, Fields, Part, PrintingGenerator, Texts, Timed

# If it opens a smaller share of the offered connections in time, the client, or the CPU that it
# shares, is the limit.
CLIENT_LIMIT = 0.97
# httperf polls without pause and so uses all of a CPU (1998 paper); if it has less than this share,
# something else used the CPU, too.
CPU_SHARE_PERCENT = 75

# Request targets, each ended by a zero byte: 1,000 values of letters drawn by random.Random(2011),
# with the escapes and the length of the one in experiments/dynamic.toml.
VALUES = "clients/httperf/values.uris"

# The columns of errors that the client itself causes.
OWN_ERRORS = [
    f"errors_{what}"
    for what in ("descriptors_unavailable", "address_unavailable", "file_table_full")
]


class Httperf(PrintingGenerator):
    """The load generator (generator.LoadGenerator); its rate counts requests."""

    columns = httperf_report.COLUMNS
    attempts = "connections"
    # Every experiment expects status 200 for httperf's requests.
    wrong_replies = httperf_report.WRONG_REPLIES
    unknown_of_several = httperf_report.UNKNOWN_OF_SEVERAL
    headline = "reply_rate"

    def command(
        self, host: str, port: int, load: Mapping, rate_rps: int, duration_s: float,
        part: Part = WHOLE, sources: Sequence[str] = (),
    ) -> list[str] | None:  # fmt: skip
        """Return httperf's command line: the connection rate is the rate over the calls on each.

        Two -v make it print its samples and its histogram. At most one client for each connection
        takes part. Each of `of` clients opens every `of`-th connection of the whole, in turn.
        """
        calls = load["requests_per_connection"]
        rate = rate_rps / calls
        connections = max(1, round(rate * duration_s))
        own = part.among(connections)
        if own is None:
            return None
        whole = f"{rate:g}"
        varied = load.get("values") == "varied"
        words = [
            "httperf", "-v", "-v", f"--server={host}", f"--port={port}",
            f"--wlog=y,{generator.PROJECT}/{VALUES}" if varied else f"--uri={load['uri']}",
            f"--rate={whole if own.of == 1 else float(whole) / own.of}",
            f"--num-conns={own.share(connections)}",
            f"--num-calls={calls}",
            f"--timeout={load['timeout_s']:g}",
        ]  # fmt: skip
        close = ["--add-header=Connection: close\\n"] if calls == 1 else []
        return [*words, *close, *generator.shared(own, sources, load, _escaped)]

    def few(self, load: Mapping) -> tuple[int, float]:
        """Return a rate and a duration in which ten connections are opened."""
        return 100 * load["requests_per_connection"], 0.1

    def time_limit_s(self, load: Mapping, duration_s: float) -> float:
        """Return the limit: out of ports or descriptors, it never ends by itself."""
        return duration_s + (load["requests_per_connection"] + 1) * load["timeout_s"] + 5

    def parse(self, report: Texts, duration_s: float) -> Fields:
        """Return every field of httperf's report, named and typed as in COLUMNS.

        Times are in us, where httperf prints ms and s; sizes are in bytes (its KB has 1024).

        `reply_rate_offered_window_rps` is the mean of the reply-rate samples within the offered
        window of `duration_s`; httperf's own mean includes the time that it waits for stragglers.
        Raises Truncated if a line is missing or no number, or if the report contradicts itself in
        its samples, replies by status, errors, or the histogram's connections.

        A mean over several clients is the sum of all times over their number, with the precision of
        httperf's digits. `client_cpu_total_percent` is the least of several clients' CPU shares, as
        it shows other load.
        """
        parts = [httperf_report.fields_of(text) for text in report]
        fields = parts[0] if len(parts) == 1 else httperf_report.merged(parts, report)
        rates = httperf_report.reply_rates(report, duration_s)
        # A run shorter than one interval has no sample of its own length.
        fields["reply_rate_offered_window_rps"] = (
            sum(rates) / len(rates) if rates else fields["replies"] / duration_s
        )
        return fields

    def histogram(self, report: Texts) -> pl.DataFrame:
        """Return the connection-time histogram: bin centres in us, bins of 10 us.

        It has each connection with at least one reply. Raises Truncated for an invalid line.
        """
        found = [httperf_report.lifetimes(text) for text in report]
        return found[0] if len(found) == 1 else histogram.merge(found)

    def timed(self, report: Texts, fields: Fields) -> Timed:
        """Return the lifetimes of all connections that were begun; a 500 is a wrong answer."""
        return Timed(self.histogram(report), fields["connections"], self.wrong(fields))

    def progress(self, report: Texts, duration_s: float) -> list[float | None]:
        """Return the reply rates of the offered time, without its first REPLY_INTERVAL_S.

        In this interval the number of connections under way still rises.
        """
        return list(httperf_report.reply_rates(report, duration_s)[1:])

    def actual_rate_rps(
        self, fields: Fields, during: pl.DataFrame, spec: Mapping, opened: int | None = None
    ) -> float | None:
        """Return the mean request rate that the client offered within `duration_s`.

        It is the growth of the kernel's ActiveOpens up to the sample nearest to the end of that
        time (`measure.sampler` takes one there), times the calls on a connection; None if no sample
        is within 5 % of it. httperf's own rates include its wait for stragglers.

        A client that starts fast ends before that time if no reply is late. The last sample is
        taken at its end and has all connections that it opened.
        """
        duration_s = spec["duration_s"]
        if opened is not None:
            return spec["load"]["requests_per_connection"] * opened / duration_s
        if len(during) < 2:
            return None
        time_s = (during["time_us"] - during["time_us"][0]) / 1e6 - generator.START_UP_S
        away_s = (time_s - min(duration_s, time_s[-1])).abs()
        nearest = away_s.arg_min()
        if away_s[nearest] > 0.05 * duration_s:
            return None
        opens = during["client_active_opens"]
        return spec["load"]["requests_per_connection"] * (opens[nearest] - opens[0]) / duration_s

    def limited(
        self, fields: Fields, offered_rate_rps: float, actual_rate_rps: float | None
    ) -> bool:
        """Return whether it fell behind, ran out of descriptors or ports, or shared its CPU."""
        starved = sum(fields[error] or 0 for error in OWN_ERRORS)
        late = actual_rate_rps is None or actual_rate_rps < CLIENT_LIMIT * offered_rate_rps
        share = fields["client_cpu_total_percent"]
        return late or starved > 0 or (share is not None and share < CPU_SHARE_PERCENT)


GENERATOR = Httperf()


def _escaped(text: str) -> str:
    """Return a text escaped for httperf's options, where \\n stands for CR and LF."""
    return text.replace("\\", r"\\").replace("\r", r"\r").replace("\n", r"\a")
