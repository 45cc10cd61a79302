//! TLS over TCP: `tls://host:port`, `tls4://…`, `tls6://…`. TLS 1.3 alone; both ends show a certificate of the cluster's
//! own CA, and who connects checks that the name it connects to is in the other's.
//!
//! ```text
//!           TCP connected              both proven
//!   (begun) ------------> Handshaking ------------> Open ---> (ended)
//! ```
//! The handshake is bounded in bytes here, in time and number by the loop. What the peer sends is opened in a buffer of
//! the thread and copied from there to the reader's, which is the one copy more than TCP has; what is sent is sealed out
//! of the send queue, which is the other. Neither shared memory nor descriptors go by it.

#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod handshake;
mod open;
mod records;
mod wire;

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use rustls::pki_types::ServerName;
use socket2::Socket;

use crate::config::{FaceConfig, ListenConfig};
use crate::credentials::Credentials;
use crate::face::backlog::{self, Backlog};
use crate::face::io::StreamIo;
use crate::face::queue::SendQueue;
use crate::transport::low_water::LowWater;
use crate::transport::{Accepted, Acceptor, Scheme, StreamTransport, socket, tcp};
use crate::uri::{Address, DEFAULT_TLS_PORT, Endpoint, FaceUri, Host};
use handshake::{Done, Handshake};
use open::{BATCH, Open};
use records::MAX_RECORD;
use wire::{Wire, closed};

/// What a connection may hold: a received record that is not whole, sealed ones that the system does not take, and what
/// rustls keeps of the keys and of the peer's certificate.
const MEMORY: usize = MAX_RECORD + BATCH * MAX_RECORD + handshake::MAX_BYTES;

/// The face type.
pub(crate) struct Tls;

impl Scheme for Tls {
    fn schemes(&self) -> &'static [&'static str] {
        &["tls", "tls4", "tls6"]
    }

    fn example(&self) -> &'static str {
        "tls://host:port"
    }

    fn parse(&self, scheme: &str, rest: &str) -> Result<Address, String> {
        Endpoint::parse(scheme, rest, DEFAULT_TLS_PORT).map(Address::Endpoint)
    }

    /// A certificate is a host's, and says nothing of who on that host has connected.
    fn is_local(&self, _: &Address) -> bool {
        false
    }

    fn needs_certificate(&self) -> bool {
        true
    }
}

impl StreamTransport for Tls {
    fn connect(&self, address: &Address, config: &FaceConfig) -> io::Result<Box<dyn StreamIo>> {
        let credentials = credentials(config.link.tls.as_ref())?;
        let handshake = Handshake::client(credentials.client(), peer_name(config)?)?;
        let socket = tcp::connect(address, config)?;
        Ok(Box::new(TlsConn::new(socket, handshake)))
    }

    fn listen(&self, config: &ListenConfig) -> io::Result<Box<dyn Acceptor>> {
        let credentials = credentials(config.link.tls.as_ref())?.clone();
        let (socket, own) = tcp::listen(config)?;
        Ok(Box::new(TlsListener {
            socket,
            uri: FaceUri::tls(own),
            credentials,
        }))
    }
}

fn credentials(given: Option<&Credentials>) -> io::Result<&Credentials> {
    given.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "there is no certificate for TLS",
        )
    })
}

/// Whose certificate the other end must show.
fn peer_name(config: &FaceConfig) -> io::Result<ServerName<'static>> {
    let name = match (&config.server_name, config.uri.endpoint()) {
        (Some(name), _) => name.clone(),
        (None, Some(endpoint)) => match &endpoint.host {
            Host::Ip(ip) => return Ok(ServerName::IpAddress((*ip).into())),
            Host::Name(name) => name.clone(),
        },
        (None, None) => String::new(),
    };
    ServerName::try_from(name.clone()).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`{name}` is no name that a certificate could have"),
        )
    })
}

struct TlsListener {
    socket: Socket,
    uri: FaceUri,
    credentials: Credentials,
}

impl Acceptor for TlsListener {
    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn uri(&self) -> FaceUri {
        self.uri.clone()
    }

    fn accept(&mut self) -> io::Result<Accepted> {
        let (socket, own, peer) = tcp::accept(&self.socket)?;
        let handshake = Handshake::server(self.credentials.server())?;
        Ok(Accepted {
            io: Box::new(TlsConn::new(socket, handshake)),
            is_up: false,
            address: Some(peer.ip()),
            remote_uri: FaceUri::tls(peer).to_string(),
            local_uri: FaceUri::tls(own).to_string(),
            is_local: false,
        })
    }

