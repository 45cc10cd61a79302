//! A request of management that goes from worker to worker, and the figures that it brings back.

use crate::face::{FaceCounters, FaceId};
use crate::memory::MemoryUse;
use crate::request::Request;
use crate::status::Status;
use ndn_packet::Name;
use rustc_hash::FxHashMap;

/// A request of management on its way.
#[derive(Debug)]
pub(crate) struct Errand {
    pub(crate) request: Request,
    pub(crate) task: Task,
    /// The worker that it goes to next; back to the first behind the last.
    pub(crate) next: usize,
}

#[derive(Debug)]
pub(crate) enum Task {
    /// Add up figures.
    Figures(Box<Figures>),
    /// Drop so many packets at most under a prefix.
    Erase {
        prefix: Name,
        left: usize,
        erased: usize,
        more: bool,
    },
}

/// Figures of one worker, or of several together.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) status: Status,
    /// Memory of the tables, as [`TableMemory::tables`](crate::TableMemory::tables) names them.
    pub(crate) tables: [(&'static str, MemoryUse); 7],
    pub(crate) faces: FxHashMap<FaceId, FaceCounters>,
}

impl Figures {
    pub(crate) fn add(&mut self, other: &Figures) {
        self.status.add(&other.status);
        for ((_, sum), (_, one)) in self.tables.iter_mut().zip(&other.tables) {
            sum.bytes += one.bytes;
            sum.capacity_bytes += one.capacity_bytes;
        }
        for (id, counters) in &other.faces {
            self.faces.entry(*id).or_default().add(counters);
        }
    }
}
