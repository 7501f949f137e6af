//! The records: complete, consistent with the summary and the schedule, and there after a kill.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, read_dir};
use std::io::Read;
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{NullServer, Row, Run, int, messages, quantile_us, rows, run, wsload};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::parser::parse_message_type;
use serde_json::Value;
use tungstenite::accept;

fn column(rows: &[Row], name: &str) -> Vec<Option<i64>> {
    rows.iter().map(|row| int(row, name)).collect()
}

fn count(summary: &Value, table: &str, name: &str) -> usize {
    summary[table][name].as_u64().unwrap() as usize
}

#[test]
fn the_files_have_the_schema_and_say_where_they_come_from() {
    let server = NullServer::start();
    let run = run(&server.url(), "-n 3 -d 300ms -i 100ms");
    let files = [
        ("messages/000000.parquet", include_str!("../../src/schema/messages.txt")),
        ("connections.parquet", include_str!("../../src/schema/connections.txt")),
    ];
    for (name, expected) in files {
        let file = File::open(run.directory.join(name)).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let metadata = reader.metadata().file_metadata();
        assert_eq!(metadata.schema(), &parse_message_type(expected).unwrap());
        let pairs = metadata.key_value_metadata().unwrap();
        let value = |key: &str| {
            let pair = pairs.iter().find(|pair| pair.key == key);
            pair.and_then(|pair| pair.value.clone()).unwrap_or_else(|| panic!("no {key}"))
        };
        assert_eq!(value("wsload_start_unix_us"), run.summary()["start_unix_us"].to_string());
        let arguments: Value = serde_json::from_str(&value("wsload_arguments")).unwrap();
        assert_eq!(arguments["interval_us"], 100_000);
    }
}

#[test]
fn nothing_is_missing() {
    let server = NullServer::start();
    let run = run(&server.url(), "-n 50 -r 100 -d 1500ms -i 100ms --part 300ms");
    let (summary, connections, messages) = (run.summary(), run.connections(), run.messages());
    assert!(read_dir(run.directory.join("messages")).unwrap().count() > 2, "several parts");
    assert_eq!(connections.len(), 50);
    assert_eq!(messages.len(), count(&summary, "messages", "intended_count"));
    assert_eq!(count(&summary, "messages", "echoed_count"), messages.len());

    let mut expected = 0;
    for (index, connection) in connections.iter().enumerate() {
        assert_eq!(int(connection, "intended_us"), Some(index as i64 * 10_000));
        let steps = ["intended_us", "started_us", "connected_us", "upgraded_us", "closed_us"];
        let times: Vec<_> = steps.iter().map(|step| int(connection, step).unwrap()).collect();
        assert!(times.is_sorted(), "{connection:?}");
        assert_eq!(connection["outcome"], "completed");

        let id = int(connection, "connection");
        let mine: BTreeMap<_, _> = messages
            .iter()
            .filter(|message| int(message, "connection") == id)
            .map(|message| (int(message, "sequence").unwrap(), message))
            .collect();
        let sequences: Vec<_> = mine.keys().copied().collect();
        assert_eq!(sequences, (0..mine.len() as i64).collect::<Vec<_>>(), "each once");
        let first_us = int(mine[&0], "intended_us").unwrap();
        let upgraded_us = times[3];
        assert!(first_us >= upgraded_us && first_us < upgraded_us + 100_000);
        for (sequence, message) in &mine {
            let intended_us = int(message, "intended_us").unwrap();
            assert_eq!(intended_us, first_us + sequence * 100_000);
            let (sent_us, received_us) = (int(message, "sent_us"), int(message, "received_us"));
            assert!(Some(intended_us) <= sent_us && sent_us <= received_us, "{message:?}");
        }
        let last_us = first_us + (mine.len() as i64 - 1) * 100_000;
        assert!((1_400_000..1_500_000).contains(&last_us), "up to the end");
        expected += mine.len();
    }
    assert_eq!(messages.len(), expected);
}

#[test]
fn the_summary_agrees_with_the_records() {
    let server = NullServer::start();
    let run = run(&server.url(), "-n 40 -d 1s -i 10ms");
    let (summary, messages) = (run.summary(), run.messages());
    for (name, from) in [("latency", "intended_us"), ("service", "sent_us")] {
        for (field, quantile) in [("p50_us", 0.5), ("p99_us", 0.99), ("p999_us", 0.999)] {
            let exact_us = quantile_us(&messages, from, "received_us", quantile);
            let summed_us = summary[name][field].as_i64().unwrap();
            let tolerance_us = 1 + exact_us / 500;
            assert!(
                (exact_us - summed_us).abs() <= tolerance_us,
                "{name} {field}: {exact_us} {summed_us}"
            );
        }
    }
}