    fn has_handshakes(&self) -> bool {
        true
    }
}

/// One connection.
struct TlsConn {
    wire: Wire,
    state: State,
    names: Vec<String>,
    /// What the kernel holds of what we wrote.
    backlog: Backlog,
    /// How much wakes the loop.
    low_water: LowWater,
}

enum State {
    Handshaking(Box<Handshake>),
    Open(Box<Open>),
    Ended,
}

impl TlsConn {
    fn new(socket: Socket, handshake: Handshake) -> Self {
        Self {
            wire: Wire::new(socket),
            state: State::Handshaking(Box::new(handshake)),
            names: Vec::new(),
            backlog: Backlog::default(),
            low_water: LowWater::new(),
        }
    }

    fn open(&mut self, done: Done) {
        self.names = done.names;
        self.state = State::Open(Box::new(Open::new(done.records, done.sealed)));
    }

    fn shake_hands(&mut self) -> Option<io::Result<()>> {
        let State::Handshaking(handshake) = &mut self.state else {
            return Some(Ok(()));
        };
        match handshake.step(&mut self.wire) {
            Ok(false) => return None,
            Ok(true) => {}
            Err(error) => {
                self.state = State::Ended;
                return Some(Err(error));
            }
        }
        if let State::Handshaking(handshake) = std::mem::replace(&mut self.state, State::Ended) {
            match handshake.finish() {
                Ok(done) => self.open(done),
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(()))
    }
}

impl StreamIo for TlsConn {
    fn fd(&self) -> RawFd {
        self.wire.socket.as_raw_fd()
    }

    fn connected(&mut self) -> Option<io::Result<()>> {
        match socket::connected(&self.wire.socket) {
            Some(Ok(())) => self.shake_hands(),
            other => other,
        }
    }

    fn peer_names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn memory_bytes(&self) -> usize {
        MEMORY
    }

    fn local_uri(&self) -> String {
        let own = self.wire.socket.local_addr().ok();
        match own.and_then(|own| own.as_socket()) {
            Some(address) => FaceUri::tls(address).to_string(),
            None => format!("fd://{}", self.wire.socket.as_raw_fd()),
        }
    }

    fn dscp(&self) -> Option<u8> {
        socket::dscp(&self.wire.socket)
    }

    fn on_event(&mut self, event: &mio::event::Event) {
        self.wire.on_event(event);
    }

    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let State::Open(open) = &mut self.state else {
            return Err(closed());
        };
        match open.read(&mut self.wire, buf) {
            Ok(n) => Ok(n),
            Err(bad) => {
                open.tell(&mut self.wire, bad.alert);
                self.state = State::Ended;
                Err(bad.error)
            }
        }
    }

    /// A record has more bytes than its content, and of the one that has begun some may have come.
    fn expect(&mut self, bytes: usize) -> io::Result<()> {
        let begun = match &self.state {
            State::Open(open) => open.held.len(),
            _ => 0,
        };
        let missing = bytes.saturating_sub(begun);
        self.low_water.expect(self.wire.socket.as_fd(), missing)
    }

    fn take_read_cost(&mut self) -> usize {
        match &mut self.state {
            State::Open(open) => open.take_cost(),
            _ => 0,
        }
    }

    fn flush(&mut self, queue: &mut SendQueue) -> io::Result<()> {
        let State::Open(open) = &mut self.state else {
            return Err(closed());
        };
        loop {
            let n = open.write(&mut self.wire, !queue.is_empty())?;
            self.backlog.wrote(n);
            if queue.is_empty() || open.sealed_bytes() > 0 {
                return Ok(());
            }
            open.seal(queue)?;
        }
    }

    fn unwritten(&self) -> usize {
        match &self.state {
            State::Open(open) => open.sealed_bytes(),
            _ => 0,
        }
    }

    fn waiting(&mut self, now: Duration, queued: usize, threshold: usize) -> usize {
        let waits = queued + self.unwritten();
        let socket = &self.wire.socket;
        let unsent = || backlog::unsent(socket.as_fd());
        self.backlog.total(now, waits, threshold, unsent)
    }
}

impl Drop for TlsConn {
    fn drop(&mut self) {
        if let State::Open(open) = &mut self.state {
            // Whoever still listens knows that nothing was cut off.
            open.tell_end(&mut self.wire, None);
        }
    }
}

#[cfg(test)]
mod tests;
