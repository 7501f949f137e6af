//! The latencies are right: against a freeze whose effect is known in closed form, and against a
//! second client that shares nothing with the first.
//!
//! A machine that is busy otherwise disturbs what is measured, so each measurement may be repeated;
//! a client that measures wrongly is wrong every time.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use crate::common::{NullServer, Run, nearest_rank, quantile_us, run};

const ATTEMPTS: u32 = 12;

/// Between two messages of a connection.
const SPACING: Duration = Duration::from_millis(25);

/// One measurement at a time: two would measure each other.
static ALONE: Mutex<()> = Mutex::new(());

/// How long a server holds the n-th message of a connection, in µs.
type Hold = fn(u64) -> u64;

/// A server that echoes each message after a known time, and nothing while it is frozen.
struct HoldingServer {
    address: SocketAddr,
}

impl HoldingServer {
    /// `frozen` is in time since the first connection.
    fn start(hold: Hold, frozen: Option<Range<Duration>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        spawn(move || {
            let mut first = None;
            while let Ok((stream, _)) = listener.accept() {
                let start = *first.get_or_insert_with(Instant::now);
                let frozen =
                    frozen.clone().map(|Range { start: from, end }| start + from..start + end);
                spawn(move || serve(stream, hold, frozen));
            }
        });
        Self { address }
    }

    fn url(&self) -> String {
        format!("ws://{}/", self.address)
    }
}

fn serve(stream: TcpStream, hold: Hold, frozen: Option<Range<Instant>>) {
    stream.set_nodelay(true).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let Ok(mut peer) = tungstenite::accept(stream) else { return };
    let (queue, due): (_, Receiver<(Instant, Vec<u8>)>) = channel();
    let writing = spawn(move || {
        for (at, payload) in due {
            wait_until(at);
            let mut frame = vec![0x82, payload.len() as u8];
            frame.extend(payload);
            if writer.write_all(&frame).is_err() {
                return;
            }
        }
    });
    let mut count = 0;
    while let Ok(message) = peer.read() {
        if message.is_binary() {
            let mut at = Instant::now() + Duration::from_micros(hold(count));
            if let Some(frozen) = frozen.as_ref().filter(|frozen| frozen.contains(&at)) {
                at = frozen.end;
            }
            count += 1;
            let _ = queue.send((at, message.into_data().to_vec()));
        }
    }
    drop(queue);
    let _ = writing.join();
}

/// Sleeps, and for the last stretch, which a sleep would overshoot, does not.
fn wait_until(at: Instant) {
    let left = at.saturating_duration_since(Instant::now());
    if let Some(early) = left.checked_sub(Duration::from_micros(200)) {
        sleep(early);
    }
    while Instant::now() < at {
        std::hint::spin_loop();
    }
}

