//! What this process may use and what it has used.

use std::fs;
use std::num::NonZeroU64;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};

/// Descriptors beside those of the connections: standard streams, epoll, timer, files, a margin.
const OTHER_DESCRIPTORS: u64 = 32;

/// Raises the soft limit on open files as far as `connections` need and the hard limit lets.
///
/// # Errors
/// A sentence for the user, when the hard limit is too low.
pub fn allow_descriptors(connections: u64) -> Result<(), String> {
    let needed = connections + OTHER_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        let maximum = limit.maximum.unwrap_or(0);
        return Err(format!(
            "{connections} connections need {needed} descriptors and this process may have \
             {maximum}: raise the limit (ulimit -Hn {needed}), or share the connections among \
             several clients (see --first-connection)"
        ));
    }
    let raised = Rlimit { current: Some(needed), maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised)
        .map_err(|error| format!("cannot raise the limit on open files to {needed}: {error}"))
}

/// Raises the soft limit on open files to the hard one, where that is allowed.
pub fn allow_all_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // A server that is refused this goes on with what it has, and says so when it runs out.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Checks that `sources` addresses have ports for `connections` to one server.
///
/// # Errors
/// A sentence for the user, when they have not.
pub fn check_ports(connections: u64, sources: u64) -> Result<(), String> {
    let Ok(range) = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range") else {
        return Ok(());
    };
    let mut ends = range.split_whitespace().filter_map(|end| end.parse::<u64>().ok());
    let (Some(first), Some(last)) = (ends.next(), ends.next()) else { return Ok(()) };
    let ports = last - first + 1;
    if connections <= sources * ports {
        return Ok(());
    }
    let enough = connections.div_ceil(ports);
    Err(format!(
        "{connections} connections need more ports than {sources} source address(es) have, \
         {ports} each: name {enough} addresses with --source, or widen \
         net.ipv4.ip_local_port_range"
    ))
}

/// Lets this thread's sleeps end when asked, not up to 50 µs later (prctl(2), PR_SET_TIMERSLACK).
pub fn sleep_to_the_microsecond() {
    // Where it is refused, a step is a little longer.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Lets the calling thread run only while no other thread wants its CPU (sched(7), SCHED_IDLE).
pub fn run_when_idle() {
    let priority = libc::sched_param { sched_priority: 0 };
    // Where it is refused, the thread runs as before.
    // SAFETY: the call reads `priority`, which outlives it; 0 is the calling thread.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &priority) };
}

/// CPU time of the whole process, in µs.
pub fn process_cpu_us() -> u64 {
    cpu_us(ClockId::ProcessCPUTime)
}

/// CPU time of the calling thread, in µs.
pub fn thread_cpu_us() -> u64 {
    cpu_us(ClockId::ThreadCPUTime)
}

fn cpu_us(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

/// Resident memory of this process, in bytes; 0 where the kernel does not tell.
pub fn resident_bytes() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|statm| statm.split_whitespace().nth(1)?.parse::<u64>().ok())
        .unwrap_or(0);
    pages * rustix::param::page_size() as u64
}
