//! What comes: Data and Nacks.

use super::slot::SlotState;
use super::{Consumer, Hold, Outcome, State, earliest};
use crate::Distrust;
use crate::naming::{SegmentName, final_segment};
use ndn_packet::{Data, Interest, NackReason};
use std::time::Duration;

/// For how long the shortest answer to an early Interest stands for the path.
const LEAST_WAIT_MEMORY: Duration = Duration::from_secs(10);
/// Jitter forgiven when an answer is compared with the shortest.
const LEAST_WAIT_JITTER: Duration = Duration::from_millis(1);

impl Consumer {
    /// Takes a Data; `marked` when its link-layer header bore a congestion mark.
    pub fn on_data(&mut self, now: Duration, data: Data, marked: bool) -> Outcome {
        self.now = now;
        let Some(segment) = SegmentName::segment(self.prefix(), data.name()) else {
            return Outcome::Unsolicited;
        };
        let Some(index) = self.index(segment) else {
            self.stats.duplicates += 1;
            return if segment < self.base {
                Outcome::Duplicate
            } else {
                Outcome::Unsolicited
            };
        };
        if !self.ring[index].is_missing() {
            self.stats.duplicates += 1;
            return Outcome::Duplicate;
        }
        let is_too_long = data.wire().len() > self.config.max_packet_bytes;
        if is_too_long && matches!(self.state, State::Failed(_)) {
            return Outcome::Refused; // nothing is asked for again any more
        }
        if self.config.live {
            self.known_produced(now, segment);
        }
        self.measure(index, now);
        self.weigh(index, now);
        self.steer(index, now, marked);

        if self.config.believe_final
            && let Some(last) = final_segment(data.final_block_id())
            && last >= segment
            && last < self.limit()
        {
            self.claimed_last = Some((last, segment));
            self.truncate(last);
        }
        self.uncount(index);
        self.ring[index].state = SlotState::Received(data);
        self.buffered += 1;
        self.stats.received += 1;
        if now.saturating_sub(self.last_progress) >= self.config.rto.max {
            self.flowing_since = now;
        }
        self.last_progress = now;
        self.hold = None;
        if self.state == State::Probing {
            self.state = State::Flowing;
        }
        if is_too_long {
            self.reject_for(segment, Distrust::TooLong);
            return Outcome::Refused;
        }
        // The first one missing may be a gap now, or have a shorter timeout.
        if let Some(slot) = self.ring.front()
            && matches!(slot.state, SlotState::Pending)
        {
            self.timer = earliest(self.timer, self.expiry(slot));
        }
        Outcome::Accepted
    }

    /// Feeds the estimators, under Karn's rule: only by segments asked for once. In a live stream where every Interest
    /// goes out early there may be none of those with a round trip to tell; until there is, one that had to be asked for
    /// again stands in with the time since it was due, which is a round trip and more.
    fn measure(&mut self, index: usize, now: Duration) {
        let slot = &self.ring[index];
        if slot.transmissions != 1 {
            let since_due = now.saturating_sub(slot.due.unwrap_or(now));
            if self.config.live && self.rtt.srtt().is_none() && since_due < self.config.rto.initial
            {
                self.rtt.sample(since_due);
            }
            return;
        }
        self.answered_tx = self.answered_tx.max(slot.tx);
        if slot.sent_early() {
            self.lag.sample(
                slot.due
                    .map_or(Duration::ZERO, |due| now.saturating_sub(due)),
            );
            let wait = now.saturating_sub(slot.sent_at);
            match &mut self.least_wait {
                Some((since, least)) if *since + LEAST_WAIT_MEMORY > now => {
                    *least = wait.min(*least)
                }
                other => *other = Some((now, wait)),
            }
        } else {
            self.rtt.sample(now.saturating_sub(slot.sent_at));
        }
    }

    /// Moves the window: cut by a mark; grown by an answer that the path, not the producer, made wait.
    fn steer(&mut self, index: usize, now: Duration, marked: bool) {
        let slot = &self.ring[index];
        let tx = slot.tx;
        if marked {
            self.stats.marks += 1;
            self.cut(tx, now);
            return;
        }
        let wait = now.saturating_sub(slot.sent_at);
        let path_bound = !slot.sent_early()
            || self
                .least_wait
                .is_some_and(|(_, least)| wait <= least * 2 + LEAST_WAIT_JITTER);
        if self.limited && path_bound && tx > self.recovery_tx {
            self.window.on_data(now, self.rtt.srtt());
        }
    }

    /// Takes a Nack for `interest`.
    ///
    /// | reason | what follows |
    /// |---|---|
    /// | Congestion | the window is cut as by a mark; the segment waits, longer each time |
    /// | Duplicate | asked for again at once with another nonce; from the second time on it waits |
    /// | NoRoute, others | silence, longer each time; then one Interest at a time until something answers |
    pub fn on_nack(&mut self, now: Duration, interest: &Interest, reason: NackReason) {
        self.now = now;
        let Some(index) = SegmentName::segment(self.prefix(), interest.name())
            .and_then(|segment| self.index(segment))
        else {
            return;
        };
        let slot = &self.ring[index];
        if !matches!(slot.state, SlotState::Pending)
            || interest.nonce() != Some(slot.nonce)
            || self.is_over()
        {
            return;
        }
        let (tx, losses) = (slot.tx, slot.losses);
        self.stats.nacks += 1;
        // The path is not silent, and a refusal has its own consequences.
        self.suspicion = None;
        match reason {
            NackReason::Congestion => {
                self.cut(tx, now);
                self.hold_slot(index, now, losses);
                self.count_loss(index, now);
            }
            NackReason::Duplicate => {
                match losses {
                    0 => self.queue_again(index),
                    _ => self.hold_slot(index, now, losses - 1),
                }
                self.count_loss(index, now);
            }
            _ => {
                self.queue_again(index);
                self.begin_hold(now, tx);
            }
        }
    }

    /// A slot is left alone for `reorder_wait`, doubled for each earlier loss, at most the greatest timeout.
    fn hold_slot(&mut self, index: usize, now: Duration, losses: u32) {
        let wait = self
            .config
            .reorder_wait
            .saturating_mul(1 << losses.min(16))
            .min(self.config.rto.max);
        self.uncount(index);
        self.ring[index].state = SlotState::Held(now + wait);
        self.timer = earliest(self.timer, now + wait);
    }

    fn begin_hold(&mut self, now: Duration, tx: u64) {
        let first = self.config.no_route_wait;
        let (since, wait) = match &self.hold {
            Some(hold) if tx <= hold.tx => return,
            Some(hold) => (hold.since, (hold.wait * 2).min(first * 32)),
            None => (now, first),
        };
        if now.saturating_sub(since) >= self.config.give_up_after {
            self.fail_stalled(now - since);
            return;
        }
        self.hold = Some(Hold {
            since,
            until: now + wait,
            wait,
            tx: self.last_tx,
            waiting: true,
        });
        self.state = State::Probing;
        self.probe = None;
    }
}
