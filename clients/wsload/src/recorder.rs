//! Takes rows off the event loop and writes them in a thread of its own.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::files::{MessageFiles, ROW_GROUP_ROWS, write_connections};
use crate::machine;
use crate::record::{ConnectionRow, MessageRow};
use crate::share::Numbers;

/// Rows travel in batches of at most this many.
const BATCH_ROWS: usize = 4096;
/// Batches that may wait to be written: with 48-byte rows some 50 MB.
const QUEUE_BATCHES: usize = 256;
/// Rows that make a file even before its time is over.
const FILE_ROWS: usize = 64 * ROW_GROUP_ROWS;

enum Batch {
    Messages(Vec<MessageRow>),
    Connections(Vec<ConnectionRow>),
}

/// Where and how often records are written.
#[derive(Debug, Clone)]
pub struct Destination {
    pub directory: PathBuf,
    /// How much a killed client can lose, at most.
    pub part: Duration,
    /// Written into every file.
    pub metadata: Vec<(String, String)>,
}

impl Destination {
    /// Makes the directories.
    ///
    /// # Errors
    /// A sentence for the user, when they cannot be made or hold a run already.
    pub fn prepare(&self) -> Result<(), String> {
        let shown = self.directory.display();
        let taken = ["summary.json", "connections.parquet", "messages"];
        if let Some(name) = taken.iter().find(|name| self.directory.join(name).exists()) {
            return Err(format!(
                "{shown} holds a run already ({name}): remove it or name another --output"
            ));
        }
        std::fs::create_dir_all(self.messages())
            .map_err(|error| format!("cannot make the output directory {shown}: {error}"))
    }

    pub fn messages(&self) -> PathBuf {
        self.directory.join("messages")
    }

    pub fn connections(&self) -> PathBuf {
        self.directory.join("connections.parquet")
    }
}

/// The event loop's end: collects rows and hands them over, without waiting if it can.
pub struct Recorder {
    queue: SyncSender<Batch>,
    thread: JoinHandle<Result<(), String>>,
    messages: Vec<MessageRow>,
    connections: Vec<ConnectionRow>,
    /// How often the event loop had to wait for the disk.
    pub waits_count: u64,
}

impl Recorder {
    /// Starts the writing thread for the connections with these numbers.
    pub fn start(destination: Destination, connections: Numbers) -> Self {
        let (queue, batches) = sync_channel(QUEUE_BATCHES);
        let thread = std::thread::Builder::new()
            .name("recorder".into())
            .spawn(move || {
                // The sender's times come first; the queue holds what waits meanwhile.
                machine::run_when_idle();
                write(&destination, &batches, connections)
            })
            .expect("the system can start a thread");
        Self {
            queue,
            thread,
            messages: Vec::with_capacity(BATCH_ROWS),
            connections: Vec::new(),
            waits_count: 0,
        }
    }

    /// Records a message whose fate is known.
    pub fn message(&mut self, row: MessageRow) {
        self.messages.push(row);
        if self.messages.len() == BATCH_ROWS {
            let full = std::mem::replace(&mut self.messages, Vec::with_capacity(BATCH_ROWS));
            self.hand_over(Batch::Messages(full));
        }
    }

    /// Records a connection, or what has become of one that was recorded before.
    pub fn connection(&mut self, row: ConnectionRow) {
        self.connections.push(row);
    }

    /// Hands over what has been collected. Returns false when the writing thread is no more.
    pub fn flush(&mut self) -> bool {
        if !self.messages.is_empty() {
            let rows = std::mem::replace(&mut self.messages, Vec::with_capacity(BATCH_ROWS));
            self.hand_over(Batch::Messages(rows));
        }
        if !self.connections.is_empty() {
            let rows = std::mem::take(&mut self.connections);
            self.hand_over(Batch::Connections(rows));
        }
        !self.thread.is_finished()
    }

    /// Writes what is left and closes the files.
    ///
    /// # Errors
    /// A sentence for the user, when something could not be written.
    pub fn finish(mut self) -> Result<(), String> {
        self.flush();
        drop(self.queue);
        self.thread.join().unwrap_or_else(|_| Err("the recording thread failed".into()))
    }

    fn hand_over(&mut self, batch: Batch) {
        // A thread that is gone is noticed by `flush`, which has the user's sentence made.
        if let Err(TrySendError::Full(batch)) = self.queue.try_send(batch) {
            self.waits_count += 1;
            let _ = self.queue.send(batch);
        }
    }
}

fn write(
    destination: &Destination,
    batches: &Receiver<Batch>,
    numbers: Numbers,
) -> Result<(), String> {
    let mut writing = Writing {
        files: MessageFiles::new(destination.messages(), &destination.metadata),
        rows: Vec::new(),
        file_rows: 0,
        numbers,
        connections: numbers.ids().map(ConnectionRow::new).collect(),
        connections_changed: false,
        destination,
    };
    let failed = |error: io::Error| {
        let directory = destination.directory.display();
        format!("cannot write the records in {directory}: {error}")
    };
    let mut part_ends = Instant::now() + destination.part;
    loop {
        let wait = part_ends.saturating_duration_since(Instant::now());
        let batch = batches.recv_timeout(wait);
        let done = batch.as_ref().is_err_and(|error| *error == RecvTimeoutError::Disconnected);
        let step = batch.map_or(Ok(()), |batch| writing.take(batch));
        step.map_err(failed)?;
        if done || Instant::now() >= part_ends || writing.file_rows >= FILE_ROWS {
            writing.finish_part(done).map_err(failed)?;
            part_ends = Instant::now() + destination.part;
        }
        if done {
            return Ok(());
        }
    }
}

struct Writing<'a> {
    destination: &'a Destination,
    files: MessageFiles,
    rows: Vec<MessageRow>,
    file_rows: usize,
    numbers: Numbers,
    connections: Vec<ConnectionRow>,
    connections_changed: bool,
}

impl Writing<'_> {
    fn take(&mut self, batch: Batch) -> io::Result<()> {
        match batch {
            Batch::Messages(rows) => {
                self.file_rows += rows.len();
                self.rows.extend(rows);
                if self.rows.len() >= ROW_GROUP_ROWS {
                    self.files.append(&self.rows)?;
                    self.rows.clear();
                }
            }
            Batch::Connections(rows) => {
                self.connections_changed = true;
                for row in rows {
                    let index = self.numbers.index(row.connection);
                    self.connections[index] = row;
                }
            }
        }
        Ok(())
    }

    fn finish_part(&mut self, last: bool) -> io::Result<()> {
        self.files.append(&self.rows)?;
        self.rows.clear();
        self.file_rows = 0;
        if last {
            self.files.finish_last()?
        } else {
            self.files.finish()?
        }
        if self.connections_changed || last {
            let path = self.destination.connections();
            write_connections(&path, &self.connections, &self.destination.metadata)?;
            self.connections_changed = false;
        }
        Ok(())
    }
}
