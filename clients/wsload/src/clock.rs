//! The run's clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Counts microseconds from a run's start on the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
    /// The run's start on the wall clock, in µs since 1970, for runs that are to be merged.
    pub start_unix_us: u64,
}

impl Clock {
    /// A clock that starts now.
    pub fn start_now() -> Self {
        Self { start: Instant::now(), start_unix_us: unix_us() }
    }

    /// A clock that starts at a time on the wall clock, which must not have passed.
    ///
    /// # Errors
    /// How many µs ago that time was.
    pub fn start_at(start_unix_us: u64) -> Result<Self, u64> {
        let now_us = unix_us();
        let wait_us = start_unix_us.checked_sub(now_us).ok_or_else(|| now_us - start_unix_us)?;
        Ok(Self { start: Instant::now() + Duration::from_micros(wait_us), start_unix_us })
    }

    /// Sleeps until the run's start.
    pub fn wait_for_start(&self) {
        std::thread::sleep(self.start.saturating_duration_since(Instant::now()));
    }

    /// Sleeps until a time in µs since the run's start, if that is to come.
    pub fn sleep_until(&self, at_us: u64) {
        let end = self.start + Duration::from_micros(at_us);
        std::thread::sleep(end.saturating_duration_since(Instant::now()));
    }

    /// Microseconds since the run's start; 0 before it.
    pub fn now_us(&self) -> u64 {
        let elapsed = Instant::now().saturating_duration_since(self.start);
        elapsed.as_secs() * 1_000_000 + u64::from(elapsed.subsec_micros())
    }
}

fn unix_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs() * 1_000_000 + u64::from(now.subsec_micros())
}
