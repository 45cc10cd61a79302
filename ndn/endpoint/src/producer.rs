//! The producer of a segment stream: keeps what may still be asked for, answers Interests, lets early ones wait.

use crate::naming::SegmentName;
use bytes::Bytes;
use ndn_packet::{Interest, NackReason, Name, sha256};
use std::collections::VecDeque;
use std::time::Duration;

/// Settings of a [`Producer`]. Start from [`ProducerConfig::new`] and change fields.
#[derive(Debug, Clone)]
pub struct ProducerConfig {
    /// Name of the stream: version included, segment number not.
    pub prefix: Name,
    /// Greatest span of segments kept, holes included. The oldest go first. Default 1024.
    pub retain_segments: usize,
    /// Greatest sum of packet sizes kept, in bytes; the newest segment is kept in any case. Default 64 MiB.
    pub retain_bytes: usize,
    /// Greatest number of Interests that wait for production. Default 4096.
    pub max_pending_interests: usize,
    /// Longest time an Interest may wait, whatever lifetime it asks for. Default 60 s.
    pub max_wait: Duration,
}

impl ProducerConfig {
    /// The defaults, for the stream named `prefix`.
    pub fn new(prefix: Name) -> Self {
        Self {
            prefix,
            retain_segments: 1024,
            retain_bytes: 64 << 20,
            max_pending_interests: 4096,
            max_wait: Duration::from_secs(60),
        }
    }
}

/// What an Interest gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// This packet.
    Data(Bytes),
    /// Nothing yet: its segment is still to come and [`Producer::publish`] will answer it.
    Waits,
    /// A Nack: `NoRoute` for what is not here and will not come, `Congestion` when too many wait.
    Nack(NackReason),
}

/// Why a segment was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// It was acknowledged or dropped before.
    #[error("segment {0} is gone: acknowledged, or older than what is retained")]
    Gone(u64),
    /// It is here. A name stands for one packet for ever.
    #[error("segment {0} is published already")]
    Again(u64),
    /// The stream ends before it.
    #[error("segment {segment} lies beyond the last, {last}")]
    BeyondLast {
        /// The segment.
        segment: u64,
        /// The stream's last segment.
        last: u64,
    },
}

/// Counters since the start, and gauges of now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProducerStats {
    /// Segments published.
    pub published: u64,
    /// Their packets' bytes.
    pub published_bytes: u64,
    /// Interests received under the prefix.
    pub interests: u64,
    /// Data given, at once or after a wait.
    pub answered: u64,
    /// Of those, after a wait.
    pub answered_late: u64,
    /// Interests that had to wait.
    pub waited: u64,
    /// Of those, whose lifetime ended first.
    pub expired: u64,
    /// Of those, pushed out by Interests for nearer segments when the table was full.
    pub pushed_out: u64,
    /// Nacks given.
    pub nacks: u64,
    /// Digests computed for Interests that ask by digest: one for each segment at most.
    pub digests: u64,
    /// Segments dropped for want of room before they were acknowledged.
    pub evicted: u64,
    /// Segments kept now.
    pub retained: usize,
    /// Bytes kept now.
    pub retained_bytes: usize,
    /// Interests waiting now.
    pub pending: usize,
}

/// An Interest that came before its segment.
#[derive(Debug)]
struct Waiting<T> {
    segment: u64,
    tag: T,
    expires: Duration,
}

/// A segment that may still be asked for.
#[derive(Debug, Clone)]
struct Kept {
    wire: Bytes,
    /// Digest of the packet, computed when it is first asked for by digest: whoever does so again, with whatever digest,
    /// costs a comparison.
    digest: Option<Box<[u8; 32]>>,
}

impl Kept {
    /// Whether this is the packet's digest; counts in `computed` if it had to be computed.
    fn has_digest(&mut self, digest: &[u8], computed: &mut u64) -> bool {
        *computed += u64::from(self.digest.is_none());
        let own = self
            .digest
            .get_or_insert_with(|| Box::new(sha256(&self.wire)));
        own[..] == *digest
    }
}

/// Serves one stream. `T` is what the driver needs to send an answer: a face, a PIT token.
#[derive(Debug)]
pub struct Producer<T> {
    config: ProducerConfig,
    /// Segment of `ring[0]`.
    base: u64,
    ring: VecDeque<Option<Kept>>,
    /// Everything below was acknowledged or dropped.
    floor: u64,
    last: Option<u64>,
    /// Sorted by segment.
    waiting: VecDeque<Waiting<T>>,
    stats: ProducerStats,
}

