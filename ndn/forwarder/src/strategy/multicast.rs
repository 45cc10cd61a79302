//! Multicast: all next hops at once; each is asked again only after a growing pause. One whose Data was rejected is left
//! out at first, and asked with the others when the Interest comes again, or alone when they have refused.

use super::hooks::Strategy;
use super::nack::process_nack;
use super::retx_suppression::RetxSuppression;
use super::settings::StrategySettings;
use crate::face::FaceSlot;
use crate::state::{Arrival, State};
use crate::table::hash::HashedName;

/// The strategy; remembers nothing.
#[derive(Debug)]
pub(crate) struct Multicast {
    suppression: RetxSuppression,
}

impl Multicast {
    pub(crate) fn new(settings: &StrategySettings) -> Self {
        Multicast {
            suppression: RetxSuppression::new(settings),
        }
    }
}

impl Strategy for Multicast {
    fn after_receive_interest(&mut self, fw: &mut State, id: u32, arrival: &Arrival<'_>) {
        let now = fw.now;
        let mut hops = fw.next_hops(arrival).0;
        if !fw.pit.get(id).has_pending_out(now) {
            arrival.pass_over(&mut hops);
        }
        for hop in hops {
            let asked = fw.pit.get_mut(id).out_mut(hop.face);
            if !arrival.again && asked.as_ref().is_some_and(|r| r.is_pending(now)) {
                continue;
            }
            let pause = asked.map(|r| (r.sent, self.suppression.pause(r.suppression)));
            if pause.is_some_and(|(sent, pause)| now - sent < pause) {
                continue;
            }
            fw.send_interest(id, hop.face, arrival);
            if let Some((_, pause)) = pause
                && let Some(record) = fw.pit.get_mut(id).out_mut(hop.face)
            {
                record.suppression = self.suppression.next(pause);
            }
        }
        if !fw.pit.get(id).has_pending_out(now) {
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
            let left_out = hops.last().map(|h| h.face);
            let left_out = left_out.filter(|&f| Some(f) == arrival.doubted && !entry.has_out(f));
            left_out.is_some_and(|face| fw.send_interest(id, face, arrival))
        });
    }
}
