//! Messages that are sent together, and echoes that are read together, stay messages of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tungstenite::{Message, WebSocket};

use crate::common::{NullServer, Row, Run, int, run, serve_one};

type Peer = WebSocket<TcpStream>;

const SIZE: usize = 33;

/// The rows of each connection, in the order of their sequence numbers.
fn by_connection(rows: Vec<Row>) -> Vec<Vec<Row>> {
    let mut found: BTreeMap<i64, BTreeMap<i64, Row>> = BTreeMap::new();
    for row in rows {
        let [connection, sequence] =
            ["connection", "sequence"].map(|name| int(&row, name).unwrap());
        assert!(found.entry(connection).or_default().insert(sequence, row).is_none(), "each once");
    }
    found.into_values().map(|rows| rows.into_values().collect()).collect()
}

/// Runs the client against a server that takes `count` messages and then answers them as told.
fn answered_together<T: Send + 'static>(
    count: usize,
    answer: impl FnOnce(&mut Peer, Vec<Vec<u8>>) -> T + Send + 'static,
) -> (Run, T) {
    let (url, server) = serve_one(move |stream| {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut peer = tungstenite::accept(stream).unwrap();
        let messages = (0..count).map(|_| peer.read().unwrap().into_data().to_vec()).collect();
        answer(&mut peer, messages)
    });
    let arguments = format!("-n 1 -i 50us --messages {count} -d 700ms --drain 300ms");
    (run(&url, &arguments), server.join().unwrap())
}

fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    [&[first, payload.len() as u8][..], payload].concat()
}

fn until_closed(peer: &mut Peer) -> Vec<Message> {
    std::iter::from_fn(|| peer.read().ok().filter(|message| !message.is_close())).collect()
}

fn counts(run: &Run) -> [u64; 4] {
    let messages = &run.summary()["messages"];
    ["sent_count", "echoed_count", "lost_count", "mismatched_count"]
        .map(|name| messages[name].as_u64().unwrap())
}

#[test]
fn messages_sent_together_keep_their_own_times() {
    let server = NullServer::start();
    let run = run(&server.url(), "-n 8 -i 100us -d 300ms --hold 1ms");
    let connections = by_connection(run.messages());
    assert_eq!(connections.len(), 8);
    for rows in &connections {
        let time = |name| rows.iter().map(|row| int(row, name).unwrap()).collect::<Vec<_>>();
        let [intended_us, sent_us, received_us] =
            ["intended_us", "sent_us", "received_us"].map(time);
        let sequences: Vec<_> = rows.iter().map(|row| int(row, "sequence").unwrap()).collect();
        assert_eq!(sequences, (0..rows.len() as i64).collect::<Vec<_>>());
        assert!(intended_us.windows(2).all(|pair| pair[1] - pair[0] == 100), "every 100 µs");
        assert!((299_900..300_000).contains(intended_us.last().unwrap()), "up to the end");
        assert!(intended_us.iter().zip(&sent_us).all(|(intended, sent)| intended <= sent));
        assert!(sent_us.iter().zip(&received_us).all(|(sent, received)| sent <= received));
        let writes = sent_us.iter().collect::<BTreeSet<_>>().len();
        assert!(2 * writes < rows.len(), "{writes} writes of {} messages", rows.len());
    }
    assert_eq!(counts(&run)[2..], [0, 0]);
}

#[test]
fn a_wrong_byte_among_echoes_read_together_is_noticed() {
    const COUNT: usize = 50;
    const SPOILT: usize = 25;
    // Of the sequence number, of the connection's number, and of the pattern.
    for place in [0, 5, 8, 20, SIZE - 1] {
        let (run, _) = answered_together(COUNT, move |peer, mut messages| {
            messages[SPOILT][place] ^= 0x40;
            let echoes: Vec<u8> = messages.iter().flat_map(|data| frame(0x82, data)).collect();
            peer.get_mut().write_all(&echoes).unwrap();
            until_closed(peer)
        });
        let count = COUNT as u64;
        assert_eq!(counts(&run), [count, count - 1, 1, 1], "byte {place}");
        let rows = by_connection(run.messages()).concat();
        let missing: Vec<_> =
            (0..COUNT).filter(|index| int(&rows[*index], "received_us").is_none()).collect();
        assert_eq!(missing, [SPOILT], "byte {place}");
    }
}

