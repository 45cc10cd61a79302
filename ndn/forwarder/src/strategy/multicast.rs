//! Multicast: all next hops at once; each is asked again only after a growing pause.

use crate::forwarder::{Forwarder, nanos};
use crate::interest::Arrival;

impl Forwarder {
    pub(super) fn multicast(&mut self, id: u32, arrival: &Arrival<'_>) {
        let (min, max) = (
            nanos(self.config.retx_suppression_min),
            nanos(self.config.retx_suppression_max),
        );
        for hop in self.next_hops(arrival).0 {
            let now = self.now;
            let asked = self.pit.get_mut(id).out_mut(hop.face);
            if !arrival.again && asked.as_ref().is_some_and(|r| r.is_pending(now)) {
                continue;
            }
            let pause = asked.map(|r| {
                (
                    r.sent,
                    if r.suppression == 0 {
                        min
                    } else {
                        r.suppression
                    },
                )
            });
            if pause.is_some_and(|(sent, pause)| now - sent < pause) {
                continue;
            }
            self.forward(id, hop.face, arrival);
            if let Some((_, pause)) = pause
                && let Some(record) = self.pit.get_mut(id).out_mut(hop.face)
            {
                record.suppression = (pause * 2).min(max);
            }
        }
        if !self.pit.get(id).has_pending_out(self.now) {
            self.refuse(id);
        }
    }
}
