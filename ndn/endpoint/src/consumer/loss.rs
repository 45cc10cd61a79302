//! What does not come: timeouts, gaps, lifetimes, stalls.
//!
//! An Interest is given up
//! - when three Interests sent after it were answered and it is later than answers usually are (SRTT + 4 RTTVAR, at
//!   least `reorder_wait`): a gap;
//! - else at the retransmission timeout;
//! - both longer each time that the segment is lost, by doubling: forwarders suppress repeats that follow each other
//!   closely (NFD's best-route for 10 ms at first, doubled up to 250 ms; others for longer);
//! - but while its segment may not exist yet, at the end of its lifetime, which is no loss.
//!
//! The window is cut at most once for all Interests that were out together. Where nothing sent later was answered
//! either, the path is taken for silent: the timeout backs off and the window starts over, unless answers that come
//! late after all show that nothing was lost (`late.rs`).

use super::slot::{Slot, SlotState};
use super::{Consumer, FailReason, earliest};
use std::time::Duration;

/// How many later answers make a gap.
const LATER_ANSWERS: u64 = 3;

impl Consumer {
    /// Gives up what is overdue. Call at [`deadline`](Self::deadline); earlier or later calls do no harm.
    pub fn on_deadline(&mut self, now: Duration) {
        self.now = now;
        if self.is_over() {
            return;
        }
        self.end_hold(now);
        self.end_suspicion(now);
        if self.timer.is_some_and(|timer| timer <= now) {
            self.scan(now);
        }
    }

    /// When the Interest of a Pending slot is to be given up.
    pub(super) fn expiry(&self, slot: &Slot) -> Duration {
        self.expiry_after(slot, slot.losses)
    }

    /// The same, had the slot been lost so often.
    pub(super) fn expiry_after(&self, slot: &Slot, losses: u32) -> Duration {
        let Some(due) = slot.due else {
            return slot.sent_at + self.config.interest_lifetime;
        };
        let estimator = if slot.sent_early() {
            &self.lag
        } else {
            &self.rtt
        };
        let wait = match estimator.usual() {
            Some(usual) if self.answered_tx >= slot.tx + LATER_ANSWERS => {
                let wait = usual.max(self.config.reorder_wait);
                // Up to a quarter more, by chance: repeats in step with a full queue would meet it full each time.
                let chance = wait / 1024 * (slot.nonce & 0xff) * u32::from(losses > 0);
                let doubled = (wait + chance).saturating_mul(1 << losses.min(16));
                doubled.min(self.config.rto.max)
            }
            _ => estimator.repeated_rto(losses),
        };
        slot.sent_at.max(due) + wait
    }

    /// Goes through the ring: gives up what is overdue, finds the next deadline, sees a stall.
    fn scan(&mut self, now: Duration) {
        self.timer = None;
        let mut owed_since: Option<Duration> = None;
        for index in 0..self.ring.len() {
            let slot = &self.ring[index];
            let at = match slot.state {
                SlotState::Pending => Some(self.expiry(slot)),
                SlotState::Held(until) => Some(until),
                _ => None,
            };
            if slot.is_missing()
                && let Some(due) = slot.due
            {
                owed_since = earliest(owed_since, due);
                if slot.losses > 0
                    && let Some(end) = self.patience_ends(due, now)
                {
                    if end <= now {
                        self.fail_lost(index, now);
                        return;
                    }
                    self.timer = earliest(self.timer, end);
                }
            }
            match at {
                Some(at) if at <= now => self.give_up(index, now),
                Some(at) => self.timer = earliest(self.timer, at),
                None => {}
            }
            if self.is_over() {
                return;
            }
        }
        if let Some(since) = owed_since {
            let since = since.max(self.last_progress);
            let stalled_at = since + self.config.give_up_after;
            if stalled_at <= now {
                self.fail_stalled(now - since);
            } else {
                self.timer = earliest(self.timer, stalled_at);
            }
        }
    }

    pub(super) fn fail_stalled(&mut self, waited: Duration) {
        let (prefix, segment) = (self.config.prefix.clone(), self.first_missing());
        self.fail(if self.hold.is_some() {
            FailReason::NoRoute {
                prefix,
                segment,
                waited,
            }
        } else {
            FailReason::Stalled {
                prefix,
                segment,
                waited,
            }
        });
    }

    fn first_missing(&self) -> u64 {
        self.base + self.ring.iter().position(Slot::is_missing).unwrap_or(0) as u64
    }

    /// A Pending or Held slot goes back to the queue, and what that means for the window is drawn.
    pub(super) fn give_up(&mut self, index: usize, now: Duration) {
        let slot = &self.ring[index];
        let wait = self.expiry(slot) - slot.sent_at.max(slot.due.unwrap_or_default());
        let was_held = matches!(self.ring[index].state, SlotState::Held(_));
        self.queue_again(index);
        if was_held {
            return;
        }
        let slot = &self.ring[index];
        let (tx, due) = (slot.tx, slot.due);
        if due.is_none() {
            // It waited out its lifetime somewhere: there is a route.
            self.hold = None;
            return;
        }
        if self.answered_tx >= tx + LATER_ANSWERS {
            self.stats.gaps += 1;
        } else {
            self.stats.timeouts += 1;
            self.ring[index].timed_out = true;
        }
        let recovery_tx = self.recovery_tx;
        if self.enter_recovery(tx) {
            if self.answered_tx > tx {
                self.suspicion = None;
                self.window.on_congestion(now);
            } else {
                self.suspect(wait, recovery_tx);
                self.window.on_timeout(now);
                self.rtt.back_off();
                self.lag.back_off();
            }
        }
        self.count_loss(index, now);
    }

    /// One more loss of this slot.
    pub(super) fn count_loss(&mut self, index: usize, now: Duration) {
        let slot = &mut self.ring[index];
        slot.losses = slot.losses.saturating_add(1);
        if let Some(due) = slot.due
            && let Some(end) = self.patience_ends(due, now)
        {
            self.timer = earliest(self.timer, end);
        }
    }

    /// Until when a lost segment that is owed since `due` is waited for; `None` while nothing comes at all, which is a
    /// matter of the path and not of the segment.
    fn patience_ends(&self, due: Duration, now: Duration) -> Option<Duration> {
        let is_silent = now.saturating_sub(self.last_progress) >= self.config.rto.max;
        (!is_silent).then(|| due.max(self.flowing_since) + self.config.give_up_after)
    }

    fn fail_lost(&mut self, index: usize, now: Duration) {
        let slot = &self.ring[index];
        let since = slot.due.unwrap_or(now).max(self.flowing_since);
        self.fail(FailReason::Lost {
            prefix: self.config.prefix.clone(),
            segment: self.base + index as u64,
            waited: now - since,
            tries: slot.transmissions,
        });
    }

    /// Makes a slot Lost and queues it.
    pub(super) fn queue_again(&mut self, index: usize) {
        self.uncount(index);
        self.ring[index].state = SlotState::Lost;
        self.resend.push_back(self.base + index as u64);
    }
}
