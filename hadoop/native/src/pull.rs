//! Pulling a stream of segments: the loop keeps a window of Interests ahead,
//! a JVM thread takes segments in order and verifies what it takes.
//!
//! ```text
//!   loop thread                         JVM thread
//!   on_packet ──▶ Consumer (locked) ◀── take: read, deliver outside the lock,
//!   on_deadline       │                 reject what does not verify
//!                     └── arrived (Condvar) ──▶ wakes take
//! ```

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ndn_endpoint::{
    Consumer, ConsumerConfig, ConsumerStats, CubicConfig, Rejected, State, VerifyPolicy,
};
use ndn_io::{App, AppHandle};
use ndn_packet::{Data, Name, NetKind, NetPacket};

use crate::budget::Share;
use crate::deliver::{Expected, Refusal, Undelivered};
use crate::error::{NativeError, Result};
use crate::outbox::Outbox;
use crate::rate_limit::RateLimit;
use crate::seal::Opener;
use crate::segment::{SegmentDigest, packet_bytes};
use crate::totals::Ended;
use crate::verify::Verify;

/// Lifetime of a pull's Interests: how long one waits in the network for a
/// segment that is not made yet.
const INTEREST_LIFETIME: Duration = Duration::from_secs(4);
/// A pull fails by itself only after this long without anything; its taker's
/// own time-out comes first and decides.
const GIVE_UP_AFTER: Duration = Duration::from_secs(300);
/// So often one segment is taken that does not verify. What a cache or a wire
/// has damaged is right when it is asked for again; a damaged replica never is.
const MAX_REFUSALS: u32 = 4;
/// Said of segments that do not verify, or are another write's.
static UNVERIFIED: RateLimit = RateLimit::new();
/// Segments of a finished block that are asked for before one of them is taken.
/// Many a reader takes a little and stops: the line that goes on in the next
/// split, a sample. It may not cost a block, and TCP's buffers begin as small.
const FIRST_AHEAD: usize = 4;
/// First wait after a Nack; the core doubles it.
const NO_ROUTE_WAIT: Duration = Duration::from_millis(10);

/// Segments that are asked for or wait to be taken, in windows, at most.
pub(crate) const BUFFERED_WINDOWS: usize = 2;

/// What a pull is started with.
#[derive(Clone, Copy, Debug)]
pub struct PullSettings {
    /// First segment wanted.
    pub first: u64,
    /// Last segment wanted, where it is known.
    pub last: Option<u64>,
    /// Data bytes of a segment, at most: what is longer is not taken.
    pub segment_bytes: usize,
    /// Interests in flight, at most.
    pub window: usize,
    /// The stream is being made: segments are asked for before they exist.
    pub live: bool,
}

/// One stream being pulled. Any thread may take; closing wakes it.
pub struct Pull {
    shared: Arc<Shared>,
    handle: Mutex<Option<AppHandle>>,
}

struct Shared {
    prefix: Name,
    inner: Mutex<Inner>,
    arrived: Condvar,
    outbox: Outbox,
    window: usize,
    verify: Verify,
    opener: Option<Opener>,
    ended: Arc<Ended>,
}

