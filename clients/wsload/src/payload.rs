//! What a message carries, so that its echo proves which message it is.
//!
//! A payload begins with the message's sequence number and its connection's number, and goes on
//! with a fixed pattern. A payload shorter than both numbers carries as much of them as fits: it
//! is still compared byte for byte, but no longer tells two messages apart by itself.

use tungstenite::{Bytes, Message, Utf8Bytes};

/// Makes and recognises the payloads of one run.
#[derive(Debug, Clone)]
pub struct Payload {
    pattern: Vec<u8>,
    text: bool,
}

const BINARY_HEADER_BYTES: usize = 8;
const TEXT_HEADER_BYTES: usize = 16;

impl Payload {
    /// Payloads of `size_bytes`, sent in text frames (ASCII) or in binary ones (every byte value).
    pub fn new(size_bytes: usize, text: bool) -> Self {
        // Neither pattern repeats with a period that a buffer size would hide.
        let pattern = (0..size_bytes)
            .map(|index| {
                let byte = (index * 167 + index / 251 * 13) as u8;
                if text { b'a' + byte % 26 } else { byte }
            })
            .collect();
        Self { pattern, text }
    }

    /// The message number `sequence` of connection `connection`.
    pub fn message(&self, connection: u32, sequence: u32) -> Message {
        let mut payload = self.pattern.clone();
        let mut header = [0; TEXT_HEADER_BYTES];
        let header = self.header(connection, sequence, &mut header);
        let fits = header.len().min(payload.len());
        payload[..fits].copy_from_slice(&header[..fits]);
        if self.text {
            let text = String::from_utf8(payload).expect("the pattern and the header are ASCII");
            Message::Text(Utf8Bytes::from(text))
        } else {
            Message::Binary(Bytes::from(payload))
        }
    }

    /// Whether `echo` is exactly what [`Payload::message`] gave: same type, same bytes.
    pub fn matches(&self, connection: u32, sequence: u32, echo: &Message) -> bool {
        let Some(data) = self.data(echo) else { return false };
        let mut header = [0; TEXT_HEADER_BYTES];
        let header = self.header(connection, sequence, &mut header);
        let fits = header.len().min(self.pattern.len());
        data.len() == self.pattern.len()
            && data[..fits] == header[..fits]
            && data[fits..] == self.pattern[fits..]
    }

    /// The sequence number that `echo` claims; `None` when it is too short to carry one.
    pub fn sequence(&self, echo: &Message) -> Option<u32> {
        let data = self.data(echo)?;
        if self.text {
            let digits = std::str::from_utf8(data.get(..TEXT_HEADER_BYTES / 2)?).ok()?;
            u32::from_str_radix(digits, 16).ok()
        } else {
            Some(u32::from_le_bytes(data.get(..BINARY_HEADER_BYTES / 2)?.try_into().ok()?))
        }
    }

    fn data<'a>(&self, echo: &'a Message) -> Option<&'a [u8]> {
        match (echo, self.text) {
            (Message::Text(text), true) => Some(text.as_bytes()),
            (Message::Binary(bytes), false) => Some(bytes),
            _ => None,
        }
    }

    fn header<'a>(
        &self,
        connection: u32,
        sequence: u32,
        buffer: &'a mut [u8; TEXT_HEADER_BYTES],
    ) -> &'a [u8] {
        if self.text {
            for (half, number) in buffer.chunks_exact_mut(8).zip([sequence, connection]) {
                for (place, digit) in half.iter_mut().rev().enumerate() {
                    *digit = b"0123456789abcdef"[(number >> (4 * place) & 15) as usize];
                }
            }
            buffer
        } else {
            buffer[..4].copy_from_slice(&sequence.to_le_bytes());
            buffer[4..8].copy_from_slice(&connection.to_le_bytes());
            &buffer[..BINARY_HEADER_BYTES]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_message_matches() {
        for text in [false, true] {
            let payload = Payload::new(33, text);
            let message = payload.message(70_000, 9_000_000);
            assert_eq!(message.len(), 33);
            assert!(payload.matches(70_000, 9_000_000, &message));
            assert_eq!(payload.sequence(&message), Some(9_000_000));
            assert!(!payload.matches(70_000, 9_000_001, &message));
            assert!(!payload.matches(70_001, 9_000_000, &message));
            assert!(!Payload::new(33, !text).matches(70_000, 9_000_000, &message));
            assert!(!Payload::new(34, text).matches(70_000, 9_000_000, &message));
        }
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        for text in [false, true] {
            for size_bytes in [1, 7, 8, 9, 33, 300] {
                let payload = Payload::new(size_bytes, text);
                let good = payload.message(3, 5).into_data().to_vec();
                for index in 0..size_bytes {
                    let mut bad = good.clone();
                    bad[index] ^= 1;
                    let bad = if text {
                        Message::Text(String::from_utf8(bad).unwrap().into())
                    } else {
                        Message::Binary(bad.into())
                    };
                    assert!(!payload.matches(3, 5, &bad), "byte {index} of {size_bytes}");
                }
            }
        }
    }

    #[test]
    fn short_payloads_carry_no_sequence() {
        let payload = Payload::new(3, false);
        let message = payload.message(1, 2);
        assert!(payload.matches(1, 2, &message));
        assert_eq!(payload.sequence(&message), None);
        let empty = Payload::new(0, true);
        assert!(empty.matches(1, 2, &empty.message(1, 2)));
    }
}
