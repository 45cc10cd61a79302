//! Producing a stream of segments: JVM threads publish, the loop answers.
//!
//! Segments carry no freshness: their names stand for the same bytes for ever,
//! and a reader who got damaged ones asks past the caches with MustBeFresh.
//!
//! A segment is copied once, from the Java array into the packet's buffer, on the
//! publishing thread. Segments are retained until they are
//! acknowledged, the newest ones within a bound; an Interest that comes before its segment waits for it.
//! With a key they are sealed on the way there, and opened again for whoever asks for one that is kept.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use ndn_endpoint::{Answer, Producer, ProducerConfig, ProducerStats};
use ndn_io::{App, AppHandle, PacketBuffer, PacketBuffers};
use ndn_packet::{Data, MAX_STREAM_PACKET, Name, NetKind, NetPacket, PitToken, SigningKey};

use crate::budget::Share;
use crate::clock::Clock;
use crate::error::{NativeError, Result};
use crate::outbox::Outbox;
use crate::seal::{Sealer, sealed_len};
use crate::segment::{ChecksumType, PACKET_OVERHEAD, packet_bytes};
use crate::totals::Ended;
use crate::verify::Verify;
use crate::wire;

/// Interests that may wait at one producer: every reader's window, and more.
const MAX_PENDING_INTERESTS: usize = 4096;

struct Shared {
    prefix: Name,
    inner: Mutex<Inner>,
    outbox: Outbox,
    handle: Mutex<Option<(AppHandle, Clock)>>,
    ended: Arc<Ended>,
    verify: Verify,
    sealer: Option<Sealer>,
    /// Where packets are made that the router may be lent.
    buffers: Option<PacketBuffers>,
}

struct Inner {
    core: Producer<Option<PitToken>>,
    /// Scratch for the answers of one publish.
    answers: Vec<(Option<PitToken>, Bytes)>,
    /// When a closed producer's segments go, in the loop's time.
    lingers: Option<Duration>,
    /// What of the node's bound for retained bytes this producer holds.
    share: Option<Share>,
}

