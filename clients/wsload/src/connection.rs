//! One upgraded connection: what it has sent, what it awaits, what came back.

use std::collections::VecDeque;

use rand::Rng;
use tungstenite::{Message, WebSocket};

use crate::frames::Place;
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
    /// How far the server's frames have been taken or handed to the protocol library.
    place: Place,
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
            place: Place::default(),
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

    /// Appends the frame of every message that is due, up to a batch, to be sent with one call.
    ///
    /// Calls `own` with the intended time of each message that only this client can have held up.
    pub fn write_due(
        &mut self,
        now_us: u64,
        schedule: &Schedule,
        payload: &Payload,
        random: &mut impl Rng,
        to: &mut Vec<u8>,
        mut own: impl FnMut(u64),
    ) {
        while let Some(intended_us) = self.next_us(schedule) {
            if intended_us > now_us || to.len() > BATCH_BYTES {
                break;
            }
            let sequence = (self.next_slot - self.first_slot) as u32;
            payload.write_frame(self.id, sequence, random.next_u32().to_ne_bytes(), to);
            self.next_slot += 1;
            self.awaited.push_back(Awaited { sequence, sent_us: now_us });
            if intended_us >= self.unblocked_us {
                own(intended_us);
            }
        }
    }

    /// The message whose echo `bytes` begin with, if they do, received at `received_us`, and how
    /// many bytes its frame has.
    pub fn settle_next(
        &mut self,
        bytes: &[u8],
        received_us: u64,
        payload: &Payload,
        schedule: &Schedule,
    ) -> Option<(MessageRow, usize)> {
        if !self.place.is_between_messages() {
            return None;
        }
        let row = self.take(payload.in_frame(bytes)?, received_us, payload, schedule)?;
        Some((row, payload.echo_bytes()))
    }

    /// How many of `bytes`, which begin with no echo in one piece, belong to one frame: they are for
    /// the protocol library.
    pub fn pass_on(&mut self, bytes: &[u8]) -> usize {
        self.place.advance(bytes)
    }

    /// The message that `echo` answers, received at `received_us`; `None` when it answers none.
    pub fn settle(
        &mut self,
        echo: &Message,
        received_us: u64,
        payload: &Payload,
        schedule: &Schedule,
    ) -> Option<MessageRow> {
        let data = payload.in_message(echo);
        let row = data.and_then(|data| self.take(data, received_us, payload, schedule));
        self.mismatched_count += u32::from(row.is_none());
        row
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

    /// Takes the message that carried `data` from those awaited.
    fn take(
        &mut self,
        data: &[u8],
        received_us: u64,
        payload: &Payload,
        schedule: &Schedule,
    ) -> Option<MessageRow> {
        let next = self.awaited.front()?;
        let index = if payload.equals(self.id, next.sequence, data) {
            0
        } else {
            self.find(data, payload)?
        };
        let awaited = self.awaited.remove(index)?;
        self.echoed_count += 1;
        Some(MessageRow { received_us: Some(received_us), ..self.row(awaited, schedule) })
    }

    /// Where among those awaited the message is whose echo comes out of turn: the server lost or
    /// reordered something.
    fn find(&self, data: &[u8], payload: &Payload) -> Option<usize> {
        let sequence = payload.sequence(data)?;
        let index = self.awaited.binary_search_by_key(&sequence, |known| known.sequence).ok()?;
        payload.equals(self.id, sequence, data).then_some(index)
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