struct Inner {
    consumer: Consumer,
    config: ConsumerConfig,
    /// Newest segment that the taker's side knows to exist, not yet told to the
    /// consumer: only the loop has its clock.
    known: Option<u64>,
    /// Threads that wait in `take`.
    takers: usize,
    /// They have been woken, and did not get to look yet: to do it again is a call of the system for nothing.
    woken: bool,
    /// Threads that verify what they have read. A place is kept for each, so
    /// that a segment which does not verify can be put back.
    verifying: usize,
    /// Nothing more is asked for until something is read: segments still to
    /// read before the loop is worth waking.
    starved: Option<usize>,
    /// Where to begin anew, because what lies before came by another way.
    restart: Option<u64>,
    /// What of the node's bound for pulled bytes this pull holds.
    share: Option<Share>,
    /// The last segment that did not verify, and how often.
    refused: Option<(u64, u32)>,
    /// Where a taker's copy is verified, while nobody takes.
    room: Vec<u8>,
    closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pull {
    /// A pull that is not attached to a node yet, and the application to
    /// attach. `now` is the node's own clock, `seed` that of the nonces, `share`
    /// its part of the node's bound for pulled bytes; with `opener` all segments
    /// are sealed.
    #[allow(clippy::too_many_arguments)] // the node's parts of it, one caller
    pub(crate) fn new(
        prefix: &Name,
        settings: PullSettings,
        seed: u64,
        now: Duration,
        verify: Verify,
        opener: Option<Opener>,
        share: Share,
        ended: Arc<Ended>,
    ) -> (Arc<Self>, Box<dyn App>) {
        let config = ConsumerConfig {
            first: settings.first,
            last: settings.last,
            congestion: Arc::new(CubicConfig {
                max: settings.window as f64,
                ..CubicConfig::default()
            }),
            interest_lifetime: INTEREST_LIFETIME,
            give_up_after: GIVE_UP_AFTER,
            max_buffered_segments: settings.window * BUFFERED_WINDOWS,
            max_packet_bytes: packet_bytes(settings.segment_bytes),
            first_ahead: if settings.live {
                usize::MAX
            } else {
                FIRST_AHEAD
            },
            no_route_wait: NO_ROUTE_WAIT,
            live: settings.live,
            verify: VerifyPolicy::None,
            // Nobody has signed it, and one in a cache would end every write's pull.
            believe_nack: false,
            // What is verified of a segment is its content: with another FinalBlockId it would pass, and end here.
            // Readers know the last one, and a write's records say which are to come.
            believe_final: false,
            seed,
            ..ConsumerConfig::new(prefix.clone())
        };
        let shared = Arc::new(Shared {
            prefix: prefix.clone(),
            inner: Mutex::new(Inner {
                consumer: Consumer::new(config.clone(), now),
                config,
                known: None,
                takers: 0,
                woken: false,
                verifying: 0,
                starved: None,
                restart: None,
                share: Some(share),
                refused: None,
                room: Vec::new(),
                closed: false,
            }),
            arrived: Condvar::new(),
            outbox: Outbox::default(),
            window: settings.window,
            verify,
            opener,
            ended,
        });
        let app = Box::new(PullApp(shared.clone()));
        (
            Arc::new(Pull {
                shared,
                handle: Mutex::new(None),
            }),
            app,
        )
    }

    /// Starts the pull: its application is in the node now.
    pub(crate) fn attached(&self, handle: AppHandle) {
        self.shared.outbox.attach(handle.waker());
        handle.wake();
        *self.handle.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle);
    }

    /// The stream's name.
    pub fn prefix(&self) -> &Name {
        &self.shared.prefix
    }

    /// All segments up to this one surely exist: one that does not come is lost
    /// and asked for again.
    pub fn known(&self, upto: u64) {
        let mut inner = self.shared.lock();
        inner.known = inner.known.max(Some(upto));
    }

    /// Waits for a segment and verifies it, whatever write made it: its content.
    /// See [`Pull::take_into`].
    pub fn take(&self, segment: u64, timeout: Duration) -> Result<Option<Bytes>> {
        self.take_bound(segment, None, timeout)
    }

    /// As [`Pull::take_into`], with the content as a whole.
    pub fn take_bound(
        &self,
        segment: u64,
        digest: Option<SegmentDigest>,
        timeout: Duration,
    ) -> Result<Option<Bytes>> {
        let mut content = Vec::new();
        let length = self.take_into(segment, digest, timeout, |at, piece: &[u8]| {
            content.truncate(at); // it may be a second try
            content.extend_from_slice(piece);
            Ok::<(), NativeError>(())
        })?;
        Ok(length.map(|_| content.into()))
    }

