//! Dead nonce list: the nonces of Interests that are no longer pending, to detect loops longer than their lifetime.
//!
//! Two generations of 63-bit fingerprints. A fingerprint goes into the younger; when that is old or full, the elder is
//! emptied and they change places. So each is remembered for at least one lifetime, unless the bound is met.

use super::index::HashIndex;

/// The list.
#[derive(Debug)]
pub(crate) struct DeadNonces {
    young: HashIndex,
    old: HashIndex,
    /// When the younger generation began, nanoseconds.
    since: u64,
    lifetime: u64,
    max_per_generation: usize,
}

fn split(fingerprint: u64) -> (u64, u32) {
    (fingerprint, fingerprint as u32 & 0x7fff_ffff)
}

impl DeadNonces {
    /// Remembers each for `lifetime` nanoseconds, but no more than `max` in all.
    pub(crate) fn new(lifetime: u64, max: usize) -> Self {
        DeadNonces {
            young: HashIndex::new(),
            old: HashIndex::new(),
            since: 0,
            lifetime,
            max_per_generation: max / 2,
        }
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.young.memory() + self.old.memory()
    }

    /// Bytes that may be held.
    pub(crate) fn capacity(&self) -> usize {
        2 * HashIndex::memory_for(self.max_per_generation)
    }

    fn rotate(&mut self, now: u64) {
        let age = now.saturating_sub(self.since);
        if age < self.lifetime && self.young.len() < self.max_per_generation {
            return;
        }
        if age >= self.lifetime.saturating_mul(2) {
            self.young.clear();
        }
        if self.old.len() > 0 {
            self.old.clear();
        }
        std::mem::swap(&mut self.young, &mut self.old);
        self.since = now;
    }

    /// Remembers a fingerprint of a name and nonce.
    pub(crate) fn add(&mut self, now: u64, fingerprint: u64) {
        if self.max_per_generation == 0 {
            return;
        }
        self.rotate(now);
        let (hash, low) = split(fingerprint);
        if self.young.find(hash, |id| id == low).is_none() {
            self.young.insert(hash, low);
        }
    }

    /// Fetches ahead what a search for a fingerprint reads.
    #[inline]
    pub(crate) fn prefetch(&self, fingerprint: u64) {
        self.young.prefetch(fingerprint);
        self.old.prefetch(fingerprint);
    }

    /// Whether a fingerprint was added not long ago.
    #[inline]
    pub(crate) fn has(&mut self, now: u64, fingerprint: u64) -> bool {
        if self.young.len() + self.old.len() == 0 {
            return false;
        }
        if now.saturating_sub(self.since) >= self.lifetime {
            self.rotate(now);
        }
        let (hash, low) = split(fingerprint);
        self.young.find(hash, |id| id == low).is_some()
            || self.old.find(hash, |id| id == low).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_for_a_lifetime_and_then_forgets() {
        let mut list = DeadNonces::new(100, 1000);
        list.add(10, 42 << 40);
        assert!(list.has(10, 42 << 40));
        assert!(!list.has(10, 43 << 40));
        assert!(list.has(109, 42 << 40));
        assert!(!list.has(500, 42 << 40));
    }

    #[test]
    fn what_was_added_late_in_a_generation_survives_its_end() {
        let mut list = DeadNonces::new(100, 1000);
        list.add(0, 1 << 40);
        list.add(99, 2 << 40);
        list.add(101, 3 << 40);
        assert!(list.has(198, 2 << 40));
    }

    #[test]
    fn never_holds_more_than_its_bound() {
        let mut list = DeadNonces::new(1 << 40, 100);
        for n in 0..10_000u64 {
            list.add(0, n << 33 | n);
            assert!(list.young.len() + list.old.len() <= 100);
            assert!(list.memory() <= list.capacity());
        }
        assert!(list.has(0, 9_999 << 33 | 9_999));
    }
}
