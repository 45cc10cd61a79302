//! Answers that are merely late: after a timeout, a path that stood still is told from one that loses.
//!
//! A path that stalls for longer than the retransmission timeout loses nothing, yet all that is out is overdue. To ask
//! for all of it again would load the path twice just when it wakes. So one Interest is sent after a timeout, and what
//! comes next decides, as in F-RTO (RFC 5682): the late answer to one that was not sent again is the proof, as in Eifel
//! (RFC 3522), that the timeout was for nothing. Then the window is what it was (RFC 9438, 4.9.1), and what was given up
//! is waited for again. Without a proof all that is overdue counts as lost.
//!
//! ```text
//!            timeout               an answer, no proof
//!   (none) ──────────▶ Silent ──────────────────────────▶ Answered ──▶ (none): it was lost
//!     ▲                 │  ▲ └─ timeout again: one more         │    reorder_wait over,
//!     │ undone          │  └──  Interest                       │    or nothing left to wait for
//!     │                 │ proof                                │ proof
//!     └─────────────────┴──────────────────────────────────────┘
//! ```

use super::slot::{Slot, SlotState};
use super::{Consumer, earliest};
use crate::congestion::CongestionControl;
use std::time::Duration;

/// A timeout that may have been for nothing.
#[derive(Debug)]
pub(super) struct Suspicion {
    /// The window before the timeout, and the newest Interest when that was last cut.
    window: Box<dyn CongestionControl>,
    recovery_tx: u64,
    /// Newest Interest at the timeout.
    tx: u64,
    /// The timeout, not backed off: an answer that took longer is late.
    wait: Duration,
    /// Silent: the segment that the one Interest was sent for.
    pub(super) asked: Option<u64>,
    /// Answered: until when a proof is waited for.
    pub(super) until: Option<Duration>,
}

impl Suspicion {
    /// Whether a slot's only Interest is overdue since this timeout: its answer would be a proof.
    fn concerns(&self, slot: &Slot, now: Duration) -> bool {
        let out = match slot.state {
            SlotState::Pending => true,
            SlotState::Lost => slot.timed_out,
            _ => false,
        };
        out && slot.transmissions == 1
            && slot.tx <= self.tx
            && slot
                .due
                .is_some_and(|due| now >= due.max(slot.sent_at) + self.wait)
    }
}

impl Consumer {
    /// After a timeout of `wait`, before the window is cut, which was last cut at `recovery_tx`. One that follows
    /// another keeps what was before the first.
    pub(super) fn suspect(&mut self, wait: Duration, recovery_tx: u64) {
        match &mut self.suspicion {
            Some(suspicion) => {
                suspicion.asked = None;
                suspicion.until = None;
            }
            None => {
                self.suspicion = Some(Suspicion {
                    window: self.window.clone_box(),
                    recovery_tx,
                    tx: self.last_tx,
                    wait,
                    asked: None,
                    until: None,
                });
            }
        }
    }

    /// Whether one Interest more may be sent now, under this suspicion.
    pub(super) fn may_ask(&self, suspicion: &Suspicion) -> bool {
        let asked = suspicion.asked.and_then(|segment| self.index(segment));
        let is_out = asked.is_some_and(|at| matches!(self.ring[at].state, SlotState::Pending));
        suspicion.until.is_none() && !is_out
    }

    /// A Data came for this slot, and was measured.
    pub(super) fn weigh(&mut self, index: usize, now: Duration) {
        let Some(suspicion) = &mut self.suspicion else {
            return;
        };
        if suspicion.concerns(&self.ring[index], now) {
            self.undo_timeout(index, now);
        } else if suspicion.until.is_none() {
            let undecided = self.ring.iter().any(|slot| suspicion.concerns(slot, now));
            match undecided {
                true => suspicion.until = Some(now + self.config.reorder_wait),
                false => self.suspicion = None,
            }
        }
    }

    /// Takes the timeout back. What it gave up is pending again, but for what is overdue even by the round trip that has
    /// just been measured.
    fn undo_timeout(&mut self, proof: usize, now: Duration) {
        let Some(suspicion) = self.suspicion.take() else {
            return;
        };
        self.stats.spurious_timeouts += 1;
        self.rtt.end_back_off();
        self.lag.end_back_off();
        for index in 0..self.ring.len() {
            let slot = &self.ring[index];
            let expiry = self.expiry_after(slot, slot.losses.saturating_sub(1));
            let given_up = matches!(slot.state, SlotState::Lost) && suspicion.concerns(slot, now);
            if !given_up || index == proof || expiry <= now {
                continue;
            }
            let slot = &mut self.ring[index];
            slot.state = SlotState::Pending;
            slot.timed_out = false;
            slot.losses = slot.losses.saturating_sub(1);
            self.outstanding += 1;
            self.timer = earliest(self.timer, expiry);
        }
        self.window = suspicion.window;
        self.recovery_tx = suspicion.recovery_tx;
    }

    /// Ends a suspicion for which no proof has come in time: the path answers, and all that is overdue was lost.
    pub(super) fn end_suspicion(&mut self, now: Duration) {
        let over = |s: &mut Suspicion| s.until.is_some_and(|until| until <= now);
        let Some(suspicion) = self.suspicion.take_if(over) else {
            return;
        };
        for index in 0..self.ring.len() {
            let slot = &self.ring[index];
            if matches!(slot.state, SlotState::Pending) && suspicion.concerns(slot, now) {
                self.give_up(index, now);
            }
        }
    }
}
