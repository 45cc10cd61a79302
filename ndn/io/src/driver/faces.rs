//! Listeners and faces come and go.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use ndn_forwarder::{FaceId, FacePersistency, FaceScope, FaceSpec, LinkType};
use rustc_hash::FxHashMap;
use socket2::Socket;

use super::slots::{
    AppSlot, Connector, Face, FaceKind, Listener, Port, PortOwner, Slot, Stream, StreamOrigin,
    StreamState, Udp, UdpListener, UdpOrigin,
};
use super::timers::Timer;
use super::{Core, Driver, is_loopback, random_u64};
use crate::config::{FaceConfig, LinkOptions, ListenConfig};
use crate::face::link::LinkCounters;
use crate::rate_limit::RateLimit;
use crate::transport::conn::Conn;
use crate::transport::shm::Side;
use crate::transport::socket;
use crate::transport::stream::StreamFace;
use crate::transport::udp::{UdpFace, UdpPort};
use crate::uri::FaceUri;

/// A listener without room for a peer looks again after this long.
const ACCEPT_AGAIN: std::time::Duration = std::time::Duration::from_millis(100);
/// Peers taken in at once; those behind them wait until the others' faces have had their turn.
const ACCEPT_AT_ONCE: usize = 64;
const ACCEPT_SOON: std::time::Duration = std::time::Duration::from_millis(1);

impl<C: Core> Driver<C> {
    pub(super) fn open_listener(&mut self, mut config: ListenConfig) -> io::Result<()> {
        if let FaceUri::Udp(endpoint) = &config.uri {
            let bytes = config.link.socket_buffer_bytes;
            let port = Arc::new(UdpPort::new(socket::bind_udp(endpoint.resolve()?, bytes)?)?);
            config.uri = FaceUri::udp(port.local_addr()?);
            tracing::info!(uri = %config.uri, "listening");
            let peers = FxHashMap::default();
            self.add_port(
                port,
                PortOwner::Listener(UdpListener {
                    config,
                    peers,
                    refused: 0,
                }),
            )?;
            return Ok(());
        }
        let socket = socket::listen_stream(&config.uri, config.unix_mode)?;
        if let FaceUri::Tcp(_) = &config.uri
            && let Some(address) = socket.local_addr()?.as_socket()
        {
            config.uri = FaceUri::tcp(address);
        }
        tracing::info!(uri = %config.uri, "listening");
        let fd = socket.as_raw_fd();
        let at = self.slots.insert(Slot::Listener(Listener {
            socket,
            config,
            open_faces: 0,
            refused: 0,
            complaints: RateLimit::default(),
        }));
        self.register(fd, at)
    }

    fn add_port(&mut self, port: Arc<UdpPort>, owner: PortOwner) -> io::Result<usize> {
        let fd = port.raw_fd();
        let at = self.slots.insert(Slot::Port(Port {
            port,
            ready: false,
            owner,
        }));
        self.register(fd, at).map(|()| at)
    }

