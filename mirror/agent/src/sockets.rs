//! Whether a connection's socket is still there, by sock_diag(7).

use std::io;
use std::net::Ipv6Addr;

use crate::layout::Key;
use crate::netlink::{Body, Socket};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// States of TCP, as the kernel numbers them.
const FIN_WAIT2: u8 = 5;
const TIME_WAIT: u8 = 6;
const CLOSED: u8 = 7;
const CLOSE_WAIT: u8 = 8;
const LAST_ACK: u8 = 9;
const LISTEN: u8 = 10;
const CLOSING: u8 = 11;
const ALL_STATES: u32 = u32::MAX;

/// Looks for sockets in one network namespace.
pub struct Sockets {
    /// `None` where the kernel can't be asked.
    socket: Option<Socket>,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Life {
    /// Octets of the block may pass; or it is not sure that they can't.
    Open,
    /// All of the block has come to the end that receives it.
    Over,
    /// This host has no such connection any more.
    Gone,
}

/// Which end of a connection this host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
        self.life(key, end) == Life::Gone
    }

    /// How far a connection has come.
    pub fn life(&mut self, key: &Key, end: End) -> Life {
        let Some(socket) = &mut self.socket else {
            return Life::Open;
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
            Ok(answers) => {
                let states = answers.iter().map(|(_, body)| body.get(1).copied());
                let lives = states.map(|state| life_in(state.unwrap_or(CLOSED), end));
                lives.min().unwrap_or(Life::Gone)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Life::Gone,
            Err(_) => Life::Open,
        }
    }
}

/// What a socket's state says of the connection: nothing, where it is a listener's.
fn life_in(state: u8, end: End) -> Life {
    match (state, end) {
        (TIME_WAIT | CLOSED | LISTEN, _) => Life::Gone,
        // The far end has acknowledged all of ours, the FIN too.
        (FIN_WAIT2, End::Source) => Life::Over,
        // Its FIN has come, and all before it.
        (CLOSE_WAIT | LAST_ACK | CLOSING, End::Target) => Life::Over,
        _ => Life::Open,
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
    use std::net::{Shutdown, TcpListener, TcpStream};

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
            assert_eq!(sockets.life(&key, End::Source), Life::Open, "{address}");
            up.shutdown(Shutdown::Write).expect("shut");
            // The FIN is on its way, and then the ACK of it.
            while sockets.life(&key, End::Source) == Life::Open {
                std::thread::yield_now();
            }
            assert_eq!(sockets.life(&key, End::Source), Life::Over, "{address}");
            assert_eq!(sockets.life(&key, End::Target), Life::Over, "{address}");
            drop((up, down));
            // The one that closed first is in TIME_WAIT, the other gone; the listener is another socket.
            assert!(sockets.is_gone(&key, End::Source), "{address}");
            assert!(sockets.is_gone(&key, End::Target), "{address}");
        }
    }
}
