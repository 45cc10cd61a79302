//! Self-learning by block: the first Interest under a prefix is flooded, the others follow the face that answered.
//!
//! The prefix is the name without its last component, so that all segments of a block share what one of them learned.
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
//! While a flood waits, the Interest of a second downstream goes to the first one's face: the only one that the flood
//! has left out, and the producer may be behind it. Without that, forwarders that flood the same name at the same time
//! wait for each other until the Interests' lifetime is over.

use crate::face::FaceSlot;
use crate::forwarder::{Forwarder, nanos};
use crate::interest::{Arrival, Hops};
use crate::table::fib::NextHop;
use crate::table::hash::{HashedName, NameHashes};
use smallvec::SmallVec;

impl Forwarder {
    pub(super) fn self_learning(&mut self, id: u32, arrival: &Arrival<'_>) {
        let is_new = !self.pit.get(id).has_pending_out(self.now);
        if !is_new && !arrival.again {
            return self.complete_flood(id, arrival);
        }
        if !is_new && self.is_suppressed(id, arrival) {
            return;
        }
        let candidates = self.candidates(arrival);
        if let Some(face) = self.learned_face(id, arrival, &candidates)
            && self.forward(id, face, arrival)
        {
            if let Some(record) = self.pit.get_mut(id).out_mut(face) {
                record.learned = true;
            }
            return;
        }
        let sent = self.flood(id, arrival, &candidates);
        if !sent && is_new {
            self.refuse(id);
        }
    }

    /// Another downstream of an Interest that is out already: it waits with the others; but downstreams that were not
    /// asked themselves, because they asked, are asked now.
    fn complete_flood(&mut self, id: u32, arrival: &Arrival<'_>) {
        let entry = self.pit.get(id);
        if entry.outs.iter().any(|r| r.learned) {
            return;
        }
        let askers = entry.ins.iter().map(|r| r.face);
        let left_out: SmallVec<[FaceSlot; 4]> = askers
            .filter(|&face| face != arrival.face && !entry.has_out(face))
            .collect();
        if left_out.is_empty() {
            return;
        }
        let mut candidates = self.candidates(arrival);
        candidates.retain(|h| left_out.contains(&h.face));
        for hop in candidates {
            self.forward(id, hop.face, arrival);
        }
    }

    /// After all upstreams asked so far have refused: all others.
    pub(super) fn flood_the_rest(&mut self, id: u32, arrival: &Arrival<'_>) -> bool {
        let mut candidates = self.candidates(arrival);
        candidates.retain(|h| !self.pit.get(id).has_out(h.face));
        self.flood(id, arrival, &candidates)
    }

    /// Faces that may lead to the name: those the FIB has or, when it has none, all that are open to discovery.
    fn candidates(&self, arrival: &Arrival<'_>) -> Hops {
        let (hops, has_route) = self.next_hops(arrival);
        if has_route {
            return hops;
        }
        let open = self
            .faces
            .iter()
            .filter(|(_, face)| face.spec.discovery)
            .map(|(slot, _)| slot);
        open.filter(|&slot| self.is_eligible(arrival.face, slot, arrival.name.value()))
            .map(|face| NextHop { face, cost: 0 })
            .collect()
    }

    /// The face that this Interest should go to alone.
    fn learned_face(
        &mut self,
        id: u32,
        arrival: &Arrival<'_>,
        candidates: &Hops,
    ) -> Option<FaceSlot> {
        let pause = nanos(self.config.learned_flood_interval);
        let known = self.learned.get(&arrival.name.without_last(1))?;
        let face = known.face?;
        if known.suspect && self.now - known.flooded_at >= pause {
            return None;
        }
        let retransmissions = self.pit.get(id).retransmissions;
        (retransmissions <= 1 && candidates.iter().any(|h| h.face == face)).then_some(face)
    }

    /// Sends the Interest to all candidates; false when there are none that can be sent to.
    fn flood(&mut self, id: u32, arrival: &Arrival<'_>, candidates: &Hops) -> bool {
        let mut sent = 0;
        for hop in candidates {
            sent += usize::from(self.forward(id, hop.face, arrival));
        }
        if sent > 1 {
            self.floods += 1;
            if let Some(known) = self.learned.get_or_insert(&arrival.name.without_last(1)) {
                known.flooded_at = self.now;
            }
        }
        sent > 0
    }

    /// Remembers the face that answered an entry, if there was a choice.
    pub(crate) fn learn(&mut self, id: u32, face: FaceSlot, name: &HashedName<'_>) {
        let prefix = name.without_last(1);
        let known = if self.pit.get(id).outs.len() > 1 {
            self.learned.get_or_insert(&prefix)
        } else {
            self.learned.get(&prefix)
        };
        if let Some(known) = known {
            known.face = Some(face);
            known.suspect = false;
        }
    }

    /// Doubts the learned face that left an entry unanswered.
    pub(crate) fn doubt(&mut self, id: u32) {
        let entry = self.pit.get(id);
        let Some(face) = entry.outs.iter().find(|r| r.learned).map(|r| r.face) else {
            return;
        };
        let Ok(name) = ndn_packet::NameRef::from_value(entry.name()) else {
            return;
        };
        let mut hashes = NameHashes::default();
        hashes.push(&self.key, name);
        let prefix = hashes.last(name).without_last(1);
        if let Some(known) = self.learned.get(&prefix).filter(|k| k.face == Some(face)) {
            known.suspect = true;
        }
    }
}
