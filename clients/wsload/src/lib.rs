//! An open-loop WebSocket load client that records every connection and every message.
//!
//! The protocol is tungstenite's, the event loop mio's. This crate's own are the schedule, the
//! records, as far as they need Parquet, and the statistics.

pub mod cli;
pub mod client;
pub mod clock;
pub mod connection;
pub mod encoding;
pub mod failure;
pub mod files;
pub mod frames;
pub mod machine;
pub mod pace;
pub mod payload;
pub mod progress;
pub mod protocol;
pub mod record;
pub mod recorder;
pub mod schedule;
pub mod share;
pub mod socket;
pub mod statistics;
pub mod summary;
pub mod table;
pub mod target;
pub mod timer;
