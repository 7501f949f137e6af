"""httperf: its command line and what it measured (httperf(1), 0.9.0 with our patch)."""

from collections.abc import Mapping, Sequence

import polars as pl

from deathmatch.load import generator, histogram, httperf_report
from deathmatch.load.generator import WHOLE, Fields, Part, PrintingGenerator, Texts, Timed

# Below this share of the offered connections actually opened in time, the client, or the CPU
# it shares, is what was measured.
CLIENT_LIMIT = 0.97
# httperf polls without pause, so that it uses all of a CPU that it has for itself (1998 paper);
# with less than this share, something else used the CPU too.
CPU_SHARE_PERCENT = 75

# Request targets, each ended by a zero byte: 1,000 values of letters drawn by random.Random(2011),
# with the escapes of the one in experiments/dynamic.toml, and as long.
VALUES = "clients/httperf/values.uris"

# Errors of the client's own making, as columns of COLUMNS.
OWN_ERRORS = [
    f"errors_{what}"
    for what in ("descriptors_unavailable", "address_unavailable", "file_table_full")
]


class Httperf(PrintingGenerator):
    """The load generator (generator.LoadGenerator); its rate counts requests."""

    columns = httperf_report.COLUMNS
    attempts = "connections"
    # Every experiment expects status 200 of what httperf asks.
    wrong_replies = httperf_report.WRONG_REPLIES
    unknown_of_several = httperf_report.UNKNOWN_OF_SEVERAL
    headline = "reply_rate"

    def command(
        self, host: str, port: int, load: Mapping, rate_rps: int, duration_s: float,
        part: Part = WHOLE, sources: Sequence[str] = (),
    ) -> list[str] | None:  # fmt: skip
        """Return httperf's command line: the connection rate is the rate over the calls on each.

        Two -v make it print its samples and its histogram. No more clients take part than there
        are connections; each begins one every `of` periods of the whole, the first after as many
        as clients come before it.
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
        """Return when it has wedged: out of ports or descriptors, it never ends by itself."""
        return duration_s + (load["requests_per_connection"] + 1) * load["timeout_s"] + 5

    def parse(self, report: Texts, duration_s: float) -> Fields:
        """Return every field of httperf's report, named and typed as in COLUMNS.

        Times in us, where httperf prints ms and s; sizes in bytes (its KB has 1024).

        `reply_rate_offered_window_rps` is the mean of the reply-rate samples that lie within the
        offered window of `duration_s`; httperf's own mean also counts the time it waits for
        stragglers. Raises Truncated if any line is missing or no number, or if those of a report
        contradict each other: samples, replies by status, errors, the histogram's connections.

        A mean over several clients is the sum of all times over their number, as far as httperf's
        digits go. Of their shares of a CPU the least counts, which shows other load there
        (`client_cpu_total_percent`).
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

        httperf counts a connection in it once it got at least one reply. Raises Truncated for a
        line of it that is none.
        """
        found = [httperf_report.lifetimes(text) for text in report]
        return found[0] if len(found) == 1 else histogram.merge(found)

    def timed(self, report: Texts, fields: Fields) -> Timed:
        """Return the lifetimes of connections, of all that were begun; a 500 is a wrong answer."""
        return Timed(self.histogram(report), fields["connections"], self.wrong(fields))

    def progress(self, report: Texts, duration_s: float) -> list[float | None]:
        """Return the reply rates of the offered time, but for its first REPLY_INTERVAL_S.

        In that, the connections come under way that are always under way later.
        """
        return list(httperf_report.reply_rates(report, duration_s)[1:])

    def actual_rate_rps(
        self, fields: Fields, during: pl.DataFrame, spec: Mapping, opened: int | None = None
    ) -> float | None:
        """Return the mean request rate that the client offered in the `duration_s` it had.

        From the growth of its kernel's ActiveOpens up to the sample nearest to the end of that
        time (`measure.sampler` takes one there), times the calls on a connection; None if there is
        no sample within 5 % of it. httperf's own rates also count its wait for stragglers.

        A client that started fast ends before that time is over if no reply is late. The last
        sample is taken at its end, and has all connections that it opened.
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
    """Return a text as httperf's options have it, whose \\n is CR and LF."""
    return text.replace("\\", r"\\").replace("\r", r"\r").replace("\n", r"\a")
