//! What other loops of the node have for this one.

use super::Driver;
use super::core::NodeCore;
use super::exchange::{Adopted, Parcel};
use super::slots::{FaceKind, Stream, StreamOrigin, StreamState};
use crate::face::io::Side;
use crate::face::link::LinkCounters;
use crate::face::stream::StreamFace;

impl<C: NodeCore> Driver<C> {
    /// Does what other loops have asked of this one.
    pub(super) fn take_parcels(&mut self) {
        self.core.take_parcels(self.now);
        self.do_parcels();
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
