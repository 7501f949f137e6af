//! What the client does with every kind of frame that a server may send, right or wrong.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::common::{NullServer, Run, int, run, serve_one};
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::Role;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};

const ONE_MESSAGE: &str = "-n 1 -d 350ms -i 200ms --drain 300ms";

const FIN: u8 = 0x80;
const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const PING: u8 = 9;

/// An unmasked frame, as a server sends it.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        short @ 0..126 => frame.push(short as u8),
        middle @ 126..65_536 => {
            frame.push(126);
            frame.extend((middle as u16).to_be_bytes());
        }
        long => {
            frame.push(127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    frame.extend(payload);
    frame
}

type Peer = WebSocket<TcpStream>;

/// Runs the client against a server that upgrades, takes the first message and goes on as told.
fn after_first_message<T: Send + 'static>(
    arguments: &str,
    go_on: impl FnOnce(&mut Peer, Vec<u8>) -> T + Send + 'static,
) -> (Run, T) {
    let (url, server) = serve_one(move |stream| {
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut peer = tungstenite::accept(stream).unwrap();
        let first = peer.read().unwrap().into_data().to_vec();
        go_on(&mut peer, first)
    });
    finish(run(&url, arguments), server)
}

fn finish<T>(run: Run, server: JoinHandle<T>) -> (Run, T) {
    (run, server.join().unwrap())
}

fn send(peer: &mut Peer, bytes: &[u8]) {
    peer.get_mut().write_all(bytes).unwrap();
}

/// Reads until the client closes; gives the close code and all else that came.
fn until_closed(peer: &mut Peer) -> (Option<u16>, Vec<Message>) {
    let mut others = Vec::new();
    loop {
        match peer.read() {
            Ok(Message::Close(frame)) => return (frame.map(|frame| frame.code.into()), others),
            Ok(other) => others.push(other),
            Err(_) => return (None, others),
        }
    }
}

fn echoed_count(run: &Run) -> u64 {
    run.summary()["messages"]["echoed_count"].as_u64().unwrap()
}

fn outcome(run: &Run) -> String {
    run.connections()[0]["outcome"].as_str().unwrap().to_owned()
}

#[test]
fn a_fragmented_echo_with_pings_in_between_is_whole() {
    let (run, (_, others)) = after_first_message(ONE_MESSAGE, |peer, data| {
        send(peer, &frame(BINARY, &data[..1]));
        send(peer, &frame(FIN | PING, b"first"));
        send(peer, &frame(CONTINUATION, &data[1..20]));
        send(peer, &frame(CONTINUATION, b""));
        send(peer, &frame(FIN | CONTINUATION, &data[20..]));
        until_closed(peer)
    });
    assert_eq!(echoed_count(&run), 1);
    assert!(others.contains(&Message::Pong("first".into())), "{others:?}");
    assert_eq!(outcome(&run), "completed");
}

#[test]
fn a_ping_of_the_largest_size_is_answered_before_the_echo() {
    let (run, (code, others)) = after_first_message(ONE_MESSAGE, |peer, data| {
        send(peer, &frame(FIN | PING, &[7; 125]));
        let pong = peer.read().unwrap();
        assert_eq!(pong, Message::Pong(vec![7; 125].into()));
        send(peer, &frame(FIN | BINARY, &data));
        until_closed(peer)
    });
    assert_eq!(echoed_count(&run), 1);
    assert_eq!((code, others.len()), (Some(1000), 0));
}

#[test]
fn an_echo_may_come_byte_by_byte() {
    let (run, _) = after_first_message(ONE_MESSAGE, |peer, data| {
        peer.get_ref().set_nodelay(true).unwrap();
        for byte in frame(FIN | BINARY, &data) {
            send(peer, &[byte]);
            std::thread::sleep(Duration::from_millis(1));
        }
        until_closed(peer)
    });
    assert_eq!(echoed_count(&run), 1);
}

