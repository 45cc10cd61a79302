//! The application that answers for replicas, and Java's side of it.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ndn_io::{App, AppHandle};
use ndn_packet::{
    ComponentBuf, Data, Interest, NackReason, Name, NetKind, NetPacket, PitToken, SigningKey,
};
use serde::Serialize;

use super::known::Known;
use super::replica::Replica;
use super::request::{self, Asked, BlockKey};
use super::workers::Workers;
use super::{ANSWER_LIFETIME, ANSWER_TIMEOUT, METADATA_FRESHNESS};
use crate::error::{NativeError, Result};
use crate::metadata::BlockMetadata;
use crate::outbox::Outbox;
use crate::segment::{HEADER_LEN, SegmentHeader};
use crate::wire;

/// Segments that may wait to be read; Interests beyond get a Nack.
const MAX_QUEUED: usize = 512;
/// Blocks that Java may be asked about at once.
const MAX_REQUESTS: usize = 1024;
/// Interests that may wait for one answer of Java.
const MAX_WAITING: usize = 1024;
/// An answer this young is not asked again when another generation is wanted.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// Threads that read and digest; two keep up with a 10 Gbit/s link.
const MAX_THREADS: usize = 4;

/// Where a replica lies, as Java answers.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The block file.
    pub block: &'a Path,
    /// Its checksum file.
    pub meta: &'a Path,
    /// Length in bytes.
    pub length: u64,
    /// Generation stamp.
    pub genstamp: u64,
}

/// Counters of a source since it opened, and gauges of now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockSourceStats {
    /// Interests received.
    pub interests: u64,
    /// Segments served.
    pub segments: u64,
    /// Data bytes in them, headers and checksums not counted.
    pub bytes: u64,
    /// Metadata packets served.
    pub metadata: u64,
    /// Interests refused.
    pub nacks: u64,
    /// Questions to Java.
    pub asked: u64,
    /// Reads of block files that failed.
    pub read_errors: u64,
    /// Replicas open now.
    pub open_replicas: usize,
}

impl BlockSourceStats {
    /// Sums with another source of the same node.
    pub fn add(&mut self, other: &Self) {
        self.interests += other.interests;
        self.segments += other.segments;
        self.bytes += other.bytes;
        self.metadata += other.metadata;
        self.nacks += other.nacks;
        self.asked += other.asked;
        self.read_errors += other.read_errors;
        self.open_replicas += other.open_replicas;
    }
}

#[derive(Default)]
struct Counters {
    interests: AtomicU64,
    segments: AtomicU64,
    bytes: AtomicU64,
    metadata: AtomicU64,
    nacks: AtomicU64,
    asked: AtomicU64,
    read_errors: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// An Interest that waits for an answer of Java, or for its turn to be read.
struct Wanted {
    interest: Interest,
    token: Option<PitToken>,
    asked: Asked,
}

struct Request {
    wanted: Vec<Wanted>,
    /// In the loop's time.
    until: Duration,
    /// Invalidated meanwhile: the answer is used but not remembered.
    stale: bool,
}

struct Inner {
    known: Known,
    requests: HashMap<BlockKey, Request>,
    /// Requests that Java has not taken yet.
    untaken: VecDeque<String>,
    closed: bool,
}

struct Shared {
    prefix: Name,
    segment_bytes: u32,
    inner: Mutex<Inner>,
    asked: Condvar,
    outbox: Outbox,
    workers: Workers,
    counters: Counters,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves finalized replicas below `/<root>/blocks`.
pub struct BlockSource {
    shared: Arc<Shared>,
    handle: Mutex<Option<AppHandle>>,
}

impl BlockSource {
    /// A source that is not attached to a node yet, and the application to
    /// attach.
    pub(crate) fn new(
        prefix: &Name,
        segment_bytes: u32,
        max_open: usize,
    ) -> Result<(Arc<Self>, Box<dyn App>)> {
        if segment_bytes == 0 {
            return Err(NativeError::Argument("segment bytes is 0".into()));
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = Workers::start("trunkline-blk", cores.min(MAX_THREADS), MAX_QUEUED)
            .map_err(|e| NativeError::Failed(format!("threads that read blocks: {e}")))?;
        let shared = Arc::new(Shared {
            prefix: prefix.clone(),
            segment_bytes,
            inner: Mutex::new(Inner {
                known: Known::new(max_open),
                requests: HashMap::new(),
                untaken: VecDeque::new(),
                closed: false,
            }),
            asked: Condvar::new(),
            outbox: Outbox::default(),
            workers,
            counters: Counters::default(),
        });
        let app = Box::new(SourceApp {
            shared: shared.clone(),
            sweep: None,
        });
        Ok((
            Arc::new(BlockSource {
                shared,
                handle: Mutex::new(None),
            }),
            app,
        ))
    }

    pub(crate) fn attached(&self, handle: AppHandle) {
        self.shared.outbox.attach(handle.waker());
        *self.handle.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle);
    }

