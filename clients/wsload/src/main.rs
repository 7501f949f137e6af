//! The command `wsload`.

use std::io::{Write, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use wsload::cli::Arguments;
use wsload::client::Client;
use wsload::failure::Failure;
use wsload::progress::Progress;
use wsload::recorder::Recorder;
use wsload::summary::Summary;

const INTERRUPTED: u8 = 5;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("wsload: {failure}");
            failure.exit_code().into()
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let plan = arguments.plan()?;
    let clock = arguments.clock()?;
    let destination = arguments.destination(clock.start_unix_us);
    destination.prepare().map_err(Failure::Setup)?;
    let interrupted = listen_for_signals().map_err(Failure::system)?;

    clock.wait_for_start();
    let recorder = Recorder::start(destination, plan.numbers);
    let client = Client::new(plan.clone(), clock, recorder).map_err(Failure::system)?;
    let (tally, conduct) = client.run(&interrupted, &mut Progress::new(arguments.quiet))?;

    let summary = Summary::new(arguments, &plan, clock.start_unix_us, &tally, &conduct);
    let json = serde_json::to_string_pretty(&summary).expect("the summary is plain values");
    let path = arguments.output.join("summary.json");
    std::fs::write(&path, format!("{json}\n"))
        .map_err(|error| Failure::Records(format!("cannot write {}: {error}", path.display())))?;
    // A reader that has gone away has what it wanted.
    let _ = writeln!(stdout(), "{json}");
    if !arguments.quiet {
        eprintln!("{}", summary.words());
    }
    if summary.interrupted {
        return Ok(INTERRUPTED.into());
    }
    if tally.upgraded_count == 0 {
        return Err(nothing_measured(&summary));
    }
    Ok(ExitCode::SUCCESS)
}

/// A flag that the first SIGINT or SIGTERM sets; the second ends the process as it would have.
fn listen_for_signals() -> std::io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_default(signal, interrupted.clone())?;
        flag::register(signal, interrupted.clone())?;
    }
    Ok(interrupted)
}

fn nothing_measured(summary: &Summary) -> Failure {
    let outcomes = &summary.connections.outcomes_count;
    let seen: Vec<_> = outcomes.iter().map(|(name, count)| format!("{count} {name}")).collect();
    Failure::NothingMeasured(format!(
        "no connection to {} was upgraded ({}): is a WebSocket server listening there? The records \
         are in {}",
        summary.server_address,
        seen.join(", "),
        summary.arguments.output.display()
    ))
}