#[test]
fn the_summary_tells_how_long_the_opening_took() {
    let server = NullServer::start();
    let run = run(&server.url(), "-n 40 -d 1s --opening 7");
    let opened = run.connections();
    let time = |name: &'static str| opened.iter().filter_map(move |row| int(row, name));
    let found = &run.summary()["connections"];
    assert_eq!(found["first_started_us"].as_i64(), time("started_us").min());
    assert_eq!(found["last_upgraded_us"].as_i64(), time("upgraded_us").max());
    assert!((1..=7).contains(&found["most_opening_count"].as_i64().unwrap()));
}

#[test]
fn a_connection_is_closed_after_its_messages_and_the_run_ends_with_the_last() {
    let server = NullServer::start();
    let run = run(&server.url(), "-n 20 -d 10m -i 10ms --messages 3");
    assert_eq!(run.messages().len(), 60);
    assert!(run.messages().iter().all(|row| int(row, "received_us").is_some()));
    let summary = run.summary();
    assert_eq!(summary["connections"]["outcomes_count"]["completed"], 20);
    assert!(summary["sending_us"].as_u64().unwrap() < 600_000_000);
}

/// Accepts and answers only once all `count` have asked: so many must be in the making at once.
fn answers_when_all_have_asked(count: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let peers: Vec<_> = (0..count).map(|_| listener.accept().unwrap().0).collect();
        // All are closed then, so that the run has nothing left.
        let _open: Vec<_> = peers.into_iter().map(|peer| accept(peer).unwrap()).collect();
    });
    format!("ws://{address}/")
}

#[test]
fn as_many_connections_are_in_the_making_as_are_allowed() {
    let url = answers_when_all_have_asked(300);
    let all = run(&url, "-n 300 -d 1m --opening 300 --drain 0s").summary();
    assert_eq!(all["connections"]["upgraded_count"], 300);
    assert_eq!(all["connections"]["most_opening_count"], 300);
    let url = answers_when_all_have_asked(300);
    let few = run(&url, "-n 300 -d 1s --opening 299 --drain 0s").summary();
    assert_eq!(few["connections"]["upgraded_count"], 0);
    assert!(few["connections"]["most_opening_count"].as_u64().unwrap() <= 299);
}

#[test]
fn a_killed_client_leaves_what_it_had() {
    let server = NullServer::start();
    let (mut command, parent) = wsload(&server.url(), "-n 20 -d 60s -i 50ms --part 500ms");
    let mut client = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(3_200));
    client.kill().unwrap();
    client.wait().unwrap();

    let directory = parent.path().join("run");
    let messages = messages(&directory);
    // A part of 500 ms, a batch of 100 ms, and a second for a machine that is busy otherwise.
    let last_us = column(&messages, "received_us").into_iter().flatten().max().unwrap();
    assert!(last_us > 1_600_000, "the last record is of {last_us} µs");
    assert!(messages.len() > 20 * 1_500 / 50, "{} records", messages.len());
    let sequences: BTreeSet<_> =
        messages.iter().map(|row| (int(row, "connection"), int(row, "sequence"))).collect();
    assert_eq!(sequences.len(), messages.len());
    let connections = rows(&directory.join("connections.parquet"));
    assert_eq!(connections.len(), 20);
    assert!(connections.iter().all(|row| row["outcome"] == "open"));
    assert!(!directory.join("summary.json").exists());
}

#[test]
fn an_interrupted_client_completes_its_records() {
    let server = NullServer::start();
    let (mut command, parent) = wsload(&server.url(), "-n 20 -d 60s -i 50ms");
    let client = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1_200));
    let id = client.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let output = client.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["interrupted"], true);
    let messages = messages(&parent.path().join("run"));
    assert!(messages.len() > 100);
    assert_eq!(messages.len(), count(&summary, "messages", "intended_count"));
    assert_eq!(messages.len(), count(&summary, "messages", "echoed_count"));
}

/// Accepts and upgrades one connection, then reads nothing for a while, then echoes.
fn slow_reader(pause: Duration) -> String {
    let (url, _server) = crate::common::serve_one(move |stream| {
        let mut peer = tungstenite::accept(stream).unwrap();
        std::thread::sleep(pause);
        while let Ok(message) = peer.read() {
            if message.is_binary() && peer.send(message).is_err() {
                break;
            }
        }
    });
    url
}

#[test]
fn a_server_that_does_not_read_is_charged_for_it_and_the_client_is_not() {
    // 40 MB/s into a socket that takes a few MB: after that, nothing can be sent.
    let url = slow_reader(Duration::from_millis(1_000));
    let run = run(&url, "-n 1 -d 1s -i 10ms -s 400000 --drain 4s");
    let (summary, messages) = (run.summary(), run.messages());
    assert_eq!(count(&summary, "messages", "echoed_count"), messages.len());
    let held_us = quantile_us(&messages, "intended_us", "sent_us", 0.75);
    assert!(held_us > 200_000, "sent {held_us} µs after the intended time");
    let lag_us = summary["client"]["lag"]["p50_us"].as_i64().unwrap();
    assert!(lag_us < 20_000, "the client's own lag is {lag_us} µs");
    let p50_us = |clock: &str| summary[clock]["p50_us"].as_i64().unwrap();
    assert!(p50_us("latency") > p50_us("service"), "both clocks");
}

