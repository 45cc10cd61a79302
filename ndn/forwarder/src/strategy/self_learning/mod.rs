//! Self-learning by block: the first Interest under a prefix is flooded, the others follow the face that answered.
//!
//! The prefix is the name without its last component, so that all segments of a block share what one of them learned; or
//! the first components of a name that is of a [group](crate::Config::learned_groups), so that all packets of a block do.
//! In a group those are remembered, too, that were given a part of the object and have answered for something before, as
//! DataNodes do and readers don't. Once nobody has been given anything for a second, the object is theirs: they are asked
//! before the one that gave it, and where that refuses or is gone, before Interests are flooded. So a block that was
//! written to its replicas by name is read from them without a flood, and from the replica on a host by that host's
//! router. Where they refuse or stay silent, the Interest goes on to the face that is known, or is flooded after all.
//!
//! ```text
//!            flood                 Data from f
//! unknown ──────────▶ flooded ──────────────────▶ learned f ◀───────────┐
//!    ▲                                             │      │             │ Data from f
//!    │            Nack from f, f gone              │      │ no answer   │
//!    └─────────────────────────────────────────────┘      ▼             │
//!                                                      suspect f ───────┘
//!                                                      (the next Interest is flooded, f included;
//!                                                       others meanwhile go to f alone)
//! ```
//!
//! A retransmission goes to the learned face once more, since a packet may just have been lost; the next one is
//! flooded.
//!
//! An Interest that tells of a rejected Data goes past the face that this came from, if there is another: where that face
//! is the learned one, to all others, and what one of them answers is learned. Until then, and if none does, others'
//! Interests follow the learned face as before, so that a false claim takes nothing from anybody. Each downstream may
//! have so few of these floods ([`State::take_doubt`]) that they cost little; one more is sent as any Interest.
//!
//! While a flood waits, the Interest of a second downstream goes to the first one's face: the only one that the flood
//! has left out, and the producer may be behind it. Without that, forwarders that flood the same name at the same time
//! wait for each other until the Interests' lifetime is over.

mod group;
mod learned;

use super::hooks::{Strategy, StrategyMemory};
use super::nack::process_nack;
use super::retx_suppression::RetxSuppression;
use super::settings::StrategySettings;
use crate::face::FaceSlot;
use crate::state::{Arrival, Hops, State};
use crate::table::hash::{HashedName, NameHashes};
use group::Groups;
use learned::LearnedTable;
use smallvec::SmallVec;

/// Strategy info of an out-record: it was asked because of what is known of the prefix, alone or with few others.
const LEARNED: u32 = 1;

/// When nobody has been given a part of an object for so long, it has been written; nanoseconds.
const WRITTEN_AFTER: u64 = 1_000_000_000;

/// The strategy.
#[derive(Debug)]
pub(crate) struct SelfLearning {
    suppression: RetxSuppression,
    /// How long after a flood no other Interest under the same prefix is flooded, nanoseconds.
    flood_interval: u64,
    groups: Groups,
    learned: LearnedTable,
}

impl SelfLearning {
    pub(crate) fn new(settings: &StrategySettings) -> Self {
        SelfLearning {
            suppression: RetxSuppression::new(settings),
            flood_interval: settings.learned_flood_interval,
            groups: Groups::new(&settings.learned_groups),
            learned: LearnedTable::new(settings.learned_max_entries, settings.learned_max_bytes),
        }
    }

    /// Another downstream of an Interest that is out already: it waits with the others; but downstreams that were not
    /// asked themselves, because they asked, are asked now.
    fn complete_flood(fw: &mut State, id: u32, arrival: &Arrival<'_>) {
        let entry = fw.pit.get(id);
        if entry.outs.iter().any(|r| r.strategy_info == LEARNED) {
            return;
        }
        let askers = entry.ins.iter().map(|r| r.face);
        let left_out: SmallVec<[FaceSlot; 4]> = askers
            .filter(|&face| face != arrival.face && !entry.has_out(face))
            .collect();
        if left_out.is_empty() {
            return;
        }
        let mut candidates = candidates(fw, arrival);
        candidates.retain(|h| left_out.contains(&h.face));
        for hop in candidates {
            fw.send_interest(id, hop.face, arrival);
        }
    }

