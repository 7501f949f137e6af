//! What a run records: one row for every message and one for every connection.

/// Why a connection is no more, or why it never was. The names are those of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Open; only in the records of a client that was killed.
    Open,
    /// Held until the end of the run.
    Completed,
    /// No TCP connection within the handshake timeout, or the kernel gave up.
    ConnectTimeout,
    /// Connected, but not upgraded within the handshake timeout.
    HandshakeTimeout,
    /// The server's kernel refused it: nothing listens there.
    Refused,
    /// The server's kernel reset it.
    Reset,
    /// No route to the server.
    Unreachable,
    /// The server answered, but not with a valid upgrade.
    HandshakeRejected,
    /// This client, or its machine, had no descriptor left.
    OutOfDescriptors,
    /// The source address had no free port left.
    OutOfPorts,
    /// The server closed it: `close_code` says how (1005 without a code, 1006 without a close).
    ClosedByServer,
    /// The server broke the WebSocket protocol.
    ProtocolError,
    /// Anything else that the system reported.
    OtherError,
    /// Still being opened when the run ended.
    Unfinished,
    /// The run ended before its turn came.
    NotOpened,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Completed => "completed",
            Self::ConnectTimeout => "connect_timeout",
            Self::HandshakeTimeout => "handshake_timeout",
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::Unreachable => "unreachable",
            Self::HandshakeRejected => "handshake_rejected",
            Self::OutOfDescriptors => "out_of_descriptors",
            Self::OutOfPorts => "out_of_ports",
            Self::ClosedByServer => "closed_by_server",
            Self::ProtocolError => "protocol_error",
            Self::OtherError => "other_error",
            Self::Unfinished => "unfinished",
            Self::NotOpened => "not_opened",
        }
    }

    /// Whether the client or its machine failed, and not the server.
    pub fn is_the_clients_fault(self) -> bool {
        matches!(self, Self::OutOfDescriptors | Self::OutOfPorts)
    }
}

/// One message that was due. Times are µs since the run's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageRow {
    pub connection: u32,
    pub sequence: u32,
    pub intended_us: u64,
    /// `None`: never sent, because the connection took no more or ended first.
    pub sent_us: Option<u64>,
    /// `None`: no echo came back.
    pub received_us: Option<u64>,
}

/// One connection. Times are µs since the run's start; a step that was not reached has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionRow {
    pub connection: u32,
    pub source: Option<std::net::IpAddr>,
    pub intended_us: Option<u64>,
    pub started_us: Option<u64>,
    pub connected_us: Option<u64>,
    pub upgraded_us: Option<u64>,
    pub closed_us: Option<u64>,
    pub outcome: Outcome,
    pub http_status: Option<u16>,
    pub close_code: Option<u16>,
    /// Messages received that were no echo of any message still awaited.
    pub mismatched_count: u32,
    /// The system's or the protocol's own words.
    pub error: Option<Box<str>>,
}

impl ConnectionRow {
    /// The row of a connection that has not been opened yet.
    pub fn new(connection: u32) -> Self {
        Self {
            connection,
            source: None,
            intended_us: None,
            started_us: None,
            connected_us: None,
            upgraded_us: None,
            closed_us: None,
            outcome: Outcome::NotOpened,
            http_status: None,
            close_code: None,
            mismatched_count: 0,
            error: None,
        }
    }
}
