//! Buffers that datagrams are received into.

use std::sync::Arc;

use crate::face::chunk::{BufferBudget, Chunk, ChunkPool};

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
    /// Chunks within `budget`; where packets hold on to most of it, they are copied out.
    pub fn new(budget: &Arc<BufferBudget>) -> Self {
        Self {
            pool: ChunkPool::new(BUFFER_BYTES, BATCH, budget),
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