/// Round-trip times in µs as a plain blocking client sees them. What an idle machine takes to wake
/// a process is part of them, so it is a process of its own, as the client is that it judges, and
/// writes as often: who has slept longer wakes more slowly. It writes a little slower, by one spacing
/// in all, so that neither is always the one whose message comes just after the other's and meets a
/// machine that is awake.
fn probe(address: SocketAddr, count: usize) -> Vec<i64> {
    let program = Path::new(env!("CARGO_BIN_EXE_wsload")).with_file_name("examples/plain_client");
    let spacing = SPACING + SPACING / count as u32;
    let words = [address.to_string(), count.to_string(), spacing.as_micros().to_string()];
    let output = Command::new(&program).args(words).output();
    let output = output.unwrap_or_else(|error| {
        panic!("{}: {error}; `cargo build --examples` makes it", program.display())
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}

/// Repeats a measurement until it has nothing to object to.
fn attempt(measure: impl Fn() -> Vec<String>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut objections = Vec::new();
    for _ in 0..ATTEMPTS {
        objections = measure();
        if objections.is_empty() {
            return;
        }
        eprintln!("{}", objections.join("\n"));
    }
    panic!("{ATTEMPTS} times in a row; the last time:\n{}", objections.join("\n"));
}

fn objection(what: &str, found: i64, truth: i64, tolerance: i64) -> Option<String> {
    let wrong = (found - truth).abs() > tolerance;
    wrong.then(|| format!("{what}: {found} µs, in truth {truth} µs (tolerance {tolerance} µs)"))
}

/// The freeze test. A server holds each message for h = 50 ms, and for f = 3 s of the d = 15 s of a
/// run it answers nothing. Messages are sent evenly, so those that meet the freeze wait for a time
/// that is uniform between h and h + f. Of all messages a share (h + f - x) / d waits longer than
/// x, and the quantile q above the share that does not meet the freeze is h + f - (1 - q) d.
#[test]
fn a_frozen_servers_quantiles_are_the_analytic_ones() {
    const HOLD_US: f64 = 50e3;
    const FROZEN_US: f64 = 3e6;
    const DURATION_US: f64 = 15e6;
    let in_freeze = |quantile: f64| HOLD_US + FROZEN_US - (1.0 - quantile) * DURATION_US;
    attempt(|| {
        let frozen = Duration::from_secs(6)..Duration::from_secs(9);
        let server = HoldingServer::start(|_| 50_000, Some(frozen));
        let run = run(&server.url(), "-n 20 -d 15s -i 20ms");
        let summary = run.summary();
        let messages = run.messages();
        let truths = [
            (0.5, "p50_us", HOLD_US),
            (0.99, "p99_us", in_freeze(0.99)),
            (0.999, "p999_us", in_freeze(0.999)),
        ];
        let mut objections = Vec::new();
        for (quantile, field, truth_us) in truths {
            let recorded_us = quantile_us(&messages, "intended_us", "received_us", quantile);
            let summed_us = summary["latency"][field].as_i64().unwrap();
            for (where_, found_us) in [("records", recorded_us), ("summary", summed_us)] {
                let what = format!("p{} in the {where_}", quantile * 100.0);
                objections.extend(objection(
                    &what,
                    found_us,
                    truth_us as i64,
                    (truth_us * 0.02) as i64,
                ));
            }
        }
        objections
    });
}

/// The same with a real process that is really stopped: what the kernel takes meanwhile waits.
#[test]
fn a_stopped_process_is_seen_as_stopped() {
    attempt(|| {
        let server = NullServer::start();
        let stopping = spawn({
            let id = server.id();
            move || {
                for (signal, pause_ms) in [("-STOP", 1_500), ("-CONT", 1_000)] {
                    sleep(Duration::from_millis(pause_ms));
                    let mut kill = Command::new("kill");
                    assert!(kill.args([signal, &id.to_string()]).status().unwrap().success());
                }
            }
        });
        let run = run(&server.url(), "-n 20 -d 5s -i 20ms");
        stopping.join().unwrap();
        let p99_us = quantile_us(&run.messages(), "intended_us", "received_us", 0.99);
        // As above: 1 s - (1 - 0.99) 5 s, and 20 ms for the signals to get there.
        objection("p99", p99_us, 950_000, 20_000 + 19_000).into_iter().collect()
    });
}

/// Compares the client with the plain one on servers of known latency, within 5 % or 50 µs.
fn known_latency(hold: Hold, quantiles: &[(f64, i64)]) {
    attempt(|| {
        let server = HoldingServer::start(hold, None);
        let address = server.address;
        let probing = spawn(move || probe(address, 150));
        let run: Run = run(&server.url(), &format!("-n 1 -d 4s -i {}ms", SPACING.as_millis()));
        let probed_us = probing.join().unwrap();
        let messages = run.messages();
        let lag_us = run.summary()["client"]["lag"]["p50_us"].as_i64().unwrap();
        let mut objections = Vec::new();
        for &(quantile, hold_us) in quantiles {
            let truth_us = nearest_rank(probed_us.clone(), quantile);
            let tolerance_us = (truth_us / 20).max(50);
            for (from, lag_us) in [("sent_us", 0), ("intended_us", lag_us)] {
                let found_us = quantile_us(&messages, from, "received_us", quantile) - lag_us;
                let what = format!("p{} from {from}", quantile * 100.0);
                objections.extend(objection(&what, found_us, truth_us, tolerance_us));
                if found_us + lag_us < hold_us {
                    objections.push(format!("{what}: {found_us} µs, less than it was held"));
                }
            }
        }
        objections
    });
}

#[test]
fn an_immediate_servers_latency_is_right() {
    known_latency(|_| 0, &[(0.5, 0)]);
}

#[test]
fn a_latency_of_1_ms_is_right() {
    known_latency(|_| 1_000, &[(0.5, 1_000)]);
}

#[test]
fn a_latency_of_10_ms_is_right() {
    known_latency(|_| 10_000, &[(0.1, 10_000), (0.5, 10_000), (0.9, 10_000)]);
}

#[test]
fn a_bimodal_latency_is_right() {
    // Of every five messages one is held ten times as long.
    known_latency(
        |count| if count % 5 == 4 { 10_000 } else { 1_000 },
        &[(0.4, 1_000), (0.9, 10_000)],
    );
}

/// The check above can fail: the same comparison, with a server that is slower for one client.
#[test]
#[should_panic(expected = "times in a row")]
fn a_difference_of_1_ms_would_be_noticed() {
    attempt(|| {
        let server = HoldingServer::start(|_| 2_000, None);
        let other = HoldingServer::start(|_| 1_000, None);
        let truth_us = nearest_rank(probe(other.address, 50), 0.5);
        let run = run(&server.url(), "-n 5 -d 500ms -i 25ms");
        let found_us = quantile_us(&run.messages(), "sent_us", "received_us", 0.5);
        objection("p50", found_us, truth_us, (truth_us / 20).max(50)).into_iter().collect()
    });
}
