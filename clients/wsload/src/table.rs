//! Writes tables as Parquet files, in the parts of the format that the records need: columns of
//! integers and texts that may be null, one page for each column of a row group, LZ4.
//!
//! The crate `parquet` writes them too, but it and what it needs took half the time of building this
//! client. The tests read these files with it.

use std::fs::File;
use std::io::{self, Write};

use crate::encoding::{self, Structure};

const MAGIC: &[u8; 4] = b"PAR1";
const CREATED_BY: &str = concat!("wsload version ", env!("CARGO_PKG_VERSION"));

// The numbers that the format has for them.
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
const UTF8: i32 = 0;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const DELTA_BINARY_PACKED: i32 = 5;
const LZ4_RAW: i32 = 7;
const DATA_PAGE: i32 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Int32 = 1,
    Int64 = 2,
    Text = 6,
}

#[derive(Debug, Clone)]
struct Column {
    name: String,
    kind: Kind,
    optional: bool,
}

/// The columns of a table.
#[derive(Debug, Clone)]
pub struct Schema {
    name: String,
    columns: Vec<Column>,
}

impl Schema {
    /// Reads Parquet's own notation, as far as the records' schemas need it: `message NAME {`, then
    /// a line for each column, then `}`.
    ///
    /// # Panics
    /// On any other text: the schemas are part of this program.
    pub fn parse(text: &str) -> Self {
        let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let name = match lines.next().as_deref() {
            Some(["message", name, "{"]) => (*name).to_owned(),
            other => panic!("no schema begins with {other:?}"),
        };
        let columns = lines.take_while(|words| words != &["}"]).map(|words| {
            let (optional, kind, name) = match words.as_slice() {
                [optional, "int32", name] => (optional, Kind::Int32, name.trim_end_matches(';')),
                [optional, "int64", name] => (optional, Kind::Int64, name.trim_end_matches(';')),
                [optional, "binary", name, "(string);"] => (optional, Kind::Text, *name),
                other => panic!("no column is {other:?}"),
            };
            let optional = match *optional {
                "optional" => true,
                "required" => false,
                other => panic!("no column is {other}"),
            };
            Column { name: name.to_owned(), kind, optional }
        });
        Self { columns: columns.collect(), name }
    }

    fn elements(&self) -> Vec<Structure> {
        let root =
            Structure::default().text(4, &self.name).i32(5, self.columns.len().try_into().unwrap());
        let columns = self.columns.iter().map(|column| {
            let element = Structure::default()
                .i32(1, column.kind as i32)
                .i32(3, if column.optional { OPTIONAL } else { REQUIRED })
                .text(4, &column.name);
            if column.kind == Kind::Text {
                // As earlier readers know it, and as later ones do.
                let string = Structure::default().structure(1, Structure::default());
                element.i32(6, UTF8).structure(10, string)
            } else {
                element
            }
        });
        std::iter::once(root).chain(columns).collect()
    }
}

/// A Parquet file in the making; no reader takes it for one before `finish`.
pub struct TableFile {
    file: File,
    schema: Schema,
    written_bytes: usize,
    rows_count: usize,
    groups: Vec<Structure>,
}

impl TableFile {
    pub fn new(file: File, schema: Schema) -> io::Result<Self> {
        let mut table = Self { file, schema, written_bytes: 0, rows_count: 0, groups: Vec::new() };
        table.write(MAGIC)?;
        Ok(table)
    }

    /// Begins a row group, which is to get every column, in the order of the schema.
    pub fn group(&mut self, rows_count: usize) -> Group<'_> {
        Group { table: self, rows_count, chunks: Vec::new(), plain_bytes: 0 }
    }

    /// Writes what says where everything is, with `metadata` of keys and values.
    pub fn finish(mut self, metadata: &[(String, String)]) -> io::Result<()> {
        let pairs =
            metadata.iter().map(|(key, value)| Structure::default().text(1, key).text(2, value));
        let footer = Structure::default()
            .i32(1, 1)
            .structures(2, self.schema.elements().into_iter())
            .i64(3, self.rows_count)
            .structures(4, std::mem::take(&mut self.groups).into_iter())
            .structures(5, pairs)
            .text(6, CREATED_BY);
        let mut end = footer.end();
        end.extend((end.len() as u32).to_le_bytes());
        end.extend(MAGIC);
        self.write(&end)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written_bytes += bytes.len();
        self.file.write_all(bytes)
    }
}

