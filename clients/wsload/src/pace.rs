//! How the event loop takes its turns: at once, or in steps, when much is due.
//!
//! A system call costs the same for one message as for ten. So where messages are due faster than
//! the loop can wake for each, it wakes in steps, and a connection's messages wait for each other.
//! They keep their intended times: what they waited is part of the latency and of the lag.

/// Steps in the time for which a message may wait.
const STEPS: u64 = 5;
/// Messages due in a step from which on waking for each would cost more.
const LEAST_IN_A_STEP: u64 = 4;

/// How the event loop takes its turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// From one turn to the next; `None`: as soon as there is anything to do.
    pub step_us: Option<u64>,
    /// How long a connection waits for more messages after the intended time of the first.
    pub hold_us: u64,
}

impl Pace {
    pub const AT_ONCE: Self = Self { step_us: None, hold_us: 0 };

    /// The pace of so many connections that each send a message every `interval_us`, of which none
    /// is to wait longer than `gather_us`.
    pub fn of(connections: usize, interval_us: u64, gather_us: u64) -> Self {
        let step_us = gather_us / STEPS;
        if step_us.saturating_mul(connections as u64) < LEAST_IN_A_STEP * interval_us {
            return Self::AT_ONCE;
        }
        // A turn comes up to a step late. A connection waits for whole intervals, since between
        // two messages there is nothing to wait for.
        let hold_us = (gather_us - step_us) / interval_us * interval_us;
        Self { step_us: Some(step_us), hold_us }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_messages_are_sent_at_once() {
        // 10,000 connections with a message a second each, 64 with 20,000 a second in all.
        assert_eq!(Pace::of(10_000, 1_000_000, 500), Pace::AT_ONCE);
        assert_eq!(Pace::of(64, 3_200, 500), Pace::AT_ONCE);
        assert_eq!(Pace::of(0, 1, 500), Pace::AT_ONCE);
        assert_eq!(Pace::of(64, 1, 0), Pace::AT_ONCE, "nothing may wait");
    }

    #[test]
    fn many_messages_are_sent_in_steps_and_those_of_a_connection_together() {
        let pace = |interval_us| Pace::of(64, interval_us, 500);
        let step_us = Some(100);
        assert_eq!(pace(1_280), Pace { step_us, hold_us: 0 }, "none is due in time to wait for");
        assert_eq!(pace(320), Pace { step_us, hold_us: 320 }, "two together");
        assert_eq!(pace(80), Pace { step_us, hold_us: 400 }, "six together");
    }

    #[test]
    fn no_message_waits_longer_than_it_may() {
        for gather_us in [1, 4, 5, 99, 500, 1_000] {
            for interval_us in [1, 3, 80, 320, 999] {
                let pace = Pace::of(1_000, interval_us, gather_us);
                assert!(pace.hold_us + pace.step_us.unwrap_or(0) <= gather_us, "{pace:?}");
            }
        }
    }
}
