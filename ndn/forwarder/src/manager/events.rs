//! Notifications about faces that were made, for those who ask late.

use bytes::Bytes;
use std::collections::VecDeque;

/// Notifications kept for those who ask late.
pub(crate) const KEPT: usize = 128;

/// Bytes of them: two FaceUris, and numbers.
pub(super) const MAX_BYTES: usize = KEPT * 1024;

/// The notifications.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    /// Sequence number of the next one.
    pub(crate) next: u64,
    /// Sequence number, time in nanoseconds, and packet; oldest first.
    pub(crate) kept: VecDeque<(u64, u64, Bytes)>,
    /// Somebody waits for the next one.
    pub(crate) wanted: bool,
}

impl EventLog {
    /// Bytes of the notifications kept.
    pub(super) fn memory(&self) -> usize {
        self.kept.iter().map(|(.., wire)| wire.len()).sum()
    }
}
