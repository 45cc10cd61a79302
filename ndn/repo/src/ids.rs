//! Numbers that nobody else has: versions by the clock, ids at random.

use std::time::SystemTime;

/// Microseconds since the Unix epoch: the version of what is put now.
pub fn now_us() -> u64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// A number that nobody else has, and that no stranger can guess.
pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    // Linux fails it at no time for so few bytes, but where there is no such call.
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .expect("the system has random numbers");
    u64::from_ne_bytes(bytes)
}
