//! The line that tells a waiting person how the run goes.

use std::io::{IsTerminal, Write, stderr};

use crate::statistics::Tally;

const TERMINAL_EVERY_US: u64 = 1_000_000;
const LOG_EVERY_US: u64 = 10_000_000;

/// What the event loop knows and the tally does not.
pub struct Seen {
    pub open_count: usize,
    pub to_open_count: usize,
    pub ended_count: u64,
    pub duration_us: u64,
}

/// Writes a line to standard error: over the last one on a terminal, every 10 s into a log.
pub struct Progress {
    quiet: bool,
    terminal: bool,
    last_us: u64,
    last_sent_count: u64,
    last_echoed_count: u64,
}

impl Progress {
    pub fn new(quiet: bool) -> Self {
        let terminal = stderr().is_terminal();
        Self { quiet, terminal, last_us: 0, last_sent_count: 0, last_echoed_count: 0 }
    }

    /// Writes the line, if its time has come.
    pub fn show(&mut self, now_us: u64, seen: &Seen, tally: &mut Tally) {
        let every_us = if self.terminal { TERMINAL_EVERY_US } else { LOG_EVERY_US };
        if self.quiet || now_us < self.last_us + every_us {
            return;
        }
        let line = self.line(now_us, seen, tally);
        let (start, end) = if self.terminal { ("\r\x1b[K", "") } else { ("", "\n") };
        // A closed standard error is no reason to stop measuring.
        let _ = write!(stderr(), "{start}{line}{end}");
        self.last_us = now_us;
        self.last_sent_count = tally.sent_count;
        self.last_echoed_count = tally.echoed_count;
        tally.recent_latency.clear();
    }

    /// Leaves the last line standing.
    pub fn end(&self) {
        if self.terminal && !self.quiet && self.last_us > 0 {
            let _ = writeln!(stderr());
        }
    }

    fn line(&self, now_us: u64, seen: &Seen, tally: &Tally) -> String {
        let elapsed_s = (now_us - self.last_us) as f64 / 1e6;
        let rate = |now: u64, before: u64| (now - before) as f64 / elapsed_s;
        let recent = &tally.recent_latency;
        let p99 = recent.quantile_us(0.99, recent.count());
        let p99 = p99.map_or("-".into(), |us| format!("{:.1} ms", us as f64 / 1e3));
        let left_s = seen.duration_us.saturating_sub(now_us).div_ceil(1_000_000);
        format!(
            "{} of {} open, {} ended; sent {:.0}/s, echoed {:.0}/s, p99 {p99}; {left_s} s left",
            seen.open_count,
            seen.to_open_count,
            seen.ended_count,
            rate(tally.sent_count, self.last_sent_count),
            rate(tally.echoed_count, self.last_echoed_count),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_gives_rates_and_the_time_left() {
        let mut tally = Tally { sent_count: 3_000, echoed_count: 2_500, ..Tally::default() };
        tally.recent_latency.record(1_500);
        let seen =
            Seen { open_count: 90, to_open_count: 100, ended_count: 4, duration_us: 10_000_000 };
        let progress = Progress {
            quiet: false,
            terminal: false,
            last_us: 2_000_000,
            last_sent_count: 1_000,
            last_echoed_count: 500,
        };
        assert_eq!(
            progress.line(4_000_000, &seen, &tally),
            "90 of 100 open, 4 ended; sent 1000/s, echoed 1000/s, p99 1.5 ms; 6 s left"
        );
    }
}
