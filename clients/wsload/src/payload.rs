//! What a message carries, so that its echo proves which message it is.
//!
//! A payload begins with the message's sequence number and its connection's number, and goes on
//! with a fixed pattern. A payload shorter than both numbers carries as much of them as fits: it
//! is still compared byte for byte, but no longer tells two messages apart by itself.

use tungstenite::Message;

use crate::frames::frame_head;

/// Makes and recognises the payloads of one run, and the frames that carry them.
#[derive(Debug, Clone)]
pub struct Payload {
    pattern: Vec<u8>,
    text: bool,
    /// How a message's frame begins on its way to the server, up to the mask.
    sent_head: Vec<u8>,
    /// How an echo's frame begins, up to the payload.
    echo_head: Vec<u8>,
}

const MASK_BYTES: usize = 4;
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
        let [sent_head, echo_head] =
            [true, false].map(|masked| frame_head(text, masked, size_bytes));
        Self { pattern, text, sent_head, echo_head }
    }

    /// How long the frame of one message is on its way to the server.
    pub fn frame_bytes(&self) -> usize {
        self.sent_head.len() + MASK_BYTES + self.pattern.len()
    }

    /// Appends the frame of the message number `sequence` of connection `connection`.
    ///
    /// RFC 6455, section 5.3: each frame has a mask of its own that nobody can foresee.
    pub fn write_frame(
        &self,
        connection: u32,
        sequence: u32,
        mask: [u8; MASK_BYTES],
        to: &mut Vec<u8>,
    ) {
        to.extend_from_slice(&self.sent_head);
        to.extend_from_slice(&mask);
        let start = to.len();
        to.extend_from_slice(&self.pattern);
        let payload = &mut to[start..];
        let mut header = [0; TEXT_HEADER_BYTES];
        let header = self.header(connection, sequence, &mut header);
        let fits = header.len().min(payload.len());
        payload[..fits].copy_from_slice(&header[..fits]);
        apply(mask, payload);
    }

    /// How long the frame of one echo is.
    pub fn echo_bytes(&self) -> usize {
        self.echo_head.len() + self.pattern.len()
    }

    /// What the first message in `bytes` carries, if its frame is there in one piece and of the kind
    /// and length of an echo. `None` says no more than that it takes a closer look.
    pub fn in_frame<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        bytes.strip_prefix(self.echo_head.as_slice())?.get(..self.pattern.len())
    }

    /// What a message carries; `None` when it is of the other kind than those sent.
    pub fn in_message<'a>(&self, message: &'a Message) -> Option<&'a [u8]> {
        match (message, self.text) {
            (Message::Text(text), true) => Some(text.as_bytes()),
            (Message::Binary(bytes), false) => Some(bytes),
            _ => None,
        }
    }

    /// Whether `data` is, byte for byte, what message `sequence` carried.
    pub fn equals(&self, connection: u32, sequence: u32, data: &[u8]) -> bool {
        let mut header = [0; TEXT_HEADER_BYTES];
        let header = self.header(connection, sequence, &mut header);
        let fits = header.len().min(self.pattern.len());
        data.len() == self.pattern.len()
            && data[..fits] == header[..fits]
            && data[fits..] == self.pattern[fits..]
    }

    /// The sequence number that `data` claims; `None` when it is too short to carry one.
    pub fn sequence(&self, data: &[u8]) -> Option<u32> {
        if self.text {
            let digits = std::str::from_utf8(data.get(..TEXT_HEADER_BYTES / 2)?).ok()?;
            u32::from_str_radix(digits, 16).ok()
        } else {
            Some(u32::from_le_bytes(data.get(..BINARY_HEADER_BYTES / 2)?.try_into().ok()?))
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

fn apply(mask: [u8; MASK_BYTES], payload: &mut [u8]) {
    let key = u32::from_ne_bytes(mask);
    let mut words = payload.chunks_exact_mut(MASK_BYTES);
    for word in words.by_ref() {
        let plain = u32::from_ne_bytes((&*word).try_into().expect("a word has four bytes"));
        word.copy_from_slice(&(plain ^ key).to_ne_bytes());
    }
    for (byte, key) in words.into_remainder().iter_mut().zip(mask) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tungstenite::WebSocket;
    use tungstenite::protocol::Role;

    use super::*;

    const MASK: [u8; 4] = [0x9c, 0, 0xff, 0x31];

    /// The message that a server sees, which takes off the mask.
    fn message(payload: &Payload, connection: u32, sequence: u32) -> Message {
        let mut frame = Vec::new();
        payload.write_frame(connection, sequence, MASK, &mut frame);
        assert_eq!(frame.len(), payload.frame_bytes());
        WebSocket::from_raw_socket(Cursor::new(frame), Role::Server, None).read().unwrap()
    }

    /// The frame that a server makes of a message.
    fn echo(message: Message) -> Vec<u8> {
        let mut server = WebSocket::from_raw_socket(Cursor::new(Vec::new()), Role::Server, None);
        server.send(message).unwrap();
        server.get_ref().get_ref().clone()
    }

    /// Whether a message is the echo of the one with these numbers.
    fn matches(payload: &Payload, connection: u32, sequence: u32, echo: &Message) -> bool {
        let data = payload.in_message(echo);
        data.is_some_and(|data| payload.equals(connection, sequence, data))
    }

    #[test]
    fn only_the_same_message_matches() {
        for text in [false, true] {
            let payload = Payload::new(33, text);
            let message = message(&payload, 70_000, 9_000_000);
            assert_eq!(message.len(), 33);
            assert!(matches(&payload, 70_000, 9_000_000, &message));
            let data = payload.in_message(&message).unwrap();
            assert_eq!(payload.sequence(data), Some(9_000_000));
            assert!(!matches(&payload, 70_000, 9_000_001, &message));
            assert!(!matches(&payload, 70_001, 9_000_000, &message));
            assert!(!matches(&Payload::new(33, !text), 70_000, 9_000_000, &message));
            assert!(!matches(&Payload::new(34, text), 70_000, 9_000_000, &message));
        }
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        for text in [false, true] {
            for size_bytes in [1, 7, 8, 9, 33, 300] {
                let payload = Payload::new(size_bytes, text);
                let good = message(&payload, 3, 5).into_data().to_vec();
                for index in 0..size_bytes {
                    let mut bad = good.clone();
                    bad[index] ^= 1;
                    assert!(!payload.equals(3, 5, &bad), "byte {index} of {size_bytes}");
                }
            }
        }
    }

    #[test]
    fn an_echo_is_taken_from_a_frame_that_is_whole_and_no_other() {
        for text in [false, true] {
            for size_bytes in [0, 1, 7, 33, 125, 126, 300, 65_536] {
                let payload = Payload::new(size_bytes, text);
                let good = echo(message(&payload, 3, 5));
                let head_bytes = good.len() - size_bytes;
                let found = |bytes: &[u8]| {
                    payload.in_frame(bytes).is_some_and(|data| payload.equals(3, 5, data))
                };
                assert_eq!(payload.echo_bytes(), good.len());
                assert!(found(&good));
                assert!(found(&[&good[..], b"more"].concat()));
                for index in (0..good.len()).filter(|index| *index < 400 || index % 1_000 == 0) {
                    assert!(!found(&good[..index]), "cut at {index} of {size_bytes}");
                    let mut bad = good.clone();
                    bad[index] ^= 1;
                    assert!(!found(&bad), "byte {index} of {size_bytes}");
                    let head = index < head_bytes;
                    assert_eq!(payload.in_frame(&bad).is_none(), head, "byte {index}");
                }
            }
        }
    }

    #[test]
    fn short_payloads_carry_no_sequence() {
        let payload = Payload::new(3, false);
        let sent = message(&payload, 1, 2);
        assert!(matches(&payload, 1, 2, &sent));
        assert_eq!(payload.sequence(payload.in_message(&sent).unwrap()), None);
        let empty = Payload::new(0, true);
        assert!(matches(&empty, 1, 2, &message(&empty, 1, 2)));
    }
}
