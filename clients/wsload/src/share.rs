//! Which part of a run is this client's, where several offer one load together.

use std::str::FromStr;

use serde::{Serialize, Serializer};

/// One of several clients: what is counted is dealt to them in turn, one to each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    client: u32,
    clients: u32,
}

impl Share {
    pub const WHOLE: Self = Self { client: 0, clients: 1 };

    /// How many of `count` things are this client's: those shares add up to `count`.
    pub fn of(self, count: u32) -> u32 {
        let rest = u32::from(count % self.clients > self.client);
        count / self.clients + rest
    }

    /// The number, among those of all clients, of this one's `index`-th thing.
    pub fn number(self, index: usize) -> usize {
        self.client as usize + index * self.clients as usize
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').map(|(client, of)| (client.parse(), of.parse()));
        match numbers {
            Some((Ok(client), Ok(clients))) if client < clients => Ok(Self { client, clients }),
            _ => Err("write I/N: client I of N, counted from 0".into()),
        }
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}/{}", self.client, self.clients)
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// The connections of one client: `count` numbers among those of all clients.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    pub first: u32,
    pub share: Share,
    pub count: u32,
}

impl Numbers {
    pub fn id(self, index: usize) -> u32 {
        self.first + self.share.number(index) as u32
    }

    /// The place of connection `id` among this client's.
    pub fn index(self, id: u32) -> usize {
        ((id - self.first) / self.share.clients) as usize
    }

    pub fn ids(self) -> impl Iterator<Item = u32> {
        (0..self.count as usize).map(move |index| self.id(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thing_is_one_client_s() {
        for (count, clients) in [(1, 1), (10, 3), (9_999, 7), (2, 5), (4_000_000_000, 3)] {
            let shares = (0..clients).map(|client| Share { client, clients }.of(count));
            assert_eq!(shares.map(u64::from).sum::<u64>(), u64::from(count));
        }
        let mut all: Vec<u32> = (0..3)
            .flat_map(|client| {
                let share = Share { client, clients: 3 };
                Numbers { first: 100, share, count: share.of(10) }.ids()
            })
            .collect();
        all.sort_unstable();
        assert_eq!(all, (100..110).collect::<Vec<_>>());
    }

    #[test]
    fn a_number_leads_back_to_its_place() {
        let numbers = Numbers { first: 5, share: "2/3".parse().unwrap(), count: 4 };
        assert_eq!(numbers.ids().collect::<Vec<_>>(), [7, 10, 13, 16]);
        assert!(numbers.ids().enumerate().all(|(index, id)| numbers.index(id) == index));
    }

    #[test]
    fn bad_shares_are_refused() {
        for wrong in ["", "1", "2/2", "-1/2", "0/0", "1/two", "0/2/3"] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
        assert_eq!("1/2".parse::<Share>().unwrap().to_string(), "1/2");
    }
}
