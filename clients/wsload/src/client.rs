//! The event loop: opens, sends, receives and closes at the times that the schedule gives.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use rand::rngs::ThreadRng;
use tungstenite::handshake::client::{ClientHandshake, Response};
use tungstenite::handshake::{HandshakeError, MidHandshake};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role};
use tungstenite::{Message, WebSocket};

use crate::clock::Clock;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::machine;
use crate::pace::{Pace, Wanted};
use crate::payload::Payload;
use crate::progress::{Progress, Seen};
use crate::protocol;
use crate::record::{ConnectionRow, Outcome};
use crate::recorder::Recorder;
use crate::schedule::{Opening, Schedule};
use crate::share::Numbers;
use crate::socket::{ReadAhead, SharedReadAhead, Socket, connect};
use crate::statistics::Tally;
use crate::target::Target;
use crate::timer::Timer;

const TIMER: Token = Token(usize::MAX);

/// Events taken from the kernel, connections opened and connections written to before the loop
/// looks at its other duties again: together they bound how late it can be with any of them.
const EVENTS_PER_TURN: usize = 256;
const OPENED_PER_TURN: usize = 8;
const WRITTEN_PER_TURN: usize = 256;

const TICK_US: u64 = 100_000;
const CLOSING_US: u64 = 1_000_000;

/// What a run is to do.
#[derive(Debug, Clone)]
pub struct Plan {
    pub target: Target,
    /// Source addresses, used in turn; none leaves the choice to the kernel.
    pub sources: Vec<IpAddr>,
    pub numbers: Numbers,
    pub schedule: Schedule,
    /// How messages are gathered.
    pub pace: Wanted,
    pub payload: Payload,
    pub size_bytes: usize,
    pub handshake_timeout_us: u64,
    /// How long to wait for echoes after the last message.
    pub drain_us: u64,
}

/// What a run was like, beside its tally.
#[derive(Debug, Default, Clone, Copy)]
pub struct Conduct {
    pub interrupted: bool,
    /// How long messages were sent.
    pub sending_us: u64,
    /// The event loop's CPU time in that while.
    pub sending_cpu_us: u64,
    pub process_cpu_us: u64,
    pub resident_before_bytes: u64,
    pub resident_peak_bytes: u64,
    pub recorder_waits_count: u64,
    /// The last pace at which messages were sent.
    pub pace: Pace,
}

type Handshake = MidHandshake<ClientHandshake<Socket>>;
type HandshakeResult =
    Result<(WebSocket<Socket>, Response), HandshakeError<ClientHandshake<Socket>>>;

enum Stage {
    Waiting,
    Connecting(TcpStream),
    Upgrading(Box<Handshake>),
    Open(Box<Connection>),
    Ended,
}

struct Slot {
    stage: Stage,
    row: ConnectionRow,
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Sending,
    Draining { until_us: u64 },
    Closing { until_us: u64 },
}

/// One run.
pub struct Client {
    plan: Plan,
    clock: Clock,
    poll: Poll,
    timer: Timer,
    ahead: SharedReadAhead,
    /// The frames that one connection is about to send.
    outgoing: Vec<u8>,
    random: ThreadRng,
    slots: Vec<Slot>,
    /// When every open connection is to send next: at its next message's intended time, or so much
    /// later as the pace says.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    pace: Pace,
    /// Handshake deadlines, in the order of opening, which is theirs too.
    timeouts: VecDeque<(u64, usize)>,
    next_to_open: usize,
    in_progress_count: usize,
    open_count: usize,
    blocked_count: usize,
    awaited_count: usize,
    phase: Phase,
    tally: Tally,
    conduct: Conduct,
    recorder: Recorder,
}

impl Client {
    /// Prepares a run; nothing is opened yet.
    ///
    /// # Errors
    /// The event queue or the timer cannot be made.
    pub fn new(plan: Plan, clock: Clock, recorder: Recorder) -> io::Result<Self> {
        let poll = Poll::new()?;
        let timer = Timer::new(&poll, TIMER, clock)?;
        let waiting = |id| Slot { stage: Stage::Waiting, row: ConnectionRow::new(id) };
        let slots = plan.numbers.ids().map(waiting).collect();
        Ok(Self {
            plan,
            clock,
            poll,
            timer,
            ahead: ReadAhead::new(clock),
            outgoing: Vec::new(),
            random: rand::rng(),
            slots,
            due: BinaryHeap::new(),
            pace: Pace::AT_ONCE,
            timeouts: VecDeque::new(),
            next_to_open: 0,
            in_progress_count: 0,
            open_count: 0,
            blocked_count: 0,
            awaited_count: 0,
            phase: Phase::Sending,
            tally: Tally::default(),
            conduct: Conduct::default(),
            recorder,
        })
    }