    /// Waits for a segment, verifies a copy of it, and that it is the one of this
    /// digest, and hands the copy to `put` in pieces, each with where in the content
    /// it begins. The length of the content; `None` when the time has passed. Earlier
    /// segments are passed over.
    ///
    /// Only when there is a length is what was put the segment. All else is void,
    /// and a piece at 0 begins anew.
    ///
    /// One of another digest is what the name stood for before, and one that does
    /// not open is somebody else's: from then on the whole stream is asked for
    /// past the caches.
    ///
    /// # Errors
    /// When the pull was closed, when it failed for good, when the segment was
    /// taken or passed over before; [`NativeError::Unverified`] when it did not
    /// verify however often it was asked for; what `put` fails with.
    pub fn take_into<E: From<NativeError>>(
        &self,
        segment: u64,
        digest: Option<SegmentDigest>,
        timeout: Duration,
        mut put: impl FnMut(usize, &[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<Option<usize>, E> {
        let until = Instant::now() + timeout;
        let expected = Expected {
            prefix: self.prefix(),
            segment,
            verify: self.shared.verify,
            opener: self.shared.opener.as_ref(),
            digest,
        };
        let mut inner = self.shared.lock();
        loop {
            if let Some(data) = self.next(&mut inner, segment)? {
                let wake = inner.fed();
                inner.verifying += 1;
                let mut room = std::mem::take(&mut inner.room);
                drop(inner);
                if wake {
                    self.shared.outbox.wake();
                }
                let delivered = expected.deliver(&data, &mut room, &mut put);
                inner = self.shared.lock();
                inner.verifying -= 1;
                if !inner.closed {
                    inner.room = room;
                }
                match delivered {
                    Ok(length) => return Ok(Some(length)),
                    Err(Undelivered::Stopped(error)) => return Err(error),
                    Err(Undelivered::Refused(why)) => self.refuse(&mut inner, segment, why)?,
                }
                continue;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            if inner.has_news() {
                self.shared.outbox.wake();
            }
            inner.takers += 1;
            inner.woken = false;
            let waited = self.shared.arrived.wait_timeout(inner, left);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
            inner.takers -= 1;
        }
    }

    /// Has a segment that does not verify asked for again, past the caches where
    /// they would give out the same; an error when that was tried enough.
    fn refuse(&self, inner: &mut Inner, segment: u64, refusal: Refusal) -> Result<()> {
        // What was damaged before it was sealed, a cache goes on to give out.
        let sound = refusal != Refusal::Damaged || self.shared.opener.is_some();
        if UNVERIFIED.allows() {
            let why = match refusal {
                Refusal::Damaged => "a segment does not verify; asked for again",
                Refusal::Another => {
                    "a segment is of another write than this one; asked for past the caches"
                }
                Refusal::Forged => {
                    "a segment does not open under this write's key; asked for past the caches"
                }
            };
            tracing::warn!(name = %self.prefix(), segment, "{why}");
        }
        if inner.refuse(segment) >= MAX_REFUSALS {
            inner.refused = None;
            return Err(NativeError::Unverified {
                name: self.prefix().to_string(),
                segment,
                times: MAX_REFUSALS,
            });
        }
        let rejected = inner.consumer.reject(segment);
        let stale = sound && !inner.config.must_be_fresh;
        inner.config.must_be_fresh |= sound;
        if stale || !rejected {
            // What else has come was asked for in the same way.
            inner.restart = Some(segment);
            inner.config.rejected = Rejected::First;
        }
        self.shared.outbox.wake();
        Ok(())
    }

    /// The segment if it is here; those before it are dropped.
    fn next(&self, inner: &mut Inner, segment: u64) -> Result<Option<Data>> {
        if inner.closed {
            return Err(NativeError::Closed {
                what: "pull",
                name: self.prefix().to_string(),
            });
        }
        while inner.consumer.next_segment() <= segment {
            match inner.consumer.read() {
                Some((number, data)) if number == segment => return Ok(Some(data)),
                Some(_) => {}
                None => break,
            }
        }
        let next = inner.consumer.next_segment();
        let failed = match inner.consumer.state() {
            State::Failed(reason) => reason.to_string(),
            _ if next > segment => {
                format!(
                    "{}: segment {segment} was taken or passed over before",
                    self.prefix()
                )
            }
            State::Done => format!("{}: segment {segment} lies after the last", self.prefix()),
            _ => {
                if next < segment {
                    inner.restart = Some(segment);
                    inner.config.rejected = Rejected::None;
                }
                return Ok(None);
            }
        };
        Err(NativeError::Failed(failed))
    }

    /// Ends the pull; a thread that waits in [`Pull::take`] gets an error.
    pub fn close(&self) {
        let mut inner = self.shared.lock();
        if !std::mem::replace(&mut inner.closed, true) {
            self.shared.ended.pull(&inner.consumer.stats());
            inner.consumer = Consumer::new(inner.config.clone(), Duration::ZERO);
            inner.share = None;
            inner.room = Vec::new();
        }
        drop(inner);
        self.shared.arrived.notify_all();
        drop(
            self.handle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }

    /// Counters of the consumer; `None` once closed, when the node has them.
    pub fn stats(&self) -> Option<ConsumerStats> {
        let inner = self.shared.lock();
        (!inner.closed).then(|| inner.consumer.stats())
    }
}

impl Drop for Pull {
    fn drop(&mut self) {
        self.close();
    }
}

impl Inner {
    /// Something was read: whether the loop is to be woken, so that the
    /// consumer asks for more.
    fn fed(&mut self) -> bool {
        match self.starved {
            Some(0) => {
                self.starved = None;
                true
            }
            Some(more) => {
                self.starved = Some(more - 1);
                false
            }
            None => false,
        }
    }

    /// A segment did not verify: how often by now.
    fn refuse(&mut self, segment: u64) -> u32 {
        let before = match self.refused {
            Some((last, times)) if last == segment => times,
            _ => 0,
        };
        self.refused = Some((segment, before + 1));
        before + 1
    }

    /// Whether the loop would do something that it has no other reason to do
    /// now.
    fn has_news(&self) -> bool {
        let asks_nothing = self.consumer.stats().outstanding == 0;
        self.known.is_some() || self.starved.is_some() || self.restart.is_some() || asks_nothing
    }

    /// Whether another Interest leaves a place for what is being verified.
    fn has_room(&self) -> bool {
        let stats = self.consumer.stats();
        let taken = stats.outstanding + stats.buffered + self.verifying;
        self.verifying == 0 || taken < self.consumer.ahead()
    }

    /// What the taker's side asked for since the loop last came by.
    fn catch_up(&mut self, now: Duration, ended: &Ended) {
        if let Some(first) = self.restart.take() {
            // What is asked for already comes out of a cache.
            ended.pull(&self.consumer.stats());
            self.config.first = first;
            self.config.seed = self.config.seed.wrapping_add(1);
            self.consumer = Consumer::new(self.config.clone(), now);
        }
        if let Some(known) = self.known.take() {
            self.consumer.known_produced(now, known);
        }
    }
}

struct PullApp(Arc<Shared>);

impl PullApp {
    /// Sends what the consumer wants asked, and wakes the taker if there is
    /// something for it.
    fn drive(&self, mut inner: MutexGuard<'_, Inner>, now: Duration, out: &mut Vec<NetPacket>) {
        if inner.closed {
            return;
        }
        inner.catch_up(now, &self.0.ended);
        while inner.has_room()
            && let Some(interest) = inner.consumer.poll_interest(now)
        {
            out.push(interest);
        }
        let stats = inner.consumer.stats();
        let taken = stats.outstanding + stats.buffered + inner.verifying;
        let ahead = inner.consumer.ahead();
        let idle = taken >= ahead && stats.outstanding < self.0.window;
        inner.starved = idle.then_some((self.0.window / 4).min(ahead / 4));
        let failed = matches!(inner.consumer.state(), State::Failed(_));
        let wake = inner.takers > 0 && !inner.woken && (stats.buffered > 0 || failed);
        inner.woken |= wake;
        drop(inner);
        if wake {
            self.0.arrived.notify_all();
        }
    }
}

impl App for PullApp {
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let marked = packet.is_marked();
        let mut inner = self.0.lock();
        match packet.packet {
            NetKind::Data(data) => {
                inner.consumer.on_data(now, data, marked);
            }
            NetKind::Nack { reason, interest } => inner.consumer.on_nack(now, &interest, reason),
            NetKind::Interest(_) => return,
        }
        self.drive(inner, now, out);
    }

    fn on_wake(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.drive(self.0.lock(), now, out);
    }

    fn deadline(&self) -> Option<Duration> {
        self.0.lock().consumer.deadline()
    }

    fn on_deadline(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        let mut inner = self.0.lock();
        inner.consumer.on_deadline(now);
        self.drive(inner, now, out);
    }
}
