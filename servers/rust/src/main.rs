//! The post's dynamic answer, and "Hello, world" in the experiments that ask for it, by axum.
//!
//! rust-server EXPERIMENT ADDRESS BACKLOG WORKERS

use std::env;
use std::error::Error;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::Query;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use serde::Deserialize;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};

#[derive(Deserialize)]
struct Parameters {
    #[serde(default)]
    value: String,
}

async fn dynamic(Query(Parameters { value }): Query<Parameters>) -> impl IntoResponse {
    let body = if value.is_empty() {
        "<http_test><error>no value specified</error></http_test>".to_owned()
    } else {
        format!("<http_test><value>{}</value></http_test>", escape(&value))
    };
    ([(CONTENT_TYPE, "text/xml")], body)
}

async fn hello() -> &'static str {
    "Hello, world"
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            other => escaped.push(other),
        }
    }
    escaped
}

fn listen(address: SocketAddr, backlog: u32) -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(backlog)
}

/// Returns a runtime of `workers` threads that serve.
fn runtime(workers: usize) -> std::io::Result<Runtime> {
    let mut builder = match workers {
        // A worker beside the accepting thread would make two.
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    builder.worker_threads(workers).enable_io().build()
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [experiment, address, backlog, workers] = arguments.as_slice() else {
        return Err("usage: rust-server EXPERIMENT ADDRESS BACKLOG WORKERS".into());
    };
    let handler = if experiment == "dynamic" { get(dynamic) } else { get(hello) };
    let (address, backlog) = (address.parse()?, backlog.parse()?);
    runtime(workers.parse()?)?.block_on(async {
        let application = Router::new().route("/", handler);
        axum::serve(listen(address, backlog)?, application).await?;
        Ok(())
    })
}
