//! Face types, one a file. A face type is a [`Scheme`] with a [`StreamTransport`] or a
//! [`DatagramTransport`] behind it, and a line in [`FACE_TYPES`]; `docs/extend.md` says how to add one.
//!
//! What is made here moves bytes ([`StreamIo`], [`DatagramIo`]); frames, greetings, fragments, queues
//! and congestion marks are the face's, and connecting again is the loop's.

mod conn;
mod fd_passing;
pub(crate) mod lending;
pub(crate) mod low_water;
pub(crate) mod shm;
mod socket;
mod tcp;
pub(crate) mod tls;
mod udp;
mod unix;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::str::FromStr;
use std::sync::Arc;

use crate::config::{FaceConfig, LinkOptions, ListenConfig};
use crate::face::io::{DatagramIo, StreamIo};
use crate::uri::{Address, FaceUri, FaceUriError};

/// All face types.
const FACE_TYPES: &[FaceType] = &[
    FaceType::Stream(&unix::Unix),
    FaceType::Stream(&tcp::Tcp),
    FaceType::Stream(&tls::Tls),
    FaceType::Datagram(&udp::Udp),
];

/// A face type, by what it carries.
#[derive(Clone, Copy)]
pub(crate) enum FaceType {
    /// Bytes in order, by connections.
    Stream(&'static dyn StreamTransport),
    /// Datagrams.
    Datagram(&'static dyn DatagramTransport),
}

/// How a face type is named and addressed.
pub(crate) trait Scheme: Sync {
    /// Schemes of its face URIs; the first is the name of the face type. One that ends in `4` or
    /// `6` asks for that IP version.
    fn schemes(&self) -> &'static [&'static str];

    /// How its face URIs look, for who wrote a wrong one.
    fn example(&self) -> &'static str;

    /// Reads what stands behind `<scheme>://`.
    ///
    /// # Errors
    /// What is wrong with it.
    fn parse(&self, scheme: &str, rest: &str) -> Result<Address, String>;

    /// Whether who is at this address is on this host for sure, so that `/localhost` names may
    /// pass where no setting says otherwise.
    fn is_local(&self, address: &Address) -> bool;

    /// Whether its faces need a certificate ([`LinkOptions::tls`]).
    fn needs_certificate(&self) -> bool {
        false
    }
}

/// A face type that carries streams.
pub(crate) trait StreamTransport: Scheme {
    /// Begins to connect, without waiting, to `address`: that of `config`, resolved.
    fn connect(&self, address: &Address, config: &FaceConfig) -> io::Result<Box<dyn StreamIo>>;

    /// Lets peers connect.
    fn listen(&self, config: &ListenConfig) -> io::Result<Box<dyn Acceptor>>;
}

/// A listener of a stream face type.
pub(crate) trait Acceptor: Send {
    /// What the loop waits for events on.
    fn fd(&self) -> RawFd;

    /// Where it listens, with the port that the system chose where it was asked to.
    fn uri(&self) -> FaceUri;

    /// Takes in one peer.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where nobody waits, [`io::ErrorKind::ConnectionAborted`] where
    /// this peer has gone meanwhile.
    fn accept(&mut self) -> io::Result<Accepted>;

    /// Whether its peers have to prove who they are before they have a face.
    fn has_handshakes(&self) -> bool {
        false
    }
}

/// A peer that has connected.
pub(crate) struct Accepted {
    pub io: Box<dyn StreamIo>,
    /// Packets may flow at once; else [`StreamIo::connected`] tells when.
    pub is_up: bool,
    /// Its address, where it has one.
    pub address: Option<IpAddr>,
    pub remote_uri: String,
    pub local_uri: String,
    /// It is on this host for sure, and was let in as such.
    pub is_local: bool,
}

/// A face type that carries datagrams. Peers are told apart by their socket addresses.
pub(crate) trait DatagramTransport: Scheme {
    /// Opens what a face toward a peer, or a multicast group, hears and speaks by; names are
    /// resolved. `local` is the address to bind to.
    fn open(
        &self,
        address: &Address,
        local: Option<IpAddr>,
        link: &LinkOptions,
    ) -> io::Result<Opened>;

    /// Opens what any peer may speak to.
    fn listen(&self, config: &ListenConfig) -> io::Result<Arc<dyn DatagramIo>>;
}

/// What a datagram face hears and speaks by: two sockets on a multicast link, else one.
pub(crate) struct Opened {
    pub peer: SocketAddr,
    pub hears: Arc<dyn DatagramIo>,
    pub speaks: Arc<dyn DatagramIo>,
}

impl FaceType {
    /// The face type of a URI.
    pub fn of(uri: &FaceUri) -> Option<Self> {
        Self::by_scheme(uri.face_type())
    }

    fn by_scheme(scheme: &str) -> Option<Self> {
        let has = |face_type: &&Self| face_type.scheme().schemes().contains(&scheme);
        FACE_TYPES.iter().find(has).copied()
    }

    fn scheme(&self) -> &'static dyn Scheme {
        match *self {
            Self::Stream(transport) => transport,
            Self::Datagram(transport) => transport,
        }
    }
}

/// What is said where a URI's face type has gone missing between reading and using it.
pub(crate) fn unknown_type() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "there is no such face type")
}

impl FaceUri {
    /// Reads a face URI.
    ///
    /// # Errors
    /// Names what of the text is wrong and how a URI is written.
    pub fn parse(text: &str) -> Result<Self, FaceUriError> {
        let fail = |reason: String| {
            let examples = FACE_TYPES.iter().map(|known| known.scheme().example());
            FaceUriError::new(text, reason, examples.collect())
        };
        let (name, rest) = text
            .split_once("://")
            .ok_or_else(|| fail("it has no scheme".to_owned()))?;
        let face_type = FaceType::by_scheme(name)
            .ok_or_else(|| fail(format!("the scheme `{name}` is not known")))?;
        let scheme = face_type.scheme();
        let address = scheme.parse(name, rest).map_err(fail)?;
        Ok(Self::new(scheme.schemes()[0], address))
    }

    /// Whether a face there needs a certificate ([`LinkOptions::tls`]).
    pub fn needs_certificate(&self) -> bool {
        FaceType::of(self).is_some_and(|known| known.scheme().needs_certificate())
    }

    /// Whether the forwarder there takes a client of this face for one of its own host, so that
    /// `/localhost` names may pass: by Unix socket and TCP over loopback; over TLS and UDP none does.
    pub fn is_on_this_host(&self) -> bool {
        FaceType::of(self).is_some_and(|known| known.scheme().is_local(self.address()))
    }
}

impl FromStr for FaceUri {
    type Err = FaceUriError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}
