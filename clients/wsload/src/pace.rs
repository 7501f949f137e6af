//! How the event loop takes its turns: at once, or in steps.
//!
//! A system call costs the same for one message as for ten. In steps, the loop wakes at multiples of
//! the step, and sends what has become due since the last one. A connection's messages may wait for
//! each other besides. Messages keep their intended times: what they waited is part of the latency,
//! but not of the lag, which counts from the turn that the pace has for them.

/// The step where none is asked for and many messages are due.
const OWN_STEP_US: u64 = 200;
/// Messages due in OWN_STEP_US from which on waking for each would cost more.
const LEAST_IN_A_STEP: u64 = 8;
/// A step has turns at which it only reads, so that an echo waits for a part of it at most.
const LONGEST_UNREAD_US: u64 = 300;

/// What the command line asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// `None`: steps of `OWN_STEP_US` where many messages are due, else none; 0: never.
    pub step_us: Option<u64>,
    /// How long a message may wait for the next ones of its connection, with its turn's delay.
    pub hold_us: u64,
}

/// How the event loop takes its turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pace {
    /// From one turn to the next; `None`: as soon as there is anything to do.
    pub step_us: Option<u64>,
    /// How long a connection waits for more messages after the intended time of the first.
    pub hold_us: u64,
    /// From one message of a connection to the next.
    interval_us: u64,
    /// The time in which a turn must follow the last of the messages that wait for each other.
    turn_within_us: u64,
}

impl Pace {
    pub const AT_ONCE: Self = Self { step_us: None, hold_us: 0, interval_us: 0, turn_within_us: 0 };

    /// The pace of so many connections that each send a message every `interval_us`.
    pub fn of(connections: usize, interval_us: u64, wanted: Wanted) -> Self {
        let step_us = match wanted.step_us {
            Some(step_us) => step_us,
            None if OWN_STEP_US.saturating_mul(connections as u64)
                >= LEAST_IN_A_STEP * interval_us =>
            {
                OWN_STEP_US
            }
            None => 0,
        };
        if step_us == 0 {
            return Self::AT_ONCE;
        }
        // A turn comes up to a step late. A connection waits for whole intervals, since between
        // two messages there is nothing to wait for.
        let hold_us = wanted.hold_us.saturating_sub(step_us) / interval_us * interval_us;
        // Where a connection sends once in a whole number of steps, its messages and its turns lie
        // always alike, and one of its next messages has a turn within the common divisor.
        let sends_every_us = hold_us + interval_us;
        let turn_within_us = if hold_us > 0 && sends_every_us % step_us == 0 {
            greatest_common_divisor(step_us, interval_us)
        } else {
            step_us
        };
        Self { step_us: Some(step_us), hold_us, interval_us, turn_within_us }
    }

    /// When a connection is to send whose next message is intended at `next_us`.
    ///
    /// That is the intended time of the last message that may go with it, or of the one before if
    /// the last one has to wait long for a turn. So each connection comes to the turns that follow
    /// its messages soonest, and all turns come to have equally many connections.
    pub fn due_us(self, next_us: u64) -> u64 {
        let last_us = next_us + self.hold_us;
        let turn_is_near = self.turn_us(last_us) - last_us < self.turn_within_us;
        if self.hold_us == 0 || turn_is_near { last_us } else { last_us - self.interval_us }
    }

    /// The turn at which what is due at `at_us` is done.
    pub fn turn_us(self, at_us: u64) -> u64 {
        self.step_us.map_or(at_us, |step_us| at_us.div_ceil(step_us) * step_us)
    }

    /// When to wake after `now_us`, to send or only to read; `None`: when there is anything to do.
    pub fn wake_us(self, now_us: u64) -> Option<u64> {
        let step_us = self.step_us?;
        let turn_us = self.turn_us(now_us + 1);
        let read_us = turn_us - step_us + LONGEST_UNREAD_US;
        Some(if now_us < read_us && read_us < turn_us { read_us } else { turn_us })
    }

