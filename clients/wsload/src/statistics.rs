//! Histograms, their summaries, and the verdict on the client itself.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::Serialize;
use tungstenite::Message;

use crate::record::{MessageRow, Outcome};

/// Three significant digits: a quantile is off by 0.1 % at most. The records are exact.
const SIGNIFICANT_DIGITS: u8 = 3;

/// A lag that disturbs no latency worth reporting.
const HARMLESS_LAG_US: u64 = 1_000;
/// A lag of this share of the latency explains that share of it.
const LAG_SHARE_OF_LATENCY: f64 = 0.1;
/// Above this share of a core the event loop has no reserve for bursts.
const BUSY_SHARE: f64 = 0.9;

/// How much of the first wrong message is shown.
const SHOWN_BYTES: usize = 80;

/// Times in µs.
pub struct Times(Histogram<u64>);

impl Default for Times {
    fn default() -> Self {
        Self(Histogram::new(SIGNIFICANT_DIGITS).expect("the precision is a valid one"))
    }
}

impl Times {
    pub fn record(&mut self, time_us: u64) {
        // An automatically growing histogram refuses only what exceeds its type.
        let _ = self.0.record(time_us);
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// The smallest time that a share `quantile` of `of` events did not exceed, in µs.
    ///
    /// Events without a time (lost messages) count as longer than every time seen, so `None` says
    /// that the quantile lies among them: it is unknown, and larger than any time recorded.
    pub fn quantile_us(&self, quantile: f64, of: u64) -> Option<u64> {
        let known = self.0.len();
        let rank = (quantile * of as f64).ceil().max(1.0);
        // Half a rank less, so that rounding cannot make it the next one.
        (known > 0 && rank <= known as f64)
            .then(|| self.0.value_at_quantile((rank - 0.5) / known as f64))
    }

    /// A summary over `of` events, at least as many as were recorded.
    pub fn summary(&self, of: u64) -> Summary {
        let quantile = |quantile| self.quantile_us(quantile, of);
        Summary {
            count: self.count(),
            mean_us: (self.count() > 0).then(|| (self.0.mean() * 10.0).round() / 10.0),
            sd_us: (self.count() > 0).then(|| (self.0.stdev() * 10.0).round() / 10.0),
            min_us: (self.count() > 0).then(|| self.0.min()),
            p50_us: quantile(0.5),
            p90_us: quantile(0.9),
            p95_us: quantile(0.95),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            max_us: (self.count() > 0).then(|| self.0.max()),
        }
    }
}

/// Mean, deviation and extremes over the `count` events that have a time; quantiles over all.
#[derive(Debug, Serialize)]
pub struct Summary {
    pub count: u64,
    pub mean_us: Option<f64>,
    pub sd_us: Option<f64>,
    pub min_us: Option<u64>,
    pub p50_us: Option<u64>,
    pub p90_us: Option<u64>,
    pub p95_us: Option<u64>,
    pub p99_us: Option<u64>,
    pub p999_us: Option<u64>,
    pub max_us: Option<u64>,
}

/// Everything that a run counts while it goes on.
#[derive(Default)]
pub struct Tally {
    /// From a connection's intended opening until TCP had it.
    pub connect: Times,
    /// From a connection's intended opening until it was upgraded.
    pub handshake: Times,
    /// From a message's intended send until its echo.
    pub latency: Times,
    /// The same, since the last progress line.
    pub recent_latency: Times,
    /// From a message's actual send until its echo.
    pub service: Times,
    /// From a message's intended send, or the turn that the pace has for it, until it was sent.
    pub lag: Times,
    pub opened_count: u64,
    pub upgraded_count: u64,
    /// The most connections that were in the making at a time.
    pub most_opening_count: u64,
    /// When the first connection was started and the last one upgraded, in µs of the run.
    pub first_started_us: Option<u64>,
    pub last_upgraded_us: Option<u64>,
    pub sent_count: u64,
    pub echoed_count: u64,
    pub lost_count: u64,
    pub unsent_count: u64,
    pub mismatched_count: u64,
    /// The first message that was no awaited echo: its kind, its length and how it begins.
    pub first_mismatched: Option<String>,
    pub outcomes: BTreeMap<Outcome, u64>,
}

impl Tally {
    /// Counts a message whose echo has been received.
    pub fn echo(&mut self, row: &MessageRow) {
        self.echoed_count += 1;
        let received_us = row.received_us.unwrap_or(row.intended_us);
        let latency_us = received_us.saturating_sub(row.intended_us);
        self.latency.record(latency_us);
        self.recent_latency.record(latency_us);
        self.service.record(received_us.saturating_sub(row.sent_us.unwrap_or(received_us)));
    }

