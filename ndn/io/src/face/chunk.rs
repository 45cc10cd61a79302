//! Read buffers that are used again.
//!
//! Sockets are read into large chunks and packets are slices of them, so a chunk lives until
//! the last packet cut from it has gone. A chunk that dies comes back to its pool with its
//! pages already present: fresh memory of this size would cost a page fault for every 4 KiB.
//!
//! A packet of a few KiB that is kept for long (in a content store, say) keeps its whole chunk.
//! Peers can bring that about on purpose, so a pool counts what is alive and says when its
//! readers are to copy packets out instead.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};

use crate::memory::packets::{PacketMemory, Piece, Size};

/// Frames below this many bytes are moved out of the chunk, so that an Interest waiting in
/// the PIT for seconds holds on to a small block of its like and not to a whole chunk.
pub(crate) const SMALL_FRAME: usize = 1024;
/// Small frames share blocks of this size.
const SMALL_BLOCK: usize = 8 * 1024;

/// Bytes of chunks that one loop's readers may need at once whatever packets hold on to: a packet is copied out of its
/// chunk when less than this is left.
pub(crate) const READING_BYTES: usize = 12 << 20;

/// The bytes that all pools of a loop may take together.
#[derive(Debug)]
pub(crate) struct BufferBudget {
    capacity: usize,
    /// Kept for the readers of all loops.
    reading: usize,
    /// Bytes of chunks in use and kept for use.
    used: AtomicUsize,
    /// Readers that keep a chunk from one turn to the next.
    holders: AtomicUsize,
}

impl BufferBudget {
    /// A budget of `capacity` bytes.
    pub fn new(capacity: usize) -> Arc<Self> {
        Self::of_loops(capacity, 1)
    }

    /// A budget of `capacity` bytes for the pools of so many loops.
    pub fn of_loops(capacity: usize, loops: usize) -> Arc<Self> {
        Arc::new(Self {
            capacity,
            reading: loops * READING_BYTES,
            used: AtomicUsize::new(0),
            holders: AtomicUsize::new(0),
        })
    }

    /// Bytes of chunks that there are.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes of chunks that there may be.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether packets hold on to so many chunks that the next ones are to be copied out.
    fn is_stretched(&self) -> bool {
        self.used().saturating_add(self.reading) > self.capacity
    }

    /// Lets a reader keep its chunk until its next turn, as long as fewer than `most` do.
    pub fn hold(self: &Arc<Self>, most: usize) -> Option<Hold> {
        let more = |holders: usize| (holders < most).then_some(holders + 1);
        let (relaxed, holders) = (Ordering::Relaxed, &self.holders);
        let taken = holders.fetch_update(relaxed, relaxed, more);
        taken.ok().map(|_| Hold(self.clone()))
    }

    /// Readers that keep a chunk.
    pub fn holders(&self) -> usize {
        self.holders.load(Ordering::Relaxed)
    }
}

/// The right to keep a chunk from one turn to the next.
#[derive(Debug)]
pub(crate) struct Hold(Arc<BufferBudget>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.holders.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A pool of equally large chunks.
#[derive(Clone)]
pub(crate) struct ChunkPool {
    shared: Arc<Shared>,
}

struct Shared {
    chunk_bytes: usize,
    max_idle: usize,
    budget: Arc<BufferBudget>,
    live: AtomicUsize,
    idle: Mutex<Vec<Box<[u8]>>>,
    /// Memory that local peers see, which is used up first.
    lent: Option<(Arc<PacketMemory>, Size)>,
}

/// What a chunk is made of.
enum Store {
    Own(Box<[u8]>),
    Lent(Piece),
}

/// A chunk being filled by one reader.
pub(crate) struct Chunk {
    memory: Option<Store>,
    /// Its bytes within the budget.
    counted: usize,
    home: Arc<Shared>,
}

impl ChunkPool {
    /// A pool that keeps at most `max_idle` unused chunks, all within `budget`.
    pub fn new(chunk_bytes: usize, max_idle: usize, budget: &Arc<BufferBudget>) -> Self {
        Self::made(chunk_bytes, max_idle, budget, None)
    }

    /// A pool of chunks of this size, out of `memory` as long as there are any.
    pub fn within(
        memory: Option<&Arc<PacketMemory>>,
        size: Size,
        max_idle: usize,
        budget: &Arc<BufferBudget>,
    ) -> Self {
        let lent = memory.map(|memory| (memory.clone(), size));
        Self::made(size.bytes(), max_idle, budget, lent)
    }

    fn made(
        chunk_bytes: usize,
        max_idle: usize,
        budget: &Arc<BufferBudget>,
        lent: Option<(Arc<PacketMemory>, Size)>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                chunk_bytes,
                max_idle,
                budget: budget.clone(),
                live: AtomicUsize::new(0),
                idle: Mutex::new(Vec::with_capacity(max_idle)),
                lent,
            }),
        }
    }

    /// Whether packets hold on to so many chunks that the next ones are to be copied out.
    pub fn is_stretched(&self) -> bool {
        self.shared.budget.is_stretched()
    }

    /// The budget of this pool and others.
    pub fn budget(&self) -> &Arc<BufferBudget> {
        &self.shared.budget
    }

    /// Chunks in use.
    #[cfg(any(test, fuzzing))]
    pub fn live(&self) -> usize {
        self.shared.live.load(Ordering::Relaxed)
    }

    /// A chunk, all of it.
    pub fn take(&self) -> Chunk {
        self.take_for(self.shared.chunk_bytes)
    }

    /// A chunk of which so many bytes will be filled at most: they are counted, as no more pages are used.
    pub fn take_for(&self, bytes: usize) -> Chunk {
        let shared = &self.shared;
        let counted = bytes.next_multiple_of(4096).min(shared.chunk_bytes);
        let used = &shared.budget.used;
        shared.live.fetch_add(1, Ordering::Relaxed);
        if let Some((memory, size)) = &shared.lent
            && let Some(piece) = memory.take(*size)
        {
            used.fetch_add(counted, Ordering::Relaxed);
            return Chunk {
                memory: Some(Store::Lent(piece)),
                counted,
                home: shared.clone(),
            };
        }
        let idle = shared
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let memory = match idle {
            Some(memory) => {
                used.fetch_sub(shared.chunk_bytes - counted, Ordering::Relaxed);
                memory
            }
            None => {
                used.fetch_add(counted, Ordering::Relaxed);
                vec![0; shared.chunk_bytes].into_boxed_slice()
            }
        };
        Chunk {
            memory: Some(Store::Own(memory)),
            counted,
            home: shared.clone(),
        }
    }
}

