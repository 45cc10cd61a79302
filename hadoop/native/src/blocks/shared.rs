//! What is known of blocks and asked of Java: shared by the loop, Java's threads and the workers.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use ndn_io::{PacketBuffer, PacketBuffers};
use ndn_packet::Name;

use super::counters::Counters;
use super::known::Known;
use super::request::BlockKey;
use super::waiting::Waiting;
use super::workers::Workers;
use crate::outbox::Outbox;
use crate::segment::PACKET_OVERHEAD;
use crate::verify::Verify;

/// What Java has answered, and is asked.
pub(super) struct Inner {
    pub known: Known,
    pub waiting: Waiting,
    /// How often a block was invalidated so far: what was asked before, and is answered after, is
    /// not remembered.
    pub invalidated: u64,
    pub closed: bool,
}

/// What the loop, Java's threads and the workers share.
pub(super) struct Shared {
    pub prefix: Name,
    /// Whether replicas are served sealed, to whoever has a block token, and not
    /// otherwise.
    pub guarded: bool,
    pub segment_bytes: u32,
    pub verify: Verify,
    pub inner: Mutex<Inner>,
    pub asked: Condvar,
    pub outbox: Outbox,
    pub workers: Workers,
    /// Where packets are made that the router may be lent.
    pub buffers: Option<PacketBuffers>,
    pub counters: Counters,
}

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory for a packet with so many bytes of content.
    pub fn buffer(&self, content: usize) -> Option<PacketBuffer> {
        self.buffers.as_ref()?.take(content + PACKET_OVERHEAD)
    }

    /// The files of a block are not what they were said to be.
    pub fn forget(&self, key: &BlockKey) {
        self.lock().known.remove(key);
    }
}
