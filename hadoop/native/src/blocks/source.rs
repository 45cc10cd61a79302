//! The application that answers for replicas, and Java's side of it.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ndn_io::{App, AppHandle, PacketBuffers};
use ndn_packet::{NackReason, Name, NetKind, NetPacket};

use super::answer::Answer;
use super::counters::{BlockSourceStats, Counters, count};
use super::found::Found;
use super::known::Known;
use super::request::{self, About, Asked, BlockKey, Wanted};
use super::serve::{grant, refuse, serve};
use super::shared::{Inner, Invalidated, Shared};
use super::waiting::{Added, Waiting};
use super::workers::Workers;
use super::{ANSWER_LIFETIME, ANSWER_TIMEOUT};
use crate::content_key::Secret;
use crate::error::{NativeError, Result};
use crate::outbox::Outbox;
use crate::own;
use crate::rate_limit::RateLimit;
use crate::verify::Verify;
use crate::wire;

/// Segments that may wait to be read; Interests beyond get a Nack.
const MAX_QUEUED: usize = 512;
/// Said of requests that Java leaves open, which may be asked without end.
static UNANSWERED: RateLimit = RateLimit::new();
/// An answer this young is not asked again when another generation is wanted.
pub(super) const ASK_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// Threads that read and digest; two keep up with a 10 Gbit/s link.
const MAX_THREADS: usize = 4;

/// Serves finalized replicas below `/<root>/blocks`.
pub struct BlockSource {
    shared: Arc<Shared>,
    handle: Mutex<Option<AppHandle>>,
}

