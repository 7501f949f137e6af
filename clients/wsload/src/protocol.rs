//! The protocol library's settings and errors, as both the client and the null server need them.

use std::io;

use tungstenite::Error;
use tungstenite::error::ProtocolError::ResetWithoutClosingHandshake;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::protocol::frame::coding::CloseCode;

/// Small buffers for each connection: what arrives waits in the one that all share.
pub fn config(size_bytes: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size((size_bytes + 14).clamp(128, 4096))
        .write_buffer_size(128 * 1024)
}

/// A smaller buffer yet, for a client that takes the echoes itself: what else comes is short, or
/// makes room for itself.
pub fn odd_frames_config() -> WebSocketConfig {
    config(0).read_buffer_size(32)
}

/// Whether the kernel had nothing to give, or took nothing.
pub fn would_block(error: &Error) -> bool {
    matches!(error, Error::Io(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// The close code with which RFC 6455, section 7.4.1, answers what the peer did wrong; `None`
/// when it did nothing wrong, or is gone.
pub fn complaint(error: &Error) -> Option<CloseCode> {
    match error {
        Error::Protocol(ResetWithoutClosingHandshake) => None,
        Error::Protocol(_) => Some(CloseCode::Protocol),
        Error::Utf8(_) => Some(CloseCode::Invalid),
        Error::Capacity(_) => Some(CloseCode::Size),
        _ => None,
    }
}
