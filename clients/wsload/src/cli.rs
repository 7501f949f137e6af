//! The command line, and the plan that it asks for.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use serde::Serialize;

use crate::client::Plan;
use crate::clock::Clock;
use crate::failure::Failure;
use crate::machine;
use crate::pace::Wanted;
use crate::payload::Payload;
use crate::recorder::Destination;
use crate::schedule::{Opening, Phase, Schedule};
use crate::share::{Numbers, Share};
use crate::target::{Target, sources};

/// The largest message: the protocol library's own limit on what it receives in one frame.
const MOST_SIZE_BYTES: u64 = 16 << 20;

const AFTER_HELP: &str = "\
TIME is a number with a unit: 500us, 100ms, 1s, 5m, 1m 30s.

The schedule is open-loop: connection i sends its message k at phase(i) + k x INTERVAL, whatever
the server does. Latency counts from that intended time; the service time, from the actual send,
is recorded beside it. Each echo is compared byte for byte.

Output, in DIR (times in microseconds since the run's start; README.md gives the columns):
  messages/*.parquet   every message: intended, sent, received. Each file is whole by itself, so
                       that a client killed with SIGKILL loses the last --part at most
  connections.parquet  every connection: intended, started, connected, upgraded, closed, outcome
  summary.json         the summary, also written to standard output

SIGINT and SIGTERM stop sending, wait for the echoes and write everything; a second one kills.

Exit codes:
  0  the run was made; whatever the server did is in the records
  1  no connection was upgraded: nothing was measured (the records say why)
  2  the command line is wrong
  3  the run could not start: host, addresses, descriptors, ports, output directory
  4  the records could not be written: the disk is full, say
  5  interrupted; the records are complete up to then

Examples:
  wsload ws://127.0.0.1:9000/ -n 100 -d 10s -o run1
  wsload ws://10.0.0.1:9000/ -n 10000 -r 1000 -s 33 -i 1s -d 5m --source 10.0.1.0/28 -o run2";

/// Open-loop WebSocket load: opens N connections, sends a message on each every INTERVAL, verifies
/// the echoes and records every connection and every message.
#[derive(Debug, Clone, Parser, Serialize)]
#[command(version, max_term_width = 100, after_help = AFTER_HELP)]
pub struct Arguments {
    /// The server: ws://HOST:PORT/PATH
    pub url: String,

    /// Connections to open
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub connections: u32,

    /// Connections to open per second, or "max": as fast as the server completes them
    #[arg(short = 'r', long, value_name = "RATE", default_value = "max")]
    #[serde(rename = "open_rate_cps")]
    pub open_rate: OpenRate,

    /// With --open-rate max: connections that may be in the making at a time
    #[arg(long, value_name = "N", default_value_t = 128,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub opening: u32,

    /// Message size, without the frame's header
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 33,
          value_parser = clap::value_parser!(u64).range(0..=MOST_SIZE_BYTES))]
    #[serde(rename = "size_bytes")]
    pub size: u64,

    /// Send text messages, not binary ones
    #[arg(long)]
    pub text: bool,

    /// Time between two messages of one connection
    #[arg(short = 'i', long, value_name = "TIME", default_value = "1s", value_parser = positive)]
    #[serde(rename = "interval_us", serialize_with = "as_us")]
    pub interval: Duration,

    /// Within an interval, connections send spread evenly, or all together
    #[arg(long, value_name = "PHASE", default_value = "spread")]
    pub phase: Phase,

    /// Send what is due in steps of this, together, and read what has come then and 300us later.
    /// Latencies include it; 0s: send and read at once [default: 200us from 40,000 messages a
    /// second on, below at once]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    #[serde(rename = "step_us", serialize_with = "as_us_if_any")]
    pub step: Option<Duration>,

    /// In steps: how long a message may wait, its step included, to be sent with its connection's
    /// next ones. Latencies include it
    #[arg(long, value_name = "TIME", default_value = "1500us",
          value_parser = humantime::parse_duration)]
    #[serde(rename = "hold_us", serialize_with = "as_us")]
    pub hold: Duration,

    /// Messages of a connection: after their echoes it is closed, and the run ends with the last one
    /// [default: as many as there is time for]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub messages: Option<u64>,

    /// How long to send, from the run's start: opening the connections is part of it
    #[arg(short = 'd', long, value_name = "TIME", default_value = "10s", value_parser = positive)]
    #[serde(rename = "duration_us", serialize_with = "as_us")]
    pub duration: Duration,

    /// Give a connection up if it is not upgraded within this time
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = positive)]
    #[serde(rename = "handshake_timeout_us", serialize_with = "as_us")]
    pub handshake_timeout: Duration,

    /// How long to wait for echoes after the last message; later ones count as lost
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = humantime::parse_duration)]
    #[serde(rename = "drain_us", serialize_with = "as_us")]
    pub drain: Duration,

    /// Connect from these addresses in turn: addresses or networks, e.g. 10.0.0.2,10.0.1.0/28
    #[arg(long, value_name = "ADDR,ADDR/BITS", value_delimiter = ',')]
    pub source: Vec<String>,

    /// Add a header to the upgrade request (repeat for more)
    #[arg(long, value_name = "NAME: VALUE")]
    pub header: Vec<String>,

    /// Directory for the records; it must not hold a run yet
    #[arg(short = 'o', long, value_name = "DIR")]
    pub output: PathBuf,

    /// Finish a file of message records this often
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = positive)]
    #[serde(rename = "part_us", serialize_with = "as_us")]
    pub part: Duration,

    /// This is client I, from 0, of N that offer this load together: it opens every N-th of the
    /// connections, at the time and with the phase that each has in the whole
    #[arg(long, value_name = "I/N", default_value_t = Share::WHOLE)]
    pub client: Share,

    /// Number of the first connection of all clients, to tell apart several runs
    #[arg(long, value_name = "ID", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=2_000_000_000))]
    pub first_connection: u32,

    /// Start at this time (seconds since 1970), so that several clients share one time axis
    #[arg(long, value_name = "UNIX_TIME")]
    #[serde(rename = "start_at_unix_s")]
    pub start_at: Option<f64>,

    /// No progress line and no closing words; the summary still goes to standard output
    #[arg(short, long)]
    pub quiet: bool,
}

/// The value of `--open-rate`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum OpenRate {
    PerSecond(f64),
    Max(&'static str),
}

impl std::str::FromStr for OpenRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "max" => Ok(Self::Max("max")),
            Ok(rate) if rate > 0.0 && f64::is_finite(rate) => Ok(Self::PerSecond(rate)),
            _ => Err("write a number above 0, or max".into()),
        }
    }
}

fn positive(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if time < Duration::from_micros(1) { Err("the shortest is 1us".into()) } else { Ok(time) }
}

fn as_us<S: serde::Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(us(*time))
}

fn as_us_if_any<S: serde::Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    time.map(us).serialize(to)
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Arguments {
    /// Checks everything that can be checked before the first connection is opened.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn plan(&self) -> Result<Plan, Failure> {
        let target = Target::new(&self.url, &self.header).map_err(Failure::Setup)?;
        let sources = sources(&self.source, target.address).map_err(Failure::Setup)?;
        let numbers = self.numbers()?;
        let connections = u64::from(numbers.count);
        let addresses = sources.len().max(1) as u64;
        machine::check_ports(connections, addresses).map_err(Failure::Setup)?;
        machine::allow_descriptors(connections).map_err(Failure::Setup)?;
        Ok(Plan {
            target,
            sources,
            numbers,
            schedule: self.schedule(),
            pace: Wanted { step_us: self.step.map(us), hold_us: us(self.hold) },
            payload: Payload::new(self.size as usize, self.text),
            size_bytes: self.size as usize,
            handshake_timeout_us: us(self.handshake_timeout),
            drain_us: us(self.drain),
        })
    }

    /// The clock of the run.
    ///
    /// # Errors
    /// A sentence for the user, when `--start-at` has passed.
    pub fn clock(&self) -> Result<Clock, Failure> {
        let Some(start_unix_s) = self.start_at else { return Ok(Clock::start_now()) };
        Clock::start_at((start_unix_s * 1e6) as u64).map_err(|late_us| {
            Failure::Setup(format!(
                "--start-at {start_unix_s}: that was {:.1} s ago; name a time to come",
                late_us as f64 / 1e6
            ))
        })
    }

    /// Where the records go.
    pub fn destination(&self, start_unix_us: u64) -> Destination {
        let arguments = serde_json::to_string(self).expect("the arguments are plain values");
        Destination {
            directory: self.output.clone(),
            part: self.part,
            metadata: vec![
                ("wsload_version".into(), env!("CARGO_PKG_VERSION").into()),
                ("wsload_start_unix_us".into(), start_unix_us.to_string()),
                ("wsload_arguments".into(), arguments),
            ],
        }
    }

    fn numbers(&self) -> Result<Numbers, Failure> {
        let all_opening = matches!(self.open_rate, OpenRate::PerSecond(_));
        let opening = if all_opening { u32::MAX } else { self.opening };
        let count = self.client.of(self.connections);
        if count == 0 || self.client.of(opening) == 0 {
            let least = self.connections.min(opening);
            return Err(Failure::Setup(format!(
                "--client {}: nothing is left for it of {} connections, {} in the making at a \
                 time; at most {least} clients can share them",
                self.client, self.connections, self.opening
            )));
        }
        Ok(Numbers { first: self.first_connection, share: self.client, count })
    }

    fn schedule(&self) -> Schedule {
        let opening = match self.open_rate {
            OpenRate::PerSecond(rate_cps) => Opening::Rate { rate_cps },
            OpenRate::Max(_) => {
                Opening::AsFastAsAllowed { in_progress: self.client.of(self.opening) as usize }
            }
        };
        Schedule {
            opening,
            phase: self.phase,
            interval_us: us(self.interval),
            duration_us: us(self.duration),
            messages: self.messages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }

    #[test]
    fn rates_and_times() {
        let parse = |more: &[&str]| {
            let base = ["wsload", "ws://127.0.0.1:1/", "-o", "out"];
            Arguments::try_parse_from(base.iter().chain(more))
        };
        assert_eq!(parse(&["-r", "12.5"]).unwrap().open_rate, OpenRate::PerSecond(12.5));
        assert_eq!(parse(&[]).unwrap().schedule().interval_us, 1_000_000);
        for wrong in [["-r", "0"], ["-r", "fast"], ["-i", "0s"], ["-i", "1"], ["-n", "0"]] {
            assert!(parse(&wrong).is_err(), "{wrong:?}");
        }
    }
}