#[test]
fn echoes_out_of_order_within_one_read_are_each_found() {
    let (run, _) = answered_together(20, |peer, mut messages| {
        messages.swap(3, 11);
        messages.push(messages[7].clone());
        let echoes: Vec<u8> = messages.iter().flat_map(|data| frame(0x82, data)).collect();
        peer.get_mut().write_all(&echoes).unwrap();
        until_closed(peer)
    });
    assert_eq!(counts(&run), [20, 20, 0, 1], "the one that came twice is no echo");
}

/// Pseudo-random numbers (Knuth, The Art of Computer Programming, volume 2, section 3.3.4).
fn random(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

#[test]
fn echoes_may_be_cut_anywhere() {
    const COUNT: usize = 200;
    for seed in 1..=3 {
        let (run, others) = answered_together(COUNT, move |peer, messages| {
            let mut stream = Vec::new();
            for (index, data) in messages.iter().enumerate() {
                if index % 40 == 20 {
                    stream.extend(frame(0x89, &[index as u8]));
                }
                if index % 50 == 25 {
                    stream.extend(frame(0x02, &data[..9]));
                    stream.extend(frame(0x80, &data[9..]));
                } else {
                    stream.extend(frame(0x82, data));
                }
            }
            let mut state = seed;
            let mut rest = stream.as_slice();
            while !rest.is_empty() {
                let (piece, later) = rest.split_at(rest.len().min(1 + random(&mut state) % 100));
                peer.get_mut().write_all(piece).unwrap();
                std::thread::sleep(Duration::from_micros(300));
                rest = later;
            }
            until_closed(peer)
        });
        assert_eq!(counts(&run), [COUNT as u64, COUNT as u64, 0, 0], "seed {seed}");
        let pongs: Vec<_> =
            [20_u8, 60, 100, 140, 180].map(|index| Message::Pong(vec![index].into())).into();
        assert_eq!(others, pongs, "seed {seed}");
    }
}

#[test]
fn what_the_kernel_takes_in_part_arrives_whole() {
    let (url, server) = serve_one(|stream| {
        socket2::SockRef::from(&stream).set_recv_buffer_size(64 * 1024).unwrap();
        let mut peer = tungstenite::accept(stream).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let mut echoed = 0;
        while let Ok(message) = peer.read() {
            if message.is_binary() && peer.send(message).is_ok() {
                echoed += 1;
            }
        }
        echoed
    });
    // 12 MB in all, more than the kernel takes.
    let run = run(&url, "-n 1 -i 25us -s 1000 -d 300ms --drain 20s");
    let rows = run.messages();
    assert_eq!(counts(&run), [server.join().unwrap(), rows.len() as u64, 0, 0]);
    let held =
        |row: &&Row| int(row, "sent_us").unwrap() - int(row, "intended_us").unwrap() > 50_000;
    assert!(rows.iter().any(|row| held(&row)), "the kernel took everything at once");
}

#[test]
fn frames_of_one_write_have_masks_of_their_own() {
    const COUNT: usize = 100;
    const HEAD: [u8; 2] = [0x82, 0x80 | SIZE as u8];
    let (url, server) = serve_one(|stream| {
        let mut peer = tungstenite::accept(stream).unwrap();
        let mut frames = vec![[0_u8; HEAD.len() + 4 + SIZE]; COUNT];
        for frame in &mut frames {
            peer.get_mut().read_exact(frame).unwrap();
        }
        frames
    });
    run(&url, &format!("-n 1 -i 50us --messages {COUNT} -d 300ms --drain 0s"));
    let frames = server.join().unwrap();
    let masks: BTreeSet<_> = frames.iter().map(|frame| frame[2..6].to_vec()).collect();
    assert_eq!(masks.len(), COUNT, "all alike: one in 900,000");
    for (sequence, frame) in frames.iter().enumerate() {
        assert_eq!(frame[..2], HEAD);
        let payload: Vec<_> = frame[6..]
            .iter()
            .zip(frame[2..6].iter().cycle())
            .map(|(byte, key)| byte ^ key)
            .collect();
        assert_eq!(payload[..4], (sequence as u32).to_le_bytes());
    }
}
