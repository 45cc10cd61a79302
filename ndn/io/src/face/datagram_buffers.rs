//! Buffers that datagrams are received into.

use crate::face::chunk::{Chunk, ChunkPool};

/// One buffer takes the largest datagram, or what the kernel has coalesced.
pub(crate) const BUFFER_BYTES: usize = 64 * 1024;
/// Datagrams, or runs of them, received at once.
pub(crate) const BATCH: usize = 32;

/// Buffers for receiving, shared by all datagram sockets of a loop.
pub(crate) struct DatagramBuffers {
    pub pool: ChunkPool,
    chunks: Vec<Chunk>,
}

impl DatagramBuffers {
    /// Chunks of `max_live_bytes` may be held on to by packets; beyond, packets are copied.
    pub fn new(max_live_bytes: usize) -> Self {
        Self {
            pool: ChunkPool::new(BUFFER_BYTES, 4 * BATCH, max_live_bytes),
            chunks: Vec::new(),
        }
    }

    /// [`BATCH`] chunks to receive into; [`Self::take`] tells of them by their places.
    pub fn chunks(&mut self) -> &mut [Chunk] {
        self.chunks.resize_with(BATCH, || self.pool.take());
        &mut self.chunks
    }

    /// What lies in a chunk.
    pub fn filled(&self, at: usize, len: usize) -> &[u8] {
        &self.chunks[at].as_ref()[..len]
    }

    /// Takes out a chunk that was filled, and puts a fresh one in its place.
    pub fn take(&mut self, at: usize) -> Chunk {
        std::mem::replace(&mut self.chunks[at], self.pool.take())
    }
}
