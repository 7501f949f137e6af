//! A user's mistake, or a machine's limit, is told in one sentence and by a documented exit code.

use std::net::TcpListener;
use std::process::Command;

use crate::common::{NullServer, run, wsload};

/// Runs the client and checks its exit code and that it says one line with all these parts.
fn fails(url: &str, arguments: &str, code: i32, parts: &[&str]) {
    let run = run(url, arguments);
    says(run.code(), &run.stderr(), code, parts);
}

fn says(found: Option<i32>, stderr: &str, code: i32, parts: &[&str]) {
    assert_eq!(found, Some(code), "{stderr}");
    assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
    for part in parts {
        assert!(stderr.contains(part), "no {part:?} in: {stderr}");
    }
}

#[test]
fn a_bad_url_or_host() {
    fails("http://127.0.0.1:1/", "", 3, &["http://127.0.0.1:1/", "ws://HOST:PORT"]);
    fails("wss://127.0.0.1:1/", "", 3, &["TLS"]);
    fails("ws://no-such-host.invalid:1/", "", 3, &["cannot find the host no-such-host.invalid"]);
}

#[test]
fn nothing_listens() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let run = run(&format!("ws://{free}/"), "-n 5 -d 10s");
    says(run.code(), &run.stderr(), 1, &["5 refused", &free.to_string(), "listening"]);
    assert!(run.connections().iter().all(|row| row["outcome"] == "refused"));
}

#[test]
fn bad_values() {
    for arguments in ["-n 0", "-r never", "-i 5", "-s -1", "--start-at soon", "--client 2/2"] {
        let run = run("ws://127.0.0.1:1/", arguments);
        assert_eq!(run.code(), Some(2), "{arguments}");
        assert!(run.stderr().contains("error:"), "{arguments}");
    }
    fails("ws://127.0.0.1:1/", "--start-at 12", 3, &["--start-at", "ago"]);
    fails("ws://127.0.0.1:1/", "-n 2 --client 2/3", 3, &["--client 2/3", "at most 2 clients"]);
    fails("ws://127.0.0.1:1/", "--source 192.0.2.1", 3, &["--source 192.0.2.1", "its own"]);
    fails("ws://127.0.0.1:1/", "-n 3000000 --source 127.0.0.1", 3, &["ports", "--source"]);
}

#[test]
fn too_few_descriptors() {
    let (command, _parent) = wsload("ws://127.0.0.1:1/", "-n 500");
    let output = shell("ulimit -n 300 && exec \"$@\"", command).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    says(output.status.code(), &stderr, 3, &["500 connections", "532 descriptors", "have 300"]);
}

#[test]
fn descriptors_that_run_out_are_an_outcome() {
    let server = NullServer::start();
    // Descriptors that the client inherits are not among those that it can count on.
    let hold = "ulimit -n 64; for n in $(seq 20 50); do eval \"exec $n</dev/null\"; done";
    let (command, parent) = wsload(&server.url(), "-n 32 -d 500ms");
    let output = shell(&format!("{hold}; exec \"$@\""), command).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let starved = &summary["connections"]["outcomes_count"]["out_of_descriptors"];
    assert!(starved.as_u64() > Some(0), "{summary}");
    assert_eq!(summary["client"]["limited"], true);
    assert_eq!(crate::common::rows(&parent.path().join("run/connections.parquet")).len(), 32);
}

#[test]
fn an_output_directory_that_cannot_be_used() {
    let (mut command, parent) = wsload("ws://127.0.0.1:1/", "");
    std::fs::write(parent.path().join("run"), "a file").unwrap();
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    says(output.status.code(), &stderr, 3, &["cannot make the output directory"]);

    let server = NullServer::start();
    let (mut command, _parent) = wsload(&server.url(), "-n 1 -d 100ms");
    assert_eq!(command.output().unwrap().status.code(), Some(0));
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    says(output.status.code(), &stderr, 3, &["holds a run already", "--output"]);
}

#[test]
fn a_full_disk() {
    let server = NullServer::start();
    let (command, parent) = wsload(&server.url(), "-n 50 -d 20s -i 2ms --part 500ms");
    // A disk of its own, in a mount namespace of its own.
    let script =
        format!("mount -t tmpfs -o size=128k none {} && exec \"$@\"", parent.path().display());
    let mut isolated = Command::new("unshare");
    isolated.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh"]);
    isolated.arg(command.get_program()).args(command.get_args());
    let output = isolated.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    says(output.status.code(), &stderr, 4, &["cannot write the records", "No space left"]);
}

/// The command as `"$@"` of a shell script.
fn shell(script: &str, command: Command) -> Command {
    let mut shell = Command::new("bash");
    shell.args(["-c", script, "bash"]).arg(command.get_program()).args(command.get_args());
    shell
}