/// Rows that are written together, column by column.
pub struct Group<'a> {
    table: &'a mut TableFile,
    rows_count: usize,
    chunks: Vec<Structure>,
    plain_bytes: usize,
}

impl Group<'_> {
    /// The next column, which is one of integers.
    pub fn integers(&mut self, values: impl Iterator<Item = Option<i64>>) -> io::Result<()> {
        let mut found = Vec::with_capacity(self.rows_count);
        let (kind, mut page) = self.page(values, &mut found);
        assert_ne!(kind, Kind::Text, "the column has texts");
        encoding::deltas(&mut page, &found, kind == Kind::Int32);
        self.write(&page, DELTA_BINARY_PACKED)
    }

    /// The next column, which is one of texts.
    pub fn texts<T: AsRef<str>>(
        &mut self,
        values: impl Iterator<Item = Option<T>>,
    ) -> io::Result<()> {
        let mut found = Vec::new();
        let (kind, mut page) = self.page(values, &mut found);
        assert_eq!(kind, Kind::Text, "the column has integers");
        // Texts that repeat are left to the compression.
        encoding::texts(&mut page, found.iter().map(AsRef::as_ref));
        self.write(&page, PLAIN)
    }

    /// Ends the group.
    pub fn finish(self) {
        assert_eq!(self.chunks.len(), self.table.schema.columns.len(), "every column");
        self.table.rows_count += self.rows_count;
        self.table.groups.push(
            Structure::default()
                .structures(1, self.chunks.into_iter())
                .i64(2, self.plain_bytes)
                .i64(3, self.rows_count),
        );
    }

    /// A page that begins with which rows of the next column have a value; those go to `found`.
    fn page<T>(
        &self,
        values: impl Iterator<Item = Option<T>>,
        found: &mut Vec<T>,
    ) -> (Kind, Vec<u8>) {
        let column = &self.table.schema.columns[self.chunks.len()];
        let mut present = Vec::with_capacity(self.rows_count);
        for value in values {
            present.push(value.is_some());
            found.extend(value);
        }
        assert_eq!(present.len(), self.rows_count, "one value for each row");
        let mut page = Vec::new();
        if column.optional {
            encoding::levels(&mut page, &present);
        } else {
            assert_eq!(found.len(), present.len(), "{} is null", column.name);
        }
        (column.kind, page)
    }

    fn write(&mut self, page: &[u8], encoding: i32) -> io::Result<()> {
        let size = |bytes: &[u8]| i32::try_from(bytes.len()).map_err(io::Error::other);
        let count = i32::try_from(self.rows_count).map_err(io::Error::other)?;
        let compressed = lz4_flex::block::compress(page);
        let about = Structure::default().i32(1, count).i32(2, encoding).i32(3, RLE).i32(4, RLE);
        let header = Structure::default()
            .i32(1, DATA_PAGE)
            .i32(2, size(page)?)
            .i32(3, size(&compressed)?)
            .structure(5, about);
        let header = header.end();
        let (plain_bytes, bytes) = (header.len() + page.len(), header.len() + compressed.len());

        let column = &self.table.schema.columns[self.chunks.len()];
        let start = self.table.written_bytes;
        let chunk = Structure::default()
            .i32(1, column.kind as i32)
            .i32s(2, &[encoding, RLE])
            .texts(3, &[&column.name])
            .i32(4, LZ4_RAW)
            .i64(5, self.rows_count)
            .i64(6, plain_bytes)
            .i64(7, bytes)
            .i64(9, start);
        self.chunks.push(Structure::default().i64(2, start).structure(3, chunk));
        self.plain_bytes += plain_bytes;
        self.table.write(&header)?;
        self.table.write(&compressed)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use tempfile::tempdir;

    use super::*;

    const SCHEMA: &str = "message all {
  required int32 narrow;
  optional int64 wide;
  optional binary text (string);
}
";

    type Row = (i32, Option<i64>, Option<&'static str>);

    /// Writes the groups and compares what the crate `parquet` reads.
    fn returns(groups: &[&[Row]]) {
        let directory = tempdir().unwrap();
        let path = directory.path().join("table");
        let mut table =
            TableFile::new(File::create(&path).unwrap(), Schema::parse(SCHEMA)).unwrap();
        for rows in groups {
            let mut group = table.group(rows.len());
            group.integers(rows.iter().map(|row| Some(row.0.into()))).unwrap();
            group.integers(rows.iter().map(|row| row.1)).unwrap();
            group.texts(rows.iter().map(|row| row.2)).unwrap();
            group.finish();
        }
        table.finish(&[("key".into(), "value".into())]).unwrap();

        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let metadata = reader.metadata().file_metadata();
        let pair = &metadata.key_value_metadata().unwrap()[0];
        assert_eq!((pair.key.as_str(), pair.value.as_deref()), ("key", Some("value")));
        let expected: Vec<Row> = groups.concat();
        assert_eq!(metadata.num_rows(), expected.len() as i64);
        let found: Vec<Vec<Field>> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().get_column_iter().map(|(_, field)| field.clone()).collect())
            .collect();
        let expected: Vec<Vec<Field>> = expected
            .into_iter()
            .map(|(narrow, wide, text)| {
                let text = text.map(str::to_owned);
                let wide = wide.map_or(Field::Null, Field::Long);
                vec![Field::Int(narrow), wide, text.map_or(Field::Null, Field::Str)]
            })
            .collect();
        assert_eq!(found, expected);
    }

    /// Rows whose values are as wide as `bits`, some null.
    fn rows(count: usize, bits: u32) -> Vec<Row> {
        let mut state = 1_u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
            state.rotate_left(32)
        };
        let row = |_| {
            let (narrow, wide) = (next(), next());
            let narrow = (narrow as u32 >> (32 - bits.min(32))) as i32;
            let wide = (wide >> (64 - bits)) as i64;
            let text = ["", "completed", "a word with ü", "ws"][next() as usize % 4];
            (narrow, (next() % 5 > 0).then_some(wide), (next() % 3 > 0).then_some(text))
        };
        (0..count).map(row).collect()
    }

    #[test]
    fn every_number_of_rows_returns() {
        for count in (0..=3).chain(31..=35).chain(127..=131).chain([255, 256, 257, 1000]) {
            returns(&[&rows(count, 20)]);
        }
        returns(&[]);
        returns(&[&rows(70_000, 30), &rows(1, 1), &rows(200, 64)]);
    }

    #[test]
    fn values_of_every_width_return() {
        for bits in 1..=64 {
            returns(&[&rows(300, bits)]);
        }
        let ends = [(i32::MIN, i64::MIN), (i32::MAX, i64::MAX), (0, 0), (-1, -1), (i32::MIN, 1)];
        let ends: Vec<Row> = ends.map(|(narrow, wide)| (narrow, Some(wide), None)).repeat(50);
        returns(&[&ends]);
    }

    #[test]
    fn columns_without_a_value_or_without_a_null_return() {
        returns(&[&[(7, None, None); 500], &[(7, Some(7), Some("same")); 500]]);
    }

    #[test]
    #[should_panic(expected = "narrow is null")]
    fn a_required_column_is_never_null() {
        let file = tempfile::tempfile().unwrap();
        let mut table = TableFile::new(file, Schema::parse(SCHEMA)).unwrap();
        let _ = table.group(1).integers([None].into_iter());
    }
}
