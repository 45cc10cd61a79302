//! Numbers that nobody else has: versions by the clock, ids at random.

use std::time::SystemTime;

/// Microseconds since the Unix epoch: the version of what is put now.
pub fn now_us() -> u64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// A number that nobody else has.
pub(crate) fn random() -> u64 {
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), now_us())
}