    /// Takes in whoever waits at a stream listener.
    pub(super) fn accept(&mut self, at: usize) {
        for _ in 0..ACCEPT_AT_ONCE {
            let Some(Slot::Listener(listener)) = self.slots.get_mut(at) else {
                return;
            };
            match listener.socket.accept() {
                Ok((socket, _)) if listener.open_faces >= listener.config.max_faces => {
                    listener.refused += 1;
                    drop(socket);
                }
                Ok((socket, _)) => {
                    listener.open_faces += 1;
                    if let Err(error) = self.accepted(at, socket) {
                        tracing::debug!(%error, "a peer went before its face was made");
                        self.left_listener(at);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    listener.refused += 1;
                    if listener.complaints.allows(self.now) {
                        tracing::warn!(%error, uri = %listener.config.uri, "cannot accept a peer");
                    }
                    self.timers.set(self.now + ACCEPT_AGAIN, Timer::Accept(at));
                    return;
                }
            }
        }
        self.timers.set(self.now + ACCEPT_SOON, Timer::Accept(at));
    }

    fn accepted(&mut self, listener_at: usize, socket: Socket) -> io::Result<()> {
        let Some(Slot::Listener(listener)) = self.slots.get(listener_at) else {
            return Ok(());
        };
        let link = listener.config.link.clone();
        let unix = matches!(listener.config.uri, FaceUri::Unix(_));
        socket::tune_stream(&socket, unix, link.socket_buffer_bytes)?;
        let (remote, local, is_local) = if unix {
            let remote = format!("fd://{}", socket.as_raw_fd());
            (remote, listener.config.uri.to_string(), true)
        } else {
            let (Some(peer), Some(own)) = (
                socket.peer_addr()?.as_socket(),
                socket.local_addr()?.as_socket(),
            ) else {
                return Err(io::Error::other("a TCP peer without an IP address"));
            };
            let is_local = is_loopback(&peer) && is_loopback(&own);
            (
                FaceUri::tcp(peer).to_string(),
                FaceUri::tcp(own).to_string(),
                is_local,
            )
        };
        let spec = spec(remote, local, is_local, FacePersistency::OnDemand, &link);
        let fd = socket.as_raw_fd();
        let conn = Conn::new(socket, unix);
        let stream = Stream {
            state: StreamState::Up(StreamFace::new(
                conn,
                Side::Listener,
                unix,
                &link,
                self.send_budget.share(),
            )),
            past: LinkCounters::default(),
            origin: StreamOrigin::Accepted(listener_at),
            local_fields: false,
        };
        let at = self.add_face(spec, FaceKind::Stream(stream));
        if let Err(error) = self.register(fd, at) {
            self.forget_face(at);
            return Err(error);
        }
        Ok(())
    }

    /// A face that came in at this listener has gone.
    pub(super) fn left_listener(&mut self, at: usize) {
        if let Some(Slot::Listener(listener)) = self.slots.get_mut(at) {
            listener.open_faces = listener.open_faces.saturating_sub(1);
        }
    }

    pub(super) fn add_face(&mut self, spec: FaceSpec, kind: FaceKind) -> usize {
        let persistency = spec.persistency;
        tracing::info!(
            remote = spec.remote_uri,
            local = spec.local_uri,
            "face added"
        );
        let id = self.core.add_face(self.now, spec);
        let at = self
            .slots
            .insert(Slot::Face(Face::new(id, kind, persistency)));
        self.by_face.insert(id.0, at);
        at
    }

    /// Opens a face; returns its slot.
    pub fn open_face(&mut self, config: FaceConfig) -> io::Result<usize> {
        match &config.uri {
            FaceUri::Udp(endpoint) => {
                let peer = endpoint.resolve()?;
                self.open_udp(&config, peer)
            }
            FaceUri::Unix(_) | FaceUri::Tcp(_) => Ok(self.open_stream(config, None)),
        }
    }

    /// Makes a stream face and begins to connect it; returns its slot.
    pub(super) fn open_stream(&mut self, config: FaceConfig, request: Option<u64>) -> usize {
        let is_local = match &config.uri {
            FaceUri::Unix(_) => true,
            FaceUri::Tcp(endpoint) => endpoint.literal().is_some_and(|a| is_loopback(&a)),
            FaceUri::Udp(_) => false,
        };
        let local = match &config.uri {
            FaceUri::Unix(_) => "fd://0".to_owned(),
            _ => match config.local_bind {
                Some(ip) => FaceUri::tcp(SocketAddr::new(ip, 0)).to_string(),
                None => "tcp://".to_owned(),
            },
        };
        let spec = spec(
            config.uri.to_string(),
            local,
            is_local,
            config.persistency,
            &config.link,
        );
        let backoff = config.reconnect.0;
        let at = self.add_face(
            spec,
            FaceKind::Stream(Stream {
                state: StreamState::Waiting,
                past: LinkCounters::default(),
                origin: StreamOrigin::Connected(Box::new(Connector {
                    config,
                    backoff,
                    up_since: None,
                    complaints: RateLimit::default(),
                    attempts: 0,
                    request,
                })),
                local_fields: false,
            }),
        );
        if let Some(Slot::Face(face)) = self.slots.get(at) {
            self.core.face_down(self.now, face.id);
        }
        self.connect(at);
        at
    }

    /// Makes a UDP face of our own toward a peer or a group; returns its slot.
    pub(super) fn open_udp(&mut self, config: &FaceConfig, peer: SocketAddr) -> io::Result<usize> {
        let bytes = config.link.socket_buffer_bytes;
        let multicast = peer.ip().is_multicast();
        let (port, speaker) = if multicast {
            let (hear, speak) = socket::multicast(peer, config.local_bind, bytes)?;
            (
                Arc::new(UdpPort::new(hear)?),
                Arc::new(UdpPort::new(speak)?),
            )
        } else {
            let socket = socket::connect_udp(peer, config.local_bind, bytes)?;
            let port = Arc::new(UdpPort::new(socket)?);
            (port.clone(), port)
        };
        // The face's slot is known only after the port's: the owner is put right below.
        let port_at = self.add_port(port, PortOwner::Face(usize::MAX))?;
        let added = self.add_udp_face(
            port_at,
            speaker.clone(),
            peer,
            &config.link,
            UdpOrigin::Opened,
            config.persistency,
        );
        if let Some(at) = added {
            if let Some(Slot::Port(port)) = self.slots.get_mut(port_at) {
                port.owner = PortOwner::Face(at);
            }
            if let Some(Slot::Face(Face {
                id,
                kind: FaceKind::Udp(_),
                ..
            })) = self.slots.get(at)
            {
                if multicast {
                    self.register(speaker.raw_fd(), at)?;
                } else {
                    self.say_hello(*id);
                }
            }
        }
        added.ok_or_else(|| io::Error::other("no random numbers, or no address"))
    }

    /// Makes a face that hears by a port and speaks by `speaker`; `None` where the system has no
    /// random numbers or no address for it.
    pub(super) fn add_udp_face(
        &mut self,
        port: usize,
        speaker: Arc<UdpPort>,
        peer: SocketAddr,
        link: &LinkOptions,
        origin: UdpOrigin,
        persistency: FacePersistency,
    ) -> Option<usize> {
        let local = speaker.local_addr().ok()?;
        let face = UdpFace::new(
            speaker,
            peer,
            link,
            self.send_budget.share(),
            random_u64().ok()?,
        );
        let multicast = peer.ip().is_multicast();
        let (remote, local_uri) = (
            FaceUri::udp(peer).to_string(),
            FaceUri::udp(local).to_string(),
        );
        let mut spec = spec(remote, local_uri, false, persistency, link);
        spec.mtu = Some(face.mtu() as u64);
        if multicast {
            spec.link_type = LinkType::MultiAccess;
        }
        let udp = Udp {
            face,
            port,
            origin,
            last_heard: self.now,
            multicast,
            own: multicast.then_some(local),
            hellos: 0,
        };
        Some(self.add_face(spec, FaceKind::Udp(udp)))
    }

    pub(super) fn add_app(&mut self, name: &str, slot: AppSlot) -> FaceId {
        let uri = format!("internal://{name}");
        let at = self.add_face(FaceSpec::local(uri.clone(), uri), FaceKind::App(slot));
        self.apps.push(at);
        self.with_app(at, |_, _, _| {});
        match &self.slots[at] {
            Slot::Face(face) => face.id,
            _ => FaceId::INTERNAL,
        }
    }

    /// How long the faces of a UDP port may be idle.
    pub(super) fn idle_timeout(&self, port: usize) -> std::time::Duration {
        match self.slots.get(port) {
            Some(Slot::Port(Port {
                owner: PortOwner::Listener(listener),
                ..
            })) => listener.config.idle_timeout,
            _ => std::time::Duration::MAX / 4,
        }
    }

    /// Ends a face: in the forwarder and here.
    pub(super) fn remove_face(&mut self, at: usize) {
        if let Some(Slot::Face(face)) = self.slots.get(at) {
            tracing::info!(face = face.id.0, "face removed");
            self.core.remove_face(self.now, face.id);
            self.forget_face(at);
        }
    }

    fn forget_face(&mut self, at: usize) {
        let Some(Slot::Face(face)) = self.slots.try_remove(at) else {
            return;
        };
        self.by_face.remove(&face.id.0);
        for list in [
            &mut self.ready,
            &mut self.dirty,
            &mut self.unarmed,
            &mut self.apps,
        ] {
            list.retain(|&other| other != at);
        }
        match face.kind {
            FaceKind::Stream(Stream {
                origin: StreamOrigin::Accepted(listener),
                ..
            }) => {
                self.left_listener(listener);
            }
            FaceKind::Udp(udp) => {
                let own = match self.slots.get_mut(udp.port) {
                    Some(Slot::Port(Port {
                        owner: PortOwner::Listener(listener),
                        ..
                    })) => {
                        listener.peers.remove(&udp.face.peer);
                        false
                    }
                    Some(Slot::Port(_)) => true,
                    _ => false,
                };
                if own {
                    self.slots.remove(udp.port);
                    self.ready.retain(|&other| other != udp.port);
                }
            }
            FaceKind::Stream(_) | FaceKind::App(_) => {}
        }
    }
}

/// What the forwarder is told of a face.
fn spec(
    remote_uri: String,
    local_uri: String,
    is_local: bool,
    persistency: FacePersistency,
    link: &LinkOptions,
) -> FaceSpec {
    let by_address = if is_local {
        FaceScope::Local
    } else {
        FaceScope::NonLocal
    };
    let scope = link.scope.unwrap_or(by_address);
    FaceSpec {
        scope,
        persistency,
        discovery: link.discovery.unwrap_or(scope == FaceScope::NonLocal),
        congestion_marking: link.mark_threshold_bytes > 0,
        base_congestion_marking_interval_ns: Some(ndn_forwarder::MARK_INTERVAL.as_nanos() as u64),
        default_congestion_threshold: Some(link.mark_threshold_bytes as u64),
        ..FaceSpec::remote(remote_uri, local_uri)
    }
}
