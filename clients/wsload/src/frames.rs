//! Frames of RFC 6455, section 5.2: how one begins, and where in a stream of them it ends.
//!
//! An echo that is one whole frame is recognised in the bytes as they were read. All else goes, frame
//! by frame, to the protocol library, which knows what is allowed.

const FIN: u8 = 0x80;
const MASKED: u8 = 0x80;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
/// Opcodes from here on are control frames, which may come between a message's fragments.
const CONTROL: u8 = 8;
const LENGTH_OF_2_BYTES: u8 = 126;
const LENGTH_OF_8_BYTES: u8 = 127;
const MASK_BYTES: usize = 4;
const LONGEST_HEADER_BYTES: usize = 14;

/// How the only frame of a message begins, up to its mask or its payload.
pub fn frame_head(text: bool, masked: bool, payload_bytes: usize) -> Vec<u8> {
    let mask = if masked { MASKED } else { 0 };
    let mut head = vec![FIN | if text { TEXT } else { BINARY }];
    match payload_bytes {
        0..=125 => head.push(mask | payload_bytes as u8),
        126..=0xFFFF => {
            head.push(mask | LENGTH_OF_2_BYTES);
            head.extend((payload_bytes as u16).to_be_bytes());
        }
        _ => {
            head.push(mask | LENGTH_OF_8_BYTES);
            head.extend((payload_bytes as u64).to_be_bytes());
        }
    }
    head
}

/// Where a stream of frames is, after all bytes that it was told of.
#[derive(Debug, Default)]
pub struct Place {
    /// Of the frame that has begun.
    left_bytes: u64,
    header: [u8; LONGEST_HEADER_BYTES],
    header_bytes: u8,
    /// A message has begun whose last fragment has not.
    within_message: bool,
}

impl Place {
    /// Whether the next byte is the first one of a message, or of a control frame between two.
    pub fn is_between_messages(&self) -> bool {
        self.left_bytes == 0 && self.header_bytes == 0 && !self.within_message
    }

    /// Goes to the end of the frame that `bytes` begin or continue, or of `bytes`, if that comes
    /// first. Gives the number of bytes gone over: at least one, if there is one.
    pub fn advance(&mut self, bytes: &[u8]) -> usize {
        let mut over = 0;
        while self.left_bytes == 0 {
            let Some(&byte) = bytes.get(over) else { return over };
            self.header[usize::from(self.header_bytes)] = byte;
            self.header_bytes += 1;
            over += 1;
            if let Some(length_bytes) = length_bytes(&self.header[..self.header_bytes.into()]) {
                self.header_bytes = 0;
                self.left_bytes = length_bytes;
                let (first, opcode) = (self.header[0], self.header[0] & 0x0F);
                if opcode < CONTROL {
                    self.within_message = first & FIN == 0;
                }
                break;
            }
        }
        let here = self.left_bytes.min((bytes.len() - over) as u64);
        self.left_bytes -= here;
        over + here as usize
    }
}

/// The length of a frame's payload, in bytes; `None` while its header is not complete.
fn length_bytes(header: &[u8]) -> Option<u64> {
    let second = *header.get(1)?;
    let (extended_bytes, short) = match second & !MASKED {
        LENGTH_OF_2_BYTES => (2, 0),
        LENGTH_OF_8_BYTES => (8, 0),
        short => (0, u64::from(short)),
    };
    let mask_bytes = if second & MASKED == 0 { 0 } else { MASK_BYTES };
    let extended = header.get(2..2 + extended_bytes)?;
    (header.len() == 2 + extended_bytes + mask_bytes)
        .then(|| extended.iter().fold(short, |length, byte| length << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An unmasked frame.
    fn frame(first: u8, payload_bytes: usize) -> Vec<u8> {
        let mut frame = frame_head(false, false, payload_bytes);
        frame[0] = first;
        frame.resize(frame.len() + payload_bytes, 0x81);
        frame
    }

    /// Where frames end in a stream that comes in pieces of so many bytes.
    fn ends(stream: &[u8], piece_bytes: usize) -> Vec<usize> {
        let (mut place, mut at, mut ends) = (Place::default(), 0, Vec::new());
        for piece in stream.chunks(piece_bytes) {
            let mut rest = piece;
            while !rest.is_empty() {
                let over = place.advance(rest);
                at += over;
                rest = &rest[over..];
                if place.left_bytes == 0 && place.header_bytes == 0 {
                    ends.push(at);
                }
            }
        }
        ends
    }

    #[test]
    fn frames_end_where_they_do_however_they_are_cut() {
        let masked = [vec![FIN | BINARY, MASKED | 3, 1, 2, 3, 4], vec![0; 3]].concat();
        let mut frames: Vec<_> =
            [0, 1, 125, 126, 127, 65_535, 65_536].map(|size| frame(FIN | BINARY, size)).into();
        frames.push(masked);
        let expected: Vec<usize> = frames
            .iter()
            .scan(0, |at, frame| {
                *at += frame.len();
                Some(*at)
            })
            .collect();
        let stream = frames.concat();
        for piece_bytes in [1, 2, 3, 5, 7, 11, 13, 127, 4_096, 65_535, stream.len()] {
            assert_eq!(ends(&stream, piece_bytes), expected, "{piece_bytes}");
        }
    }

    #[test]
    fn a_message_in_fragments_is_one_message_with_control_frames_in_between() {
        let mut place = Place::default();
        let steps = [
            (frame(BINARY, 3), false),
            (frame(FIN | 9, 2), false),
            (frame(0, 0), false),
            (frame(FIN, 3), true),
            (frame(FIN | 10, 0), true),
            (frame(FIN | TEXT, 5), true),
        ];
        assert!(place.is_between_messages());
        for (number, (bytes, between)) in steps.into_iter().enumerate() {
            assert_eq!(place.advance(&bytes), bytes.len());
            assert_eq!(place.is_between_messages(), between, "after frame {number}");
        }
    }

    #[test]
    fn a_frame_that_has_begun_is_not_over() {
        for (size, cut) in [(5, 1), (5, 2), (5, 6), (200, 3), (70_000, 9)] {
            let mut place = Place::default();
            assert_eq!(place.advance(&frame(FIN | BINARY, size)[..cut]), cut);
            assert!(!place.is_between_messages(), "{cut} bytes of {size}");
        }
    }

    #[test]
    fn a_length_that_no_memory_holds_is_only_a_number() {
        let mut place = Place::default();
        let header = [[FIN | BINARY, LENGTH_OF_8_BYTES].as_slice(), &[0xFF; 8]].concat();
        assert_eq!(place.advance(&[header, vec![0; 10]].concat()), 20);
        assert!(!place.is_between_messages());
    }
}
