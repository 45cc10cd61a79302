//! One version of a file, read by segments: from the cache, else over the network, each segment held against what was signed
//! before anybody sees a byte of it.
//!
//! A *run* asks for segments in order, as far as readers want them. Reads in order lengthen the run that they follow, so that
//! its congestion window lives on; a read elsewhere begins one of its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ndn_endpoint::{ConsumerConfig, FetchConfig, Find, Manifest};
use ndn_packet::Data;
use ndn_repo::Cache;

use super::RemoteError;
use super::caller::Caller;
use super::network::Network;
use super::network_loop::{Fetched, Reader};
use super::read_ahead::ReadAhead;
use super::version_metadata::VersionMetadata;
use crate::handles::lock;

/// Verified segments of all files, by file and number.
pub type Segments = Mutex<Cache<(u64, u64), Bytes>>;

/// What a call gives the network beyond its own time, so that it is the network that says what was wrong.
const GRACE: Duration = Duration::from_secs(1);
/// How often a call that waits looks whether its caller is still there.
const LOOK: Duration = Duration::from_millis(100);
/// Most segments that a call has in hand: were they of a byte each, they would take many times what is read.
const IN_HAND: u64 = 1024;

/// How a file's segments come here.
pub struct Source {
    pub network: Arc<Network>,
    pub segments: Arc<Segments>,
    /// First and last segment are set for each run.
    pub consumer: ConsumerConfig,
    /// What segments are held against, instead of a signature of their own.
    pub manifest: Option<Arc<Manifest>>,
}

/// A version of a file.
pub struct RemoteFile {
    /// Its number in the cache.
    id: u64,
    pub version: Arc<VersionMetadata>,
    source: Source,
    state: Mutex<State>,
    arrived: Condvar,
    /// What runs count time from.
    made: Instant,
}

#[derive(Default)]
struct State {
    /// Handles.
    users: usize,
    /// Those at work or lately at work, the newest last.
    runs: Vec<Arc<Run>>,
    calls: HashMap<u64, Call>,
    next_call: u64,
}

/// Segments that are asked for in order.
struct Run {
    first: u64,
    /// The next to come.
    next: AtomicU64,
    /// The last that is wanted.
    upto: AtomicU64,
    dropped: AtomicBool,
    /// When a packet of it came, in milliseconds since its file was made.
    heard: AtomicU64,
}

/// A call that waits for segments.
struct Call {
    first: u64,
    slots: Vec<Option<Bytes>>,
    missing: usize,
    /// When it began, or what it followed came to an end.
    since: Instant,
    failed: Option<RemoteError>,
}

impl Run {
    fn next(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }

    fn upto(&self) -> u64 {
        self.upto.load(Ordering::Acquire)
    }

    /// Whether a segment will come by it.
    fn brings(&self, segment: u64) -> bool {
        (self.next()..=self.upto()).contains(&segment)
    }

    fn heard(&self) -> Duration {
        Duration::from_millis(self.heard.load(Ordering::Acquire))
    }

    fn is_idle(&self) -> bool {
        self.next() > self.upto()
    }
}

impl Call {
    fn last(&self) -> u64 {
        self.first + (self.slots.len() as u64).saturating_sub(1)
    }

    /// Segments that are still to come, in order.
    fn missing(&self) -> impl Iterator<Item = u64> {
        let slots = self.slots.iter().zip(self.first..);
        slots.filter(|(slot, _)| slot.is_none()).map(|(_, n)| n)
    }

    fn misses(&self, segment: u64) -> bool {
        self.slot(segment).is_some_and(|n| self.slots[n].is_none())
    }

    fn slot(&self, segment: u64) -> Option<usize> {
        let n = usize::try_from(segment.checked_sub(self.first)?).ok()?;
        (n < self.slots.len()).then_some(n)
    }
}

impl RemoteFile {
    /// A version whose segments come from `source`; `id` is no other's.
    pub fn new(id: u64, version: Arc<VersionMetadata>, source: Source) -> Arc<Self> {
        Arc::new(Self {
            id,
            version,
            source,
            state: Mutex::default(),
            arrived: Condvar::new(),
            made: Instant::now(),
        })
    }

    /// One handle more.
    pub fn open(&self) {
        lock(&self.state).users += 1;
    }