impl Chunk {
    /// Ends the filling: the chunk's first `len` bytes, to be cut into packets.
    pub fn freeze(self, len: usize) -> Bytes {
        let mut bytes = Bytes::from_owner(self);
        bytes.truncate(len);
        bytes
    }
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        match &self.memory {
            Some(Store::Own(memory)) => memory,
            Some(Store::Lent(piece)) => piece.as_ref(),
            None => &[],
        }
    }
}

impl AsMut<[u8]> for Chunk {
    fn as_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Some(Store::Own(memory)) => memory,
            Some(Store::Lent(piece)) => piece.as_mut(),
            None => &mut [],
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.home.live.fetch_sub(1, Ordering::Relaxed);
        let used = &self.home.budget.used;
        match self.memory.take() {
            Some(Store::Own(memory)) => {
                let idle = &self.home.idle;
                let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
                if idle.len() < self.home.max_idle && !self.home.budget.is_stretched() {
                    used.fetch_add(memory.len() - self.counted, Ordering::Relaxed);
                    idle.push(memory);
                } else {
                    used.fetch_sub(self.counted, Ordering::Relaxed);
                }
            }
            Some(Store::Lent(_)) => {
                used.fetch_sub(self.counted, Ordering::Relaxed);
            }
            None => {}
        }
    }
}

/// Moves small frames out of chunks into blocks of their own kind.
#[derive(Default)]
pub(crate) struct SmallFrames {
    block: BytesMut,
}

impl SmallFrames {
    /// Whether a frame of this length is worth moving.
    pub fn takes(len: usize) -> bool {
        len < SMALL_FRAME
    }

    pub fn copy(&mut self, frame: &[u8]) -> Bytes {
        if self.block.capacity() < frame.len() {
            self.block = BytesMut::with_capacity(SMALL_BLOCK.max(frame.len()));
        }
        self.block.extend_from_slice(frame);
        self.block.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_returns_when_its_last_slice_goes() {
        let budget = BufferBudget::new(READING_BYTES + (1 << 20));
        let pool = ChunkPool::new(4096, 1, &budget);
        let mut chunk = pool.take();
        chunk.as_mut()[..3].copy_from_slice(b"abc");
        let whole = chunk.freeze(3);
        let slice = whole.slice(1..2);
        drop(whole);
        assert!(pool.shared.idle.lock().unwrap().is_empty());
        assert_eq!(&slice[..], b"b");
        drop(slice);
        assert_eq!(pool.shared.idle.lock().unwrap().len(), 1);
        drop((pool.take(), pool.take()));
        assert_eq!(pool.shared.idle.lock().unwrap().len(), 1);
        assert_eq!(budget.used(), 4096, "what is kept counts");
    }

    #[test]
    fn pools_share_one_budget() {
        let budget = BufferBudget::new(READING_BYTES + 10 * 4096);
        let (small, large) = (
            ChunkPool::new(4096, 4, &budget),
            ChunkPool::new(8192, 4, &budget),
        );
        let held: Vec<_> = (0..3).map(|_| (small.take(), large.take())).collect();
        assert!(!small.is_stretched());
        let more = large.take();
        assert!(small.is_stretched() && large.is_stretched());
        drop((held, more));
        assert!(!small.is_stretched() && budget.used() <= 10 * 4096);
    }

    #[test]
    fn small_frames_share_a_block() {
        let mut small = SmallFrames::default();
        let frames: Vec<Bytes> = (0..500u16).map(|i| small.copy(&i.to_be_bytes())).collect();
        for (i, frame) in frames.iter().enumerate() {
            assert_eq!(frame[..], (i as u16).to_be_bytes());
        }
        assert_eq!(frames[0].as_ptr() as usize + 2, frames[1].as_ptr() as usize);
        assert!(SmallFrames::takes(60) && !SmallFrames::takes(8000));
    }
}