    /// Counts a message that answers none.
    pub fn mismatch(&mut self, message: &Message) {
        self.mismatched_count += 1;
        self.first_mismatched.get_or_insert_with(|| {
            let kind = if message.is_text() { "text" } else { "binary" };
            let shown =
                |byte: &u8| if matches!(byte, b' '..=b'~') { char::from(*byte) } else { '.' };
            let data = message.clone().into_data();
            let begins: String = data.iter().take(SHOWN_BYTES).map(shown).collect();
            format!("{kind}, {} B: {begins}", data.len())
        });
    }

    pub fn intended_count(&self) -> u64 {
        self.sent_count + self.unsent_count
    }

    /// Why the client, and not the server, may have set the pace; empty when nothing says so.
    ///
    /// The lag is sampled at every intended send. Those are spread evenly, so an echo that arrived
    /// at any time waited for the event loop no longer than the lag says. Both are taken at the
    /// 95th percentile: what lies beyond is to be read beside the lag's own tail, to which whatever
    /// else runs on the client's CPU adds.
    pub fn doubts(&self, loop_busy_share: f64, recorder_waits_count: u64) -> Vec<String> {
        let mut doubts = Vec::new();
        let lag_us = self.lag.quantile_us(0.95, self.lag.count()).unwrap_or(0);
        let latency_us = self.latency.quantile_us(0.95, self.latency.count()).unwrap_or(0);
        let bearable_us = HARMLESS_LAG_US.max((LAG_SHARE_OF_LATENCY * latency_us as f64) as u64);
        if lag_us > bearable_us {
            doubts.push(format!(
                "it sent late: p95 of its lag is {lag_us} µs, more than {bearable_us} µs"
            ));
        }
        if loop_busy_share > BUSY_SHARE {
            doubts.push(format!(
                "its event loop was busy {:.0} % of the time",
                100.0 * loop_busy_share
            ));
        }
        if recorder_waits_count > 0 {
            doubts.push(format!("it waited {recorder_waits_count} times for the disk"));
        }
        for (outcome, count) in &self.outcomes {
            if outcome.is_the_clients_fault() {
                doubts.push(format!("{count} connections ended as {}", outcome.name()));
            }
        }
        doubts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(range: std::ops::RangeInclusive<u64>) -> Times {
        let mut times = Times::default();
        range.for_each(|time_us| times.record(time_us));
        times
    }

    #[test]
    fn quantiles_of_all_events() {
        let times = times(1..=1000);
        assert_eq!(times.quantile_us(0.5, 1000), Some(500));
        assert_eq!(times.quantile_us(0.99, 1000), Some(990));
        assert_eq!(times.quantile_us(1.0, 1000), Some(1000));
    }

    #[test]
    fn lost_events_are_longer_than_every_other() {
        let times = times(1..=990);
        assert_eq!(times.quantile_us(0.5, 1000), Some(500));
        assert_eq!(times.quantile_us(0.99, 1000), Some(990));
        assert_eq!(times.quantile_us(0.999, 1000), None);
        assert_eq!(Times::default().quantile_us(0.5, 10), None);
    }

    #[test]
    fn a_punctual_client_is_not_doubted() {
        let tally = Tally { lag: times(1..=900), latency: times(1..=2_000), ..Tally::default() };
        assert!(tally.doubts(0.5, 0).is_empty());
    }

    #[test]
    fn each_fault_of_the_client_is_named() {
        let late = Tally { lag: times(1..=5_000), latency: times(1..=6_000), ..Tally::default() };
        assert_eq!(late.doubts(0.5, 0).len(), 1);
        let slow_server =
            Tally { lag: times(1..=5_000), latency: times(1..=90_000), ..Tally::default() };
        assert!(slow_server.doubts(0.5, 0).is_empty());
        let outcomes = BTreeMap::from([(Outcome::OutOfPorts, 3), (Outcome::Reset, 4)]);
        let starved = Tally { outcomes, ..Tally::default() };
        assert_eq!(starved.doubts(0.95, 2).len(), 3);
    }
}
