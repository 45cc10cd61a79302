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

mod handshake;
mod records;
mod wire;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use rustls::crypto::cipher::OutboundChunks;
use rustls::pki_types::ServerName;
use socket2::Socket;

use crate::config::{FaceConfig, ListenConfig};
use crate::credentials::Credentials;
use crate::face::backlog::{self, Backlog};
use crate::face::io::StreamIo;
use crate::face::queue::{GATHER, SendQueue};
use crate::transport::{Accepted, Acceptor, Scheme, StreamTransport, socket, tcp};
use crate::uri::{Address, DEFAULT_TLS_PORT, Endpoint, FaceUri, Host};
use handshake::{Done, Handshake};
use records::{Bad, Content, MAX_CONTENT, MAX_RECORD, Records};
use wire::{Wire, closed};

/// Records that one write takes, at most.
const BATCH: usize = 4;
/// Bytes read from the socket at once, at most: a turn of the loop.
const MAX_READ: usize = 256 << 10;
/// What a connection may hold: a received record that is not whole, sealed ones that the system does not take, and what
/// rustls keeps of the keys and of the peer's certificate.
const MEMORY: usize = MAX_RECORD + BATCH * MAX_RECORD + handshake::MAX_BYTES;

thread_local! {
    /// Where records are opened.
    static OPENED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

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
}

enum State {
    Handshaking(Box<Handshake>),
    Open(Box<Open>),
    Ended,
}

/// A connection whose handshake is over.
struct Open {
    records: Records,
    /// Received and not handed on: some that is opened already, and the beginning of a record. [`MAX_RECORD`] bytes at
    /// most.
    held: Vec<u8>,
    /// Bytes of `held` that are opened.
    opened: usize,
    /// Sealed, and not taken by the system yet; of the first one, this many bytes are.
    sealed: VecDeque<Vec<u8>>,
    written: usize,
    sealed_bytes: usize,
    /// The peer has said that it sends nothing more.
    is_over: bool,
}

impl TlsConn {
    fn new(socket: Socket, handshake: Handshake) -> Self {
        Self {
            wire: Wire::new(socket),
            state: State::Handshaking(Box::new(handshake)),
            names: Vec::new(),
            backlog: Backlog::default(),
        }
    }

    fn open(&mut self, done: Done) {
        self.names = done.names;
        let mut held = done.plain;
        let opened = held.len();
        held.extend_from_slice(&done.sealed);
        self.state = State::Open(Box::new(Open {
            records: done.records,
            held,
            opened,
            sealed: VecDeque::new(),
            written: 0,
            sealed_bytes: 0,
            is_over: false,
        }));
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
        match OPENED.with_borrow_mut(|space| open.read(&mut self.wire, space, buf)) {
            Ok(n) => Ok(n),
            Err(bad) => {
                open.tell(&mut self.wire, bad.alert);
                self.state = State::Ended;
                Err(bad.error)
            }
        }
    }

    fn flush(&mut self, queue: &mut SendQueue) -> io::Result<()> {
        let State::Open(open) = &mut self.state else {
            return Err(closed());
        };
        loop {
            let n = open.write(&mut self.wire, !queue.is_empty())?;
            self.backlog.wrote(n);
            if queue.is_empty() || !open.sealed.is_empty() {
                return Ok(());
            }
            open.seal(queue)?;
        }
    }

    fn unwritten(&self) -> usize {
        match &self.state {
            State::Open(open) => open.sealed_bytes,
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
        if let State::Open(open) = &mut self.state
            && open.sealed.is_empty()
            && let Ok(end) = open.records.seal_end(None)
        {
            // Whoever still listens knows that nothing was cut off.
            let _ = self.wire.write(&[IoSlice::new(&end)], false);
        }
    }
}

impl Open {
    /// Reads into `buf` what has come, opened; 0 where nothing has. `space` is for the opening.
    fn read(&mut self, wire: &mut Wire, space: &mut Vec<u8>, buf: &mut [u8]) -> Result<usize, Bad> {
        if space.is_empty() {
            space.resize(MAX_READ.max(MAX_RECORD), 0);
        }
        // So much that what is left over is less than a record.
        let most = buf.len().clamp(MAX_RECORD, space.len());
        loop {
            if self.opened > 0 {
                return Ok(self.take_opened(buf));
            }
            if self.is_over {
                return Err(ended(closed()));
            }
            let mut filled = self.held.len();
            space[..filled].copy_from_slice(&self.held);
            self.held.clear();
            if !has_record(&space[..filled])? {
                let read = wire.read(&mut space[filled..most]);
                let n = match read {
                    Ok(n) => n,
                    Err(error) => return Err(ended(error)),
                };
                filled += n;
                if n == 0 {
                    self.held.extend_from_slice(&space[..filled]);
                    return Ok(0);
                }
            }
            let n = self.open_into(&mut space[..filled], buf)?;
            if n > 0 {
                return Ok(n);
            }
        }
    }

