//! The records as Parquet files. The schemas are `schema/messages.txt` and `schema/connections.txt`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, TypePtr};

use crate::record::{ConnectionRow, MessageRow};

pub const MESSAGES_SCHEMA: &str = include_str!("schema/messages.txt");
pub const CONNECTIONS_SCHEMA: &str = include_str!("schema/connections.txt");

type RowGroup<'a> = SerializedRowGroupWriter<'a, File>;

/// A Parquet file that gets its name only when it is whole.
struct NewFile {
    writer: SerializedFileWriter<File>,
    unfinished: PathBuf,
    path: PathBuf,
}

impl NewFile {
    fn create(path: PathBuf, schema: &TypePtr, properties: &WriterPropertiesPtr) -> Result<Self> {
        let mut unfinished = path.clone().into_os_string();
        unfinished.push(".unfinished");
        let unfinished = PathBuf::from(unfinished);
        let file = File::create(&unfinished)?;
        let writer = SerializedFileWriter::new(file, schema.clone(), properties.clone())?;
        Ok(Self { writer, unfinished, path })
    }

    fn finish(self) -> Result<()> {
        self.writer.close()?;
        fs::rename(&self.unfinished, &self.path)?;
        Ok(())
    }
}

/// How one table is written: its schema, and properties that its files share.
struct Table {
    schema: TypePtr,
    properties: WriterPropertiesPtr,
}

impl Table {
    fn new(schema: &str, metadata: &[(String, String)]) -> Self {
        let schema = Arc::new(parse_message_type(schema).expect("the schema is valid"));
        let metadata =
            metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
        // Times that lie close together are small differences: a row takes a few bytes.
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::LZ4_RAW)
            .set_dictionary_enabled(false)
            .set_key_value_metadata(Some(metadata.collect()));
        for column in schema.get_fields() {
            let path = ColumnPath::new(vec![column.name().to_owned()]);
            properties = match column.get_physical_type() {
                parquet::basic::Type::BYTE_ARRAY => {
                    properties.set_column_dictionary_enabled(path, true)
                }
                _ => properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            };
        }
        Self { schema, properties: Arc::new(properties.build()) }
    }
}

/// Writes message rows into numbered files, each whole by itself.
pub struct MessageFiles {
    table: Table,
    directory: PathBuf,
    count: u32,
    open: Option<NewFile>,
}

impl MessageFiles {
    pub fn new(directory: PathBuf, metadata: &[(String, String)]) -> Self {
        Self { table: Table::new(MESSAGES_SCHEMA, metadata), directory, count: 0, open: None }
    }

    /// Adds rows to the file now open, as one row group.
    pub fn append(&mut self, rows: &[MessageRow]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        if self.open.is_none() {
            let path = self.directory.join(format!("{:06}.parquet", self.count));
            self.open = Some(NewFile::create(path, &self.table.schema, &self.table.properties)?);
            self.count += 1;
        }
        let file = self.open.as_mut().expect("opened above");
        let mut group = file.writer.next_row_group()?;
        required::<Int32Type>(&mut group, rows.iter().map(|row| row.connection as i32))?;
        required::<Int32Type>(&mut group, rows.iter().map(|row| row.sequence as i32))?;
        required::<Int64Type>(&mut group, rows.iter().map(|row| row.intended_us as i64))?;
        optional::<Int64Type>(&mut group, rows.iter().map(|row| row.sent_us.map(|us| us as i64)))?;
        optional::<Int64Type>(
            &mut group,
            rows.iter().map(|row| row.received_us.map(|us| us as i64)),
        )?;
        group.close()?;
        Ok(())
    }

    /// Finishes the file now open, if there is one: from then on it survives this process.
    pub fn finish(&mut self) -> Result<()> {
        self.open.take().map_or(Ok(()), NewFile::finish)
    }

    /// Writes a file without rows, if there is none, so that a reader always finds the schema.
    pub fn finish_last(&mut self) -> Result<()> {
        self.finish()?;
        if self.count == 0 {
            let path = self.directory.join("000000.parquet");
            NewFile::create(path, &self.table.schema, &self.table.properties)?.finish()?;
        }
        Ok(())
    }
}

/// Writes the table of all connections, whole, in place of an earlier one.
pub fn write_connections(
    path: &Path,
    rows: &[ConnectionRow],
    metadata: &[(String, String)],
) -> Result<()> {
    fn us(time: Option<u64>) -> Option<i64> {
        time.map(|us| us as i64)
    }
    fn bytes(text: &str) -> ByteArray {
        ByteArray::from(text)
    }
    let table = Table::new(CONNECTIONS_SCHEMA, metadata);
    let mut file = NewFile::create(path.to_owned(), &table.schema, &table.properties)?;
    let mut group = file.writer.next_row_group()?;
    required::<Int32Type>(&mut group, rows.iter().map(|row| row.connection as i32))?;
    optional::<ByteArrayType>(
        &mut group,
        rows.iter().map(|row| row.source.map(|source| bytes(&source.to_string()))),
    )?;
    optional::<Int64Type>(&mut group, rows.iter().map(|row| us(row.intended_us)))?;
    optional::<Int64Type>(&mut group, rows.iter().map(|row| us(row.started_us)))?;
    optional::<Int64Type>(&mut group, rows.iter().map(|row| us(row.connected_us)))?;
    optional::<Int64Type>(&mut group, rows.iter().map(|row| us(row.upgraded_us)))?;
    optional::<Int64Type>(&mut group, rows.iter().map(|row| us(row.closed_us)))?;
    required::<ByteArrayType>(&mut group, rows.iter().map(|row| bytes(row.outcome.name())))?;
    optional::<Int32Type>(&mut group, rows.iter().map(|row| row.http_status.map(i32::from)))?;
    optional::<Int32Type>(&mut group, rows.iter().map(|row| row.close_code.map(i32::from)))?;
    required::<Int32Type>(&mut group, rows.iter().map(|row| row.mismatched_count as i32))?;
    optional::<ByteArrayType>(&mut group, rows.iter().map(|row| row.error.as_deref().map(bytes)))?;
    group.close()?;
    file.finish()
}

fn required<T: DataType>(group: &mut RowGroup, values: impl Iterator<Item = T::T>) -> Result<()> {
    let values: Vec<T::T> = values.collect();
    let mut column = group.next_column()?.expect("the schema has this column");
    column.typed::<T>().write_batch(&values, None, None)?;
    column.close()
}

fn optional<T: DataType>(
    group: &mut RowGroup,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<()> {
    let mut present = Vec::with_capacity(values.size_hint().0);
    let levels: Vec<i16> = values
        .map(|value| {
            let level = i16::from(value.is_some());
            present.extend(value);
            level
        })
        .collect();
    let mut column = group.next_column()?.expect("the schema has this column");
    column.typed::<T>().write_batch(&present, Some(&levels), None)?;
    column.close()
}
