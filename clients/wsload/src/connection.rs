//! One upgraded connection: what it has sent, what it awaits, what came back.

use std::collections::VecDeque;

use tungstenite::{Message, WebSocket};

use crate::payload::Payload;
use crate::record::MessageRow;
use crate::schedule::Schedule;
use crate::socket::Socket;

/// The most that is written at once, so that one connection cannot hold up the others.
const BATCH_BYTES: usize = 64 * 1024;

/// A message whose echo is awaited.
#[derive(Debug, Clone, Copy)]
struct Awaited {
    sequence: u32,
    sent_us: u64,
}

/// An open connection. Its schedule is not stored: a slot's time follows from its number.
pub struct Connection {
    pub socket: WebSocket<Socket>,
    pub id: u32,
    first_slot: u64,
    next_slot: u64,
    awaited: VecDeque<Awaited>,
    echoed_count: u64,
    pub mismatched_count: u32,
    /// The kernel takes no more: the server does not read.
    pub blocked: bool,
    /// When it last took more again, in µs: what was due before then, the server held up.
    pub unblocked_us: u64,
    /// We have said goodbye.
    pub closing: bool,
}

impl Connection {
    /// A connection that was upgraded at `upgraded_us` and sends from its next slot on.
    pub fn new(socket: WebSocket<Socket>, id: u32, upgraded_us: u64, schedule: &Schedule) -> Self {
        let first_slot = schedule.first_slot(id, upgraded_us);
        Self {
            socket,
            id,
            first_slot,
            next_slot: first_slot,
            awaited: VecDeque::new(),
            echoed_count: 0,
            mismatched_count: 0,
            blocked: false,
            unblocked_us: 0,
            closing: false,
        }
    }

    /// The intended time of the next message, in µs; `None` when there is none before the end.
    pub fn next_us(&self, schedule: &Schedule) -> Option<u64> {
        if schedule.messages.is_some_and(|most| self.next_slot - self.first_slot >= most) {
            return None;
        }
        schedule.intended_us(self.id, self.next_slot)
    }

    /// Whether every message that it was to send has its echo; never, if it may always send more.
    pub fn is_done(&self, schedule: &Schedule) -> bool {
        schedule.messages == Some(self.echoed_count)
    }

    pub fn awaited_count(&self) -> usize {
        self.awaited.len()
    }

    /// Gives every message that is due to the protocol, up to a batch. The caller flushes.
    ///
    /// Calls `late` with how late, in µs, each message is that only this client can have held up.
    ///
    /// # Errors
    /// The connection's own, `WouldBlock` among them.
    pub fn send_due(
        &mut self,
        now_us: u64,
        schedule: &Schedule,
        payload: &Payload,
        mut late: impl FnMut(u64),
    ) -> tungstenite::Result<()> {
        let mut batch_bytes = 0;
        while let Some(intended_us) = self.next_us(schedule) {
            if intended_us > now_us || batch_bytes > BATCH_BYTES {
                break;
            }
            let sequence = (self.next_slot - self.first_slot) as u32;
            let message = payload.message(self.id, sequence);
            batch_bytes += message.len();
            self.next_slot += 1;
            self.awaited.push_back(Awaited { sequence, sent_us: now_us });
            if intended_us >= self.unblocked_us {
                late(now_us - intended_us);
            }
            self.socket.write(message)?;
        }
        Ok(())
    }

    /// The message that `echo` answers, received at `received_us`; `None` when it answers none.
    pub fn settle(
        &mut self,
        echo: &Message,
        received_us: u64,
        payload: &Payload,
        schedule: &Schedule,
    ) -> Option<MessageRow> {
        let index = match self.awaited.front() {
            Some(front) if payload.matches(self.id, front.sequence, echo) => Some(0),
            _ => self.find(echo, payload),
        };
        let Some(awaited) = index.and_then(|index| self.awaited.remove(index)) else {
            self.mismatched_count += 1;
            return None;
        };
        self.echoed_count += 1;
        Some(MessageRow { received_us: Some(received_us), ..self.row(awaited, schedule) })
    }

    /// Takes the messages that got no echo, and those that were due by `until_us` but not sent.
    pub fn take_unanswered(&mut self, until_us: u64, schedule: &Schedule) -> Vec<MessageRow> {
        let awaited = std::mem::take(&mut self.awaited);
        let mut rows: Vec<_> =
            awaited.into_iter().map(|awaited| self.row(awaited, schedule)).collect();
        while let Some(intended_us) = self.next_us(schedule).filter(|&us| us <= until_us) {
            rows.push(MessageRow {
                connection: self.id,
                sequence: (self.next_slot - self.first_slot) as u32,
                intended_us,
                sent_us: None,
                received_us: None,
            });
            self.next_slot += 1;
        }
        rows
    }

    /// An echo out of turn: the server lost or reordered something.
    fn find(&self, echo: &Message, payload: &Payload) -> Option<usize> {
        let sequence = payload.sequence(echo)?;
        let index = self.awaited.binary_search_by_key(&sequence, |known| known.sequence).ok()?;
        payload.matches(self.id, sequence, echo).then_some(index)
    }

    fn row(&self, awaited: Awaited, schedule: &Schedule) -> MessageRow {
        let slot = self.first_slot + u64::from(awaited.sequence);
        MessageRow {
            connection: self.id,
            sequence: awaited.sequence,
            intended_us: schedule.phase_us(self.id) + slot * schedule.interval_us,
            sent_us: Some(awaited.sent_us),
            received_us: None,
        }
    }
}
