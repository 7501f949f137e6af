//! Why a run could not be made, and the exit code that says so.

use std::fmt;
use std::io;

/// A failure that ends the program; its text is one sentence for the user.
#[derive(Debug)]
pub enum Failure {
    /// The run could not start.
    Setup(String),
    /// The records could not be written.
    Records(String),
    /// No connection was upgraded, so nothing was measured.
    NothingMeasured(String),
}

impl Failure {
    /// A failure of the event queue or the timer.
    pub fn system(error: io::Error) -> Self {
        Self::Setup(format!("the system's event queue failed: {error}"))
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NothingMeasured(_) => 1,
            Self::Setup(_) => 3,
            Self::Records(_) => 4,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        let (Self::Setup(text) | Self::Records(text) | Self::NothingMeasured(text)) = self;
        to.write_str(text)
    }
}