#[test]
fn frames_may_come_with_the_upgrade() {
    let (url, server) = serve_one(|mut stream| {
        let request = read_head(&mut stream);
        let mut answer = upgrade(&accept_key(&request)).into_bytes();
        answer.extend(frame(FIN | PING, b"early"));
        stream.write_all(&answer).unwrap();
        let mut peer = Peer::from_raw_socket(stream, tungstenite::protocol::Role::Server, None);
        let pong = peer.read().unwrap();
        let data = peer.read().unwrap().into_data().to_vec();
        send(&mut peer, &frame(FIN | BINARY, &data));
        until_closed(&mut peer);
        pong
    });
    let (run, pong) = finish(run(&url, ONE_MESSAGE), server);
    assert_eq!(pong, Message::Pong("early".into()));
    assert_eq!(echoed_count(&run), 1);
}

#[test]
fn the_servers_close_code_is_recorded_and_answered() {
    for code in [1000_u16, 1001, 1011, 3000, 4999] {
        let (run, (answer, _)) = after_first_message(ONE_MESSAGE, move |peer, _| {
            send(peer, &frame(FIN | 8, &code.to_be_bytes()));
            until_closed(peer)
        });
        assert_eq!(outcome(&run), "closed_by_server");
        assert_eq!(int(&run.connections()[0], "close_code"), Some(code.into()));
        assert_eq!(answer, Some(code));
    }
}

#[test]
fn the_codes_that_are_never_sent_tell_how_a_connection_ended() {
    let (without_code, _) = after_first_message(ONE_MESSAGE, |peer, _| {
        send(peer, &frame(FIN | 8, b""));
        until_closed(peer)
    });
    assert_eq!(int(&without_code.connections()[0], "close_code"), Some(1005));
    let (without_close, ()) = after_first_message(ONE_MESSAGE, |peer, _| {
        peer.get_ref().shutdown(std::net::Shutdown::Both).unwrap();
    });
    assert_eq!(outcome(&without_close), "closed_by_server");
    assert_eq!(int(&without_close.connections()[0], "close_code"), Some(1006));
    let (reset, ()) = after_first_message(ONE_MESSAGE, |peer, _| {
        let socket = socket2::SockRef::from(peer.get_ref());
        socket.set_linger(Some(Duration::ZERO)).unwrap();
    });
    assert_eq!(outcome(&reset), "reset");
    for run in [without_code, without_close, reset] {
        let messages = &run.summary()["messages"];
        assert_eq!((&messages["sent_count"], &messages["lost_count"]), (&1.into(), &1.into()));
    }
}

#[test]
fn an_end_that_comes_with_the_echo_is_noticed() {
    // More messages would be due for a connection that seems open.
    let (run, ()) = after_first_message("-n 1 -d 1s -i 200ms --drain 300ms", |peer, data| {
        socket2::SockRef::from(peer.get_ref()).set_tcp_cork(true).unwrap();
        send(peer, &frame(FIN | BINARY, &data));
        peer.get_ref().shutdown(std::net::Shutdown::Write).unwrap();
        std::thread::sleep(Duration::from_millis(500));
    });
    assert_eq!(outcome(&run), "closed_by_server");
    assert_eq!(echoed_count(&run), 1);
    assert_eq!(run.messages().len(), 1);
}

#[test]
fn what_breaks_the_protocol_is_refused() {
    let masked = {
        let mut masked = frame(FIN | BINARY, b"x");
        masked[1] |= 0x80;
        masked.splice(2..2, [0; 4]);
        masked
    };
    let too_large_ping = frame(FIN | PING, &[0; 126]);
    for (what, bytes) in [
        ("a masked frame", masked),
        ("a reserved bit", frame(FIN | 0x40 | BINARY, b"x")),
        ("a reserved data opcode", frame(FIN | 3, b"x")),
        ("a reserved control opcode", frame(FIN | 11, b"x")),
        ("a fragmented ping", frame(PING, b"x")),
        ("too large a ping", too_large_ping),
        ("a continuation of nothing", frame(FIN | CONTINUATION, b"x")),
        ("a message within a message", [frame(BINARY, b"x"), frame(FIN | TEXT, b"y")].concat()),
        ("a close of one byte", frame(FIN | 8, b"x")),
    ] {
        let (run, (code, _)) = after_first_message(ONE_MESSAGE, move |peer, _| {
            send(peer, &bytes);
            until_closed(peer)
        });
        assert_eq!(outcome(&run), "protocol_error", "{what}");
        assert_eq!(code, Some(1002), "{what}");
        assert!(run.connections()[0]["error"].is_string(), "{what}");
    }
}

