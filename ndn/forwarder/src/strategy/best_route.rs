//! Best route: one next hop at a time, the cheapest first, but one whose Data was rejected last.

use super::hooks::Strategy;
use super::nack::process_nack;
use super::retx_suppression::RetxSuppression;
use super::settings::StrategySettings;
use crate::face::FaceSlot;
use crate::state::{Arrival, Hops, State};
use crate::table::hash::HashedName;
use crate::table::pit::Entry;

/// The strategy; remembers nothing.
#[derive(Debug)]
pub(crate) struct BestRoute {
    suppression: RetxSuppression,
}

impl BestRoute {
    pub(crate) fn new(settings: &StrategySettings) -> Self {
        BestRoute {
            suppression: RetxSuppression::new(settings),
        }
    }
}

impl Strategy for BestRoute {
    fn after_receive_interest(&mut self, fw: &mut State, id: u32, arrival: &Arrival<'_>) {
        let is_new = !fw.pit.get(id).has_pending_out(fw.now);
        if !is_new && self.suppression.holds_back(fw, id, arrival) {
            return;
        }
        let (hops, _) = fw.next_hops(arrival);
        let chosen = if is_new {
            hops.first().map(|h| h.face)
        } else {
            let entry = fw.pit.get(id);
            let is_asked = |face| (entry.outs.iter()).any(|r| r.face == face && r.expiry > fw.now);
            let unused = hops.iter().map(|h| h.face).find(|&face| !is_asked(face));
            unused.or_else(|| longest_unasked(entry, &hops))
        };
        let sent = chosen.is_some_and(|face| fw.send_interest(id, face, arrival));
        if !sent && is_new {
            fw.reject(id);
        }
    }

    fn after_receive_nack(
        &mut self,
        fw: &mut State,
        id: u32,
        _from: FaceSlot,
        name: &HashedName<'_>,
    ) {
        process_nack(fw, id, name, |fw, arrival| {
            let (hops, _) = fw.next_hops(arrival);
            let entry = fw.pit.get(id);
            let next = hops.iter().find(|h| !entry.has_out(h.face)).map(|h| h.face);
            next.is_some_and(|face| fw.send_interest(id, face, arrival))
        });
    }
}

/// The next hop whose turn it is when all have been asked: the one that was asked first.
fn longest_unasked(entry: &Entry, hops: &Hops) -> Option<FaceSlot> {
    let asked = entry
        .outs
        .iter()
        .filter(|r| hops.iter().any(|h| h.face == r.face));
    asked.min_by_key(|r| r.sent).map(|r| r.face)
}
