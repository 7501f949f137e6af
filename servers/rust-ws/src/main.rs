//! A WebSocket echo by axum.
//!
//! axum-echo ADDRESS BACKLOG WORKERS READ_BUFFER_BYTES

use std::env;
use std::error::Error;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::get;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};

async fn upgrade(State(buffer): State<usize>, request: WebSocketUpgrade) -> Response {
    request.read_buffer_size(buffer).on_upgrade(echo)
}

/// Pings and closes are answered below, while the next message is waited for.
async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        let sent = match message {
            Message::Text(_) | Message::Binary(_) => socket.send(message).await,
            _ => Ok(()),
        };
        if sent.is_err() {
            return;
        }
    }
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
    let [address, backlog, workers, buffer] = arguments.as_slice() else {
        return Err("usage: axum-echo ADDRESS BACKLOG WORKERS READ_BUFFER_BYTES".into());
    };
    let (address, backlog, buffer) = (address.parse()?, backlog.parse()?, buffer.parse()?);
    runtime(workers.parse()?)?.block_on(async {
        let application = Router::new().route("/", get(upgrade)).with_state(buffer);
        axum::serve(listen(address, backlog)?, application).await?;
        Ok(())
    })
}