#[test]
fn invalid_utf8_is_refused() {
    let arguments = format!("{ONE_MESSAGE} --text");
    let split = [frame(TEXT, b"\xe2\x82"), frame(FIN | CONTINUATION, b"\x28")].concat();
    for bytes in [frame(FIN | TEXT, b"\xff"), frame(FIN | TEXT, b"\xed\xa0\x80"), split] {
        let (run, (code, _)) = after_first_message(&arguments, move |peer, _| {
            send(peer, &bytes);
            until_closed(peer)
        });
        assert_eq!(outcome(&run), "protocol_error");
        assert_eq!(code, Some(CloseCode::Invalid.into()));
    }
}

#[test]
fn a_character_may_be_split_over_fragments() {
    let (run, _) = after_first_message(&format!("{ONE_MESSAGE} --text"), |peer, data| {
        send(peer, &frame(TEXT, b"\xe2\x82"));
        send(peer, &frame(FIN | CONTINUATION, b"\xac"));
        send(peer, &frame(FIN | TEXT, &data));
        until_closed(peer)
    });
    assert_eq!(outcome(&run), "completed");
    assert_eq!(run.summary()["messages"]["mismatched_count"], 1);
    assert_eq!(echoed_count(&run), 1);
}

#[test]
fn only_the_same_message_is_an_echo() {
    type Spoil = fn(Vec<u8>) -> Vec<u8>;
    let spoilt: [(&str, Spoil); 4] = [
        ("one bit less", |mut data| {
            data[32] ^= 1;
            frame(FIN | BINARY, &data)
        }),
        ("one byte less", |data| frame(FIN | BINARY, &data[..32])),
        ("text for binary", |data| {
            frame(FIN | TEXT, &data.iter().map(|b| b & 127).collect::<Vec<_>>())
        }),
        ("another sequence number", |mut data| {
            data[0] += 1;
            frame(FIN | BINARY, &data)
        }),
    ];
    for (what, spoil) in spoilt {
        let (run, _) = after_first_message(ONE_MESSAGE, move |peer, data| {
            send(peer, &spoil(data));
            until_closed(peer)
        });
        let messages = &run.summary()["messages"];
        assert_eq!(messages["mismatched_count"], 1, "{what}");
        let shown = messages["first_mismatched"].as_str().unwrap();
        let kind = if what == "text for binary" { "text, 33 B: " } else { "binary, 3" };
        assert!(shown.starts_with(kind), "{what}: {shown}");
        assert_eq!(messages["lost_count"], 1, "{what}");
        assert_eq!(int(&run.connections()[0], "mismatched_count"), Some(1), "{what}");
        assert_eq!(int(&run.messages()[0], "received_us"), None, "{what}");
    }
}

#[test]
fn echoes_out_of_order_and_twice_are_told_apart() {
    let (run, _) = after_first_message("-n 1 -d 500ms -i 200ms --drain 300ms", |peer, first| {
        let second = peer.read().unwrap().into_data();
        for data in [&second[..], &first, &second] {
            send(peer, &frame(FIN | BINARY, data));
        }
        until_closed(peer)
    });
    let messages = &run.summary()["messages"];
    assert_eq!((&messages["echoed_count"], &messages["mismatched_count"]), (&2.into(), &1.into()));
}

#[test]
fn every_length_encoding_is_echoed() {
    let server = NullServer::start();
    for size in [0, 1, 7, 8, 9, 33, 125, 126, 127, 65_535, 65_536, 65_537, 1_000_000] {
        for text in ["", "--text"] {
            let arguments = format!("-n 2 -d 100ms -i 50ms -s {size} {text}");
            let messages = &run(&server.url(), &arguments).summary()["messages"];
            assert!(messages["sent_count"].as_u64() >= Some(2), "{size} {text}");
            assert_eq!(messages["sent_count"], messages["echoed_count"], "{size} {text}");
            assert_eq!(messages["mismatched_count"], 0, "{size} {text}");
        }
    }
}

