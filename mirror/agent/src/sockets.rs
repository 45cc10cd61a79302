//! Whether a connection's socket is still there, by sock_diag(7).

use std::io;
use std::net::Ipv6Addr;

use crate::layout::Key;
use crate::netlink::{Body, Socket};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// States of TCP in which nothing is sent any more, or that are another socket's than the one asked for.
const TIME_WAIT: u8 = 6;
const CLOSED: u8 = 7;
const LISTEN: u8 = 10;
const ALL_STATES: u32 = u32::MAX;

/// Looks for sockets in one network namespace.
pub struct Sockets {
    /// `None` where the kernel can't be asked.
    socket: Option<Socket>,
}

/// Which end of a connection this host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It sends the block.
    Source,
    /// It receives the block.
    Target,
}

impl Sockets {
    /// Asks whether the kernel tells of sockets at all; without, each connection counts as there.
    #[must_use]
    pub fn open() -> Self {
        let mut socket = Socket::diagnosis().ok();
        // No states: none is told of, but a kernel without CONFIG_INET_TCP_DIAG refuses.
        let told = socket.as_mut().is_some_and(|socket| {
            let body = request(libc::AF_INET, 0, &[0; 16], [0; 2], &[0; 16], [0; 2]);
            socket.dump(SOCK_DIAG_BY_FAMILY, &body).is_ok()
        });
        if !told {
            tracing::warn!(
                "the kernel does not tell of sockets (CONFIG_INET_TCP_DIAG): entries of flows that are ahead are kept"
            );
            socket = None;
        }
        Self { socket }
    }

    /// Whether this host has no such connection any more. False where that is not sure.
    pub fn is_gone(&mut self, key: &Key, end: End) -> bool {
        let Some(socket) = &mut self.socket else {
            return false;
        };
        let (here, there) = (
            (&key.source, key.source_port),
            (&key.target, key.target_port),
        );
        let (here, there) = match end {
            End::Source => (here, there),
            End::Target => (there, here),
        };
        let body = match (mapped(here.0), mapped(there.0)) {
            (Some(a), Some(b)) => request(libc::AF_INET, ALL_STATES, &a, here.1, &b, there.1),
            _ => request(libc::AF_INET6, ALL_STATES, here.0, here.1, there.0, there.1),
        };
        match socket.ask_one(SOCK_DIAG_BY_FAMILY, 0, &body) {
            Ok(answers) => !answers.iter().any(|(_, body)| {
                let state = body.get(1).copied().unwrap_or(CLOSED);
                !matches!(state, TIME_WAIT | CLOSED | LISTEN)
            }),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

/// An IPv4 address, as struct inet_diag_sockid has it.
fn mapped(address: &[u8; 16]) -> Option<[u8; 16]> {
    let four = Ipv6Addr::from(*address).to_ipv4_mapped()?;
    let mut octets = [0; 16];
    octets[..4].copy_from_slice(&four.octets());
    Some(octets)
}

/// struct inet_diag_req_v2.
fn request(
    family: i32,
    states: u32,
    here: &[u8; 16],
    here_port: [u8; 2],
    there: &[u8; 16],
    there_port: [u8; 2],
) -> Body {
    Body::default()
        .octets(&[family as u8, libc::IPPROTO_TCP as u8, 0, 0])
        .u32(states)
        .octets(&here_port)
        .octets(&there_port)
        .octets(here)
        .octets(there)
        .u32(0) // any interface
        .u32(u32::MAX) // any cookie
        .u32(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_is_there_until_it_is_closed() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                println!("skipped: {address}: no such address here");
                continue;
            };
            let to = listener.local_addr().expect("address");
            let up = TcpStream::connect(to).expect("connect");
            let (down, from) = listener.accept().expect("accept");
            let key = Key::new(from, to);
            let mut sockets = Sockets::open();
            assert!(!sockets.is_gone(&key, End::Source), "{address}");
            assert!(!sockets.is_gone(&key, End::Target), "{address}");
            drop((up, down));
            // The one that closed first is in TIME_WAIT, the other gone; the listener is another socket.
            assert!(sockets.is_gone(&key, End::Source), "{address}");
            assert!(sockets.is_gone(&key, End::Target), "{address}");
        }
    }
}
