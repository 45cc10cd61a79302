//! The moments at which a strategy is asked, as NFD's class `Strategy` has them.

use crate::face::FaceSlot;
use crate::state::{Arrival, State};
use crate::table::hash::HashedName;
use ndn_packet::{Interest, NackReason, PitToken};
use std::fmt;

/// A forwarding strategy: decides where the Interests under the prefixes go that it was chosen for.
///
/// One instance serves all prefixes of a forwarder; what it remembers lies in itself, bounded, and is told by
/// [`Strategy::memory`]. The tables are the forwarder's: a strategy reads them by [`State::next_hops`],
/// [`State::discovery_faces`] and `fw.pit.get(id)`, and acts by [`State::send_interest`], [`State::send_nack`] and
/// [`State::reject`]. `id` is the PIT entry. After [`State::reject`] the entry is gone.
pub(crate) trait Strategy: fmt::Debug + Send + Sync {
    /// An Interest came that is no loop and that the content store did not answer; its downstream is in the entry. Send
    /// it on, let it wait for what is on its way already, or reject it.
    fn after_receive_interest(&mut self, fw: &mut State, id: u32, arrival: &Arrival<'_>);

    /// An upstream refused by a Nack, which its record says, or went down, in which case its record is gone. `name` is
    /// the Interest's. Strategies that do nothing special call [`process_nack`](super::nack::process_nack).
    fn after_receive_nack(
        &mut self,
        fw: &mut State,
        id: u32,
        from: FaceSlot,
        name: &HashedName<'_>,
    );

    /// Data of this name came from an upstream that was asked, and answers the entry, which ends afterwards.
    fn before_satisfy_interest(
        &mut self,
        _fw: &State,
        _id: u32,
        _from: FaceSlot,
        _name: &HashedName<'_>,
    ) {
    }

    /// Nobody answered in time; the entry ends afterwards.
    fn before_expire_interest(&mut self, _fw: &State, _id: u32) {}

    /// An Interest came whose nonce was seen before. It has no entry of its own.
    fn on_interest_loop(
        &mut self,
        fw: &mut State,
        from: FaceSlot,
        interest: &Interest,
        token: Option<PitToken>,
    ) {
        fw.send_nack(from, NackReason::Duplicate, interest.clone(), token);
    }

    /// A face went down or is gone: its number may come to stand for another face.
    fn after_face_down(&mut self, _face: FaceSlot) {}

    /// What the strategy remembers now.
    fn memory(&self) -> StrategyMemory {
        StrategyMemory::default()
    }
}

/// What a strategy remembers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StrategyMemory {
    /// Things remembered.
    pub(crate) entries: usize,
    /// Bytes held.
    pub(crate) bytes: usize,
    /// Bytes that may be held.
    pub(crate) capacity_bytes: usize,
}
