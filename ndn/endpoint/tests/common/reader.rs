//! A consumer in the simulated network and what it read.

use super::SEGMENT_BYTES;
use ndn_endpoint::Consumer;
use std::time::Duration;

/// A consumer and what it read.
pub struct Reader {
    pub consumer: Consumer,
    pub started: bool,
    pub read: Vec<u64>,
    pub bytes: u64,
    /// Time and bytes read so far, at each read.
    pub progress: Vec<(Duration, u64)>,
    pub most_buffered: usize,
    pub done_at: Option<Duration>,
    /// Interests sent while the window was full.
    pub beyond: u64,
    pub reading: bool,
}

/// Every segment from the first to the last, in order, once.
pub fn assert_complete(reader: &Reader, segments: u64) {
    assert_eq!(reader.consumer.failure(), None);
    assert!(
        reader.consumer.is_done(),
        "{:?} {:?}",
        reader.consumer.state(),
        reader.consumer.stats()
    );
    assert!(
        reader.read.iter().copied().eq(0..segments),
        "not in order or not complete: {:?}",
        reader.read
    );
    assert_eq!(reader.bytes, segments * u64::from(SEGMENT_BYTES));
}
