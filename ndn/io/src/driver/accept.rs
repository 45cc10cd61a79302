//! Taking in whoever connects to a stream listener.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use mio::unix::SourceFd;
use ndn_forwarder::{FacePersistency, FaceSpec};

use super::admission::{Full, network};
use super::exchange::{Adopted, Parcel};
use super::faces::spec;
use super::slots::{FaceKind, Slot, Stream, StreamOrigin, StreamState};
use super::timers::Timer;
use super::under_way::{Needs, Room};
use super::{Core, Driver, FACE_BYTES};
use crate::face::budget::Share;
use crate::face::io::Side;
use crate::face::link::LinkCounters;
use crate::face::stream::StreamFace;
use crate::transport::Accepted;

/// A listener without room for a peer looks again after this long.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// Peers taken in at once; those behind them wait until the others' faces have had their turn.
const ACCEPT_AT_ONCE: usize = 64;
const ACCEPT_SOON: Duration = Duration::from_millis(1);

impl<C: Core> Driver<C> {
    /// Takes in whoever waits at a stream listener.
    pub(super) fn accept(&mut self, at: usize) {
        for _ in 0..ACCEPT_AT_ONCE {
            let Some(Slot::Listener(listener)) = self.slots.get_mut(at) else {
                return;
            };
            let has_handshakes = listener.socket.has_handshakes();
            if has_handshakes && !self.handshakes.under_way.takes_more(self.now) {
                // They wait where they have waited so far, at the system.
                return self.accept_later(at, ACCEPT_AGAIN);
            }
            let Some(Slot::Listener(listener)) = self.slots.get_mut(at) else {
                return;
            };
            match listener.socket.accept() {
                Ok(peer) => self.admit(at, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    listener.admission.refused += 1;
                    if listener.complaints.allows(self.now) {
                        tracing::warn!(%error, uri = %listener.config.uri, "accept failed");
                    }
                    self.accept_later(at, ACCEPT_AGAIN);
                    return;
                }
            }
        }
        self.accept_later(at, ACCEPT_SOON);
    }

    fn accept_later(&mut self, at: usize, wait: Duration) {
        if let Some(Slot::Listener(listener)) = self.slots.get_mut(at)
            && !std::mem::replace(&mut listener.accepts_later, true)
        {
            self.timers.set(self.now + wait, Timer::Accept(at));
        }
    }

    /// Makes a face for a peer, or lets it begin its handshake, if its listener and the memory have room for it. A slow
    /// handshake ends only where the peer gets its place.
    fn admit(&mut self, at: usize, peer: Accepted) {
        let Some(Slot::Listener(listener)) = self.slots.get(at) else {
            return;
        };
        let address = peer.address;
        let full = listener.admission.full(address, &listener.config);
        let of_address = full == Some(Full::OfAddress);
        let bytes = FACE_BYTES + peer.io.memory_bytes();
        let mut cost = self.budgets.faces.share();
        let needs = Needs {
            listener: full.map(|_| at),
            network: address.map(network).filter(|_| of_address),
            bytes: bytes.saturating_sub(cost.allowance()),
        };
        let under_way = &self.handshakes.under_way;
        let room = if peer.is_up {
            under_way.room_for_face(self.now, needs)
        } else {
            under_way.room_for_handshake(self.now, address.map(network), needs)
        };
        match room {
            Room::Free => {}
            Room::InPlaceOf(slow) => self.end_slow_handshake(slow),
            Room::None if needs.bytes == 0 => return self.refuse(at, false),
            Room::None => {}
        }
        // Where none makes room, it is counted here that there is too little memory.
        if !cost.grows(bytes) {
            return self.refuse(at, full.is_none());
        }
        if let Some(Slot::Listener(listener)) = self.slots.get_mut(at) {
            listener.admission.came(address);
        }
        if peer.is_up {
            self.accepted(at, peer, cost, false);
        } else {
            self.begin_handshake(at, peer, cost, bytes);
        }
    }

    /// A peer gets no face; `for_memory` where nothing but memory is missing.
    fn refuse(&mut self, at: usize, for_memory: bool) {
        let Some(Slot::Listener(listener)) = self.slots.get_mut(at) else {
            return;
        };
        listener.admission.refused += 1;
        if for_memory && listener.complaints.allows(self.now) {
            tracing::warn!(
                uri = %listener.config.uri,
                "a peer is refused: the memory for faces is used up; raise faces.capacity"
            );
        }
    }

    /// Makes the face of a peer. `is_known` where the poll has its connection already.
    pub(super) fn accepted(
        &mut self,
        listener_at: usize,
        peer: Accepted,
        cost: Share,
        is_known: bool,
    ) {
        let Some(Slot::Listener(listener)) = self.slots.get(listener_at) else {
            return;
        };
        let link = &listener.config.link;
        let spec = FaceSpec {
            peer_names: peer.io.peer_names(),
            ..spec(
                peer.remote_uri,
                peer.local_uri,
                peer.is_local,
                FacePersistency::OnDemand,
                link,
            )
        };
        let fd = peer.io.fd();
        if let Some(other) = self.core.next_loop() {
            let adopted = Adopted {
                spec,
                io: peer.io,
                link: link.clone(),
                cost,
                listener: listener_at,
                address: peer.address,
            };
            if is_known {
                // Fails only where it is not there: then its new loop says what is wrong with it.
                let _ = self.poll.registry().deregister(&mut SourceFd(&fd));
            }
            return self.core.post(other, Parcel::Adopt(Box::new(adopted)));
        }
        let lines = self.lines.clone();
        let face = StreamFace::new(peer.io, Side::Listener, link, &self.budgets, lines);
        let stream = Stream {
            state: StreamState::Up(face),
            past: LinkCounters::default(),
            origin: StreamOrigin::Accepted(listener_at, peer.address),
            local_fields: false,
        };
        let at = self.add_face(spec, FaceKind::Stream(stream), cost);
        let registered = if is_known {
            self.register_anew(fd, at)
        } else {
            self.register(fd, at)
        };
        if let Err(error) = registered {
            tracing::debug!(%error, "a connection ended before its face was added");
            self.remove_face(at);
        } else if is_known {
            // What came behind the handshake has been read with it.
            self.make_ready(at);
        }
    }

    /// A face that came in at this listener has gone.
    pub(super) fn left_listener(&mut self, at: usize, address: Option<IpAddr>) {
        if !self.core.listens() {
            return self.core.post(0, Parcel::Left(at, address));
        }
        if let Some(Slot::Listener(listener)) = self.slots.get_mut(at) {
            listener.admission.left(address);
        }
    }
}
