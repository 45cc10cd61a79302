//! Handing on in order, and taking back what was bad.

use super::slot::{Slot, SlotState};
use super::{Consumer, FailReason, State};
use crate::Distrust;
use crate::naming::final_segment;
use ndn_packet::{Data, content_type};

impl Consumer {
    /// The next segment in order, its signature checked as [`verify`](super::ConsumerConfig::verify) says. One whose
    /// signature does not hold is asked for again and not handed on. Poll for Interests afterwards: room was made.
    pub fn read(&mut self) -> Option<(u64, Data)> {
        loop {
            let slot = self.ring.front()?;
            match &slot.state {
                SlotState::Taken => self.advance(),
                SlotState::Received(data) => {
                    if let Err(why) = self.config.verify.check_with(data, &mut self.known_roots) {
                        self.reject_for(self.base, why);
                        return None;
                    }
                    if self.config.believe_nack && data.content_type() == content_type::NACK {
                        let reason = FailReason::Refused {
                            prefix: self.config.prefix.clone(),
                            segment: self.base,
                        };
                        self.fail(reason);
                        return None;
                    }
                    break;
                }
                _ => return None,
            }
        }
        let segment = self.base;
        let Some(Slot {
            state: SlotState::Received(data),
            ..
        }) = self.ring.pop_front()
        else {
            return None;
        };
        self.base += 1;
        self.buffered -= 1;
        self.stats.read += 1;
        self.stats.bytes += data.wire().len() as u64;
        if self.config.believe_final {
            self.believe_last(segment, final_segment(data.final_block_id()));
        }
        self.finish_if_read();
        Some((segment, data))
    }

    fn advance(&mut self) {
        self.ring.pop_front();
        self.base += 1;
        self.finish_if_read();
    }

    /// A verified segment named the last one: the smallest such claim holds.
    fn believe_last(&mut self, segment: u64, last: Option<u64>) {
        if self.claimed_last.is_some_and(|(_, by)| by == segment) {
            self.claimed_last = None;
        }
        if let Some(last) = last
            && last >= segment
            && self.last().is_none_or(|known| last < known)
        {
            self.last = Some((last, Some(segment)));
            self.truncate(last);
        }
    }

    /// Takes a segment back, read or not: its signature or content is bad. It is asked for again past the caches
    /// (MustBeFresh) and, where routers know how, past the face that it came from; and [`read`](Self::read) gives it again before any that were not given yet; those read in
    /// between are not given twice. False when the segment is none that was received, or too long ago.
    pub fn reject(&mut self, segment: u64) -> bool {
        self.reject_for(segment, Distrust::Refused)
    }

    pub(crate) fn reject_for(&mut self, segment: u64, why: Distrust) -> bool {
        let room = self
            .config
            .max_buffered_segments
            .saturating_sub(self.ring.len()) as u64;
        let back = self.base.saturating_sub(segment);
        if matches!(self.state, State::Failed(_)) || segment < self.config.first || back > room {
            return false;
        }
        for _ in 0..back {
            self.base -= 1;
            self.ring.push_front(Slot::new(SlotState::Taken, None));
        }
        let Some(index) = self.index(segment) else {
            return false;
        };
        match self.ring[index].state {
            SlotState::Received(_) => self.buffered -= 1,
            SlotState::Taken => {}
            _ => return false,
        }
        self.ring[index] = Slot {
            rejected: true,
            ..Slot::new(SlotState::Lost, Some(self.now))
        };
        self.resend.push_front(segment);
        self.stats.rejected += 1;
        self.disbelieve_last(segment);
        self.count_reject(segment, why);
        true
    }

    /// What a rejected segment said of the end is forgotten.
    fn disbelieve_last(&mut self, segment: u64) {
        if self.claimed_last.is_some_and(|(_, by)| by == segment) {
            self.claimed_last = None;
        }
        if self.last.is_some_and(|(_, by)| by == Some(segment)) {
            self.last = None;
        }
        if self.state == State::Done {
            self.state = State::Flowing;
        }
    }

    fn count_reject(&mut self, segment: u64, why: Distrust) {
        let oldest = self
            .base
            .saturating_sub(self.config.max_buffered_segments as u64);
        self.rejects.retain(|&rejected, _| rejected >= oldest);
        let times = self.rejects.entry(segment).or_insert(0);
        *times += 1;
        if *times > self.config.max_rejects {
            let reason = FailReason::Rejected {
                prefix: self.config.prefix.clone(),
                segment,
                times: *times,
                why,
            };
            self.fail(reason);
        }
    }
}
