//! Taking in whoever connects to a stream listener.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use ndn_forwarder::{FacePersistency, FaceSpec};

use super::faces::spec;
use super::slots::{FaceKind, Slot, Stream, StreamOrigin, StreamState};
use super::timers::Timer;
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
            if listener.socket.has_handshakes() && !self.may_begin_handshake() {
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

    /// Makes a face for a peer, or lets it begin its handshake, if it may have one and there is memory for it.
    fn admit(&mut self, at: usize, peer: Accepted) {
        let address = peer.address;
        let mut cost = self.budgets.faces.share();
        let crowded =
            !peer.is_up && !self.handshakes.admits(address) && !self.end_a_slow_handshake(address);
        let bytes = FACE_BYTES + peer.io.memory_bytes();
        let is_paid = cost.grows(bytes) || (self.end_a_slow_handshake(None) && cost.grows(bytes));
        let Some(Slot::Listener(listener)) = self.slots.get_mut(at) else {
            return;
        };
        if !listener.admission.admits(address, &listener.config) {
            return;
        }
        if crowded {
            listener.admission.refused += 1;
            return;
        }
        if !is_paid {
            listener.admission.refused += 1;
            if listener.complaints.allows(self.now) {
                tracing::warn!(
                    uri = %listener.config.uri,
                    "a peer is refused: the memory for faces is used up; raise faces.capacity"
                );
            }
            return;
        }
        listener.admission.came(address);
        if peer.is_up {
            self.accepted(at, peer, cost, false);
        } else {
            self.begin_handshake(at, peer, cost);
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
        if let Some(Slot::Listener(listener)) = self.slots.get_mut(at) {
            listener.admission.left(address);
        }
    }
}
