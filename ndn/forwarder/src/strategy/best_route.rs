//! Best route: one next hop at a time, the cheapest first.

use crate::forwarder::Forwarder;
use crate::interest::{Arrival, Hops};
use crate::table::pit::Entry;

impl Forwarder {
    pub(super) fn best_route(&mut self, id: u32, arrival: &Arrival<'_>) {
        let is_new = !self.pit.get(id).has_pending_out(self.now);
        if !is_new && self.is_suppressed(id, arrival) {
            return;
        }
        let (hops, _) = self.next_hops(arrival);
        let chosen = if is_new {
            hops.first().map(|h| h.face)
        } else {
            let entry = self.pit.get(id);
            let unused = hops.iter().find(|h| {
                !entry
                    .outs
                    .iter()
                    .any(|r| r.face == h.face && r.expiry > self.now)
            });
            unused
                .map(|h| h.face)
                .or_else(|| longest_unasked(entry, &hops))
        };
        let sent = chosen.is_some_and(|face| self.forward(id, face, arrival));
        if !sent && is_new {
            self.refuse(id);
        }
    }

    /// After all upstreams asked so far have refused: the cheapest that was not asked.
    pub(super) fn next_best_route(&mut self, id: u32, arrival: &Arrival<'_>) -> bool {
        let (hops, _) = self.next_hops(arrival);
        let entry = self.pit.get(id);
        let next = hops.iter().find(|h| !entry.has_out(h.face)).map(|h| h.face);
        next.is_some_and(|face| self.forward(id, face, arrival))
    }
}

/// The next hop whose turn it is when all have been asked: the one that was asked first.
fn longest_unasked(entry: &Entry, hops: &Hops) -> Option<u32> {
    let asked = entry
        .outs
        .iter()
        .filter(|r| hops.iter().any(|h| h.face == r.face));
    asked.min_by_key(|r| r.sent).map(|r| r.face)
}