    /// Waits for the next block that somebody asked for and that is not known:
    /// `<pool> <block> <genstamp>`, -1 for metadata; `None` when the time has
    /// passed.
    pub fn next_request(&self, timeout: Duration) -> Result<Option<String>> {
        let until = Instant::now() + timeout;
        let mut inner = self.shared.lock();
        loop {
            if inner.closed {
                let name = self.shared.prefix.to_string();
                return Err(NativeError::Closed {
                    what: "block source",
                    name,
                });
            }
            if let Some(request) = inner.untaken.pop_front() {
                return Ok(Some(request));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let waited = self.shared.asked.wait_timeout(inner, left);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Java's answer to a request: where the replica lies, or that there is
    /// none. Files that do not open count as none.
    pub fn answer(&self, request: &str, answer: Option<Answer<'_>>) {
        let Some(key) = request::from_text(request) else {
            tracing::warn!(request, "answer to no request");
            return;
        };
        let opened = answer.map(|a| {
            Replica::open(
                a.block,
                a.meta,
                a.length,
                a.genstamp,
                self.shared.segment_bytes,
            )
        });
        let replica = match opened {
            Some(Ok(replica)) => Some(Arc::new(replica)),
            Some(Err(error)) => {
                tracing::warn!(pool = key.pool, block = key.block, %error, "replica can't be served");
                None
            }
            None => None,
        };
        let mut inner = self.shared.lock();
        let Some(waiting) = inner.requests.remove(&key) else {
            return;
        };
        if let (Some(replica), false) = (&replica, waiting.stale) {
            inner.known.insert(key, replica.clone(), Instant::now());
        }
        drop(inner);
        let mut out = Vec::new();
        for wanted in waiting.wanted {
            match &replica {
                Some(replica) => serve(&self.shared, replica, wanted, &mut out),
                None => refuse(&self.shared, NackReason::NoRoute, wanted, &mut out),
            }
        }
        self.shared.outbox.send(out);
    }

    /// Forgets a block: it is being appended to, moved or deleted.
    pub fn invalidate(&self, pool: &str, block: i64) {
        let key = BlockKey {
            pool: pool.to_owned(),
            block,
        };
        let mut inner = self.shared.lock();
        inner.known.remove(&key);
        if let Some(request) = inner.requests.get_mut(&key) {
            request.stale = true;
        }
    }

    /// Ends the source. Java's waiting threads get an error, Interests a Nack.
    pub fn close(&self) {
        let mut inner = self.shared.lock();
        inner.closed = true;
        inner.untaken.clear();
        inner.known = Known::new(1);
        let requests = std::mem::take(&mut inner.requests);
        drop(inner);
        self.shared.asked.notify_all();
        self.shared.workers.stop();
        let mut out = Vec::new();
        for wanted in requests.into_values().flat_map(|request| request.wanted) {
            refuse(&self.shared, NackReason::NoRoute, wanted, &mut out);
        }
        self.shared.outbox.send(out);
        drop(
            self.handle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }

    /// Counters.
    pub fn stats(&self) -> BlockSourceStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let c = &self.shared.counters;
        BlockSourceStats {
            interests: read(&c.interests),
            segments: read(&c.segments),
            bytes: read(&c.bytes),
            metadata: read(&c.metadata),
            nacks: read(&c.nacks),
            asked: read(&c.asked),
            read_errors: read(&c.read_errors),
            open_replicas: self.shared.lock().known.len(),
        }
    }
}

impl Drop for BlockSource {
    fn drop(&mut self) {
        self.close();
    }
}

fn refuse(shared: &Shared, reason: NackReason, wanted: Wanted, out: &mut Vec<NetPacket>) {
    count(&shared.counters.nacks);
    out.push(wire::nack(reason, wanted.interest, wanted.token));
}

/// Answers for a replica whose files are open: metadata at once, a segment by
/// way of the workers.
fn serve(shared: &Arc<Shared>, replica: &Arc<Replica>, wanted: Wanted, out: &mut Vec<NetPacket>) {
    match wanted.asked {
        Asked::Metadata => {
            let asked = wanted.interest.name_owned();
            let version = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            let made = BlockMetadata::of(replica).packet(
                &asked.parent(),
                version.as_micros() as u64,
                METADATA_FRESHNESS,
            );
            count(&shared.counters.metadata);
            out.extend(wire::data(made, wanted.token));
        }
        Asked::Segment { genstamp, segment } => {
            let header = replica
                .header(segment)
                .filter(|_| genstamp == replica.genstamp());
            match header {
                Some(header) => queue(shared, replica, header, wanted, out),
                None => refuse(shared, NackReason::NoRoute, wanted, out),
            }
        }
    }
}

fn queue(
    shared: &Arc<Shared>,
    replica: &Arc<Replica>,
    header: SegmentHeader,
    wanted: Wanted,
    out: &mut Vec<NetPacket>,
) {
    // Weak: a job in the queue must not keep the queue.
    let weak: Weak<Shared> = Arc::downgrade(shared);
    let replica = replica.clone();
    let (interest, token) = (wanted.interest.clone(), wanted.token);
    let job = Box::new(move || {
        if let Some(shared) = weak.upgrade() {
            let packet = read(&shared, &replica, &header, interest, token);
            shared.outbox.send(packet);
        }
    });
    if shared.workers.submit(job).is_err() {
        refuse(shared, NackReason::Congestion, wanted, out);
    }
}

/// A worker's job: the segment as a packet, or a Nack when its files do not
/// read.
fn read(
    shared: &Shared,
    replica: &Replica,
    header: &SegmentHeader,
    interest: Interest,
    token: Option<PitToken>,
) -> Option<NetPacket> {
    let name = interest.name_owned();
    let made = Data::builder(&name)
        .final_block_id(ComponentBuf::segment(replica.last_segment()))
        .content_with(HEADER_LEN + header.body_len(), |content| {
            replica.read(header, content)
        })
        .sign(&SigningKey::DigestSha256);
    match made {
        Ok(made) => {
            count(&shared.counters.segments);
            shared
                .counters
                .bytes
                .fetch_add(header.data_len.into(), Ordering::Relaxed);
            wire::data(made, token)
        }
        Err(error) => {
            tracing::warn!(%name, %error, "block file does not read");
            count(&shared.counters.read_errors);
            if let Some((key, _)) = request::parse(&shared.prefix, name.as_ref()) {
                shared.lock().known.remove(&key);
            }
            Some(wire::nack(NackReason::NoRoute, interest, token))
        }
    }
}

struct SourceApp {
    shared: Arc<Shared>,
    /// When to look for requests and replicas that are over, in the loop's time.
    sweep: Option<Duration>,
}

impl App for SourceApp {
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let NetKind::Interest(interest) = packet.packet else {
            return;
        };
        let shared = &self.shared;
        count(&shared.counters.interests);
        let token = packet.pit_token;
        let Some((key, asked)) = request::parse(&shared.prefix, interest.name()) else {
            count(&shared.counters.nacks);
            out.push(wire::nack(NackReason::NoRoute, interest, token));
            return;
        };
        let wanted = Wanted {
            interest,
            token,
            asked,
        };
        self.sweep.get_or_insert(now + ANSWER_LIFETIME);
        let mut inner = shared.lock();
        let clock = Instant::now();
        if let Some((replica, answered)) = inner.known.get(&key, clock) {
            let other =
                matches!(asked, Asked::Segment { genstamp, .. } if genstamp != replica.genstamp());
            if !other || clock.duration_since(answered) < ASK_AGAIN_AFTER {
                drop(inner);
                return serve(shared, &replica, wanted, out);
            }
            inner.known.remove(&key);
        }
        let full = inner.requests.len() >= MAX_REQUESTS;
        let closed = inner.closed;
        match inner.requests.get_mut(&key) {
            Some(request) if request.wanted.len() < MAX_WAITING => request.wanted.push(wanted),
            None if !full && !closed => {
                inner.untaken.push_back(request::to_text(&key, &asked));
                let until = now + ANSWER_TIMEOUT;
                inner.requests.insert(
                    key,
                    Request {
                        wanted: vec![wanted],
                        until,
                        stale: false,
                    },
                );
                drop(inner);
                count(&shared.counters.asked);
                shared.asked.notify_one();
            }
            _ => {
                drop(inner);
                refuse(shared, NackReason::Congestion, wanted, out);
            }
        }
    }

    fn on_wake(&mut self, _now: Duration, out: &mut Vec<NetPacket>) {
        self.shared.outbox.drain(out);
    }

    fn deadline(&self) -> Option<Duration> {
        self.sweep
    }

    fn on_deadline(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        let mut inner = self.shared.lock();
        inner.known.sweep(Instant::now());
        let over = inner.requests.extract_if(|_, request| request.until <= now);
        let over: Vec<(BlockKey, Request)> = over.collect();
        let idle = inner.known.is_empty() && inner.requests.is_empty();
        drop(inner);
        for (key, request) in over {
            tracing::warn!(
                pool = key.pool,
                block = key.block,
                "no answer where this replica lies"
            );
            for wanted in request.wanted {
                refuse(&self.shared, NackReason::NoRoute, wanted, out);
            }
        }
        self.sweep = (!idle).then(|| now + ANSWER_LIFETIME / 4);
    }
}
