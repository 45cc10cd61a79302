//! The handshake: rustls's, over a socket that must not wait, and bounded in bytes.
//!
//! rustls is shown one record after the other, and none behind the peer's last message of the handshake: those are for
//! [`Records`]. It would take a KeyUpdate there, and keep its own answer to itself as what it sends is sealed elsewhere.
//!
//! ```text
//! | shown to rustls, not used up | shown next: one record | not shown yet |
//! 0                            shown                              incoming.len()
//! ```

use std::io::{self, IoSlice};
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls::{ClientConfig, ServerConfig};

use super::records::{HEADER, Records};
use super::wire::Wire;
use crate::credentials::words;

/// Bytes that a peer may send before it has proven who it is. A host's certificate and what goes with it take 2 KiB, a
/// chain of long RSA keys 8.
pub(super) const MAX_BYTES: usize = 16 << 10;
/// Bytes read at once.
const READ: usize = 4 << 10;

/// A handshake under way.
pub(super) struct Handshake {
    side: Side,
    /// What has come and is not used up.
    incoming: Vec<u8>,
    /// Bytes of it that rustls has been shown.
    shown: usize,
    /// Where the record begins that is the next to be shown, or whose beginning has been.
    next: usize,
    /// Bytes that have come in all.
    received: usize,
    /// What is to be sent.
    outgoing: Vec<u8>,
}

enum Side {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

/// What comes of a handshake.
pub(super) struct Done {
    pub records: Records,
    /// The names that the peer has proven to have.
    pub names: Vec<String>,
    /// What has come behind the handshake, as it was received.
    pub sealed: Vec<u8>,
}

/// How far rustls has come.
enum Step {
    Again,
    /// It needs more of the peer, or is done.
    Blocked,
}

impl Handshake {
    /// Of who connects, to a peer that must be `name`.
    pub fn client(config: Arc<ClientConfig>, name: ServerName<'static>) -> io::Result<Self> {
        let connection = UnbufferedClientConnection::new(config, name).map_err(failed)?;
        Ok(Self::new(Side::Client(connection)))
    }

    /// Of who listens.
    pub fn server(config: Arc<ServerConfig>) -> io::Result<Self> {
        let connection = UnbufferedServerConnection::new(config).map_err(failed)?;
        Ok(Self::new(Side::Server(connection)))
    }

    fn new(side: Side) -> Self {
        Self {
            side,
            incoming: Vec::new(),
            shown: 0,
            next: 0,
            received: 0,
            outgoing: Vec::new(),
        }
    }

    /// Goes on as far as the socket lets it; whether it is done, and all of it sent.
    ///
    /// # Errors
    /// The peer has gone, is not whom it must be, or sends what is no handshake. It has been told, if it listens.
    pub fn step(&mut self, wire: &mut Wire) -> io::Result<bool> {
        loop {
            if let Err(error) = self.process() {
                self.tell(wire);
                return Err(failed(error));
            }
            self.send(wire)?;
            if !self.is_handshaking() {
                return Ok(self.outgoing.is_empty());
            }
            if !self.receive(wire)? {
                return Ok(false);
            }
        }
    }

    /// The connection that it has led to.
    ///
    /// # Errors
    /// It is not done.
    pub fn finish(self) -> io::Result<Done> {
        let certificates = match &self.side {
            Side::Client(client) => client.peer_certificates(),
            Side::Server(server) => server.peer_certificates(),
        };
        let names = words::names(certificates.and_then(<[_]>::first));
        let records = match self.side {
            Side::Client(client) => {
                let (secrets, keys) = client.dangerous_into_kernel_connection().map_err(failed)?;
                Records::new(secrets, Box::new(keys), true)
            }
            Side::Server(server) => {
                let (secrets, keys) = server.dangerous_into_kernel_connection().map_err(failed)?;
                Records::new(secrets, Box::new(keys), false)
            }
        };
        Ok(Done {
            records: records?,
            names,
            sealed: self.incoming,
        })
    }

    fn is_handshaking(&self) -> bool {
        match &self.side {
            Side::Client(connection) => connection.is_handshaking(),
            Side::Server(connection) => connection.is_handshaking(),
        }
    }