    /// The face that this Interest should go to alone.
    fn learned_face(&mut self, fw: &State, id: u32, arrival: &Arrival<'_>) -> Option<FaceSlot> {
        let known = self.learned.get(&self.groups.prefix(arrival.name))?;
        let face = known.face()?;
        if known.suspect && fw.now - known.flooded_at >= self.flood_interval {
            return None;
        }
        let retransmissions = fw.pit.get(id).retransmissions;
        (retransmissions <= 1 && is_candidate(fw, arrival, face)).then_some(face)
    }

    /// The face that an Interest goes to alone, or `None` to flood it, when it tells that Data from `doubted` was rejected.
    fn past_doubted(
        &mut self,
        fw: &mut State,
        arrival: &Arrival<'_>,
        learned: Option<FaceSlot>,
        doubted: FaceSlot,
        candidates: &Hops,
    ) -> Option<FaceSlot> {
        let prefix = self.groups.prefix(arrival.name);
        if learned != Some(doubted) {
            self.learned.doubt(&prefix, doubted);
            return learned;
        }
        let has_other = candidates.iter().any(|h| h.face != doubted);
        if !has_other || !fw.take_doubt(arrival.face) {
            return learned;
        }
        self.learned.doubt(&prefix, doubted);
        None
    }

    /// Whether those that were given the object are asked before the face that is known, which gave it to them.
    fn holders_go_first(&mut self, fw: &State, arrival: &Arrival<'_>, known: FaceSlot) -> bool {
        if !self.groups.has(arrival.name) {
            return false; // most Interests: no second look-up for them
        }
        let prefix = self.groups.prefix(arrival.name);
        let given_at = self.learned.get(&prefix).map_or(0, |known| known.given_at);
        given_at > 0
            && fw.now - given_at >= WRITTEN_AFTER
            && !self.learned.holders(&prefix).contains(&known)
    }

    /// Sends the Interest to those that were given a part of the object and were not asked yet; false when there are none.
    fn ask_holders(&mut self, fw: &mut State, id: u32, arrival: &Arrival<'_>) -> bool {
        let prefix = self.groups.prefix(arrival.name);
        if fw.pit.get(id).retransmissions > 0 {
            self.forget_silent_holders(fw, id, &prefix);
            return false;
        }
        if arrival.doubted.is_some() {
            return false;
        }
        let mut sent = false;
        for face in self.learned.holders(&prefix) {
            if !fw.pit.get(id).has_out(face) && is_candidate(fw, arrival, face) {
                sent |= send_known(fw, id, face, arrival);
            }
        }
        sent
    }

    /// Those that were asked first because they were given a part have not answered: they are asked first no more.
    fn forget_silent_holders(&mut self, fw: &State, id: u32, prefix: &HashedName<'_>) {
        let outs = fw.pit.get(id).outs.iter();
        for face in outs.filter(|r| r.strategy_info == LEARNED).map(|r| r.face) {
            let answered = self.learned.get(prefix).and_then(|known| known.face());
            if answered != Some(face) {
                self.learned.refused(prefix, face);
            }
        }
    }

    /// Sends the Interest to all candidates; false when there are none that can be sent to.
    fn flood(&mut self, fw: &mut State, id: u32, arrival: &Arrival<'_>, candidates: &Hops) -> bool {
        let mut sent = 0;
        for hop in candidates {
            sent += usize::from(fw.send_interest(id, hop.face, arrival));
        }
        if sent > 1 {
            fw.floods += 1;
            let prefix = self.groups.prefix(arrival.name);
            if let Some(known) = self.learned.get_or_insert(&prefix) {
                known.flooded_at = fw.now;
            }
        }
        sent > 0
    }
}

/// Faces that may lead to the name: those the FIB has or, when it has none, all that are open to discovery.
fn candidates(fw: &State, arrival: &Arrival<'_>) -> Hops {
    let (hops, has_route) = fw.next_hops(arrival);
    if has_route {
        hops
    } else {
        fw.discovery_faces(arrival)
    }
}

/// Whether a face is one of the [`candidates`].
fn is_candidate(fw: &State, arrival: &Arrival<'_>, face: FaceSlot) -> bool {
    let (hops, has_route) = fw.next_hops(arrival);
    if has_route {
        hops.iter().any(|h| h.face == face)
    } else {
        fw.is_discoverable(arrival, face)
    }
}

