//! Wakes the event loop to the microsecond: epoll's own timeout counts milliseconds.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use mio::unix::SourceFd;
use mio::{Interest, Poll, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::clock::Clock;

/// A timer of the kernel that is an event source. It is never read: edge-triggered epoll reports
/// each expiry, and setting it anew clears the last one.
pub struct Timer {
    descriptor: OwnedFd,
    clock: Clock,
    set_us: u64,
}

impl Timer {
    /// A timer that reports to `poll` as `token`.
    ///
    /// # Errors
    /// The kernel has no timer to give.
    pub fn new(poll: &Poll, token: Token, clock: Clock) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let raw = descriptor.as_raw_fd();
        poll.registry().register(&mut SourceFd(&raw), token, Interest::READABLE)?;
        Ok(Self { descriptor, clock, set_us: 0 })
    }

    /// Sets the timer to a time in µs since the run's start.
    ///
    /// # Errors
    /// The kernel refuses the time.
    pub fn wake_at(&mut self, at_us: u64) -> io::Result<()> {
        if at_us == self.set_us {
            return Ok(());
        }
        let wait_us = at_us.saturating_sub(self.clock.now_us()).max(1);
        let wait = Timespec {
            tv_sec: (wait_us / 1_000_000) as i64,
            tv_nsec: (wait_us % 1_000_000 * 1_000) as _,
        };
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = Itimerspec { it_interval: never, it_value: wait };
        timerfd_settime(&self.descriptor, TimerfdTimerFlags::empty(), &setting)?;
        self.set_us = at_us;
        Ok(())
    }
}
