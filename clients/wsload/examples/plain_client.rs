//! A client as plain as can be, to judge wsload by: it writes, reads and looks at the clock.
//!
//! `plain_client ADDRESS COUNT SPACING_US` prints the round-trip time of each message in µs.

use std::env::args;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

fn main() {
    let words: Vec<String> = args().skip(1).collect();
    let [address, count, spacing_us] = &words[..] else {
        panic!("usage: plain_client ADDRESS COUNT SPACING_US");
    };
    let count: usize = count.parse().unwrap();
    let spacing = Duration::from_micros(spacing_us.parse().unwrap());
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let (peer, _) = tungstenite::client(format!("ws://{address}/"), stream).unwrap();
    let mut stream = peer.into_inner();
    let mut request = vec![0x82, 0x80 | 33, 0, 0, 0, 0];
    request.extend([7; 33]);
    let mut echo = [0; 35];
    let mut due = Instant::now();
    for _ in 0..count {
        due += spacing;
        sleep(due.saturating_duration_since(Instant::now()));
        let start = Instant::now();
        stream.write_all(&request).unwrap();
        stream.read_exact(&mut echo).unwrap();
        println!("{}", start.elapsed().as_micros());
    }
}