impl Shared {
    /// Memory for a packet with so many bytes of content.
    fn buffer(&self, content: usize) -> Option<PacketBuffer> {
        self.buffers.as_ref()?.take(content + PACKET_OVERHEAD)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the segments and leaves the node.
    fn finish(&self) {
        let mut inner = self.lock();
        inner.lingers = None;
        if inner.share.take().is_some() {
            self.ended.producer(&inner.core.stats());
        }
        inner.core = Producer::new(ProducerConfig::new(self.prefix.clone()));
        drop(inner);
        drop(
            self.handle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }
}

/// What a producer keeps.
#[derive(Clone, Copy, Debug)]
pub struct Retain {
    /// The newest so many segments.
    pub segments: usize,
    /// Data bytes of a segment, at most.
    pub segment_bytes: usize,
}

impl Retain {
    /// What they take in memory at most.
    pub(crate) fn bytes(self) -> usize {
        self.segments
            .saturating_mul(packet_bytes(self.segment_bytes))
    }
}

/// One stream being produced.
pub struct StreamProducer {
    shared: Arc<Shared>,
    closed: AtomicBool,
}

impl StreamProducer {
    /// A producer that is not attached to a node yet, and the application to
    /// attach. `share` is its part of the node's bound for retained bytes; with
    /// `sealer` all segments are sealed.
    pub(crate) fn new(
        prefix: &Name,
        retain: Retain,
        share: Share,
        verify: Verify,
        sealer: Option<Sealer>,
        buffers: Option<PacketBuffers>,
        ended: Arc<Ended>,
    ) -> (Arc<Self>, Box<dyn App>) {
        let core = Producer::new(ProducerConfig {
            retain_segments: retain.segments,
            retain_bytes: retain.bytes(),
            max_pending_interests: MAX_PENDING_INTERESTS,
            ..ProducerConfig::new(prefix.clone())
        });
        let shared = Arc::new(Shared {
            prefix: prefix.clone(),
            inner: Mutex::new(Inner {
                core,
                answers: Vec::new(),
                lingers: None,
                share: Some(share),
            }),
            outbox: Outbox::default(),
            handle: Mutex::new(None),
            ended,
            verify,
            sealer,
            buffers,
        });
        let app = Box::new(ProducerApp(shared.clone()));
        (
            Arc::new(StreamProducer {
                shared,
                closed: AtomicBool::new(false),
            }),
            app,
        )
    }

    pub(crate) fn attached(&self, handle: AppHandle, clock: Clock) {
        self.shared.outbox.attach(handle.waker());
        *self
            .shared
            .handle
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some((handle, clock));
    }

    /// The stream's name.
    pub fn prefix(&self) -> &Name {
        &self.shared.prefix
    }

    /// Publishes a segment of `len` bytes, with checksums of that type in it, which
    /// `fill` writes from front to end, told by where each part of it begins. With
    /// `more`, another call follows at once, and what waits for this segment may
    /// leave with the next.
    ///
    /// # Errors
    /// What `fill` returns; when the producer is closed, the segment is
    /// published already, or too large for a packet.
    pub fn publish<E: From<NativeError>>(
        &self,
        segment: u64,
        len: usize,
        checksum: ChecksumType,
        more: bool,
        fill: impl FnMut(usize, &mut [u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let published = self.publish_one(segment, len, checksum, fill);
        if !more || published.is_err() {
            self.shared.outbox.flush();
        }
        published
    }

    fn publish_one<E: From<NativeError>>(
        &self,
        segment: u64,
        len: usize,
        checksum: ChecksumType,
        mut fill: impl FnMut(usize, &mut [u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let now = self.now()?;
        let name = self.prefix().append_segment(segment);
        let packet = match &self.shared.sealer {
            None => Data::builder(&name)
                .content_with(len, |content| fill(0, content))
                .sign_in(
                    &self.shared.verify.signer(checksum),
                    self.shared.buffer(len),
                )?,
            Some(sealer) => {
                let len = sealed_len(len);
                Data::builder(&name)
                    .content_with(len, |to| sealer.seal(name.value(), segment, to, fill))
                    // The seal tells more than any digest.
                    .sign_in(&SigningKey::Null, self.shared.buffer(len))?
            }
        };
        if packet.len() > MAX_STREAM_PACKET {
            let text = format!(
                "{name}: a packet of {} bytes is above the greatest, {MAX_STREAM_PACKET}; \
                 set trunkline.ndn.segment.bytes lower",
                packet.len()
            );
            return Err(NativeError::Argument(text).into());
        }
        let mut inner = self.shared.lock();
        let Inner { core, answers, .. } = &mut *inner;
        core.publish(now, segment, packet, answers)
            .map_err(|e| NativeError::Failed(format!("{}: {e}", self.prefix())))?;
        if !answers.is_empty() {
            let ready = answers
                .drain(..)
                .filter_map(|(token, packet)| wire::data(packet, token));
            self.shared.outbox.put(ready);
        }
        Ok(())
    }

    fn now(&self) -> Result<Duration> {
        let handle = self
            .shared
            .handle
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match &*handle {
            Some((_, clock)) if !self.closed.load(Ordering::Relaxed) => Ok(clock.now()),
            _ => Err(NativeError::Closed {
                what: "producer",
                name: self.prefix().to_string(),
            }),
        }
    }

    /// The content of a segment that is still retained.
    pub fn kept(&self, segment: u64) -> Option<Bytes> {
        let wire = self.shared.lock().core.kept(segment)?.clone();
        let data = Data::parse(wire).ok()?;
        match &self.shared.sealer {
            None => Some(data.content()),
            Some(sealer) => {
                let name = self.prefix().append_segment(segment);
                let opened = sealer
                    .opener()
                    .open(name.value(), segment, data.content_slice());
                opened.map(Bytes::from)
            }
        }
    }

    /// Every consumer has the segments up to this one: they are let go.
    pub fn acknowledge(&self, upto: u64) {
        self.shared.lock().core.acknowledge(upto);
    }

    /// Ends the stream. Its segments stay answerable for `linger`.
    pub fn close(&self, linger: Duration) {
        if self.closed.swap(true, Ordering::Relaxed) {
            return;
        }
        let clock = {
            let handle = self
                .shared
                .handle
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            handle.as_ref().map(|(_, clock)| *clock)
        };
        let Some(clock) = clock.filter(|_| !linger.is_zero()) else {
            return self.shared.finish();
        };
        let mut inner = self.shared.lock();
        if let Some(last) = inner.core.newest() {
            let mut refused = Vec::new();
            inner.core.finish(last, &mut refused);
        }
        inner.lingers = Some(clock.now() + linger);
        if let Some(share) = &mut inner.share {
            let weak = Arc::downgrade(&self.shared);
            share.give_up_when_needed(Box::new(move || {
                if let Some(shared) = weak.upgrade() {
                    shared.finish();
                }
            }));
        }
        drop(inner);
        self.shared.outbox.wake();
    }

    /// Counters of the producer; `None` once its segments are gone, when the
    /// node has them.
    pub fn stats(&self) -> Option<ProducerStats> {
        let inner = self.shared.lock();
        inner.share.is_some().then(|| inner.core.stats())
    }
}

impl Drop for StreamProducer {
    fn drop(&mut self) {
        self.close(Duration::ZERO);
    }
}

struct ProducerApp(Arc<Shared>);

impl App for ProducerApp {
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let NetKind::Interest(interest) = packet.packet else {
            return;
        };
        let token = packet.pit_token;
        let answer = self.0.lock().core.on_interest(now, &interest, token);
        match answer {
            Answer::Data(packet) => out.extend(wire::data(packet, token)),
            Answer::Waits => {}
            Answer::Nack(reason) => out.push(wire::nack(reason, interest, token)),
        }
    }

    fn on_wake(&mut self, _now: Duration, out: &mut Vec<NetPacket>) {
        self.0.outbox.drain(out);
    }

    fn deadline(&self) -> Option<Duration> {
        self.0.lock().lingers
    }

    fn on_deadline(&mut self, now: Duration, _out: &mut Vec<NetPacket>) {
        if self.deadline().is_some_and(|at| at <= now) {
            self.0.finish();
        }
    }
}