    /// Has rustls do what it can with what has come, up to the end of the handshake.
    fn process(&mut self) -> Result<(), rustls::Error> {
        loop {
            while matches!(self.process_one()?, Step::Again) {}
            if !self.is_handshaking() || !self.show_more() {
                return Ok(());
            }
        }
    }

    /// Shows rustls one record more, or as much of it as has come; false where that is nothing new.
    fn show_more(&mut self) -> bool {
        let before = self.shown;
        match record_end(&self.incoming, self.next) {
            Some(end) => (self.shown, self.next) = (end, end),
            None => self.shown = self.incoming.len(),
        }
        self.shown > before
    }

    fn process_one(&mut self) -> Result<Step, rustls::Error> {
        let Self {
            side,
            incoming,
            outgoing,
            ..
        } = self;
        let shown = &mut incoming[..self.shown];
        let (discard, step) = match side {
            Side::Client(client) => handle(client.process_tls_records(shown), outgoing),
            Side::Server(server) => handle(server.process_tls_records(shown), outgoing),
        };
        self.incoming.drain(..discard);
        self.shown -= discard;
        self.next = self.next.saturating_sub(discard);
        step
    }

    /// Tells the peer why it has failed, as far as that goes at once.
    fn tell(&mut self, wire: &mut Wire) {
        // The alert comes before anything is looked at; after it rustls must not be asked again.
        let _ = self.process_one();
        let _ = self.send(wire);
    }

    fn send(&mut self, wire: &mut Wire) -> io::Result<()> {
        while !self.outgoing.is_empty() {
            let n = wire.write(&[IoSlice::new(&self.outgoing)], false)?;
            if n == 0 {
                break;
            }
            self.outgoing.drain(..n);
        }
        Ok(())
    }

    /// Reads on; false where nothing has come.
    fn receive(&mut self, wire: &mut Wire) -> io::Result<bool> {
        let left = MAX_BYTES - self.received;
        if left == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the peer's handshake is longer than {MAX_BYTES} bytes"),
            ));
        }
        let mut bytes = [0; READ];
        let n = wire.read(&mut bytes[..left.min(READ)])?;
        self.received += n;
        self.incoming.extend_from_slice(&bytes[..n]);
        Ok(n > 0)
    }
}

/// Does what one state of rustls asks for; how many bytes of what has come are used up, and whether to go on.
fn handle<D>(
    status: UnbufferedStatus<'_, '_, D>,
    outgoing: &mut Vec<u8>,
) -> (usize, Result<Step, rustls::Error>) {
    let UnbufferedStatus { discard, state } = status;
    let state = match state {
        Ok(state) => state,
        Err(error) => return (discard, Err(error)),
    };
    let step = match state {
        ConnectionState::EncodeTlsData(mut data) => encode(outgoing, |buf| data.encode(buf)),
        ConnectionState::TransmitTlsData(data) => {
            // It is sent before anything else is.
            data.done();
            Ok(Step::Again)
        }
        ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_) => Ok(Step::Blocked),
        _ => Err(rustls::Error::General("closed by the peer".to_owned())),
    };
    (discard, step)
}

/// Where the record that begins at `from` ends, if it is there whole. What is no record is for rustls to refuse.
fn record_end(bytes: &[u8], from: usize) -> Option<usize> {
    let [_, _, _, high, low, ..] = *bytes.get(from..)? else {
        return None;
    };
    let end = from + HEADER + usize::from(u16::from_be_bytes([high, low]));
    (end <= bytes.len()).then_some(end)
}

fn encode(
    outgoing: &mut Vec<u8>,
    mut encode: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
) -> Result<Step, rustls::Error> {
    let before = outgoing.len();
    let mut room = READ;
    loop {
        outgoing.resize(before + room, 0);
        match encode(&mut outgoing[before..]) {
            Ok(n) => {
                outgoing.truncate(before + n);
                return Ok(Step::Again);
            }
            Err(EncodeError::InsufficientSize(size)) if room < size.required_size => {
                room = size.required_size;
            }
            Err(error) => {
                outgoing.truncate(before);
                return Err(rustls::Error::General(error.to_string()));
            }
        }
    }
}

fn failed(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words::of_connection(&error))
}