/// Sends the Interest to a face because of what is known of it; false when it can't go there.
fn send_known(fw: &mut State, id: u32, face: FaceSlot, arrival: &Arrival<'_>) -> bool {
    let sent = fw.send_interest(id, face, arrival);
    if sent && let Some(record) = fw.pit.get_mut(id).out_mut(face) {
        record.strategy_info = LEARNED;
    }
    sent
}

impl Strategy for SelfLearning {
    fn after_receive_interest(&mut self, fw: &mut State, id: u32, arrival: &Arrival<'_>) {
        let is_new = !fw.pit.get(id).has_pending_out(fw.now);
        if !is_new && !arrival.again {
            return Self::complete_flood(fw, id, arrival);
        }
        if !is_new && self.suppression.holds_back(fw, id, arrival) {
            return;
        }
        let mut learned = self.learned_face(fw, id, arrival);
        if arrival.doubted.is_none()
            && let Some(face) = learned
            && (self.holders_go_first(fw, arrival, face) && self.ask_holders(fw, id, arrival)
                || send_known(fw, id, face, arrival))
        {
            return;
        }
        let mut candidates = candidates(fw, arrival);
        if let Some(doubted) = arrival.doubted {
            learned = self.past_doubted(fw, arrival, learned, doubted, &candidates);
            if is_new {
                arrival.pass_over(&mut candidates);
            }
            if let Some(face) = learned
                && send_known(fw, id, face, arrival)
            {
                return;
            }
        }
        let sent = self.ask_holders(fw, id, arrival) || self.flood(fw, id, arrival, &candidates);
        if !sent && is_new {
            fw.reject(id);
        }
    }

    /// Forgets a learned face that refused, and asks all that were not asked.
    fn after_receive_nack(
        &mut self,
        fw: &mut State,
        id: u32,
        from: FaceSlot,
        name: &HashedName<'_>,
    ) {
        self.learned.refused(&self.groups.prefix(name), from);
        process_nack(fw, id, name, |fw, arrival| {
            let learned = self.learned_face(fw, id, arrival);
            let learned =
                learned.filter(|&face| arrival.doubted.is_none() && !fw.pit.get(id).has_out(face));
            if learned.is_some_and(|face| send_known(fw, id, face, arrival))
                || self.ask_holders(fw, id, arrival)
            {
                return true;
            }
            let mut candidates = candidates(fw, arrival);
            candidates.retain(|h| !fw.pit.get(id).has_out(h.face));
            self.flood(fw, id, arrival, &candidates)
        });
    }

    /// Remembers the face that answered, if there was a choice.
    fn before_satisfy_interest(
        &mut self,
        fw: &State,
        id: u32,
        from: FaceSlot,
        name: &HashedName<'_>,
    ) {
        let entry = fw.pit.get(id);
        let had_a_choice = entry.outs.len() > 1;
        let prefix = self.groups.prefix(name);
        self.learned.answered(&prefix, from, had_a_choice);
        if self.groups.has(name) {
            let may_hold = |face: &FaceSlot| {
                let face = fw.faces.get(*face);
                face.is_some_and(|f| f.spec.discovery && f.counters.in_data > 0)
            };
            let faces = entry.ins.iter().map(|r| r.face);
            let faces = faces.filter(|face| *face != from).filter(may_hold);
            self.learned.given(&prefix, fw.now, faces);
        }
    }

    /// Doubts the learned face that stayed silent, and asks no more of those that were given a part.
    fn before_expire_interest(&mut self, fw: &State, id: u32) {
        let entry = fw.pit.get(id);
        if entry.outs.iter().all(|r| r.strategy_info != LEARNED) {
            return;
        }
        let Ok(name) = ndn_packet::NameRef::from_value(entry.name()) else {
            return;
        };
        let mut hashes = NameHashes::default();
        hashes.push(&fw.key, name);
        let prefix = self.groups.prefix(&hashes.last(name));
        self.forget_silent_holders(fw, id, &prefix);
        let asked = |face| {
            entry
                .outs
                .iter()
                .any(|r| r.face == face && r.strategy_info == LEARNED)
        };
        if let Some(known) = self
            .learned
            .get(&prefix)
            .filter(|k| k.face().is_some_and(asked))
        {
            known.suspect = true;
        }
    }

    fn after_face_down(&mut self, face: FaceSlot) {
        self.learned.forget_face(face);
    }

    fn memory(&self) -> StrategyMemory {
        self.learned.memory()
    }
}
