//! The consumer of a segment stream: keeps a window of Interests out, puts the answers in order.
//!
//! `send.rs` decides what is asked for next, `receive.rs` takes what comes, `loss.rs` finds what does not, `late.rs`
//! what only came late, `read.rs` hands on in order.

mod config;
mod late;
mod loss;
mod read;
mod receive;
mod report;
mod send;
mod slot;

pub use config::{ConsumerConfig, Rejected};
pub use report::{ConsumerStats, FailReason, Outcome, State};

use crate::congestion::CongestionControl;
use crate::naming::SegmentName;
use crate::rtt::RttEstimator;
use crate::template::InterestTemplate;
use fastrand::Rng;
use late::Suspicion;
use ndn_packet::{KnownRoots, Name, NameRef};
use slot::{Slot, SlotState};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Pulls the segments of one stream. See the [crate's head](crate) for how to drive it.
#[derive(Debug)]
pub struct Consumer {
    config: ConsumerConfig,
    template: InterestTemplate,
    window: Box<dyn CongestionControl>,
    /// Round trips of Interests for segments that were known to exist.
    rtt: RttEstimator,
    /// For Interests sent ahead of production: how long after the news of a segment the segment itself came.
    lag: RttEstimator,
    rng: Rng,
    state: State,

    /// Segment of `ring[0]`: the next to read.
    base: u64,
    /// Every segment from `base` on that was ever asked for; at most `max_buffered_segments`.
    ring: VecDeque<Slot>,
    /// Segments whose slot is Lost, in the order to send; entries that are so no more are skipped.
    resend: VecDeque<u64>,
    outstanding: usize,
    /// Of those, the ones for segments not known to exist: they wait somewhere and load no link.
    early: usize,
    buffered: usize,

    /// Highest segment known to exist; moves in live streams only.
    known: Option<u64>,
    /// The stream's last segment, and which segment said so if one did.
    last: Option<(u64, Option<u64>)>,
    /// A last segment claimed by one that was not read, thus not verified, yet; and which.
    claimed_last: Option<(u64, u64)>,
    /// The last segment that may be asked for so far.
    wanted: u64,

    /// Number of the newest Interest, of the newest answered one, and of the newest when the window was last cut.
    last_tx: u64,
    answered_tx: u64,
    recovery_tx: u64,
    /// Whether the window was what ended the last round of sending.
    limited: bool,
    /// Segment asked for by the probe.
    probe: Option<u64>,
    hold: Option<Hold>,
    /// A timeout that what comes next may show to have been for nothing.
    suspicion: Option<Suspicion>,
    /// Shortest answer to an early Interest, and since when it is remembered.
    least_wait: Option<(Duration, Duration)>,

    /// No slot has anything to do before this time.
    timer: Option<Duration>,
    last_progress: Duration,
    /// When something came after a silence as long as the greatest timeout.
    flowing_since: Duration,
    now: Duration,
    rejects: BTreeMap<u64, u32>,
    /// Of batches whose signatures were verified.
    known_roots: KnownRoots,
    stats: ConsumerStats,
}

/// Silence after a Nack for want of a route.
#[derive(Debug)]
struct Hold {
    /// When the first such Nack came.
    since: Duration,
    until: Duration,
    wait: Duration,
    /// Newest Interest when it began: a Nack for an older one says nothing new.
    tx: u64,
    /// Whether `until` is still to come.
    waiting: bool,
}

impl Consumer {
    /// A consumer that has sent nothing yet; [`poll_interest`](Self::poll_interest) has its first Interest.
    pub fn new(mut config: ConsumerConfig, now: Duration) -> Self {
        config.max_buffered_segments = config.max_buffered_segments.max(1);
        config.first_ahead = config.first_ahead.max(1);
        let mut consumer = Self {
            template: InterestTemplate::new(config.prefix.clone(), config.interest_lifetime),
            window: config.congestion.build(now),
            rtt: RttEstimator::new(config.rto),
            lag: RttEstimator::new(config.rto),
            rng: Rng::with_seed(config.seed),
            state: if config.probe {
                State::Probing
            } else {
                State::Flowing
            },
            base: config.first,
            ring: VecDeque::new(),
            resend: VecDeque::new(),
            outstanding: 0,
            early: 0,
            buffered: 0,
            known: None,
            last: config.last.map(|last| (last, None)),
            claimed_last: None,
            wanted: u64::MAX,
            last_tx: 0,
            answered_tx: 0,
            recovery_tx: 0,
            limited: false,
            probe: None,
            hold: None,
            suspicion: None,
            least_wait: None,
            timer: None,
            last_progress: now,
            flowing_since: now,
            now,
            rejects: BTreeMap::new(),
            known_roots: KnownRoots::default(),
            stats: ConsumerStats::default(),
            config,
        };
        consumer.finish_if_read();
        consumer
    }

    /// Live streams: segments up to `upto` exist. Those asked for before now count as lost when they stay away for a
    /// retransmission timeout from now on; those beyond are merely not produced yet.
    pub fn known_produced(&mut self, now: Duration, upto: u64) {
        self.now = now;
        let from = match self.known {
            Some(known) if known >= upto => return,
            Some(known) => (known + 1).max(self.base),
            None => self.base,
        };
        self.known = Some(upto);
        let rto = self.lag.rto();
        for segment in from..=upto.min(self.base.saturating_add(self.ring.len() as u64)) {
            let Some(index) = self.index(segment) else {
                break;
            };
            let slot = &mut self.ring[index];
            if slot.due.is_none() {
                slot.due = Some(now);
                self.early -= usize::from(matches!(slot.state, SlotState::Pending));
                self.timer = earliest(self.timer, now + rto);
            }
        }
    }

    /// The stream ends with segment `last`: nothing beyond is asked for, and after it the consumer is done.
    pub fn set_last(&mut self, last: u64) {
        self.last = Some((last, None));
        self.truncate(last);
        self.finish_if_read();
    }

    /// No segment beyond `segment` is asked for until this is called again: for readers who may not want all of the
    /// stream. What is on its way already still comes. Poll for Interests afterwards.
    pub fn want_up_to(&mut self, segment: u64) {
        self.wanted = segment;
    }

    /// The last segment, once it is known for certain: told, or said by a Data that was read.
    pub fn last(&self) -> Option<u64> {
        self.last.map(|(last, _)| last)
    }

    /// The next segment that [`read`](Self::read) will give, in a stream where nothing was rejected.
    pub fn next_segment(&self) -> u64 {
        self.base
    }

    /// Name of the stream.
    pub fn prefix(&self) -> &Name {
        self.template.prefix()
    }

    /// Whether this name belongs to the stream: for drivers that hand packets to one of many consumers.
    pub fn wants(&self, name: NameRef<'_>) -> bool {
        SegmentName::segment(self.prefix(), name)
            .and_then(|segment| self.index(segment))
            .is_some()
    }

    /// Where the consumer stands.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Whether every segment has been read.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Why it gave up, if it did.
    pub fn failure(&self) -> Option<&FailReason> {
        match &self.state {
            State::Failed(reason) => Some(reason),
            _ => None,
        }
    }

    /// Counters and gauges.
    pub fn stats(&self) -> ConsumerStats {
        ConsumerStats {
            srtt: self.rtt.srtt(),
            rto: self.rtt.rto(),
            window: self.window_now(),
            outstanding: self.outstanding,
            early: self.early,
            buffered: self.buffered,
            ..self.stats.clone()
        }
    }

    /// When [`on_deadline`](Self::on_deadline) is to be called if nothing else happens before; `None` for never.
    pub fn deadline(&self) -> Option<Duration> {
        if self.is_over() {
            return None;
        }
        let hold = self
            .hold
            .as_ref()
            .filter(|hold| hold.waiting)
            .map(|hold| hold.until);
        let suspicion = self.suspicion.as_ref().and_then(|s| s.until);
        [self.timer, hold, suspicion].into_iter().flatten().min()
    }

    /// How many segments may be outstanding or not yet read now.
    pub fn ahead(&self) -> usize {
        let read = usize::try_from(self.base - self.config.first).unwrap_or(usize::MAX);
        self.config
            .first_ahead
            .saturating_add(read)
            .min(self.config.max_buffered_segments)
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Done | State::Failed(_))
    }

    /// The window that holds now, at least 1.
    fn window_now(&self) -> usize {
        let probes = self.state == State::Probing && self.hold.is_none();
        if probes || self.suspicion.is_some() {
            1
        } else {
            self.window
                .window()
                .clamp(1, self.config.max_buffered_segments)
        }
    }

    /// An Interest of this slot is out no more: answered, refused or given up.
    fn uncount(&mut self, index: usize) {
        let slot = &self.ring[index];
        if matches!(slot.state, SlotState::Pending) {
            self.outstanding -= 1;
            self.early -= usize::from(slot.due.is_none());
        }
    }

    /// Place of a segment in the ring.
    #[inline]
    fn index(&self, segment: u64) -> Option<usize> {
        let index = usize::try_from(segment.checked_sub(self.base)?).ok()?;
        (index < self.ring.len()).then_some(index)
    }

    /// The last segment to ask for, certain or claimed; the one of the greatest number is never asked for.
    fn limit(&self) -> u64 {
        let claimed = self.claimed_last.map(|(last, _)| last);
        self.last()
            .or(claimed)
            .unwrap_or(u64::MAX)
            .min(u64::MAX - 1)
    }

    /// Forgets what lies beyond `last`.
    fn truncate(&mut self, last: u64) {
        let keep = (last.saturating_add(1)).saturating_sub(self.base);
        while self.ring.len() as u64 > keep {
            let Some(slot) = self.ring.pop_back() else {
                break;
            };
            let early = slot.due.is_none();
            match slot.state {
                SlotState::Pending => {
                    self.outstanding -= 1;
                    self.early -= usize::from(early);
                }
                SlotState::Received(_) => self.buffered -= 1,
                _ => {}
            }
        }
    }

    fn finish_if_read(&mut self) {
        if !matches!(self.state, State::Failed(_))
            && self.last().is_some_and(|last| self.base > last)
        {
            self.state = State::Done;
        }
    }

    fn fail(&mut self, reason: FailReason) {
        if !matches!(self.state, State::Failed(_)) {
            self.state = State::Failed(reason);
        }
    }

    /// Cuts the window for congestion seen by Interest `tx`, unless it was cut since that was sent.
    fn cut(&mut self, tx: u64, now: Duration) {
        if self.enter_recovery(tx) {
            self.suspicion = None;
            self.window.on_congestion(now);
        }
    }

    /// Once a round trip at most: whether Interest `tx` was sent after the window was last cut.
    fn enter_recovery(&mut self, tx: u64) -> bool {
        let new = tx > self.recovery_tx;
        if new {
            self.recovery_tx = self.last_tx;
            self.stats.decreases += 1;
        }
        new
    }
}

/// The earlier of a timer that may not run and a time.
fn earliest(timer: Option<Duration>, at: Duration) -> Option<Duration> {
    Some(timer.map_or(at, |timer| timer.min(at)))
}
