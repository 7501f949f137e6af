//! The command `ws-null`: the cheapest correct WebSocket echo, to know the client's own floor.
//!
//! One thread, one event loop, the client's own sockets and protocol library; every message that
//! arrived together is answered with one system call.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Parser;
use mio::event::Event;
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};
use tungstenite::handshake::server::{NoCallback, ServerHandshake};
use tungstenite::handshake::{HandshakeError, MidHandshake};
use tungstenite::protocol::{CloseFrame, Role};
use tungstenite::{Message, WebSocket};
use wsload::clock::Clock;
use wsload::machine;
use wsload::protocol;
use wsload::socket::{ReadAhead, SharedReadAhead, Socket};

const LISTENER: Token = Token(0);
const EVENTS_PER_TURN: usize = 1024;

/// Answers every WebSocket message with itself. Says on standard output where it listens.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Where to listen; port 0 takes any free one
    #[arg(default_value = "127.0.0.1:9001", value_name = "ADDRESS:PORT")]
    address: SocketAddr,

    /// Listen backlog; the kernel caps it at net.core.somaxconn
    #[arg(long, default_value_t = 4096)]
    backlog: i32,
}

type Handshake = MidHandshake<ServerHandshake<Socket, NoCallback>>;

enum Peer {
    Upgrading(Box<Handshake>),
    Open(Box<Echo>),
}

struct Echo {
    socket: WebSocket<Socket>,
    /// The peer does not read: nothing more is read from it.
    blocked: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match serve(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ws-null: cannot serve on {}: {error}", arguments.address);
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: &Arguments) -> io::Result<()> {
    machine::allow_all_descriptors();
    let mut listener = listen(arguments)?;
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    println!("listening on {}", listener.local_addr()?);

    let ahead = ReadAhead::new(Clock::start_now());
    let mut peers: HashMap<Token, Peer> = HashMap::new();
    let mut next_token = LISTENER.0 + 1;
    let mut events = Events::with_capacity(EVENTS_PER_TURN);
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &events {
            if event.token() == LISTENER {
                accept(&listener, &poll, &ahead, &mut peers, &mut next_token);
            } else if let Some(peer) = peers.remove(&event.token()) {
                ahead.borrow_mut().clear();
                if let Some(peer) = answer(peer, event) {
                    peers.insert(event.token(), peer);
                }
            }
        }
    }
}

fn listen(arguments: &Arguments) -> io::Result<TcpListener> {
    let domain = socket2::Domain::for_address(arguments.address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, Some(socket2::Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&arguments.address.into())?;
    socket.listen(arguments.backlog)?;
    Ok(TcpListener::from_std(socket.into()))
}

fn accept(
    listener: &TcpListener,
    poll: &Poll,
    ahead: &SharedReadAhead,
    peers: &mut HashMap<Token, Peer>,
    next_token: &mut usize,
) {
    loop {
        let mut tcp = match listener.accept() {
            Ok((tcp, _)) => tcp,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) => {
                eprintln!("ws-null: cannot accept: {error}");
                return;
            }
        };
        let token = Token(*next_token);
        *next_token += 1;
        let both = Interest::READABLE | Interest::WRITABLE;
        let ready =
            tcp.set_nodelay(true).and_then(|()| poll.registry().register(&mut tcp, token, both));
        if ready.is_ok() {
            let socket = Socket::new(tcp, ahead.clone());
            let handshake = ServerHandshake::start(socket, NoCallback, Some(protocol::config(0)));
            peers.insert(token, Peer::Upgrading(Box::new(handshake)));
        }
    }
}

/// Does what an event asks for. Gives the peer back, unless it is gone.
fn answer(peer: Peer, event: &Event) -> Option<Peer> {
    match peer {
        Peer::Upgrading(mut handshake) => {
            handshake.get_mut().get_mut().readable(event.is_read_closed());
            match handshake.handshake() {
                Ok(socket) => {
                    let socket = Socket::into_websocket(socket, Role::Server, protocol::config(0));
                    echo(Box::new(Echo { socket, blocked: false }))
                }
                Err(HandshakeError::Interrupted(handshake)) => {
                    Some(Peer::Upgrading(Box::new(handshake)))
                }
                Err(HandshakeError::Failure(_)) => None,
            }
        }
        Peer::Open(mut peer) => {
            if peer.blocked && event.is_writable() {
                match flush(&mut peer) {
                    Ok(()) if peer.blocked => return Some(Peer::Open(peer)),
                    Ok(()) => {}
                    Err(_) => return None,
                }
            }
            peer.socket.get_mut().readable(event.is_read_closed());
            if peer.blocked { Some(Peer::Open(peer)) } else { echo(peer) }
        }
    }
}

/// Answers everything that has arrived. While the peer takes no answers, what has been read from
/// the kernel already is answered into memory, and no more is read.
fn echo(mut peer: Box<Echo>) -> Option<Peer> {
    loop {
        match peer.socket.read() {
            Ok(message @ (Message::Binary(_) | Message::Text(_))) => {
                match peer.socket.write(message) {
                    Err(error) if protocol::would_block(&error) => {
                        peer.socket.get_mut().stop_reading()
                    }
                    Err(_) => return None,
                    Ok(()) => {}
                }
            }
            Ok(_) => {}
            Err(error) if protocol::would_block(&error) => break,
            Err(error) => {
                if let Some(code) = protocol::complaint(&error) {
                    let _ = peer.socket.close(Some(CloseFrame { code, reason: "".into() }));
                }
                return None;
            }
        }
    }
    flush(&mut peer).ok().map(|()| Peer::Open(peer))
}

fn flush(peer: &mut Echo) -> tungstenite::Result<()> {
    match peer.socket.flush() {
        Err(error) if protocol::would_block(&error) => peer.blocked = true,
        Err(error) => return Err(error),
        Ok(()) => peer.blocked = false,
    }
    Ok(())
}
