//! The summary of a run, for machines (JSON) and for a person (two lines).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cli::Arguments;
use crate::client::{Conduct, Plan};
use crate::statistics::{Summary as Times, Tally};

#[derive(Debug, Serialize)]
pub struct Summary<'a> {
    pub wsload_version: &'static str,
    pub arguments: &'a Arguments,
    pub server_address: String,
    pub start_unix_us: u64,
    pub sending_us: u64,
    pub interrupted: bool,
    pub connections: Connections,
    pub messages: Messages,
    /// From the intended opening.
    pub connect: Times,
    pub handshake: Times,
    /// From the intended send; quantiles over all messages due, `null` where they were lost.
    pub latency: Times,
    /// From the actual send; quantiles over all messages sent.
    pub service: Times,
    pub client: Client,
}

#[derive(Debug, Serialize)]
pub struct Connections {
    pub intended_count: u64,
    pub opened_count: u64,
    pub upgraded_count: u64,
    /// The most that were in the making at a time.
    pub most_opening_count: u64,
    /// Since the run's start; `null` if there was none.
    pub first_started_us: Option<u64>,
    pub last_upgraded_us: Option<u64>,
    pub outcomes_count: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Serialize)]
pub struct Messages {
    pub intended_count: u64,
    pub sent_count: u64,
    pub echoed_count: u64,
    pub lost_count: u64,
    pub unsent_count: u64,
    pub mismatched_count: u64,
    /// Kind, length and beginning of the first message that was no awaited echo.
    pub first_mismatched: Option<String>,
    pub sent_per_s: f64,
    pub echoed_per_s: f64,
}

#[derive(Debug, Serialize)]
pub struct Client {
    pub limited: bool,
    /// Why, one sentence each.
    pub limited_by: Vec<String>,
    pub lag: Times,
    /// The pace at which messages were sent: 0 is at once. CPU per message depends on it.
    pub step_us: u64,
    pub hold_us: u64,
    /// CPU time of the event loop while sending, as a share of that time.
    pub loop_busy_share: f64,
    pub cpu_us: u64,
    pub echoes_per_cpu_s: Option<f64>,
    pub resident_before_bytes: u64,
    pub resident_peak_bytes: u64,
    pub resident_per_connection_bytes: Option<u64>,
    pub recorder_waits_count: u64,
}

impl<'a> Summary<'a> {
    pub fn new(
        arguments: &'a Arguments,
        plan: &Plan,
        start_unix_us: u64,
        tally: &Tally,
        conduct: &Conduct,
    ) -> Self {
        let sending_us = conduct.sending_us.max(1);
        let sending_s = sending_us as f64 / 1e6;
        let loop_busy_share = conduct.sending_cpu_us as f64 / sending_us as f64;
        let limited_by = tally.doubts(loop_busy_share, conduct.recorder_waits_count);
        let grown_bytes = conduct.resident_peak_bytes.saturating_sub(conduct.resident_before_bytes);
        let outcomes = tally.outcomes.iter().map(|(outcome, count)| (outcome.name(), *count));
        Self {
            wsload_version: env!("CARGO_PKG_VERSION"),
            arguments,
            server_address: plan.target.address.to_string(),
            start_unix_us,
            sending_us,
            interrupted: conduct.interrupted,
            connections: Connections {
                intended_count: u64::from(plan.numbers.count),
                opened_count: tally.opened_count,
                upgraded_count: tally.upgraded_count,
                most_opening_count: tally.most_opening_count,
                first_started_us: tally.first_started_us,
                last_upgraded_us: tally.last_upgraded_us,
                outcomes_count: outcomes.collect(),
            },
            messages: Messages {
                intended_count: tally.intended_count(),
                sent_count: tally.sent_count,
                echoed_count: tally.echoed_count,
                lost_count: tally.lost_count,
                unsent_count: tally.unsent_count,
                mismatched_count: tally.mismatched_count,
                first_mismatched: tally.first_mismatched.clone(),
                sent_per_s: rounded(tally.sent_count as f64 / sending_s),
                echoed_per_s: rounded(tally.echoed_count as f64 / sending_s),
            },
            connect: tally.connect.summary(tally.connect.count()),
            handshake: tally.handshake.summary(tally.handshake.count()),
            latency: tally.latency.summary(tally.intended_count()),
            service: tally.service.summary(tally.sent_count),
            client: Client {
                limited: !limited_by.is_empty(),
                limited_by,
                lag: tally.lag.summary(tally.lag.count()),
                step_us: conduct.pace.step_us.unwrap_or(0),
                hold_us: conduct.pace.hold_us,
                loop_busy_share: (1e4 * loop_busy_share).round() / 1e4,
                cpu_us: conduct.process_cpu_us,
                echoes_per_cpu_s: (conduct.process_cpu_us > 0).then(|| {
                    (tally.echoed_count as f64 / conduct.process_cpu_us as f64 * 1e6).round()
                }),
                resident_before_bytes: conduct.resident_before_bytes,
                resident_peak_bytes: conduct.resident_peak_bytes,
                resident_per_connection_bytes: grown_bytes.checked_div(tally.upgraded_count),
                recorder_waits_count: conduct.recorder_waits_count,
            },
        }
    }

    /// Two or three lines for a person.
    pub fn words(&self) -> String {
        let Self { connections, messages, .. } = self;
        let ms = |us: Option<u64>| us.map_or("lost".into(), |us| format!("{:.2}", us as f64 / 1e3));
        let outcomes = connections.outcomes_count.iter();
        let outcomes: Vec<_> = outcomes.map(|(name, count)| format!("{count} {name}")).collect();
        let limits = match self.client.limited_by.as_slice() {
            [] => "The client kept its schedule.".to_owned(),
            doubts => format!("CLIENT-LIMITED: {}.", doubts.join("; ")),
        };
        format!(
            "{} of {} connections upgraded ({}).\n{} of {} messages echoed, {} lost, {} never sent, \
             {} mismatched; latency from the intended send in ms: p50 {}, p99 {}, p99.9 {}.\n{limits}",
            connections.upgraded_count,
            connections.intended_count,
            outcomes.join(", "),
            messages.echoed_count,
            messages.intended_count,
            messages.lost_count,
            messages.unsent_count,
            messages.mismatched_count,
            ms(self.latency.p50_us),
            ms(self.latency.p99_us),
            ms(self.latency.p999_us),
        )
    }
}

fn rounded(rate: f64) -> f64 {
    (rate * 10.0).round() / 10.0
}
