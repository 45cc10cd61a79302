//! Listeners and faces come and go.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use ndn_forwarder::{FaceId, FacePersistency, FaceScope, FaceSpec, LinkType};
use rustc_hash::FxHashMap;

use super::admission::Admission;
use super::slots::{
    AppSlot, Connector, Face, FaceKind, Listener, Port, PortOwner, Slot, Stream, StreamOrigin,
    StreamState, Udp, UdpListener, UdpOrigin,
};
use super::{Core, Driver, FACE_BYTES, random_u64};
use crate::config::{FaceConfig, LinkOptions, ListenConfig};
use crate::face::budget::Share;
use crate::face::datagram::DatagramFace;
use crate::face::io::DatagramIo;
use crate::face::link::LinkCounters;
use crate::rate_limit::RateLimit;
use crate::transport::{DatagramTransport, FaceType, Opened, unknown_type};
use crate::uri::{Address, FaceUri};

impl<C: Core> Driver<C> {
    pub(super) fn open_listener(&mut self, mut config: ListenConfig) -> io::Result<()> {
        config.uri = config.uri.resolve()?;
        match FaceType::of(&config.uri).ok_or_else(unknown_type)? {
            FaceType::Datagram(transport) => {
                let port = transport.listen(&config)?;
                config.uri = FaceUri::new(
                    config.uri.face_type(),
                    Address::Endpoint(port.local_addr()?.into()),
                );
                tracing::info!(uri = %config.uri, "listening");
                let listener = UdpListener {
                    config,
                    peers: FxHashMap::default(),
                    admission: Admission::default(),
                };
                self.add_port(port, PortOwner::Listener(Box::new(listener)))
                    .map(|_| ())
            }
            FaceType::Stream(transport) => {
                let socket = transport.listen(&config)?;
                config.uri = socket.uri();
                tracing::info!(uri = %config.uri, "listening");
                let fd = socket.fd();
                let at = self.slots.insert(Slot::Listener(Listener {
                    socket,
                    config,
                    admission: Admission::default(),
                    accepts_later: false,
                    complaints: RateLimit::default(),
                }));
                self.register(fd, at)
            }
        }
    }

    fn add_port(&mut self, port: Arc<dyn DatagramIo>, owner: PortOwner) -> io::Result<usize> {
        let fd = port.fd();
        let at = self.slots.insert(Slot::Port(Port {
            port,
            ready: false,
            owner,
        }));
        self.register(fd, at).map(|()| at)
    }

    pub(super) fn add_face(&mut self, spec: FaceSpec, kind: FaceKind, cost: Share) -> usize {
        let persistency = spec.persistency;
        if persistency != FacePersistency::OnDemand || self.may_log() {
            tracing::info!(
                remote = spec.remote_uri,
                local = spec.local_uri,
                "face added"
            );
        }
        let id = self.core.add_face(self.now, spec);
        let at = self
            .slots
            .insert(Slot::Face(Face::new(id, kind, persistency, cost)));
        self.by_face.insert(id.0, at);
        at
    }

    /// What a face takes of the memory for faces. One of our own has its place whatever others have taken; of a
    /// stranger's, it is asked before.
    fn own_face_cost(&self) -> Share {
        let mut cost = self.budgets.faces.share();
        cost.set(FACE_BYTES);
        cost
    }

    /// Opens a face; returns its slot.
    pub fn open_face(&mut self, config: FaceConfig) -> io::Result<usize> {
        match FaceType::of(&config.uri).ok_or_else(unknown_type)? {
            FaceType::Datagram(transport) => {
                let uri = config.uri.resolve()?;
                self.open_datagrams(transport, &FaceConfig { uri, ..config })
            }
            FaceType::Stream(_) => Ok(self.open_stream(config, None)),
        }
    }

    /// Makes a stream face and begins to connect it; returns its slot.
    pub(super) fn open_stream(&mut self, config: FaceConfig, request: Option<u64>) -> usize {
        let local = match config.local_bind {
            Some(ip) if config.uri.endpoint().is_some() => FaceUri::new(
                config.uri.face_type(),
                Address::Endpoint(SocketAddr::new(ip, 0).into()),
            )
            .to_string(),
            _ => format!("{}://", config.uri.face_type()),
        };
        let spec = spec(
            config.uri.to_string(),
            local,
            config.uri.is_on_this_host(),
            config.persistency,
            &config.link,
        );
        let backoff = config.reconnect.0;
        let cost = self.own_face_cost();
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
            cost,
        );
        if let Some(Slot::Face(face)) = self.slots.get(at) {
            self.core.face_down(self.now, face.id);
        }
        self.connect(at);
        at
    }

    /// Makes a datagram face of our own toward a peer or a group; returns its slot.
    pub(super) fn open_datagrams(
        &mut self,
        transport: &dyn DatagramTransport,
        config: &FaceConfig,
    ) -> io::Result<usize> {
        let Opened {
            peer,
            hears,
            speaks,
        } = transport.open(config.uri.address(), config.local_bind, &config.link)?;
        let multicast = config.uri.is_multicast();
        // The face's slot is known only after the port's: the owner is put right below.
        let port_at = self.add_port(hears, PortOwner::Face(usize::MAX))?;
        let added = self.add_udp_face(
            port_at,
            speaks.clone(),
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
                    self.register(speaks.fd(), at)?;
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
        speaker: Arc<dyn DatagramIo>,
        peer: SocketAddr,
        link: &LinkOptions,
        origin: UdpOrigin,
        persistency: FacePersistency,
    ) -> Option<usize> {
        let local = speaker.local_addr().ok()?;
        let face = DatagramFace::new(
            speaker,
            peer,
            link,
            &self.budgets,
            [random_u64().ok()?, random_u64().ok()?],
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
        let cost = self.own_face_cost();
        Some(self.add_face(spec, FaceKind::Udp(udp), cost))
    }

    pub(super) fn add_app(&mut self, name: &str, slot: AppSlot) -> FaceId {
        let uri = format!("internal://{name}");
        let (spec, cost) = (FaceSpec::local(uri.clone(), uri), self.own_face_cost());
        let at = self.add_face(spec, FaceKind::App(slot), cost);
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
            let id = face.id;
            if face.persistency != FacePersistency::OnDemand || self.may_log() {
                tracing::info!(face = id.0, "face removed");
            }
            self.core.remove_face(self.now, id);
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
                origin: StreamOrigin::Accepted(listener, address),
                ..
            }) => {
                self.left_listener(listener, address);
            }
            FaceKind::Udp(udp) => {
                let own = match self.slots.get_mut(udp.port) {
                    Some(Slot::Port(Port {
                        owner: PortOwner::Listener(listener),
                        ..
                    })) => {
                        listener.peers.remove(&udp.face.peer);
                        listener.admission.left(Some(udp.face.peer.ip()));
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
pub(super) fn spec(
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
        max_packet_bytes: Some(ndn_packet::MAX_PACKET as u64),
        congestion_marking: link.mark_threshold_bytes > 0,
        base_congestion_marking_interval_ns: Some(ndn_forwarder::MARK_INTERVAL.as_nanos() as u64),
        default_congestion_threshold: Some(link.mark_threshold_bytes as u64),
        ..FaceSpec::remote(remote_uri, local_uri)
    }
}
