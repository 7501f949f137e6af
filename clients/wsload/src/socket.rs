//! Non-blocking TCP sockets whose reads go through one buffer that all connections share.
//!
//! A server gives the protocol library all that it reads. The client takes the echoes out first, and
//! gives the library the frames that are none: see [`Socket::take_over`].

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::rc::Rc;

use mio::net::TcpStream;
use tungstenite::WebSocket;
use tungstenite::protocol::{Role, WebSocketConfig};

use crate::clock::Clock;

/// The most that one system call reads.
const READ_AHEAD_BYTES: usize = 64 * 1024;
/// A longer head is left to the protocol library, which refuses it.
const LONGEST_HEAD_BYTES: usize = 16 * 1024;

/// What the last system call read from the connection now being served, and when.
///
/// One buffer serves every connection because a connection is always read until it is drained
/// before the next one is looked at: ten thousand of them need no ten thousand buffers.
pub struct ReadAhead {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    clock: Clock,
    /// When the bytes arrived in this process, in µs since the run's start.
    pub read_us: u64,
}

pub type SharedReadAhead = Rc<RefCell<ReadAhead>>;

impl ReadAhead {
    pub fn new(clock: Clock) -> SharedReadAhead {
        let buffer = vec![0; READ_AHEAD_BYTES].into_boxed_slice();
        Rc::new(RefCell::new(Self { buffer, start: 0, end: 0, clock, read_us: 0 }))
    }

    /// Forget what an earlier connection left, as one that failed in the middle does.
    pub fn clear(&mut self) {
        self.start = self.end;
    }

    /// What has been read and not been taken.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Takes the first `count` of the bytes.
    pub fn take(&mut self, count: usize) {
        self.start += count;
    }
}

/// A socket, read first as HTTP and then as WebSocket.
///
/// A read never crosses the end of the HTTP head. So the protocol library's handshake is left with
/// no bytes over, and its 4 KB buffer can go: see [`Socket::into_websocket`].
pub struct Socket {
    tcp: TcpStream,
    ahead: SharedReadAhead,
    drained: bool,
    ended: bool,
    head: Head,
    /// The HTTP head as far as it has come, until the protocol library has read it.
    begun: Option<Vec<u8>>,
    granted: Granted,
    /// How a read ended that gave no bytes, until the protocol library has been told.
    ending: Option<io::Result<usize>>,
    /// What was sent and the kernel has not taken.
    unsent: Vec<u8>,
}

/// What the protocol library may read.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Granted {
    /// All that comes.
    All,
    /// So many bytes of those read ahead.
    Bytes(usize),
}

/// How much of the end of an HTTP head, an empty line, has been read.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Head {
    Within,
    AfterNewline,
    Past,
}

impl Head {
    /// The number of bytes up to the end of the head, or all if it does not end in them.
    fn take(&mut self, bytes: &[u8]) -> usize {
        if *self == Head::Past {
            return bytes.len();
        }
        for (index, byte) in bytes.iter().enumerate() {
            *self = match (byte, *self) {
                (b'\n', Head::AfterNewline) => Head::Past,
                (b'\n', _) => Head::AfterNewline,
                (b'\r', same) => same,
                _ => Head::Within,
            };
            if *self == Head::Past {
                return index + 1;
            }
        }
        bytes.len()
    }
}

impl Socket {
    pub fn new(tcp: TcpStream, ahead: SharedReadAhead) -> Self {
        Self {
            tcp,
            ahead,
            drained: false,
            ended: false,
            head: Head::Within,
            begun: Some(Vec::new()),
            granted: Granted::All,
            ending: None,
            unsent: Vec::new(),
        }
    }

    /// An upgraded socket, with buffers of the sizes asked for.
    pub fn into_websocket(
        upgraded: WebSocket<Socket>,
        role: Role,
        config: WebSocketConfig,
    ) -> WebSocket<Socket> {
        WebSocket::from_raw_socket(upgraded.into_inner(), role, Some(config))
    }

    /// To be called when the event loop says that there is something to read; `ended` when it
    /// says that the stream's end is part of it.
    pub fn readable(&mut self, ended: bool) {
        self.drained = false;
        self.ended |= ended;
    }

    /// From now on the protocol library reads only what it is granted.
    pub fn take_over(&mut self) {
        self.granted = Granted::Bytes(0);
    }

    /// Lets the protocol library read the next `count` bytes of those read ahead.
    pub fn grant(&mut self, count: usize) {
        self.granted = Granted::Bytes(count);
    }

    /// Reads what the kernel has. False when it has nothing. An end, or a failure, is for the
    /// protocol library to judge: it meets it with its next read.
    pub fn receive(&mut self) -> bool {
        match self.fill() {
            Ok(1..) => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            ending => {
                self.ending = Some(ending);
                true
            }
        }
    }

