//! Runs the real programs and reads what they wrote.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Map, Value};
use tempfile::TempDir;

pub type Row = Map<String, Value>;

/// A finished run of the client.
pub struct Run {
    pub output: Output,
    pub directory: PathBuf,
    // Removed with the run.
    _parent: Option<TempDir>,
}

impl Run {
    pub fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    pub fn summary(&self) -> Value {
        let text = String::from_utf8_lossy(&self.output.stdout).into_owned();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {}", self.stderr()))
    }

    pub fn messages(&self) -> Vec<Row> {
        messages(&self.directory)
    }

    pub fn connections(&self) -> Vec<Row> {
        rows(&self.directory.join("connections.parquet"))
    }
}

/// A command for the client, with a directory of its own for the records.
pub fn wsload(url: &str, arguments: &str) -> (Command, TempDir) {
    let parent = TempDir::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_wsload"));
    command.arg(url).arg("-o").arg(parent.path().join("run")).arg("-q");
    command.args(arguments.split_whitespace());
    (command, parent)
}

/// Runs the client to its end.
pub fn run(url: &str, arguments: &str) -> Run {
    let (mut command, parent) = wsload(url, arguments);
    let output = command.output().unwrap();
    Run { output, directory: parent.path().join("run"), _parent: Some(parent) }
}

/// All rows of all finished message files, in the order of the files.
pub fn messages(directory: &Path) -> Vec<Row> {
    let files = std::fs::read_dir(directory.join("messages")).unwrap();
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "parquet"));
    files.sort();
    files.iter().flat_map(|path| rows(path)).collect()
}

pub fn rows(path: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| {
        let row = row.unwrap();
        row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect()
    })
    .collect()
}

fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Int(number) => (*number).into(),
        Field::Long(number) => (*number).into(),
        Field::Str(text) => text.as_str().into(),
        other => panic!("a type that no schema has: {other}"),
    }
}

/// The value of an integer column; `None` where it is null.
pub fn int(row: &Row, column: &str) -> Option<i64> {
    row.get(column).unwrap_or_else(|| panic!("no column {column} in {row:?}")).as_i64()
}

/// The exact quantile (nearest rank) of a time between two columns, over the rows that have both.
pub fn quantile_us(rows: &[Row], from: &str, to: &str, quantile: f64) -> i64 {
    let times = rows.iter().filter_map(|row| Some(int(row, to)? - int(row, from)?));
    nearest_rank(times.collect(), quantile)
}

pub fn nearest_rank(mut times: Vec<i64>, quantile: f64) -> i64 {
    assert!(!times.is_empty());
    times.sort_unstable();
    let rank = (quantile * times.len() as f64).ceil().max(1.0) as usize;
    times[rank - 1]
}

/// A null server that ends with its value.
pub struct NullServer {
    child: Child,
    pub address: SocketAddr,
}

impl NullServer {
    pub fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ws-null"))
            .arg("127.0.0.1:0")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap().parse().unwrap();
        Self { child, address }
    }

    pub fn url(&self) -> String {
        format!("ws://{}/", self.address)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that does `serve` with its first connection.
pub fn serve_one<T: Send + 'static>(
    serve: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (String, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    (url, std::thread::spawn(move || serve(listener.accept().unwrap().0)))
}
