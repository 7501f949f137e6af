//! All tests of the programs, in one: each of its own would compile the reading of records again.

mod coalescing;
mod common;
mod conformance;
mod errors;
mod null_server;
mod records;
mod timing;