    /// Sends bytes, of which it keeps what the kernel does not take; `flush` goes on with those.
    ///
    /// # Errors
    /// The connection's own, and `WouldBlock` when some were kept.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut taken = 0;
        while taken < bytes.len() {
            match self.tcp.write(&bytes[taken..]) {
                Ok(count) => taken += count,
                Err(error) => {
                    self.unsent.extend_from_slice(&bytes[taken..]);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn send_unsent(&mut self) -> io::Result<()> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        let unsent = std::mem::take(&mut self.unsent);
        self.send(&unsent)
    }

    fn fill(&mut self) -> io::Result<usize> {
        if self.drained {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let ahead = &mut *self.ahead.borrow_mut();
        let count = self.tcp.read(&mut ahead.buffer)?;
        // epoll(7): with edge-triggered events, a read that returns less than was asked for has
        // emptied the stream, and a later arrival is a new event. But an end that has arrived
        // already makes no other event.
        self.drained = count < ahead.buffer.len() && !self.ended;
        (ahead.start, ahead.end) = (0, count);
        ahead.read_us = ahead.clock.now_us();
        Ok(count)
    }

    /// Reads a whole HTTP head, over those of interim answers: the protocol library takes those for
    /// final ones. Less than a head only at the end of the stream.
    fn read_head(&mut self, begun: &mut Vec<u8>) -> io::Result<()> {
        while self.head != Head::Past {
            let none_ahead = self.ahead.borrow().bytes().is_empty();
            if begun.len() > LONGEST_HEAD_BYTES || (none_ahead && self.fill()? == 0) {
                self.head = Head::Past;
                break;
            }
            let ahead = &mut *self.ahead.borrow_mut();
            let count = self.head.take(ahead.bytes());
            begun.extend_from_slice(&ahead.bytes()[..count]);
            ahead.take(count);
            if self.head == Head::Past {
                let head = std::mem::take(begun);
                if is_interim(&head) {
                    self.head = Head::Within;
                } else {
                    *begun = plain_connection(head);
                }
            }
        }
        Ok(())
    }

    /// Lets the reader have what this process holds already, but nothing more from the kernel.
    pub fn stop_reading(&mut self) {
        self.drained = true;
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(mut begun) = self.begun.take() {
            if let Err(error) = self.read_head(&mut begun) {
                self.begun = Some(begun);
                return Err(error);
            }
            let count = begun.len().min(into.len());
            into[..count].copy_from_slice(&begun[..count]);
            begun.drain(..count);
            self.begun = (!begun.is_empty()).then_some(begun);
            if count > 0 {
                return Ok(count);
            }
        }
        let most = match self.granted {
            Granted::All if self.ahead.borrow().bytes().is_empty() => self.fill()?,
            Granted::All => usize::MAX,
            Granted::Bytes(0) => {
                let ending = self.ending.take();
                return ending.unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()));
            }
            Granted::Bytes(count) => count,
        };
        let ahead = &mut *self.ahead.borrow_mut();
        let count = into.len().min(most).min(ahead.bytes().len());
        into[..count].copy_from_slice(&ahead.bytes()[..count]);
        ahead.take(count);
        if let Granted::Bytes(granted) = &mut self.granted {
            *granted -= count;
        }
        Ok(count)
    }
}

impl Write for Socket {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.send_unsent()?;
        self.tcp.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send_unsent()
    }
}

/// Whether a head is that of an interim answer (RFC 9110, section 15.2): 1xx, but for 101.
fn is_interim(head: &[u8]) -> bool {
    head.starts_with(b"HTTP/1.")
        && head.get(8..12).is_some_and(|status| status.starts_with(b" 1") && status != b" 101")
}

/// A head whose list of connection options has only the upgrade, if that is one of them: the
/// protocol library knows no list (RFC 6455, section 4.1, does).
fn plain_connection(head: Vec<u8>) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(&head) else { return head };
    let upgrades = |line: &&str| {
        line.split_once(':').is_some_and(|(name, list)| {
            let mut options = list.split(',').map(str::trim);
            name.eq_ignore_ascii_case("connection")
                && options.any(|option| option.eq_ignore_ascii_case("upgrade"))
        })
    };
    let lines = text.split_inclusive('\n');
    let plain = |line| if upgrades(&line) { "Connection: Upgrade\r\n" } else { line };
    lines.map(plain).collect::<String>().into_bytes()
}

/// Starts to connect to `target`, from `source` if there is one.
///
/// # Errors
/// Whatever `socket`, `bind` or `connect` refuse at once; a later refusal is the socket's error.
pub fn connect(target: SocketAddr, source: Option<IpAddr>) -> io::Result<TcpStream> {
    let domain = socket2::Domain::for_address(target);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, Some(socket2::Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    if let Some(source) = source {
        choose_port_at_connect(&socket)?;
        socket.bind(&SocketAddr::new(source, 0).into())?;
    }
    match socket.connect(&target.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(TcpStream::from_std(socket.into())),
    }
}

/// Without this, `bind` reserves a port for all destinations, and one in TIME_WAIT is not reused.
fn choose_port_at_connect(socket: &socket2::Socket) -> io::Result<()> {
    let yes: libc::c_int = 1;
    // SAFETY: the descriptor is open, and the option's value is one int that outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const yes).cast(),
            size_of_val(&yes) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_ends_at_its_empty_line() {
        for (bytes, expected) in [
            (&b"HTTP/1.1 101 X\r\nA: b\r\n\r\n\x81\x00"[..], 24),
            (b"HTTP/1.1 101 X\n\n\x81\x00", 16),
            (b"HTTP/1.1 101 X\r\nA: b\r\n", 22),
        ] {
            assert_eq!(Head::Within.take(bytes), expected);
        }
    }

    #[test]
    fn a_head_may_end_in_a_later_read() {
        let bytes = b"X\r\n\r\nrest";
        for split in 0..5 {
            let mut head = Head::Within;
            assert_eq!(head.take(&bytes[..split]), split);
            assert_eq!(head.take(&bytes[split..]), 5 - split, "split at {split}");
            assert_eq!(head.take(&bytes[5..]), 4);
        }
    }
}