    /// Opens the whole records in `bytes` into `buf`, as far as they find room there, and holds the rest.
    fn open_into(&mut self, bytes: &mut [u8], buf: &mut [u8]) -> Result<usize, Bad> {
        let (mut at, mut out) = (0, 0);
        while out < buf.len()
            && !self.is_over
            && let Some(len) = records::length(&bytes[at..])?
            && let Some(record) = bytes.get_mut(at..at + len)
        {
            at += len;
            match self.records.open(record)? {
                Content::Data(data) => {
                    let taken = data.len().min(buf.len() - out);
                    buf[out..out + taken].copy_from_slice(&data[..taken]);
                    out += taken;
                    self.held.extend_from_slice(&data[taken..]);
                    self.opened = self.held.len();
                }
                Content::Message => {}
                Content::Closed => self.is_over = true,
            }
        }
        self.held.extend_from_slice(&bytes[at..]);
        Ok(out)
    }

    fn take_opened(&mut self, buf: &mut [u8]) -> usize {
        let taken = self.opened.min(buf.len());
        buf[..taken].copy_from_slice(&self.held[..taken]);
        self.held.drain(..taken);
        self.opened -= taken;
        taken
    }

    /// Seals some of the queue's bytes, in as many records as one write takes.
    fn seal(&mut self, queue: &mut SendQueue) -> io::Result<()> {
        if self.records.must_rekey() {
            let told = self.records.rekey()?;
            self.push(told);
        }
        let mut slots = [IoSlice::new(&[]); GATHER];
        let filled = queue.gather(&mut slots, BATCH * MAX_CONTENT);
        let mut chunks: [&[u8]; GATHER] = [&[]; GATHER];
        for (chunk, slot) in chunks.iter_mut().zip(&slots[..filled]) {
            *chunk = slot;
        }
        let mut rest = OutboundChunks::new(&chunks[..filled]);
        let taken = rest.len();
        while !rest.is_empty() {
            let (data, more) = rest.split_at(MAX_CONTENT);
            let record = self.records.seal(data)?;
            self.sealed_bytes += record.len();
            self.sealed.push_back(record);
            rest = more;
        }
        queue.advance(taken);
        Ok(())
    }

    fn push(&mut self, record: Vec<u8>) {
        self.sealed_bytes += record.len();
        self.sealed.push_back(record);
    }

    /// Writes what is sealed, as far as it goes; returns how many bytes went.
    fn write(&mut self, wire: &mut Wire, more: bool) -> io::Result<usize> {
        let mut all = 0;
        while !self.sealed.is_empty() {
            let mut slots = [IoSlice::new(&[]); BATCH + 1];
            let filled = self.sealed.len().min(slots.len());
            for (slot, record) in slots.iter_mut().zip(&self.sealed) {
                *slot = IoSlice::new(record);
            }
            slots[0] = IoSlice::new(&self.sealed[0][self.written..]);
            let n = wire.write(&slots[..filled], more)?;
            if n == 0 {
                break;
            }
            all += n;
            self.wrote(n);
        }
        Ok(all)
    }

    fn wrote(&mut self, n: usize) {
        self.sealed_bytes -= n;
        self.written += n;
        while let Some(first) = self.sealed.front()
            && self.written >= first.len()
        {
            self.written -= first.len();
            self.sealed.pop_front();
        }
    }

    /// Tells the peer why the connection ends, as far as that goes at once.
    fn tell(&mut self, wire: &mut Wire, alert: rustls::AlertDescription) {
        if self.sealed.is_empty()
            && alert != rustls::AlertDescription::CloseNotify
            && let Ok(end) = self.records.seal_end(Some(alert))
        {
            let _ = wire.write(&[IoSlice::new(&end)], false);
        }
    }
}

/// The connection has ended by itself: the peer is told nothing.
fn ended(error: io::Error) -> Bad {
    Bad {
        alert: rustls::AlertDescription::CloseNotify,
        error,
    }
}

fn has_record(bytes: &[u8]) -> Result<bool, Bad> {
    Ok(records::length(bytes)?.is_some_and(|len| len <= bytes.len()))
}

#[cfg(test)]
mod tests;
