//! Room on the disk for a file whose size nobody knows.

use std::sync::Arc;

/// Files that may be written so at once: each has threads and blocks of its own.
const MOST_AT_ONCE: usize = 4;

/// The room of a file whose size nobody knows.
#[derive(Debug)]
pub(super) enum Reservation {
    /// Found by the file system as the bytes come.
    AsItComes,
    /// Reserved up to here, by one of those that may stream.
    Reserved { to: u64, _permit: Arc<()> },
    /// It can't be reserved, or must not be.
    Never,
}

/// Counts those that stream.
#[derive(Debug, Default)]
pub(crate) struct Streams(Arc<()>);

impl Streams {
    /// To be kept as long as it streams; nothing where too many do.
    pub(super) fn permit(&self) -> Option<Arc<()>> {
        let one = self.0.clone();
        (Arc::strong_count(&self.0) <= MOST_AT_ONCE + 1).then_some(one)
    }
}
