//! What the loop holds under its tokens: listeners, UDP ports, faces.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ndn_forwarder::{FaceId, FacePersistency};
use ndn_packet::MAX_PACKET;
use rustc_hash::FxHashMap;

use super::admission::Admission;
use crate::app::App;
use crate::config::{FaceConfig, ListenConfig};
use crate::face::budget::Share;
use crate::face::datagram::DatagramFace;
use crate::face::io::{DatagramIo, StreamIo};
use crate::face::link::{Link, LinkCounters};
use crate::face::stream::StreamFace;
use crate::rate_limit::RateLimit;
use crate::transport::{Accepted, Acceptor};

/// Something with a token of its own.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are of the large kind"
)]
pub(super) enum Slot {
    Listener(Listener),
    Port(Port),
    Arriving(Arriving),
    Face(Face),
}

/// A peer that has connected and not proven yet who it is.
pub(super) struct Arriving {
    /// Its number among the handshakes under way.
    pub id: u64,
    pub peer: Accepted,
    /// Slot of the listener that it came in at.
    pub listener: usize,
    /// It is in the list of those that may go on.
    pub ready: bool,
    /// What it takes, and its face will, of the memory for faces.
    pub cost: Share,
}

/// A stream listener.
pub(super) struct Listener {
    pub socket: Box<dyn Acceptor>,
    pub config: ListenConfig,
    pub admission: Admission,
    /// Somebody may still wait to be accepted, and a timer is set for that.
    pub accepts_later: bool,
    /// Complaints about accepting.
    pub complaints: RateLimit,
}

/// A UDP socket and whose datagrams it receives.
pub(super) struct Port {
    pub port: Arc<dyn DatagramIo>,
    pub ready: bool,
    pub owner: PortOwner,
}

pub(super) enum PortOwner {
    /// The face in this slot has the socket for itself.
    Face(usize),
    /// Any peer may speak; each has a face, made on demand.
    Listener(Box<UdpListener>),
}

pub(super) struct UdpListener {
    pub config: ListenConfig,
    pub peers: FxHashMap<SocketAddr, usize>,
    pub admission: Admission,
}

/// A face, from its first attempt to connect to its end.
pub(super) struct Face {
    pub id: FaceId,
    pub kind: FaceKind,
    pub persistency: FacePersistency,
    /// Largest packet that it takes, as the core knows it.
    pub max_packet: usize,
    /// What it takes of the memory for faces.
    _cost: Share,
    /// Bytes were put in its queue since it was last flushed.
    pub dirty: bool,
    /// It is in the list of faces that may have something to read.
    pub ready: bool,
    /// Its shared memory must be armed before the loop sleeps.
    pub unarmed: bool,
    pub link_timer: bool,
}

pub(super) enum FaceKind {
    Stream(Stream),
    Udp(Udp),
    App(AppSlot),
}

/// A stream face, connected or not.
pub(super) struct Stream {
    pub state: StreamState,
    /// Counters of the connections before this one.
    pub past: LinkCounters,
    pub origin: StreamOrigin,
    pub local_fields: bool,
}

#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are of the large kind"
)]
pub(super) enum StreamState {
    Up(StreamFace),
    Connecting(Box<dyn StreamIo>),
    /// Until its timer, or until its name is resolved.
    Waiting,
}

pub(super) enum StreamOrigin {
    /// Came in at the listener in this slot, from this address.
    Accepted(usize, Option<IpAddr>),
    /// We connect, and connect again.
    Connected(Box<Connector>),
}

pub(super) struct Connector {
    pub config: FaceConfig,
    /// How long the next wait is.
    pub backoff: Duration,
    /// When the connection came about, while it stands.
    pub up_since: Option<Duration>,
    /// Complaints about being down.
    pub complaints: RateLimit,
    /// Attempts so far: a time-out concerns the one it was set for.
    pub attempts: u64,
    /// A management command waits to hear whether the first attempt succeeded.
    pub request: Option<u64>,
}

pub(super) struct Udp {
    pub face: DatagramFace,
    /// Slot of the port that it receives from.
    pub port: usize,
    pub origin: UdpOrigin,
    pub last_heard: Duration,
    pub multicast: bool,
    /// Own address on a multicast link, where one hears oneself.
    pub own: Option<SocketAddr>,
    /// How often we have introduced ourselves.
    pub hellos: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UdpOrigin {
    /// A peer spoke to a listener's port.
    OnDemand,
    /// We made the face and say hello from time to time.
    Opened,
}

/// An application in the process.
pub(super) struct AppSlot {
    pub app: Box<dyn App>,
    pub woken: Arc<AtomicBool>,
    pub deadline: Option<Duration>,
}

impl Face {
    /// `cost` is what the face takes of the memory for faces.
    pub fn new(id: FaceId, kind: FaceKind, persistency: FacePersistency, cost: Share) -> Self {
        Self {
            id,
            kind,
            persistency,
            max_packet: MAX_PACKET,
            _cost: cost,
            dirty: false,
            ready: false,
            unarmed: false,
            link_timer: false,
        }
    }

    /// Its link, while it is connected.
    pub fn link_mut(&mut self) -> Option<&mut Link> {
        match &mut self.kind {
            FaceKind::Stream(Stream {
                state: StreamState::Up(face),
                ..
            }) => Some(&mut face.link),
            FaceKind::Udp(udp) => Some(&mut udp.face.link),
            _ => None,
        }
    }

    /// Its link, while it is connected.
    pub fn link(&self) -> Option<&Link> {
        match &self.kind {
            FaceKind::Stream(Stream {
                state: StreamState::Up(face),
                ..
            }) => Some(&face.link),
            FaceKind::Udp(udp) => Some(&udp.face.link),
            _ => None,
        }
    }

    pub fn stream_up(&mut self) -> Option<&mut StreamFace> {
        match &mut self.kind {
            FaceKind::Stream(Stream {
                state: StreamState::Up(face),
                ..
            }) => Some(face),
            _ => None,
        }
    }
}

impl Stream {
    pub fn is_up(&self) -> bool {
        matches!(self.state, StreamState::Up(_))
    }

    /// Counters of all connections so far.
    pub fn counters(&self) -> LinkCounters {
        match &self.state {
            StreamState::Up(face) => self.past.plus(&face.link.counters()),
            _ => self.past,
        }
    }
}
