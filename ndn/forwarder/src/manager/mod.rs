//! What management keeps: its policy, answers for those who ask again, commands in progress.

mod authorize;
mod datasets;
mod events;
mod replies;

pub(crate) use datasets::FRESHNESS;
pub(crate) use events::KEPT;

use crate::memory::MemoryUse;
use crate::mgmt::CommandPolicy;
use datasets::DatasetStore;
use events::EventLog;
use ndn_packet::{Name, PitToken};
use replies::Replies;
use std::collections::HashMap;
use std::time::Duration;

/// A command whose face is being made.
#[derive(Debug)]
pub(crate) struct PendingCreate {
    pub(crate) name: Name,
    pub(crate) token: Option<PitToken>,
    pub(crate) local_fields: bool,
}

/// Faces that are being made at once.
pub(crate) const MAX_CREATING: usize = 256;

/// State of management.
#[derive(Debug)]
pub(crate) struct Manager {
    pub(crate) policy: CommandPolicy,
    unix_time_at_zero: Duration,
    /// When the forwarder first heard the time, nanoseconds.
    pub(crate) started: Option<u64>,
    pub(crate) replies: Replies,
    pub(crate) datasets: DatasetStore,
    pub(crate) events: EventLog,
    /// Requests on their way by the other workers.
    pub(crate) errands: usize,
    /// By the numbers that the driver answers with.
    pub(crate) creating: HashMap<u64, PendingCreate>,
    pub(crate) next_request: u64,
    /// The listeners, as FaceUris.
    pub(crate) channels: Vec<String>,
}

impl Manager {
    /// Obeys commands by this policy; with the Unix time at time zero, if it is known.
    pub(crate) fn new(policy: CommandPolicy, unix_time_at_zero: Duration) -> Self {
        Manager {
            policy,
            unix_time_at_zero,
            started: None,
            replies: Replies::default(),
            datasets: DatasetStore::default(),
            events: EventLog::default(),
            errands: 0,
            creating: HashMap::new(),
            next_request: 0,
            channels: Vec::new(),
        }
    }

    /// Unix time at a moment, if it is known.
    pub(crate) fn unix_time(&self, now: u64) -> Option<Duration> {
        (!self.unix_time_at_zero.is_zero())
            .then(|| self.unix_time_at_zero + Duration::from_nanos(now))
    }

    /// Bytes of what is kept for those who ask again.
    pub(crate) fn memory(&self) -> MemoryUse {
        MemoryUse {
            bytes: self.replies.memory() + self.datasets.memory() + self.events.memory(),
            capacity_bytes: replies::MAX_BYTES + datasets::MAX_BYTES + events::MAX_BYTES,
        }
    }
}
