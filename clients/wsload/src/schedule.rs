//! When connections are to be opened and messages are to be sent: pure functions of a plan.
//!
//! The schedule never looks at the server. A message's intended send time depends only on its
//! connection's number and on its own, so a slow server cannot thin out the load that measures it.

/// How connections are opened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Opening {
    /// Open loop: the n-th connection at n / rate.
    Rate { rate_cps: f64 },
    /// Closed loop: as fast as the server completes them, at most `in_progress` at a time.
    AsFastAsAllowed { in_progress: usize },
}

/// How the sends of different connections lie to each other within one interval: spread evenly,
/// or together at the same instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    Spread,
    Together,
}

/// The plan of one run. All times are microseconds since the run's start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    pub opening: Opening,
    pub phase: Phase,
    pub interval_us: u64,
    pub duration_us: u64,
    /// How many messages a connection sends at most, being closed after their echoes.
    pub messages: Option<u64>,
}

impl Schedule {
    /// The intended opening time of the `index`-th connection of all clients, in µs; `None` when
    /// the server's pace decides.
    pub fn open_us(&self, index: usize) -> Option<u64> {
        match self.opening {
            Opening::Rate { rate_cps } => Some((index as f64 / rate_cps * 1e6) as u64),
            Opening::AsFastAsAllowed { .. } => None,
        }
    }

    /// The phase of connection `id` within the interval, in µs.
    ///
    /// Successive multiples of the golden ratio, modulo one, are nearly even for every number of
    /// connections (the three-gap theorem), so a run that is still opening, or several clients
    /// that share the numbers of one run, are spread as evenly as a complete one.
    pub fn phase_us(&self, id: u32) -> u64 {
        const GOLDEN_RATIO_FRACTION: u64 = 0x9E37_79B9_7F4A_7C15;
        match self.phase {
            Phase::Together => 0,
            Phase::Spread => {
                let fraction = u64::from(id).wrapping_mul(GOLDEN_RATIO_FRACTION);
                ((u128::from(fraction) * u128::from(self.interval_us)) >> 64) as u64
            }
        }
    }

    /// The first slot of connection `id` that is not before `at_us`.
    pub fn first_slot(&self, id: u32, at_us: u64) -> u64 {
        at_us.saturating_sub(self.phase_us(id)).div_ceil(self.interval_us)
    }

    /// The intended send time of a slot, in µs; `None` when it lies at or after the run's end.
    pub fn intended_us(&self, id: u32, slot: u64) -> Option<u64> {
        let at_us = self.phase_us(id) + slot * self.interval_us;
        (at_us < self.duration_us).then_some(at_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEDULE: Schedule = Schedule {
        opening: Opening::Rate { rate_cps: 250.0 },
        phase: Phase::Spread,
        interval_us: 1_000_000,
        duration_us: 3_000_000,
        messages: None,
    };

    #[test]
    fn opening_follows_the_rate() {
        assert_eq!(SCHEDULE.open_us(0), Some(0));
        assert_eq!(SCHEDULE.open_us(250), Some(1_000_000));
        assert_eq!(SCHEDULE.open_us(3), Some(12_000));
    }

    #[test]
    fn every_prefix_is_spread_evenly() {
        for count in [2_u32, 10, 64, 1_000, 9_999, 10_000] {
            let mut phases: Vec<u64> = (0..count).map(|id| SCHEDULE.phase_us(id)).collect();
            phases.push(SCHEDULE.interval_us);
            phases.sort_unstable();
            let widest = phases.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
            let even = SCHEDULE.interval_us / u64::from(count);
            assert!(widest <= 2 * even + 2, "{count}: gap of {widest} µs, even is {even} µs");
        }
    }

    #[test]
    fn slots_start_after_the_upgrade_and_stop_before_the_end() {
        let id = 7;
        let phase = SCHEDULE.phase_us(id);
        assert_eq!(SCHEDULE.first_slot(id, 0), 0);
        assert_eq!(SCHEDULE.first_slot(id, phase), 0);
        assert_eq!(SCHEDULE.first_slot(id, phase + 1), 1);
        assert_eq!(SCHEDULE.intended_us(id, 2), Some(phase + 2_000_000));
        assert_eq!(SCHEDULE.intended_us(id, 3), None);
    }

    #[test]
    fn together_means_the_same_instant() {
        let together = Schedule { phase: Phase::Together, ..SCHEDULE };
        assert!((0..100).all(|id| together.phase_us(id) == 0));
    }
}
