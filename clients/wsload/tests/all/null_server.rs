//! The null server is correct: a floor that cheats would be no floor.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::common::NullServer;
use tungstenite::protocol::{CloseFrame, Role};
use tungstenite::{Message, WebSocket};

type Client = WebSocket<TcpStream>;

fn connect(server: &NullServer) -> Client {
    let stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    tungstenite::client(server.url(), stream).unwrap().0
}

/// Sends bytes as they are and gives the close code that comes back.
fn closed_with(server: &NullServer, bytes: &[u8]) -> Option<u16> {
    let mut client = connect(server);
    client.get_mut().write_all(bytes).unwrap();
    loop {
        match client.read() {
            Ok(Message::Close(frame)) => return frame.map(|frame| frame.code.into()),
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// A frame with the mask 0, which leaves the payload as it is.
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first, 0x80 | payload.len() as u8, 0, 0, 0, 0];
    frame.extend(payload);
    frame
}

#[test]
fn text_and_binary_of_all_sizes_come_back() {
    let server = NullServer::start();
    let mut client = connect(&server);
    for size in [0, 1, 33, 125, 126, 65_535, 65_536, 300_000] {
        let text = "é".repeat(size / 2);
        for message in [Message::binary(vec![9; size]), Message::text(text)] {
            client.send(message.clone()).unwrap();
            assert_eq!(client.read().unwrap(), message);
        }
    }
}

#[test]
fn fragments_come_back_as_one_message_and_pings_as_pongs() {
    let server = NullServer::start();
    let mut client = connect(&server);
    let bytes = [masked(0x01, b"one "), masked(0x89, b"?"), masked(0x80, b"message")].concat();
    client.get_mut().write_all(&bytes).unwrap();
    let mut answers = [client.read().unwrap(), client.read().unwrap()];
    answers.sort_by_key(Message::is_text);
    assert_eq!(answers, [Message::Pong("?".into()), Message::text("one message")]);
}

#[test]
fn a_close_is_answered_with_its_code() {
    let server = NullServer::start();
    let mut client = connect(&server);
    client.close(Some(CloseFrame { code: 4001.into(), reason: "".into() })).unwrap();
    let answer = client.read().unwrap();
    assert!(matches!(answer, Message::Close(Some(frame)) if u16::from(frame.code) == 4001));
    assert!(matches!(client.read(), Err(tungstenite::Error::ConnectionClosed)));
}

#[test]
fn broken_frames_are_refused() {
    let server = NullServer::start();
    assert_eq!(closed_with(&server, &[0x82, 1, b'x']), Some(1002), "unmasked");
    assert_eq!(closed_with(&server, &masked(0xC2, b"x")), Some(1002), "reserved bit");
    assert_eq!(closed_with(&server, &masked(0x83, b"x")), Some(1002), "reserved opcode");
    assert_eq!(closed_with(&server, &masked(0x81, b"\xff")), Some(1007), "invalid UTF-8");
}

#[test]
fn a_plain_request_is_no_upgrade() {
    let server = NullServer::start();
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(!answer.contains("101"), "{answer}");
}

#[test]
fn a_peer_that_does_not_read_gets_everything_later() {
    let server = NullServer::start();
    let client = connect(&server);
    let mut reader =
        Client::from_raw_socket(client.get_ref().try_clone().unwrap(), Role::Client, None);
    let mut writer = client;
    let count = 400;
    let writing = std::thread::spawn(move || {
        for index in 0..count {
            writer.send(Message::binary(vec![index as u8; 100_000])).unwrap();
        }
        writer
    });
    std::thread::sleep(Duration::from_millis(500));
    for index in 0..count {
        assert_eq!(reader.read().unwrap(), Message::binary(vec![index as u8; 100_000]));
    }
    writing.join().unwrap();
}
