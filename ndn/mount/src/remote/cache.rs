//! A cache with a bound in bytes: what was not used for longest goes first.

use std::hash::Hash;

use lru::LruCache;

/// What an entry takes beside its value: key, links and table.
pub const ENTRY_BYTES: usize = 128;

/// Values with a weight in bytes each; all together never more than the capacity.
pub struct Cache<K: Hash + Eq, V> {
    entries: LruCache<K, (V, usize)>,
    bytes: usize,
    capacity: usize,
}

impl<K: Hash + Eq, V: Clone> Cache<K, V> {
    /// An empty one for so many bytes.
    pub fn new(capacity: usize) -> Self {
        Self {
            entries: LruCache::unbounded(),
            bytes: 0,
            capacity,
        }
    }

    /// The value of `key`, which counts as used now.
    pub fn get(&mut self, key: &K) -> Option<V> {
        self.entries.get(key).map(|(value, _)| value.clone())
    }

    /// Takes a value that is `bytes` large, in the place of the one before. One that is larger than all there is room for
    /// is not taken.
    pub fn insert(&mut self, key: K, value: V, bytes: usize) {
        let bytes = bytes + ENTRY_BYTES;
        if bytes > self.capacity {
            return;
        }
        self.bytes += bytes;
        if let Some((_, before)) = self.entries.put(key, (value, bytes)) {
            self.bytes -= before;
        }
        while self.bytes > self.capacity
            && let Some((_, (_, gone))) = self.entries.pop_lru()
        {
            self.bytes -= gone;
        }
    }

    /// Takes out what `is_gone` says so of, beginning with what was not used for longest and ending where it does not.
    pub fn shed(&mut self, is_gone: impl Fn(&V) -> bool) {
        while let Some((_, (value, _))) = self.entries.peek_lru()
            && is_gone(value)
            && let Some((_, (_, gone))) = self.entries.pop_lru()
        {
            self.bytes -= gone;
        }
    }

    /// Bytes of all values, and of what it takes to keep them.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let mut cache = Cache::new(3 * (100 + ENTRY_BYTES));
        for key in 0..3 {
            cache.insert(key, key, 100);
        }
        assert_eq!(cache.get(&0), Some(0));
        cache.insert(3, 3, 100);
        let left: Vec<_> = (0..4).filter(|key| cache.get(key).is_some()).collect();
        assert_eq!(left, [0, 2, 3]);
    }

    #[test]
    fn what_has_no_room_at_all_drives_nothing_out() {
        let mut cache = Cache::new(1000);
        cache.insert(1, 'a', 100);
        cache.insert(2, 'b', 1000);
        assert_eq!((cache.get(&1), cache.get(&2)), (Some('a'), None));
    }

    proptest! {
        #[test]
        fn never_more_than_its_capacity(
            capacity in 0usize..5000,
            given in prop::collection::vec((0u8..20, 0usize..2000), 0..200),
        ) {
            let mut cache = Cache::new(capacity);
            for (key, bytes) in given {
                cache.insert(key, bytes, bytes);
                prop_assert!(cache.bytes() <= capacity);
                let fits = bytes + ENTRY_BYTES <= capacity;
                prop_assert!(!fits || cache.get(&key) == Some(bytes));
            }
            let counted: usize = cache.entries.iter().map(|(_, (_, bytes))| bytes).sum();
            prop_assert_eq!(counted, cache.bytes());
        }
    }
}