    /// Runs to the end, or until `interrupted` is set, and writes the records.
    ///
    /// # Errors
    /// The records could not be written, or the event queue failed.
    pub fn run(
        mut self,
        interrupted: &AtomicBool,
        progress: &mut Progress,
    ) -> Result<(Tally, Conduct), Failure> {
        let cpu_before_us = machine::process_cpu_us();
        let loop_cpu_before_us = machine::thread_cpu_us();
        self.conduct.resident_before_bytes = machine::resident_bytes();
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        let mut next_tick_us = 0;
        let (mut turn_us, mut more_to_read) = (0, false);
        machine::sleep_to_the_microsecond();
        loop {
            let now_us = self.clock.now_us();
            self.pace = self.pace_now();
            self.open_due(now_us);
            let mut more_to_write = false;
            if self.pace.sends(turn_us, now_us) {
                more_to_write = self.write_due(now_us);
            }
            if !more_to_write {
                turn_us = now_us;
            }
            self.time_out(now_us);
            if interrupted.load(Ordering::Relaxed) && !self.conduct.interrupted {
                self.conduct.interrupted = true;
                self.plan.schedule.duration_us = now_us.min(self.plan.schedule.duration_us);
                self.due.clear();
            }
            if now_us >= next_tick_us {
                next_tick_us = now_us + TICK_US;
                if !self.recorder.flush() {
                    return Err(self.give_up());
                }
                self.watch_memory();
                progress.show(now_us, &self.seen(), &mut self.tally);
            }
            let phase_before = self.phase;
            let phase_ends_us = match self.next_phase(now_us) {
                Some(at_us) => at_us,
                None => break,
            };
            if phase_before == Phase::Sending && self.phase != Phase::Sending {
                self.conduct.sending_us = now_us;
                self.conduct.sending_cpu_us = machine::thread_cpu_us() - loop_cpu_before_us;
            }
            let wake_us = self.next_duty_us().min(phase_ends_us).min(next_tick_us);
            let wait = if more_to_write || more_to_read {
                Some(Duration::ZERO)
            } else if let Some(at_us) = self.pace.wake_us(self.clock.now_us()) {
                self.clock.sleep_until(at_us);
                Some(Duration::ZERO)
            } else if wake_us > self.clock.now_us() {
                self.timer.wake_at(wake_us).map_err(Failure::system)?;
                None
            } else {
                Some(Duration::ZERO)
            };
            match self.poll.poll(&mut events, wait) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(Failure::system(error));
                }
                _ => {}
            }
            more_to_read = events.iter().count() == EVENTS_PER_TURN;
            for event in &events {
                if event.token() != TIMER {
                    self.serve(event.token().0, event.is_read_closed());
                }
            }
            events.clear();
        }
        progress.end();
        self.watch_memory();
        self.conduct.recorder_waits_count = self.recorder.waits_count;
        self.recorder.finish().map_err(Failure::Records)?;
        self.conduct.process_cpu_us = machine::process_cpu_us() - cpu_before_us;
        Ok((self.tally, self.conduct))
    }

    fn give_up(self) -> Failure {
        match self.recorder.finish() {
            Err(message) => Failure::Records(message),
            Ok(()) => Failure::Records("the recording thread ended early".into()),
        }
    }

    fn watch_memory(&mut self) {
        let resident_bytes = machine::resident_bytes();
        self.conduct.resident_peak_bytes = self.conduct.resident_peak_bytes.max(resident_bytes);
    }

    fn seen(&self) -> Seen {
        Seen {
            open_count: self.open_count,
            to_open_count: self.slots.len(),
            ended_count: self.tally.outcomes.values().sum(),
            duration_us: self.plan.schedule.duration_us,
        }
    }

    /// Goes on to the next phase when this one is over. Gives the time at which it ends at the
    /// latest; `None` when the run is over.
    fn next_phase(&mut self, now_us: u64) -> Option<u64> {
        let all_opened = self.next_to_open == self.slots.len();
        let nothing_left = all_opened && self.in_progress_count + self.open_count == 0;
        if let Phase::Sending = self.phase {
            let ends_us = self.plan.schedule.duration_us;
            if !nothing_left && (now_us < ends_us || !self.due.is_empty()) {
                return Some(ends_us.max(now_us + 1));
            }
            self.phase = Phase::Draining { until_us: now_us + self.plan.drain_us };
        }
        if let Phase::Draining { until_us } = self.phase {
            if now_us < until_us && self.awaited_count + self.blocked_count > 0 {
                return Some(until_us);
            }
            self.phase = Phase::Closing { until_us: now_us + CLOSING_US };
            self.say_goodbye();
        }
        match self.phase {
            Phase::Closing { until_us } if now_us < until_us && self.open_count > 0 => {
                Some(until_us)
            }
            _ => {
                self.end_all();
                None
            }
        }
    }

    /// Connections in the making are served at once: when they were connected is recorded.
    fn pace_now(&mut self) -> Pace {
        if self.phase != Phase::Sending || self.in_progress_count > 0 {
            return Pace::AT_ONCE;
        }
        let pace = Pace::of(self.open_count, self.plan.schedule.interval_us, self.plan.pace);
        if self.open_count > 0 {
            self.conduct.pace = pace;
        }
        pace
    }

    fn next_duty_us(&self) -> u64 {
        let message_us = self.due.peek().map(|&Reverse((at_us, _))| at_us);
        let timeout_us = self.timeouts.front().map(|&(at_us, _)| at_us);
        let opening_us =
            self.may_open().then(|| self.intended_opening_us(self.next_to_open).unwrap_or(0));
        [message_us, timeout_us, opening_us].into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    fn intended_opening_us(&self, index: usize) -> Option<u64> {
        self.plan.schedule.open_us(self.plan.numbers.share.number(index))
    }

    fn may_open(&self) -> bool {
        let room = match self.plan.schedule.opening {
            Opening::Rate { .. } => true,
            Opening::AsFastAsAllowed { in_progress } => self.in_progress_count < in_progress,
        };
        room && self.phase == Phase::Sending
            && self.next_to_open < self.slots.len()
            && self.clock.now_us() < self.plan.schedule.duration_us
    }

    fn open_due(&mut self, now_us: u64) {
        for _ in 0..OPENED_PER_TURN {
            if !self.may_open() {
                break;
            }
            let index = self.next_to_open;
            let intended_us = match self.intended_opening_us(index) {
                Some(at_us) if at_us > now_us => break,
                Some(at_us) => at_us,
                None => self.clock.now_us(),
            };
            self.next_to_open += 1;
            self.open(index, intended_us);
        }
    }

    fn open(&mut self, index: usize, intended_us: u64) {
        let started_us = self.clock.now_us();
        if let Opening::Rate { .. } = self.plan.schedule.opening {
            self.tally.lag.record(started_us - intended_us);
        }
        self.tally.opened_count += 1;
        self.tally.first_started_us.get_or_insert(started_us);
        let source = (!self.plan.sources.is_empty())
            .then(|| self.plan.sources[index % self.plan.sources.len()]);
        let slot = &mut self.slots[index];
        slot.row.source = source;
        slot.row.intended_us = Some(intended_us);
        slot.row.started_us = Some(started_us);
        let connecting = connect(self.plan.target.address, source).and_then(|mut tcp| {
            let both = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(&mut tcp, Token(index), both)?;
            Ok(tcp)
        });
        self.in_progress_count += 1;
        let opening_count = self.in_progress_count as u64;
        self.tally.most_opening_count = self.tally.most_opening_count.max(opening_count);
        match connecting {
            Ok(tcp) => {
                slot.stage = Stage::Connecting(tcp);
                self.timeouts.push_back((started_us + self.plan.handshake_timeout_us, index));
            }
            Err(error) => self.fail(index, &error.into()),
        }
    }

    fn time_out(&mut self, now_us: u64) {
        while let Some(&(_, index)) = self.timeouts.front().filter(|&&(at_us, _)| at_us <= now_us) {
            self.timeouts.pop_front();
            match self.slots[index].stage {
                Stage::Connecting(_) => self.end(index, Outcome::ConnectTimeout),
                Stage::Upgrading(_) => self.end(index, Outcome::HandshakeTimeout),
                _ => {}
            }
        }
    }

    /// Sends what is due on the next connections. Whether there are more of them.
    fn write_due(&mut self, now_us: u64) -> bool {
        for _ in 0..WRITTEN_PER_TURN {
            match self.due.peek() {
                Some(&Reverse((at_us, index))) if at_us <= now_us => {
                    self.due.pop();
                    self.write(index, at_us);
                }
                _ => return false,
            }
        }
        true
    }

    /// Sends what is due on one connection, which the pace has to be sent from `at_us` on.
    fn write(&mut self, index: usize, at_us: u64) {
        let Stage::Open(connection) = &mut self.slots[index].stage else { return };
        if connection.closing {
            return;
        }
        // What is still on its way goes first: frames do not mix.
        let mut written = connection.socket.flush();
        let awaited_before = connection.awaited_count();
        if written.is_ok() {
            let Plan { schedule, payload, .. } = &self.plan;
            let Tally { lag, .. } = &mut self.tally;
            let (now_us, frames) = (self.clock.now_us(), &mut self.outgoing);
            let pace = self.pace;
            frames.clear();
            connection.write_due(now_us, schedule, payload, &mut self.random, frames, |due_us| {
                lag.record(now_us.saturating_sub(pace.turn_us(due_us.max(at_us))));
            });
            written = connection.socket.get_mut().send(frames).map_err(Into::into);
        }
        let sent_count = connection.awaited_count() - awaited_before;
        self.awaited_count += sent_count;
        self.tally.sent_count += sent_count as u64;
        match written {
            Ok(()) => {
                if let Some(next_us) = connection.next_us(&self.plan.schedule) {
                    self.due.push(Reverse((self.pace.due_us(next_us), index)));
                }
            }
            Err(error) if protocol::would_block(&error) => {
                connection.blocked = true;
                self.blocked_count += 1;
            }
            Err(error) => {
                // The server's goodbye may lie in the socket still, and says more than the error.
                connection.socket.get_mut().readable(true);
                self.ahead.borrow_mut().clear();
                self.read(index);
                self.fail(index, &error);
            }
        }
    }

    fn serve(&mut self, index: usize, ended: bool) {
        self.ahead.borrow_mut().clear();
        match &mut self.slots[index].stage {
            Stage::Connecting(_) => self.connected(index),
            Stage::Upgrading(_) => {
                let stage = std::mem::replace(&mut self.slots[index].stage, Stage::Ended);
                if let Stage::Upgrading(mut handshake) = stage {
                    handshake.get_mut().get_mut().readable(ended);
                    self.upgrade(index, handshake.handshake());
                }
            }
            Stage::Open(connection) => {
                connection.socket.get_mut().readable(ended);
                self.read(index);
                self.unblock(index);
            }
            Stage::Waiting | Stage::Ended => {}
        }
    }

    fn connected(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Stage::Connecting(tcp) = &slot.stage else { return };
        match tcp.take_error() {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => return self.fail(index, &error.into()),
        }
        if tcp.peer_addr().is_err() {
            return;
        }
        let now_us = self.clock.now_us();
        slot.row.connected_us = Some(now_us);
        self.tally.connect.record(now_us - slot.row.intended_us.unwrap_or(now_us));
        let stage = std::mem::replace(&mut slot.stage, Stage::Ended);
        let Stage::Connecting(tcp) = stage else { return };
        let socket = Socket::new(tcp, self.ahead.clone());
        let config = protocol::config(self.plan.size_bytes);
        let handshake = ClientHandshake::start(socket, self.plan.target.request(), Some(config));
        match handshake {
            Ok(handshake) => self.upgrade(index, handshake.handshake()),
            Err(error) => self.fail(index, &error),
        }
    }

    fn upgrade(&mut self, index: usize, result: HandshakeResult) {
        let slot = &mut self.slots[index];
        match result {
            Ok((socket, _)) => {
                let now_us = self.clock.now_us();
                slot.row.upgraded_us = Some(now_us);
                slot.row.outcome = Outcome::Open;
                self.recorder.connection(slot.row.clone());
                self.tally.upgraded_count += 1;
                self.tally.last_upgraded_us = Some(now_us);
                self.tally.handshake.record(now_us - slot.row.intended_us.unwrap_or(now_us));
                self.in_progress_count -= 1;
                self.open_count += 1;
                let id = slot.row.connection;
                let config = protocol::odd_frames_config();
                let mut socket = Socket::into_websocket(socket, Role::Client, config);
                socket.get_mut().take_over();
                let connection = Connection::new(socket, id, now_us, &self.plan.schedule);
                if let Some(next_us) = connection.next_us(&self.plan.schedule) {
                    self.due.push(Reverse((next_us, index)));
                }
                slot.stage = Stage::Open(Box::new(connection));
                self.read(index);
            }
            Err(HandshakeError::Interrupted(handshake)) => {
                slot.stage = Stage::Upgrading(Box::new(handshake));
            }
            Err(HandshakeError::Failure(error)) => self.fail(index, &error),
        }
    }

    /// Takes everything that has arrived on one connection.
    fn read(&mut self, index: usize) {
        while self.take_echoes(index) {
            let Stage::Open(connection) = &mut self.slots[index].stage else { return };
            match connection.socket.read() {
                Ok(echo @ (Message::Binary(_) | Message::Text(_))) => {
                    let received_us = self.ahead.borrow().read_us;
                    let Plan { payload, schedule, .. } = &self.plan;
                    match connection.settle(&echo, received_us, payload, schedule) {
                        Some(row) => {
                            let done = connection.is_done(schedule) && !connection.closing;
                            self.awaited_count -= 1;
                            self.tally.echo(&row);
                            self.recorder.message(row);
                            if done {
                                self.say_goodbye_to(index);
                            }
                        }
                        None => self.tally.mismatch(&echo),
                    }
                }
                Ok(Message::Ping(_)) => {
                    // Its answer waits in the library. If it cannot go now, `unblock` goes on.
                    let _ = connection.socket.flush();
                }
                Ok(Message::Close(frame)) if !connection.closing => {
                    // The reply is all that can still be done for this connection.
                    let _ = connection.socket.flush();
                    let code = frame.map_or(CloseCode::Status, |frame| frame.code);
                    self.slots[index].row.close_code = Some(code.into());
                    return self.end(index, Outcome::ClosedByServer);
                }
                Ok(_) => {}
                Err(error) if protocol::would_block(&error) => {}
                Err(error) => return self.fail(index, &error),
            }
        }
    }

    /// Takes the echoes that have arrived on one connection. True when something came that is none:
    /// the protocol library may read it now. False when nothing is left.
    fn take_echoes(&mut self, index: usize) -> bool {
        loop {
            let Stage::Open(connection) = &mut self.slots[index].stage else { return false };
            if self.ahead.borrow().bytes().is_empty() && !connection.socket.get_mut().receive() {
                return false;
            }
            let mut ahead = self.ahead.borrow_mut();
            if ahead.bytes().is_empty() {
                return true;
            }
            let Plan { payload, schedule, .. } = &self.plan;
            let received_us = ahead.read_us;
            while let Some((row, length_bytes)) =
                connection.settle_next(ahead.bytes(), received_us, payload, schedule)
            {
                ahead.take(length_bytes);
                self.awaited_count -= 1;
                self.tally.echo(&row);
                self.recorder.message(row);
            }
            let passed_bytes = connection.pass_on(ahead.bytes());
            connection.socket.get_mut().grant(passed_bytes);
            let done = connection.is_done(schedule) && !connection.closing;
            drop(ahead);
            if done {
                self.say_goodbye_to(index);
            }
            if passed_bytes > 0 {
                return true;
            }
        }
    }

    /// Goes on where the kernel took no more.
    fn unblock(&mut self, index: usize) {
        let Stage::Open(connection) = &mut self.slots[index].stage else { return };
        match connection.socket.flush() {
            Ok(()) if connection.blocked => {
                connection.blocked = false;
                connection.unblocked_us = self.clock.now_us();
                self.blocked_count -= 1;
                self.write(index, 0);
            }
            Ok(()) => {}
            Err(error) if protocol::would_block(&error) => {}
            Err(error) => self.fail(index, &error),
        }
    }

    fn say_goodbye(&mut self) {
        for index in 0..self.slots.len() {
            self.say_goodbye_to(index);
        }
    }

    fn say_goodbye_to(&mut self, index: usize) {
        let Stage::Open(connection) = &mut self.slots[index].stage else { return };
        connection.closing = true;
        let frame = CloseFrame { code: CloseCode::Normal, reason: "".into() };
        match connection.socket.close(Some(frame)) {
            Err(error) if !protocol::would_block(&error) => self.fail(index, &error),
            _ => {}
        }
    }

    fn end_all(&mut self) {
        for index in 0..self.slots.len() {
            match self.slots[index].stage {
                Stage::Waiting => self.end(index, Outcome::NotOpened),
                Stage::Connecting(_) | Stage::Upgrading(_) => self.end(index, Outcome::Unfinished),
                Stage::Open(_) => self.end(index, Outcome::Completed),
                Stage::Ended => {}
            }
        }
    }

    /// Ends a connection for an error, in the error's class.
    fn fail(&mut self, index: usize, error: &tungstenite::Error) {
        let slot = &mut self.slots[index];
        if slot.row.closed_us.is_some() {
            return;
        }
        if let Stage::Open(connection) = &mut slot.stage {
            if connection.closing {
                return self.end(index, Outcome::Completed);
            }
            if let Some(code) = protocol::complaint(error) {
                let _ = connection.socket.close(Some(CloseFrame { code, reason: "".into() }));
            }
        }
        let outcome = outcome_of(error, slot.row.upgraded_us.is_some());
        slot.row.error = Some(error.to_string().into());
        if let tungstenite::Error::Http(response) = error {
            slot.row.http_status = Some(response.status().as_u16());
        }
        if outcome == Outcome::ClosedByServer {
            slot.row.close_code = Some(CloseCode::Abnormal.into());
        }
        self.end(index, outcome);
    }

    fn end(&mut self, index: usize, outcome: Outcome) {
        let now_us = self.clock.now_us();
        let slot = &mut self.slots[index];
        let stage = std::mem::replace(&mut slot.stage, Stage::Ended);
        if slot.row.started_us.is_some() {
            slot.row.closed_us = Some(now_us);
        }
        slot.row.outcome = outcome;
        if let Stage::Open(mut connection) = stage {
            self.open_count -= 1;
            self.blocked_count -= usize::from(connection.blocked);
            self.awaited_count -= connection.awaited_count();
            slot.row.mismatched_count = connection.mismatched_count;
            let rows = connection.take_unanswered(now_us, &self.plan.schedule);
            for row in rows {
                match row.sent_us {
                    Some(_) => self.tally.lost_count += 1,
                    None => self.tally.unsent_count += 1,
                }
                self.recorder.message(row);
            }
        } else if slot.row.started_us.is_some() {
            self.in_progress_count -= 1;
        }
        *self.tally.outcomes.entry(outcome).or_default() += 1;
        self.recorder.connection(slot.row.clone());
    }
}

fn outcome_of(error: &tungstenite::Error, upgraded: bool) -> Outcome {
    use tungstenite::Error::{Capacity, Io, Protocol, Utf8};
    use tungstenite::error::ProtocolError::{HandshakeIncomplete, ResetWithoutClosingHandshake};
    match error {
        Io(error) => match error.raw_os_error() {
            Some(libc::ECONNREFUSED) => Outcome::Refused,
            Some(libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED) => Outcome::Reset,
            Some(libc::ETIMEDOUT) => Outcome::ConnectTimeout,
            Some(libc::EHOSTUNREACH | libc::ENETUNREACH) => Outcome::Unreachable,
            Some(libc::EMFILE | libc::ENFILE) => Outcome::OutOfDescriptors,
            Some(libc::EADDRNOTAVAIL | libc::EADDRINUSE) => Outcome::OutOfPorts,
            _ => Outcome::OtherError,
        },
        Protocol(HandshakeIncomplete | ResetWithoutClosingHandshake) => Outcome::ClosedByServer,
        Protocol(_) | Utf8(_) | Capacity(_) if upgraded => Outcome::ProtocolError,
        _ if upgraded => Outcome::OtherError,
        _ => Outcome::HandshakeRejected,
    }
}
