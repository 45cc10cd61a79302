//! Packets as they came: appended to segment logs, found by an index of extents.
//!
//! An insertion appends packets, then tables of where they are, then a record that puts them into the repository. It is
//! acknowledged when that record is synced; insertions that end together share one sync. The index follows and is made
//! durable only now and then: after a crash, what it lacks is read from the logs, from the checkpoint on that it holds.
//! An insertion that outlives the repository is told by a file beside the logs.

mod commit;
mod compact;
mod extent;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod insert;
mod kept;
mod log;
mod part_file;
mod record;
mod recover;
mod series;
mod store;

use std::sync::{Arc, Mutex, RwLock};

use ndn_packet::Name;

use commit::Queue;
use log::Logs;
use record::Key;
use series::Series;

use crate::disk::{Disk, DiskFile};
use crate::index::Index;
use crate::recent::Recent;

pub use insert::Insertion;

pub(crate) use kept::KeptInsertion;
pub(crate) use recover::recover;

/// Series kept at hand.
const SERIES_KEPT: usize = 64;
/// Log files kept open.
const FILES_KEPT: usize = 64;

/// Packets on disk.
#[derive(Debug)]
pub(crate) struct PacketStore {
    pub disk: Arc<dyn Disk>,
    pub index: Arc<Index>,
    pub logs: Mutex<Logs>,
    /// Insertions of before the start that nobody goes on with yet.
    pub kept: Mutex<Vec<KeptInsertion>>,
    pub queue: Mutex<Queue>,
    /// Whoever holds it syncs for all.
    pub leader: Mutex<()>,
    /// Held for writing while packets are moved: then nothing is put or removed.
    pub moves: RwLock<()>,
    /// Whoever holds it compacts: another would take what it moves for what nobody needs.
    pub compacting: Mutex<()>,
    series: Mutex<Recent<Key, Arc<Series>>>,
    files: Mutex<Recent<u32, Arc<dyn DiskFile>>>,
}

/// A series of packets in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesInfo {
    /// The prefix of its segments, or a packet's own name.
    pub name: Name,
    /// Whether it has segments.
    pub segmented: bool,
    /// The first segment.
    pub first: u64,
    /// The last segment.
    pub last: u64,
    /// Packets there are.
    pub packets: u64,
    /// Bytes they take.
    pub bytes: u64,
    /// Bytes of the index's entry.
    pub index_bytes: u64,
}

impl PacketStore {
    /// Of logs of `log_bytes`, of which the next gets the number `next`.
    pub fn new(disk: Arc<dyn Disk>, index: Arc<Index>, log_bytes: u64, next: u32) -> Self {
        Self {
            disk,
            index,
            logs: Mutex::new(Logs::new(log_bytes, next)),
            kept: Mutex::default(),
            queue: Mutex::default(),
            leader: Mutex::new(()),
            moves: RwLock::new(()),
            compacting: Mutex::new(()),
            series: Mutex::new(Recent::new(SERIES_KEPT)),
            files: Mutex::new(Recent::new(FILES_KEPT)),
        }
    }
}
