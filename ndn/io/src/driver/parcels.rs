//! What other loops of the node have for this one.

use super::core::NodeCore;
use super::exchange::{Adopted, Parcel};
use super::slots::{FaceKind, Stream, StreamOrigin, StreamState};
use super::{Driver, TURN_PACKETS, TURN_SENT};
use crate::face::io::Side;
use crate::face::link::LinkCounters;
use crate::face::stream::StreamFace;

impl<C: NodeCore> Driver<C> {
    /// Does what other loops have asked of this one.
    pub(super) fn take_parcels(&mut self) {
        self.core.take_parcels(self.now);
        self.do_parcels();
        // What comes meanwhile has its turn after the faces.
        for _ in 0..self.core.arrivals(self.now) {
            if !self.take_turn() {
                return;
            }
        }
    }

    /// A turn of a face of another loop whose packets are at home here; false where no more may be taken now.
    fn take_turn(&mut self) -> bool {
        let end = self.sent + TURN_SENT;
        let mut left = TURN_PACKETS;
        loop {
            let (most, before) = (self.burst().min(left), self.sent);
            let Some((count, is_done)) = self.core.take_packets(self.now, most) else {
                return false;
            };
            self.carry_out();
            self.adapt_burst(count, before);
            left -= count;
            if is_done {
                return true;
            }
            if left == 0 || self.sent >= end {
                self.core.end_turn();
                return true;
            }
        }
    }

    /// Does what has been taken of it.
    pub(super) fn do_parcels(&mut self) {
        while let Some(parcel) = self.core.next_parcel() {
            match parcel {
                Parcel::Send(face, packet) => self.send(face, packet),
                Parcel::TooLarge(face, data) => self.too_large(face, &data),
                Parcel::Adopt(adopted) => self.adopt(*adopted),
                Parcel::Destroy(face) => self.destroy_face(face),
                Parcel::Update(update) => self.update_face(&update),
                Parcel::Left(listener, address) => self.left_listener(listener, address),
                // The worker has got its own.
                Parcel::Message(_) => {}
            }
        }
    }

    /// Gives a peer that came in at a listener of the first loop its face here.
    fn adopt(&mut self, adopted: Adopted) {
        let Adopted {
            spec,
            io,
            link,
            cost,
            listener,
            address,
        } = adopted;
        let fd = io.fd();
        let lines = self.lines.clone();
        let face = StreamFace::new(io, Side::Listener, &link, &self.budgets, lines);
        let stream = Stream {
            state: StreamState::Up(face),
            past: LinkCounters::default(),
            origin: StreamOrigin::Accepted(listener, address),
            local_fields: false,
        };
        let at = self.add_face(spec, FaceKind::Stream(stream), cost);
        if let Err(error) = self.register(fd, at) {
            tracing::debug!(%error, "a connection ended before its face was added");
            return self.remove_face(at);
        }
        // What came behind a handshake has been read with it.
        self.make_ready(at);
    }
}
