//! The server's address and the request that every connection makes.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use ipnet::IpNet;
use tungstenite::client::IntoClientRequest;
use tungstenite::handshake::client::{Request, generate_key};
use tungstenite::http::{HeaderName, HeaderValue, Uri};

/// More source addresses than any run needs: ports for a billion connections.
const MOST_SOURCES: usize = 65_536;

/// Where to connect to, and what to ask for there.
#[derive(Debug, Clone)]
pub struct Target {
    pub address: SocketAddr,
    request: Request,
}

impl Target {
    /// Resolves a URL.
    ///
    /// # Errors
    /// A sentence for the user: what is wrong with the URL, the host or a header.
    pub fn new(url: &str, headers: &[String]) -> Result<Self, String> {
        let wrong = |what: String| format!("{url}: {what}; write ws://HOST:PORT/PATH");
        let uri: Uri = url.parse().map_err(|error| wrong(format!("not a URL ({error})")))?;
        match uri.scheme_str() {
            Some("ws") => {}
            Some("wss") => return Err(wrong("wsload does not speak TLS".into())),
            Some(other) => return Err(wrong(format!("the scheme {other} is not ws"))),
            None => return Err(wrong("there is no scheme".into())),
        }
        let host = uri.host().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| wrong("there is no host".into()))?;
        let port = uri.port_u16().unwrap_or(80);
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let address = (bare, port)
            .to_socket_addrs()
            .map_err(|error| format!("{url}: cannot find the host {bare}: {error}"))?
            .next()
            .ok_or_else(|| format!("{url}: the host {bare} has no address"))?;
        let mut request =
            uri.into_client_request().map_err(|error| wrong(format!("not usable ({error})")))?;
        for header in headers {
            let (name, value) = parse_header(header)?;
            request.headers_mut().insert(name, value);
        }
        Ok(Self { address, request })
    }

    /// The upgrade request of one connection, with a key of its own.
    pub fn request(&self) -> Request {
        let mut request = self.request.clone();
        let key = generate_key().parse().expect("base64 is a valid header value");
        request.headers_mut().insert("Sec-WebSocket-Key", key);
        request
    }
}

fn parse_header(header: &str) -> Result<(HeaderName, HeaderValue), String> {
    let wrong = || format!("--header {header:?}: write NAME: VALUE");
    let (name, value) = header.split_once(':').ok_or_else(wrong)?;
    let name = name.trim().parse().map_err(|_| wrong())?;
    let value = value.trim().parse().map_err(|_| wrong())?;
    Ok((name, value))
}

/// The addresses that a list of addresses and networks names, in order.
///
/// # Errors
/// A sentence for the user: an entry that is neither, that is of the other family than `target`,
/// that names too many addresses, or that this machine does not have.
pub fn sources(list: &[String], target: SocketAddr) -> Result<Vec<IpAddr>, String> {
    let mut sources = Vec::new();
    for entry in list {
        let wrong = |what: &str| format!("--source {entry}: {what}");
        let network: IpNet = match entry.parse::<IpAddr>() {
            Ok(address) => address.into(),
            Err(_) => entry.parse().map_err(|_| {
                wrong("neither an address (127.0.0.2) nor a network (127.0.0.0/28)")
            })?,
        };
        if network.addr().is_ipv4() != target.is_ipv4() {
            return Err(wrong(&format!("not of the same family as the server's {}", target.ip())));
        }
        sources.extend(network.hosts().take(MOST_SOURCES + 1));
        if sources.len() > MOST_SOURCES {
            return Err(wrong(&format!(
                "more than {MOST_SOURCES} addresses: name a smaller network"
            )));
        }
    }
    for source in &sources {
        std::net::TcpListener::bind((*source, 0)).map_err(|error| {
            format!("--source {source}: this machine cannot use it as its own: {error}")
        })?;
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks() {
        let target = "127.0.0.1:9000".parse().unwrap();
        let list = ["127.0.0.9".to_owned(), "127.0.1.0/30".to_owned()];
        let expected: [IpAddr; 3] =
            ["127.0.0.9", "127.0.1.1", "127.0.1.2"].map(|ip| ip.parse().unwrap());
        assert_eq!(sources(&list, target).unwrap(), expected);
    }

    #[test]
    fn bad_sources_are_named() {
        let target = "127.0.0.1:9000".parse().unwrap();
        for (entry, part) in [
            ("banana", "neither an address"),
            ("::1", "not of the same family"),
            ("10.0.0.0/8", "more than 65536"),
            ("192.0.2.1", "cannot use it"),
        ] {
            let message = sources(&[entry.to_owned()], target).unwrap_err();
            assert!(message.contains(entry) && message.contains(part), "{message}");
        }
    }

    #[test]
    fn bad_urls_are_named() {
        for (url, part) in [
            ("http://127.0.0.1/", "the scheme http"),
            ("wss://127.0.0.1/", "TLS"),
            ("127.0.0.1:9000", "ws://HOST:PORT"),
            ("/echo", "no scheme"),
            ("ws://", "not a URL"),
            ("ws://no-such-host.invalid/", "cannot find the host no-such-host.invalid"),
        ] {
            let message = Target::new(url, &[]).unwrap_err();
            assert!(message.contains(part), "{url}: {message}");
        }
        let header = Target::new("ws://127.0.0.1/", &["no colon".to_owned()]).unwrap_err();
        assert!(header.contains("NAME: VALUE"), "{header}");
    }

    #[test]
    fn every_request_has_its_own_key() {
        let target = Target::new("ws://[::1]:9001/echo", &["Origin: here".to_owned()]).unwrap();
        assert_eq!(target.address, "[::1]:9001".parse().unwrap());
        let (one, two) = (target.request(), target.request());
        assert_ne!(one.headers()["Sec-WebSocket-Key"], two.headers()["Sec-WebSocket-Key"]);
        assert_eq!(one.headers()["Origin"], "here");
        assert_eq!(one.headers()["Host"], "[::1]:9001");
    }
}
