//! Packets as they came: appended to segment logs, found by an index of extents.
//!
//! An insertion appends packets, then tables of where they are, then a record that puts them into the repository. It is
//! acknowledged when that record is synced; insertions that end together share one sync. The index follows and is made
//! durable only now and then: after a crash, what it lacks is read from the logs, from the checkpoint on that it holds.
//! An insertion that outlives the repository is told by a file beside the logs.

mod commit;
mod compact;
mod extent;
mod insert;
mod kept;
mod log;
mod record;
mod recover;
mod series;
mod store;

pub use insert::Insertion;
pub use store::SeriesInfo;

pub(crate) use kept::KeptInsertion;
pub(crate) use recover::recover;
pub(crate) use store::PacketStore;