    /// Whether messages are sent at `now_us`, after a turn at `before_us`.
    pub fn sends(self, before_us: u64, now_us: u64) -> bool {
        self.step_us.is_none_or(|step_us| before_us / step_us < now_us / step_us)
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Wanted = Wanted { step_us: None, hold_us: 1_500 };

    #[test]
    fn few_messages_are_sent_at_once_unless_a_step_is_asked_for() {
        // 10,000 connections with a message a second each, 64 with 20,000 a second in all.
        assert_eq!(Pace::of(10_000, 1_000_000, OWN), Pace::AT_ONCE);
        assert_eq!(Pace::of(64, 3_200, OWN), Pace::AT_ONCE);
        assert_eq!(Pace::of(0, 1, OWN), Pace::AT_ONCE);
        let step = Wanted { step_us: Some(2_000), hold_us: 500 };
        let pace = Pace::of(10_000, 1_000_000, step);
        assert_eq!((pace.step_us, pace.hold_us), (Some(2_000), 0));
        let never = Wanted { step_us: Some(0), hold_us: 500 };
        assert_eq!(Pace::of(64, 1, never), Pace::AT_ONCE);
    }

    #[test]
    fn many_messages_are_sent_in_steps_and_those_of_a_connection_together() {
        for (interval_us, hold_us, what) in [
            (1_301, 0, "none is due in time to wait for"),
            (320, 1_280, "five together"),
            (80, 1_280, "seventeen together"),
        ] {
            let pace = Pace::of(64, interval_us, OWN);
            assert_eq!((pace.step_us, pace.hold_us), (Some(200), hold_us), "{what}");
        }
    }

    #[test]
    fn no_message_waits_longer_than_it_may() {
        for hold_us in [1, 4, 5, 99, 500, 1_000] {
            for interval_us in [1, 3, 80, 320, 999] {
                for step_us in [None, Some(1), Some(70)] {
                    let pace = Pace::of(1_000, interval_us, Wanted { step_us, hold_us });
                    let step_us = pace.step_us.unwrap_or(0);
                    assert!(pace.hold_us + step_us <= hold_us.max(step_us), "{pace:?}");
                }
            }
        }
    }

    #[test]
    fn turns_are_multiples_of_the_step_and_long_steps_have_a_turn_that_reads() {
        let pace = |step_us| Pace::of(1, 5_000, Wanted { step_us: Some(step_us), hold_us: 0 });
        let (pace, short) = (pace(1_200), pace(100));
        assert_eq!((pace.turn_us(1_200), pace.turn_us(1_201)), (1_200, 2_400));
        assert_eq!(pace.wake_us(1_250), Some(1_500));
        assert_eq!(pace.wake_us(1_500), Some(2_400));
        assert!(pace.sends(1_500, 2_405) && !pace.sends(1_210, 1_505));
        assert_eq!(short.wake_us(1_250), Some(1_300));
        assert_eq!(Pace::AT_ONCE.wake_us(1_250), None);
        assert!(Pace::AT_ONCE.sends(5, 5));
    }

    #[test]
    fn connections_come_to_turns_that_follow_their_messages_and_spread_over_them() {
        let (interval_us, step_us) = (320, 200);
        let wanted = Wanted { step_us: Some(step_us), hold_us: 1_480 };
        let pace = Pace::of(64, interval_us, wanted);
        let mut connections_at = [0; 8];
        for phase_us in (0..interval_us).step_by(5) {
            // All begin together.
            let mut next_us = phase_us;
            let mut wait_us = 0;
            for _ in 0..20 {
                let turn_us = pace.turn_us(pace.due_us(next_us));
                wait_us = turn_us - next_us;
                assert!(wait_us <= wanted.hold_us);
                next_us += (wait_us / interval_us + 1) * interval_us;
                connections_at[(turn_us / step_us % 8) as usize] += usize::from(turn_us > 25_000);
            }
            assert!((1_280..1_320).contains(&wait_us), "{phase_us}: {wait_us}");
        }
        let (least, most) = (connections_at.iter().min(), connections_at.iter().max());
        assert!(most.unwrap() - least.unwrap() <= 8, "{connections_at:?}");
    }
}