impl<T: PartialEq> Producer<T> {
    /// A producer with nothing published.
    pub fn new(mut config: ProducerConfig) -> Self {
        config.retain_segments = config.retain_segments.max(1);
        Self {
            config,
            base: 0,
            ring: VecDeque::new(),
            floor: 0,
            last: None,
            waiting: VecDeque::new(),
            stats: ProducerStats::default(),
        }
    }

    /// Publishes a segment's signed Data and appends to `answers` what the Interests waiting for it get.
    ///
    /// Segments may come in any order; old ones make room for new ones.
    ///
    /// # Errors
    /// [`PublishError`] when the segment is not one that can still be published; nothing changes then.
    pub fn publish(
        &mut self,
        now: Duration,
        segment: u64,
        wire: Bytes,
        answers: &mut Vec<(T, Bytes)>,
    ) -> Result<(), PublishError> {
        let index = self.place(segment)?;
        self.stats.published += 1;
        self.stats.published_bytes += wire.len() as u64;
        self.stats.retained_bytes += wire.len();
        self.stats.retained += 1;

        let from = self.waiting.partition_point(|w| w.segment < segment);
        let to = self.waiting.partition_point(|w| w.segment <= segment);
        for waiting in self.waiting.drain(from..to) {
            if waiting.expires > now {
                self.stats.answered += 1;
                self.stats.answered_late += 1;
                answers.push((waiting.tag, wire.clone()));
            } else {
                self.stats.expired += 1;
            }
        }
        self.ring[index] = Some(Kept { wire, digest: None });
        while self.stats.retained_bytes > self.config.retain_bytes && self.ring.len() > 1 {
            self.drop_below(self.base + 1, true);
        }
        Ok(())
    }

    /// Makes the ring reach to `segment`, and gives its place there.
    fn place(&mut self, segment: u64) -> Result<usize, PublishError> {
        let retain = self.config.retain_segments as u64;
        if let Some(last) = self.last
            && segment > last
        {
            return Err(PublishError::BeyondLast { segment, last });
        }
        if segment < self.floor {
            return Err(PublishError::Gone(segment));
        }
        if self
            .newest()
            .is_some_and(|newest| newest.saturating_sub(segment) >= retain)
        {
            return Err(PublishError::Gone(segment));
        }
        if self.ring.is_empty() {
            self.base = segment;
        }
        while self.base > segment {
            self.ring.push_front(None);
            self.base -= 1;
        }
        self.drop_below(segment.saturating_sub(retain - 1), true);
        let span = (segment - self.base) as usize + 1;
        if span > self.ring.len() {
            self.ring.resize(span, None);
        }
        let index = (segment - self.base) as usize;
        if self.ring[index].is_some() {
            Err(PublishError::Again(segment))
        } else {
            Ok(index)
        }
    }

    /// Lets go of all segments below `end`.
    fn drop_below(&mut self, end: u64, for_room: bool) {
        while self.base < end
            && let Some(dropped) = self.ring.pop_front()
        {
            self.base += 1;
            if let Some(Kept { wire, .. }) = dropped {
                self.stats.retained -= 1;
                self.stats.retained_bytes -= wire.len();
                self.stats.evicted += u64::from(for_room);
            }
        }
        self.base = self.base.max(end);
        self.floor = self.floor.max(end);
    }

    /// Answers an Interest; `tag` is kept if it has to wait. An Interest with CanBePrefix for the stream's prefix, or
    /// a shorter name, gets the oldest segment kept.
    pub fn on_interest(&mut self, now: Duration, interest: &Interest, tag: T) -> Answer {
        self.stats.interests += 1;
        let answer = match SegmentName::of(&self.config.prefix, interest.name()) {
            SegmentName::Segment(segment) => self.look_up(segment),
            SegmentName::Exact(segment, digest) => match self.look_up(segment) {
                Found::Here(_) if !self.has_digest(segment, digest) => Found::Never,
                other => other,
            },
            SegmentName::Above if interest.can_be_prefix() => {
                match self.ring.iter().flatten().next() {
                    Some(kept) => Found::Here(kept.wire.clone()),
                    None => Found::Later(self.floor),
                }
            }
            SegmentName::Above | SegmentName::Foreign => Found::Never,
        };
        let answer = match answer {
            Found::Here(wire) => Answer::Data(wire),
            Found::Later(segment) => {
                let lifetime = interest.lifetime_or_default().min(self.config.max_wait);
                self.wait(now, segment, tag, now + lifetime)
            }
            Found::Never => Answer::Nack(NackReason::NoRoute),
        };
        match answer {
            Answer::Data(_) => self.stats.answered += 1,
            Answer::Waits => self.stats.waited += 1,
            Answer::Nack(_) => self.stats.nacks += 1,
        }
        answer
    }