#[test]
fn what_never_came_back_and_what_never_left_are_recorded() {
    let url = slow_reader(Duration::from_secs(10));
    let run = run(&url, "-n 1 -d 1s -i 10ms -s 400000 --drain 200ms");
    let (summary, messages) = (run.summary(), run.messages());
    let (lost, unsent) =
        (count(&summary, "messages", "lost_count"), count(&summary, "messages", "unsent_count"));
    assert!(lost > 0 && unsent > 0, "{lost} lost, {unsent} unsent");
    assert_eq!(column(&messages, "sent_us").iter().filter(|us| us.is_none()).count(), unsent);
    assert_eq!(messages.len(), lost + unsent);
    assert_eq!(summary["latency"]["p50_us"], Value::Null);
    let intended_us: Vec<_> = column(&messages, "intended_us").into_iter().flatten().collect();
    assert!(intended_us.windows(2).all(|pair| pair[1] - pair[0] == 10_000));
    assert!(*intended_us.last().unwrap() >= 980_000, "up to the end");
}

#[test]
fn connections_come_from_every_source_address() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    let accepting = std::thread::spawn(move || {
        let peers: Vec<_> = (0..6).map(|_| listener.accept().unwrap()).collect();
        peers.iter().map(|(_, address)| address.ip().to_string()).collect::<Vec<_>>()
    });
    let run = run(&url, "-n 6 -d 300ms --source 127.0.0.9,127.0.3.0/30");
    let mut seen = accepting.join().unwrap();
    seen.sort();
    let expected = ["127.0.0.9", "127.0.0.9", "127.0.3.1", "127.0.3.1", "127.0.3.2", "127.0.3.2"];
    assert_eq!(seen, expected);
    let mut recorded: Vec<_> =
        run.connections().iter().map(|row| row["source"].as_str().unwrap().to_owned()).collect();
    recorded.sort();
    assert_eq!(recorded, expected);
}

#[test]
fn two_clients_make_one_run() {
    let server = NullServer::start();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let start_at = format!("{:.3}", now.as_secs_f64() + 1.0);
    let arguments = format!("-n 10 -d 500ms -i 100ms --start-at {start_at}");
    let started = Instant::now();
    let url = server.url();
    let (one, two) = std::thread::scope(|scope| {
        let two = scope.spawn(|| run(&url, &format!("{arguments} --first-connection 10")));
        (run(&url, &arguments), two.join().unwrap())
    });
    assert!(started.elapsed() > Duration::from_millis(1_400));
    assert_eq!(one.summary()["start_unix_us"], two.summary()["start_unix_us"]);
    let ids: BTreeSet<_> = [one.connections(), two.connections()]
        .concat()
        .iter()
        .map(|row| int(row, "connection").unwrap())
        .collect();
    assert_eq!(ids, (0..20).collect());
}

#[test]
fn clients_that_share_a_load_do_what_one_would() {
    let server = NullServer::start();
    let url = server.url();
    let arguments = "-n 10 -r 100 -d 500ms -i 200ms";
    let share = |client: &str| run(&url, &format!("{arguments} --client {client}"));
    let parts = std::thread::scope(|scope| {
        let parts = ["0/3", "1/3", "2/3"].map(|client| scope.spawn(move || share(client)));
        parts.map(|part| part.join().unwrap())
    });
    let opened = |row: &Row| (int(row, "connection").unwrap(), int(row, "intended_us").unwrap());
    let mut openings: Vec<_> =
        parts.iter().flat_map(Run::connections).map(|row| opened(&row)).collect();
    openings.sort_unstable();
    assert_eq!(openings, (0..10).map(|id| (id, 10_000 * id)).collect::<Vec<_>>());
    let counts =
        parts.each_ref().map(|part| part.summary()["connections"]["intended_count"].clone());
    assert_eq!(counts, [4, 3, 3].map(serde_json::Value::from));
    // Each connection sends at its own time within the interval, whichever client has it.
    let phases = |runs: &[Run]| -> BTreeSet<_> {
        let messages = runs.iter().flat_map(Run::messages);
        messages.map(|row| opened(&row)).map(|(id, us)| (id, us % 200_000)).collect()
    };
    assert_eq!(phases(&parts), phases(&[run(&url, arguments)]));
    assert_eq!(phases(&parts).len(), 10);
}

#[test]
fn a_run_without_messages_still_has_its_tables() {
    let server = NullServer::start();
    let run = run(&server.url(), "-n 2 -d 100ms -i 1h");
    assert_eq!(run.code(), Some(0));
    assert_eq!(run.messages().len() as u64, run.summary()["messages"]["sent_count"]);
    let mut magic = [0; 4];
    File::open(run.directory.join("messages/000000.parquet"))
        .unwrap()
        .read_exact(&mut magic)
        .unwrap();
    assert_eq!(&magic, b"PAR1");
}