#[test]
fn a_rejected_handshake_is_a_class_of_its_own() {
    type Answer = fn(&str) -> String;
    let answers: [(Answer, &str, Option<i64>); 5] = [
        (
            |_| "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".into(),
            "handshake_rejected",
            Some(404),
        ),
        (
            |_| "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".into(),
            "handshake_rejected",
            Some(200),
        ),
        (|_| upgrade("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "handshake_rejected", None),
        (|_| "SSH-2.0-OpenSSH\r\n\r\n".into(), "handshake_rejected", None),
        (|_| String::new(), "closed_by_server", None),
    ];
    for (answer, expected, status) in answers {
        let (url, server) = serve_one(move |mut stream| {
            let request = read_head(&mut stream);
            stream.write_all(answer(&accept_key(&request)).as_bytes()).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let _ = stream.read(&mut [0; 64]);
        });
        let (run, ()) = finish(run(&url, ONE_MESSAGE), server);
        assert_eq!(run.code(), Some(1));
        assert_eq!(outcome(&run), expected);
        assert_eq!(int(&run.connections()[0], "http_status"), status);
    }
}

#[test]
fn an_upgrade_may_come_in_pieces_after_interim_answers_and_list_options() {
    const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
    for piece_bytes in [1, 12, 1000] {
        let (url, server) = serve_one(move |mut stream| {
            stream.set_nodelay(true).unwrap();
            let request = read_head(&mut stream);
            let upgrade = upgrade(&accept_key(&request));
            let listed = upgrade.replace("Connection: Upgrade", "connection: keep-alive,upgrade");
            let answer = format!("{HINTS}{HINTS}{listed}");
            for piece in answer.as_bytes().chunks(piece_bytes) {
                stream.write_all(piece).unwrap();
                std::thread::yield_now();
            }
            let mut peer = WebSocket::from_raw_socket(stream, Role::Server, None);
            let first = peer.read().unwrap();
            peer.send(first).unwrap();
            until_closed(&mut peer)
        });
        let (run, _) = finish(run(&url, ONE_MESSAGE), server);
        assert_eq!((outcome(&run).as_str(), echoed_count(&run)), ("completed", 1), "{piece_bytes}");
    }
}

#[test]
fn a_server_that_says_nothing_times_out() {
    let (url, server) = serve_one(|mut stream| {
        read_head(&mut stream);
        let _ = stream.read(&mut [0; 64]);
    });
    let arguments = "-n 1 -d 2s --handshake-timeout 300ms";
    let (run, ()) = finish(run(&url, arguments), server);
    assert_eq!(outcome(&run), "handshake_timeout");
    let row = &run.connections()[0];
    assert!(int(row, "connected_us").is_some() && int(row, "upgraded_us").is_none());
    let waited_us = int(row, "closed_us").unwrap() - int(row, "started_us").unwrap();
    assert!((300_000..500_000).contains(&waited_us), "{waited_us} µs");
}

#[test]
fn the_request_is_the_one_asked_for() {
    let (url, server) = serve_one(|mut stream| {
        let request = read_head(&mut stream);
        stream.write_all(upgrade(&accept_key(&request)).as_bytes()).unwrap();
        request
    });
    let (mut command, _parent) = crate::common::wsload(&format!("{url}chat?room=1"), ONE_MESSAGE);
    command.args(["--header", "Origin: http://here"]).output().unwrap();
    let request = server.join().unwrap();
    assert!(request.starts_with("GET /chat?room=1 HTTP/1.1\r\n"), "{request}");
    for header in [
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Origin: http://here",
    ] {
        assert!(request.contains(&format!("\r\n{header}\r\n")), "{header}: {request}");
    }
}

fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

fn accept_key(request: &str) -> String {
    let key = request.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
    derive_accept_key(key.as_bytes())
}

fn upgrade(accept: &str) -> String {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    )
}
