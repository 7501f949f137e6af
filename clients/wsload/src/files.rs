//! The records as Parquet files. The schemas are `schema/messages.txt` and `schema/connections.txt`.

use std::fs::{self, File};
use std::io::Result;
use std::path::{Path, PathBuf};

use crate::record::{ConnectionRow, MessageRow};
use crate::table::{Schema, TableFile};

pub const MESSAGES_SCHEMA: &str = include_str!("schema/messages.txt");
pub const CONNECTIONS_SCHEMA: &str = include_str!("schema/connections.txt");

/// Rows of a row group; a column of one is compressed as a whole.
pub const ROW_GROUP_ROWS: usize = 65_536;

/// How one table is written: its schema, and what each of its files says of the run.
struct Table {
    schema: Schema,
    metadata: Vec<(String, String)>,
}

impl Table {
    fn new(schema: &str, metadata: &[(String, String)]) -> Self {
        Self { schema: Schema::parse(schema), metadata: metadata.to_vec() }
    }
}

/// A Parquet file that gets its name only when it is whole.
struct NewFile {
    writer: TableFile,
    unfinished: PathBuf,
    path: PathBuf,
}

impl NewFile {
    fn create(path: PathBuf, table: &Table) -> Result<Self> {
        let mut unfinished = path.clone().into_os_string();
        unfinished.push(".unfinished");
        let unfinished = PathBuf::from(unfinished);
        let writer = TableFile::new(File::create(&unfinished)?, table.schema.clone())?;
        Ok(Self { writer, unfinished, path })
    }

    fn finish(self, table: &Table) -> Result<()> {
        self.writer.finish(&table.metadata)?;
        fs::rename(&self.unfinished, &self.path)
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
            self.open = Some(NewFile::create(path, &self.table)?);
            self.count += 1;
        }
        let file = self.open.as_mut().expect("opened above");
        let mut group = file.writer.group(rows.len());
        group.integers(rows.iter().map(|row| Some(row.connection.into())))?;
        group.integers(rows.iter().map(|row| Some(row.sequence.into())))?;
        group.integers(rows.iter().map(|row| us(Some(row.intended_us))))?;
        group.integers(rows.iter().map(|row| us(row.sent_us)))?;
        group.integers(rows.iter().map(|row| us(row.received_us)))?;
        group.finish();
        Ok(())
    }

    /// Finishes the file now open, if there is one: from then on it survives this process.
    pub fn finish(&mut self) -> Result<()> {
        self.open.take().map_or(Ok(()), |file| file.finish(&self.table))
    }

    /// Writes a file without rows, if there is none, so that a reader always finds the schema.
    pub fn finish_last(&mut self) -> Result<()> {
        self.finish()?;
        if self.count == 0 {
            let path = self.directory.join("000000.parquet");
            NewFile::create(path, &self.table)?.finish(&self.table)?;
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
    let table = Table::new(CONNECTIONS_SCHEMA, metadata);
    let mut file = NewFile::create(path.to_owned(), &table)?;
    for rows in rows.chunks(ROW_GROUP_ROWS) {
        let mut group = file.writer.group(rows.len());
        group.integers(rows.iter().map(|row| Some(row.connection.into())))?;
        group.texts(rows.iter().map(|row| row.source.map(|source| source.to_string())))?;
        group.integers(rows.iter().map(|row| us(row.intended_us)))?;
        group.integers(rows.iter().map(|row| us(row.started_us)))?;
        group.integers(rows.iter().map(|row| us(row.connected_us)))?;
        group.integers(rows.iter().map(|row| us(row.upgraded_us)))?;
        group.integers(rows.iter().map(|row| us(row.closed_us)))?;
        group.texts(rows.iter().map(|row| Some(row.outcome.name())))?;
        group.integers(rows.iter().map(|row| row.http_status.map(i64::from)))?;
        group.integers(rows.iter().map(|row| row.close_code.map(i64::from)))?;
        group.integers(rows.iter().map(|row| Some(row.mismatched_count.into())))?;
        group.texts(rows.iter().map(|row| row.error.as_deref()))?;
        group.finish();
    }
    file.finish(&table)
}

fn us(time: Option<u64>) -> Option<i64> {
    time.map(|us| us as i64)
}
