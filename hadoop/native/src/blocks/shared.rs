//! What is known of blocks and asked of Java: shared by the loop, Java's threads and the workers.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ndn_packet::Name;

use super::counters::Counters;
use super::known::Known;
use super::request::{BlockKey, Wanted};
use super::workers::Workers;
use crate::outbox::Outbox;
use crate::verify::Verify;

/// Interests in one block, which Java is asked about.
pub(super) struct Request {
    pub wanted: Vec<Wanted>,
    /// In the loop's time.
    pub until: Duration,
    /// Invalidated meanwhile: the answer is used but not remembered.
    pub stale: bool,
}

/// What Java has answered, and is asked.
pub(super) struct Inner {
    pub known: Known,
    pub requests: HashMap<BlockKey, Request>,
    /// Interests in all requests.
    pub waiting: usize,
    /// Requests that Java has not taken yet.
    pub untaken: VecDeque<String>,
    pub closed: bool,
}

/// What the loop, Java's threads and the workers share.
pub(super) struct Shared {
    pub prefix: Name,
    pub segment_bytes: u32,
    pub verify: Verify,
    pub inner: Mutex<Inner>,
    pub asked: Condvar,
    pub outbox: Outbox,
    pub workers: Workers,
    pub counters: Counters,
}

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The files of a block are not what they were said to be.
    pub fn forget(&self, key: &BlockKey) {
        self.lock().known.remove(key);
    }
}