    fn look_up(&self, segment: u64) -> Found {
        if segment < self.floor || self.last.is_some_and(|last| segment > last) {
            return Found::Never;
        }
        match self.index(segment).and_then(|index| self.ring.get(index)) {
            Some(Some(kept)) => Found::Here(kept.wire.clone()),
            _ => Found::Later(segment),
        }
    }

    fn has_digest(&mut self, segment: u64, digest: &[u8]) -> bool {
        let index = self.index(segment);
        match index.and_then(|index| self.ring.get_mut(index)) {
            Some(Some(kept)) => kept.has_digest(digest, &mut self.stats.digests),
            _ => false,
        }
    }

    /// Where in the ring a segment is, or would be.
    fn index(&self, segment: u64) -> Option<usize> {
        usize::try_from(segment.checked_sub(self.base)?).ok()
    }

    /// Puts an Interest into the bounded table. When that is full, the nearest segments have precedence: a flood of
    /// Interests for what will never come cannot keep out those for what comes next.
    fn wait(&mut self, now: Duration, segment: u64, tag: T, expires: Duration) -> Answer {
        let from = self.waiting.partition_point(|w| w.segment < segment);
        let to = self.waiting.partition_point(|w| w.segment <= segment);
        if let Some(same) = self.waiting.range_mut(from..to).find(|w| w.tag == tag) {
            same.expires = expires;
            return Answer::Waits;
        }
        if self.waiting.len() >= self.config.max_pending_interests {
            self.expire(now);
        }
        if self.waiting.len() >= self.config.max_pending_interests {
            if self
                .waiting
                .back()
                .is_none_or(|farthest| farthest.segment <= segment)
            {
                return Answer::Nack(NackReason::Congestion);
            }
            self.waiting.pop_back();
            self.stats.pushed_out += 1;
        }
        let at = self.waiting.partition_point(|w| w.segment <= segment);
        self.waiting.insert(
            at,
            Waiting {
                segment,
                tag,
                expires,
            },
        );
        Answer::Waits
    }

    /// Forgets waiting Interests whose lifetime is over. Called from within when the table is full; a driver may call
    /// it now and then to free memory.
    pub fn expire(&mut self, now: Duration) {
        let before = self.waiting.len();
        self.waiting.retain(|w| w.expires > now);
        self.stats.expired += (before - self.waiting.len()) as u64;
    }

    /// Every consumer has the segments up to `upto`: they are let go and, asked for again, get a Nack.
    pub fn acknowledge(&mut self, upto: u64) {
        self.drop_below(upto.saturating_add(1), false);
    }

    /// The stream ends with segment `last`; appends to `refused` the tags of Interests waiting beyond it, which get a
    /// Nack (`NoRoute`). Consumers learn of the end by the FinalBlockId that the last Data carry.
    pub fn finish(&mut self, last: u64, refused: &mut Vec<T>) {
        self.last = Some(last);
        let from = self.waiting.partition_point(|w| w.segment <= last);
        let before = refused.len();
        refused.extend(self.waiting.drain(from..).map(|w| w.tag));
        self.stats.nacks += (refused.len() - before) as u64;
    }

    /// The packet of a segment that is still kept.
    pub fn kept(&self, segment: u64) -> Option<&Bytes> {
        let kept = self.ring.get(self.index(segment)?)?.as_ref()?;
        Some(&kept.wire)
    }

    /// Whether another packet of `bytes` fits without dropping a segment that was not acknowledged: for publishers
    /// that would rather wait.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.ring.len() < self.config.retain_segments
            && self.stats.retained_bytes.saturating_add(bytes) <= self.config.retain_bytes
    }

    /// Name of the stream.
    pub fn prefix(&self) -> &Name {
        &self.config.prefix
    }

    /// The highest segment published so far, while any is kept.
    pub fn newest(&self) -> Option<u64> {
        (!self.ring.is_empty()).then(|| self.base + (self.ring.len() as u64 - 1))
    }

    /// Counters and gauges.
    pub fn stats(&self) -> ProducerStats {
        ProducerStats {
            pending: self.waiting.len(),
            ..self.stats
        }
    }
}

/// What the ring knows of a segment.
enum Found {
    Here(Bytes),
    Later(u64),
    Never,
}
