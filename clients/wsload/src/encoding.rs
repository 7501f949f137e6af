//! The encodings of a Parquet file that its records need, each as Parquet's specification has it.

/// Values in a block of DELTA_BINARY_PACKED, and in each of the block's parts that has a width of
/// its own.
const BLOCK: usize = 128;
const PART: usize = 32;

/// A number in groups of seven bits, the lowest first (ULEB128).
pub fn varint(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// A number that may be negative: those near 0 are short.
pub fn zigzag(to: &mut Vec<u8>, number: i64) {
    varint(to, ((number << 1) ^ (number >> 63)) as u64);
}

/// Whether each row has a value: definition levels of one bit, as runs (RLE).
pub fn levels(to: &mut Vec<u8>, present: &[bool]) {
    let length_at = to.len();
    to.extend([0; 4]);
    for run in present.chunk_by(|one, next| one == next) {
        varint(to, (run.len() as u64) << 1);
        to.push(run[0].into());
    }
    let length = (to.len() - length_at - 4) as u32;
    to[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
}

/// Integers as what each adds to the one before (DELTA_BINARY_PACKED), where `as_i32` in the 32
/// bits of their column, beyond which its readers do not count.
///
/// Times that lie close together are small differences: a row takes a few bytes.
pub fn deltas(to: &mut Vec<u8>, values: &[i64], as_i32: bool) {
    varint(to, BLOCK as u64);
    varint(to, (BLOCK / PART) as u64);
    varint(to, values.len() as u64);
    zigzag(to, values.first().copied().unwrap_or(0));
    let delta = |pair: &[i64]| {
        let delta = pair[1].wrapping_sub(pair[0]);
        if as_i32 { i64::from(delta as i32) } else { delta }
    };
    let mut block = Vec::with_capacity(BLOCK);
    // Each value but the first has one delta, and each block the value before its own.
    for start in (1..values.len()).step_by(BLOCK) {
        let end = values.len().min(start + BLOCK);
        block.clear();
        block.extend(values[start - 1..end].windows(2).map(delta));
        let least = block.iter().copied().min().expect("a block has a value");
        zigzag(to, least);
        let widths_at = to.len();
        to.extend([0; BLOCK / PART]);
        for (index, part) in block.chunks(PART).enumerate() {
            // What is missing from the last part is filled up with `least`.
            let mut above = [0; PART];
            for (above, delta) in above.iter_mut().zip(part) {
                *above = delta.wrapping_sub(least) as u64;
            }
            let width = 64 - above.iter().fold(0, |all, above| all | above).leading_zeros();
            to[widths_at + index] = width as u8;
            pack(to, &above, width);
        }
    }
}

/// The lowest `width` bits of each number, one after the other, the lowest bit first.
fn pack(to: &mut Vec<u8>, numbers: &[u64; PART], width: u32) {
    let (mut bits, mut count) = (0_u128, 0);
    for number in numbers {
        bits |= u128::from(*number) << count;
        count += width;
        if count >= 64 {
            to.extend((bits as u64).to_le_bytes());
            bits >>= 64;
            count -= 64;
        }
    }
    // 32 numbers fill whole halves of 64 bits.
    to.extend(&bits.to_le_bytes()[..count as usize / 8]);
}

/// Texts, each after its length (PLAIN).
pub fn texts<'a>(to: &mut Vec<u8>, texts: impl Iterator<Item = &'a str>) {
    for text in texts {
        to.extend((text.len() as u32).to_le_bytes());
        to.extend(text.as_bytes());
    }
}

/// A structure of Thrift's compact protocol, in which Parquet describes files and pages.
#[derive(Default)]
pub struct Structure {
    bytes: Vec<u8>,
    last: u8,
}

impl Structure {
    const I32: u8 = 5;
    const I64: u8 = 6;
    const BINARY: u8 = 8;
    const LIST: u8 = 9;
    const STRUCTURE: u8 = 12;

    /// Fields come in the order of their numbers, with fewer than 16 from one to the next.
    fn field(&mut self, number: u8, kind: u8) -> &mut Vec<u8> {
        self.bytes.push((number - self.last) << 4 | kind);
        self.last = number;
        &mut self.bytes
    }

    pub fn i32(mut self, number: u8, value: i32) -> Self {
        zigzag(self.field(number, Self::I32), value.into());
        self
    }

    pub fn i64(mut self, number: u8, value: usize) -> Self {
        zigzag(self.field(number, Self::I64), value as i64);
        self
    }

    pub fn text(mut self, number: u8, text: &str) -> Self {
        text_value(self.field(number, Self::BINARY), text);
        self
    }

    pub fn structure(mut self, number: u8, structure: Self) -> Self {
        self.field(number, Self::STRUCTURE).extend(structure.end());
        self
    }

    pub fn structures(mut self, number: u8, list: impl ExactSizeIterator<Item = Self>) -> Self {
        let to = self.list(number, Self::STRUCTURE, list.len());
        list.for_each(|structure| to.extend(structure.end()));
        self
    }

    pub fn i32s(mut self, number: u8, list: &[i32]) -> Self {
        let to = self.list(number, Self::I32, list.len());
        list.iter().for_each(|value| zigzag(to, i64::from(*value)));
        self
    }

    pub fn texts(mut self, number: u8, list: &[&str]) -> Self {
        let to = self.list(number, Self::BINARY, list.len());
        list.iter().for_each(|text| text_value(to, text));
        self
    }

    fn list(&mut self, number: u8, kind: u8, length: usize) -> &mut Vec<u8> {
        let to = self.field(number, Self::LIST);
        if length < 15 {
            to.push((length as u8) << 4 | kind);
        } else {
            to.push(0xF0 | kind);
            varint(to, length as u64);
        }
        to
    }

    /// All its bytes.
    pub fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn text_value(to: &mut Vec<u8>, text: &str) {
    varint(to, text.len() as u64);
    to.extend(text.as_bytes());
}
