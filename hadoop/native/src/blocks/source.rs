//! The application that answers for replicas, and Java's side of it.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ndn_io::{App, AppHandle};
use ndn_packet::{NackReason, Name, NetKind, NetPacket};

use super::counters::{BlockSourceStats, Counters, count};
use super::known::Known;
use super::replica::Replica;
use super::request::{self, BlockKey, Wanted};
use super::serve::{refuse, serve};
use super::shared::{Inner, Request, Shared};
use super::workers::Workers;
use super::{ANSWER_LIFETIME, ANSWER_TIMEOUT};
use crate::error::{NativeError, Result};
use crate::outbox::Outbox;
use crate::rate_limit::RateLimit;
use crate::verify::Verify;
use crate::wire;

/// Segments that may wait to be read; Interests beyond get a Nack.
const MAX_QUEUED: usize = 512;
/// Blocks that Java may be asked about at once.
const MAX_REQUESTS: usize = 1024;
/// Interests that may wait for one answer of Java, and for all of them.
const MAX_WAITING: usize = 1024;
const MAX_WAITING_IN_ALL: usize = 16 * 1024;
/// Said of replicas that are known and can't be served, and of requests that Java leaves open:
/// they may be asked for without end.
static UNSERVABLE: RateLimit = RateLimit::new();
static UNANSWERED: RateLimit = RateLimit::new();
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
        verify: Verify,
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
            verify,
            inner: Mutex::new(Inner {
                known: Known::new(max_open),
                requests: HashMap::new(),
                waiting: 0,
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
                if UNSERVABLE.allows() {
                    tracing::warn!(pool = key.pool, block = key.block, %error, "a replica can't be served");
                }
                None
            }
            None => None,
        };
        let mut inner = self.shared.lock();
        let Some(waiting) = inner.requests.remove(&key) else {
            return;
        };
        inner.waiting -= waiting.wanted.len();
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
        inner.waiting = 0;
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
        self.shared.counters.stats(self.shared.lock().known.len())
    }
}

impl Drop for BlockSource {
    fn drop(&mut self) {
        self.close();
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
            let other = asked
                .genstamp()
                .is_some_and(|asked| asked != replica.genstamp());
            if !other || clock.duration_since(answered) < ASK_AGAIN_AFTER {
                drop(inner);
                return serve(shared, &replica, wanted, out);
            }
            inner.known.remove(&key);
        }
        let held = &mut *inner;
        let crowded = held.waiting >= MAX_WAITING_IN_ALL;
        let full = crowded || held.requests.len().max(held.untaken.len()) >= MAX_REQUESTS;
        let closed = held.closed;
        match held.requests.get_mut(&key) {
            Some(request) if !crowded && request.wanted.len() < MAX_WAITING => {
                held.waiting += 1;
                request.wanted.push(wanted);
            }
            None if !full && !closed => {
                held.waiting += 1;
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
        let given_up: usize = over.iter().map(|(_, request)| request.wanted.len()).sum();
        inner.waiting -= given_up;
        let idle = inner.known.is_empty() && inner.requests.is_empty();
        drop(inner);
        for (key, request) in over {
            if UNANSWERED.allows() {
                tracing::warn!(
                    pool = key.pool,
                    block = key.block,
                    "no answer where a replica lies"
                );
            }
            for wanted in request.wanted {
                refuse(&self.shared, NackReason::NoRoute, wanted, out);
            }
        }
        self.sweep = (!idle).then(|| now + ANSWER_LIFETIME / 4);
    }
}