    /// One handle less. What nobody reads is asked for no more.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.users -= 1;
        if state.users > 0 {
            return;
        }
        for run in state.runs.drain(..) {
            run.dropped.store(true, Ordering::Release);
        }
        self.source.network.wake();
    }

    /// Milliseconds since it was made.
    fn now_ms(&self) -> u64 {
        u64::try_from(self.made.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Fills `buffer` from `offset` on, as far as the file goes and `caller` is there; fetches as far ahead as `ahead` says.
    ///
    /// # Errors
    /// Why the bytes are not here. Another call tries again.
    pub fn read(
        self: &Arc<Self>,
        ahead: &Mutex<ReadAhead>,
        offset: u64,
        buffer: &mut [u8],
        caller: Caller,
    ) -> Result<usize, RemoteError> {
        let size = self.version.size;
        let len = (buffer.len() as u64).min(size.saturating_sub(offset));
        if len == 0 {
            return Ok(0);
        }
        let upto = lock(ahead).on_read(offset, len).min(size);
        let each = self.version.segment_bytes;
        let first = offset / each;
        let mut at = 0;
        // Segments are no longer than a packet.
        let mut skip = (offset - first * each) as usize;
        let room = &mut buffer[..usize::try_from(len).unwrap_or(usize::MAX)];
        for (first, last) in parts(first, (offset + len - 1) / each) {
            for content in self.gather(first, last, (upto - 1) / each, caller)? {
                let content = &content[skip.min(content.len())..];
                let n = content.len().min(room.len() - at);
                room[at..at + n].copy_from_slice(&content[..n]);
                (at, skip) = (at + n, 0);
            }
        }
        Ok(at)
    }

    /// Segments `first` to `last`, whatever it takes; those up to `upto` are asked for, too.
    fn gather(
        self: &Arc<Self>,
        first: u64,
        last: u64,
        upto: u64,
        caller: Caller,
    ) -> Result<Vec<Bytes>, RemoteError> {
        let mut state = lock(&self.state);
        let mut slots = Vec::new();
        {
            let mut segments = lock(&self.source.segments);
            slots.extend((first..=last).map(|n| segments.get(&(self.id, n)).cloned()));
        }
        let mut call = Call {
            first,
            missing: slots.iter().filter(|slot| slot.is_none()).count(),
            slots,
            since: Instant::now(),
            failed: None,
        };
        self.go_on(&state, &call, upto);
        if call.missing > 0 {
            let number = state.next_call;
            state.next_call += 1;
            state.calls.insert(number, call);
            call = self.wait(state, number, upto, caller)?;
        }
        Ok(call.slots.into_iter().flatten().collect())
    }

    fn wait(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        number: u64,
        upto: u64,
        caller: Caller,
    ) -> Result<Call, RemoteError> {
        let patience = self.source.consumer.give_up_after + GRACE;
        let mut looked = Instant::now();
        loop {
            let gone = || RemoteError::Stopped;
            let call = state.calls.get(&number).ok_or_else(gone)?;
            let left =
                (self.heard(&state, call) + patience).saturating_duration_since(Instant::now());
            if call.missing == 0 || call.failed.is_some() || left.is_zero() {
                let call = state.calls.remove(&number).ok_or_else(gone)?;
                return match &call.failed {
                    Some(error) => Err(error.clone()),
                    None if call.missing > 0 => Err(RemoteError::Silent(format!(
                        "{}: segment {} did not come in {patience:?}",
                        self.version.metadata.name,
                        call.missing().next().unwrap_or(call.first)
                    ))),
                    None => Ok(call),
                };
            }
            if looked.elapsed() >= LOOK {
                if caller.is_gone() {
                    state.calls.remove(&number);
                    return Err(RemoteError::Unwanted);
                }
                looked = Instant::now();
            }
            let missing: Vec<u64> = call.missing().collect();
            let upto = upto.max(call.last());
            for segment in missing {
                if !state.runs.iter().any(|run| run.brings(segment))
                    && let Err(error) = self.begin(&mut state, segment, upto)
                {
                    state.calls.remove(&number);
                    return Err(error);
                }
            }
            state = self
                .arrived
                .wait_timeout(state, left.min(LOOK))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// When anything came last that brings what a call waits for nearer.
    fn heard(&self, state: &State, call: &Call) -> Instant {
        let followed = |run: &&Arc<Run>| call.missing().any(|segment| run.brings(segment));
        let runs = state.runs.iter().filter(followed);
        let heard = runs.map(|run| self.made + run.heard()).max();
        heard.map_or(call.since, |heard| heard.max(call.since))
    }

    /// Lengthens the run that a call follows.
    fn go_on(&self, state: &State, call: &Call, upto: u64) {
        let followed = state
            .runs
            .iter()
            .rev()
            .find(|run| run.first <= call.first && call.first <= run.upto() + 1);
        if let Some(run) = followed
            && run.upto() < upto
        {
            run.upto.store(upto, Ordering::Release);
            self.source.network.wake();
        }
    }

    /// Begins a run.
    ///
    /// # Errors
    /// Nothing is read any more.
    fn begin(
        self: &Arc<Self>,
        state: &mut State,
        first: u64,
        upto: u64,
    ) -> Result<(), RemoteError> {
        // One that is done may yet be gone on with; older ones are not.
        let mut idle = 0;
        for run in state.runs.iter().rev().filter(|run| run.is_idle()) {
            idle += 1;
            run.dropped.store(idle > 1, Ordering::Release);
        }
        state
            .runs
            .retain(|run| !run.dropped.load(Ordering::Acquire));
        let run = Arc::new(Run {
            first,
            next: AtomicU64::new(first),
            upto: AtomicU64::new(upto),
            dropped: AtomicBool::new(false),
            heard: AtomicU64::new(self.now_ms()),
        });
        let known = Box::new(self.version.metadata.clone());
        let config = FetchConfig {
            find: Find::Known(known, self.source.manifest.clone()),
            consumer: ConsumerConfig {
                first,
                last: Some(self.version.last),
                ..self.source.consumer.clone()
            },
            ..FetchConfig::new(self.version.name.clone())
        };
        let coming = Coming {
            file: self.clone(),
            run: run.clone(),
        };
        self.source.network.read(config, Box::new(coming))?;
        state.runs.push(run);
        Ok(())
    }
}

/// Segments `first` to `last` in parts that a call may have in hand: the first and the last of each.
fn parts(first: u64, last: u64) -> impl Iterator<Item = (u64, u64)> {
    let begins = (first..=last).step_by(IN_HAND as usize);
    begins.map(move |begin| (begin, last.min(begin.saturating_add(IN_HAND - 1))))
}

/// What a run brings.
struct Coming {
    file: Arc<RemoteFile>,
    run: Arc<Run>,
}

impl Reader for Coming {
    fn heard(&mut self) {
        self.run.heard.store(self.file.now_ms(), Ordering::Release);
    }

    fn take(&mut self, segment: u64, data: &Data) -> bool {
        if data.content_slice().len() as u64 != self.file.version.len_of(segment) {
            tracing::warn!(name = %data.name(), "segment rejected: its length is not the one in the metadata");
            return false;
        }
        // A slice would keep all of the buffer that it came in.
        let content = Bytes::copy_from_slice(data.content_slice());
        let bytes = content.len();
        let mut state = lock(&self.file.state);
        self.run.next.store(segment + 1, Ordering::Release);
        lock(&self.file.source.segments).insert((self.file.id, segment), content.clone(), bytes);
        let mut is_whole = false;
        for call in state.calls.values_mut() {
            if let Some(n) = call.slot(segment)
                && call.slots[n].is_none()
            {
                call.slots[n] = Some(content.clone());
                call.missing -= 1;
                is_whole |= call.missing == 0;
            }
        }
        if is_whole {
            self.file.arrived.notify_all();
        }
        true
    }

    fn wanted(&self) -> Option<u64> {
        (!self.run.dropped.load(Ordering::Acquire)).then(|| self.run.upto())
    }

    fn over(&mut self, result: Result<Fetched, RemoteError>) {
        let mut state = lock(&self.file.state);
        state.runs.retain(|run| !Arc::ptr_eq(run, &self.run));
        if let Err(error) = result {
            let at = self.run.next();
            for call in state.calls.values_mut() {
                let is_over = matches!(error, RemoteError::Stopped | RemoteError::Ended);
                if call.misses(at) || is_over {
                    call.failed = Some(error.clone());
                } else {
                    // What it waits for may come by a run of its own.
                    call.since = Instant::now();
                }
            }
        }
        self.file.arrived.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_is_more_than_a_call_may_have_in_hand() {
        let all = |first, last| parts(first, last).collect::<Vec<_>>();
        assert_eq!(all(7, 7), [(7, 7)]);
        assert_eq!(all(5, 1028), [(5, 1028)]);
        assert_eq!(all(5, 1029), [(5, 1028), (1029, 1029)]);
        assert_eq!(all(0, 2500), [(0, 1023), (1024, 2047), (2048, 2500)]);
        let end = u64::MAX;
        assert_eq!(all(end - 1024, end), [(end - 1024, end - 1), (end, end)]);
    }
}