impl BlockSource {
    /// A source that is not attached to a node yet, and the application to
    /// attach. A `guarded` one serves sealed segments and nothing else.
    pub(crate) fn new(
        prefix: &Name,
        segment_bytes: u32,
        max_open: usize,
        verify: Verify,
        guarded: bool,
        buffers: Option<PacketBuffers>,
    ) -> Result<(Arc<Self>, Box<dyn App>)> {
        if segment_bytes == 0 {
            return Err(NativeError::Argument("segment bytes is 0".into()));
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = Workers::start("trunkline-blk", cores.min(MAX_THREADS), MAX_QUEUED)
            .map_err(|e| NativeError::Failed(format!("threads that read blocks: {e}")))?;
        let shared = Arc::new(Shared {
            prefix: prefix.clone(),
            guarded,
            segment_bytes,
            verify,
            inner: Mutex::new(Inner {
                known: Known::new(max_open),
                waiting: Waiting::default(),
                invalidated: Invalidated::new(),
                closed: false,
            }),
            asked: Condvar::new(),
            outbox: Outbox::default(),
            workers,
            buffers,
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
    /// `<pool> <block> <genstamp>`, -1 for metadata, and of a guarded source ` write`,
    /// ` key <serial>` or ` token <identifier in hex>`; `None` when the time has passed.
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
            if let Some(request) = inner.waiting.next() {
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
    /// none, or none for who asks. Files that do not open count as none.
    pub fn answer(&self, request: &str, answer: Option<Answer<'_>>) {
        let Some(question) = request::from_text(request) else {
            // Its text may have a token in it.
            tracing::warn!("answer to no request");
            return;
        };
        let mut out = Vec::new();
        let mut inner = self.shared.lock();
        let Some(mut waiting) = inner.waiting.answered(&question) else {
            return;
        };
        let remembered = (!waiting.stale).then(|| inner.invalidated.count(&question.subject.block));
        drop(inner);
        let password = answer.and_then(|answer| answer.secrets.password.cloned());
        let found = answer
            .map(|answer| Found::new(&self.shared, &question.subject, &answer, remembered))
            .map(Arc::new);
        // Before anything is opened or read for them.
        for wanted in waiting
            .wanted
            .extract_if(.., |wanted| !self.admits(wanted, &found, &password))
        {
            refuse(&self.shared, NackReason::NoRoute, wanted, &mut out);
        }
        let Some(found) = found.filter(|_| !waiting.wanted.is_empty()) else {
            return self.shared.outbox.send(out);
        };
        if let (About::Token(_), Some(password)) = (&question.subject.about, &password) {
            for wanted in waiting.wanted {
                let given = (found.clone(), password.clone());
                grant(&self.shared, given, wanted, &mut out);
            }
        } else {
            let replica = found.replicas(&self.shared).next();
            for wanted in waiting.wanted {
                match &replica {
                    Some(replica) => serve(&self.shared, replica, wanted, &mut out),
                    None => refuse(&self.shared, NackReason::NoRoute, wanted, &mut out),
                }
            }
        }
        self.shared.outbox.send(out);
    }

    /// Whether who asks has shown a right to have files opened: by the token's
    /// password, or by a key id that it was told.
    fn admits(
        &self,
        wanted: &Wanted,
        found: &Option<Arc<Found>>,
        password: &Option<Secret>,
    ) -> bool {
        let Some(found) = found else {
            if matches!(wanted.asked, Asked::ContentKey { .. }) {
                count(&self.shared.counters.unproven);
            }
            return false;
        };
        if let Asked::ContentKey { request, .. } = &wanted.asked {
            let proven = password
                .as_ref()
                .is_some_and(|password| request.is_proven(wanted.interest.name(), password));
            if !proven {
                count(&self.shared.counters.unproven);
            }
            return proven;
        }
        found.admits(&wanted.asked)
    }

    /// Forgets a block: it is being appended to, moved or deleted.
    pub fn invalidate(&self, pool: &str, block: i64) {
        let key = BlockKey {
            pool: pool.to_owned(),
            block,
        };
        let mut inner = self.shared.lock();
        inner.invalidated.add(&key);
        inner.known.remove(&key);
        inner.waiting.invalidate(&key);
    }

    /// Ends the source. Java's waiting threads get an error, Interests a Nack.
    pub fn close(&self) {
        let mut inner = self.shared.lock();
        inner.closed = true;
        inner.known = Known::new(1);
        let waiting = inner.waiting.take();
        drop(inner);
        self.shared.asked.notify_all();
        self.shared.workers.stop();
        let mut out = Vec::new();
        for wanted in waiting {
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
        // Java is asked by what it says, and its proof is checked after that.
        let read = own::interest(&interest).and_then(|interest| {
            let (key, asked) = request::parse(&shared.prefix, shared.guarded, &interest)?;
            Some((interest, key, asked))
        });
        let Some((interest, key, asked)) = read else {
            count(&shared.counters.nacks);
            out.push(wire::nack(NackReason::NoRoute, interest, token));
            return;
        };
        let question = asked.question(key);
        let wanted = Wanted {
            interest,
            token,
            asked,
        };
        self.sweep.get_or_insert(now + ANSWER_LIFETIME);
        let mut inner = shared.lock();
        let clock = Instant::now();
        if let Some((served, answered)) = inner.known.get(&question.subject, clock) {
            let genstamp = question.genstamp;
            let other = genstamp.is_some_and(|asked| asked != served.replica().genstamp());
            if !other || clock.duration_since(answered) < ASK_AGAIN_AFTER {
                drop(inner);
                return serve(shared, &served, wanted, out);
            }
            // What is known stays until Java says that there is another.
        }
        if inner.closed {
            drop(inner);
            return refuse(shared, NackReason::Congestion, wanted, out);
        }
        let added = inner.waiting.add(question, wanted, now + ANSWER_TIMEOUT);
        drop(inner);
        match added {
            Ok(Added::Asked) => {
                count(&shared.counters.asked);
                shared.asked.notify_one();
            }
            Ok(Added::Joined) => {}
            Err(wanted) => refuse(shared, NackReason::Congestion, wanted, out),
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
        let over = inner.waiting.over(now);
        let idle = inner.known.is_empty() && inner.waiting.is_empty();
        drop(inner);
        for (question, request) in over {
            if UNANSWERED.allows() {
                let BlockKey { pool, block } = &question.subject.block;
                tracing::warn!(pool, block, "no answer where a replica lies");
            }
            for wanted in request.wanted {
                refuse(&self.shared, NackReason::NoRoute, wanted, out);
            }
        }
        self.sweep = (!idle).then(|| now + ANSWER_LIFETIME / 4);
    }
}
