//! Things kept at hand within a bound in bytes.

use std::hash::Hash;

use lru::LruCache;

/// What an entry takes beside itself: its links, its place in the table, what an allocation costs.
const BESIDE_BYTES: usize = 128;

/// Values by key, of so many bytes in all: those that were not used for longest make room for others.
#[derive(Debug)]
pub struct Cache<K: Eq + Hash, V> {
    room: usize,
    used: usize,
    values: LruCache<K, (V, usize)>,
}

impl<K: Eq + Hash, V> Cache<K, V> {
    /// Bytes that an entry takes beside those that its key and its value point to.
    pub const ENTRY_BYTES: usize = size_of::<(K, (V, usize))>() + BESIDE_BYTES;

    /// Room for `room` bytes.
    pub fn new(room: usize) -> Self {
        Self {
            room,
            used: 0,
            values: LruCache::unbounded(),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.used
    }

    /// The value of `key`, which counts as used now.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        self.values.get(key).map(|(value, _)| value)
    }

    /// The value of `key`, which counts as used no later than before.
    pub fn peek(&self, key: &K) -> Option<&V> {
        self.values.peek(key).map(|(value, _)| value)
    }

    /// Keeps a value in place of the one of the same key, where both point to `bytes` bytes. One that is larger than all the
    /// room drives nothing out, and is not kept.
    pub fn insert(&mut self, key: K, value: V, bytes: usize) {
        let bytes = bytes.saturating_add(Self::ENTRY_BYTES);
        if bytes > self.room {
            self.remove(&key);
            return;
        }
        self.used += bytes;
        if let Some((_, before)) = self.values.put(key, (value, bytes)) {
            self.used -= before;
        }
        while self.used > self.room
            && let Some((_, (_, gone))) = self.values.pop_lru()
        {
            self.used -= gone;
        }
    }

    /// Lets go of the value of `key`, and tells it.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let (value, bytes) = self.values.pop(key)?;
        self.used -= bytes;
        Some(value)
    }

    /// Lets go of the values whose keys `fit`.
    pub fn remove_all(&mut self, fit: impl Fn(&K) -> bool)
    where
        K: Clone,
    {
        let keys: Vec<K> = self
            .values
            .iter()
            .map(|(key, _)| key)
            .filter(|key| fit(key))
            .cloned()
            .collect();
        for key in keys {
            self.remove(&key);
        }
    }

    /// Lets go of values of which `is_gone` says so, beginning with the one that was not used for longest and ending where
    /// it does not.
    pub fn shed(&mut self, is_gone: impl Fn(&V) -> bool) {
        while let Some((_, (value, _))) = self.values.peek_lru()
            && is_gone(value)
            && let Some((_, (_, gone))) = self.values.pop_lru()
        {
            self.used -= gone;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ENTRY: usize = Cache::<u8, usize>::ENTRY_BYTES;

    fn kept(room: usize) -> Cache<u8, usize> {
        Cache::new(room)
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let mut kept = kept(3 * (100 + ENTRY));
        for key in 0..3 {
            kept.insert(key, 0, 100);
        }
        assert_eq!(kept.get(&0), Some(&0));
        assert_eq!(kept.peek(&1), Some(&0), "which is no use");
        kept.insert(3, 0, 100);
        let left: Vec<u8> = (0..4).filter(|key| kept.peek(key).is_some()).collect();
        assert_eq!(left, [0, 2, 3]);
    }

    #[test]
    fn what_has_no_room_at_all_drives_nothing_out() {
        let mut kept = kept(1000);
        kept.insert(1, 1, 100);
        kept.insert(2, 2, 1000);
        assert_eq!((kept.peek(&1), kept.peek(&2)), (Some(&1), None));
        kept.insert(1, 3, usize::MAX);
        assert_eq!(kept.peek(&1), None, "it is not what was there before");
        assert_eq!(kept.bytes(), 0);
    }

    #[test]
    fn what_is_let_go_of_takes_nothing() {
        let mut kept = kept(10_000);
        for key in 0..10 {
            kept.insert(key, usize::from(key), 50);
        }
        kept.shed(|value| *value < 2);
        kept.remove_all(|key| key % 2 == 0);
        assert_eq!(kept.remove(&3), Some(3));
        let left: Vec<u8> = (0..10).filter(|key| kept.peek(key).is_some()).collect();
        assert_eq!(left, [5, 7, 9]);
        assert_eq!(kept.bytes(), 3 * (50 + ENTRY));
        kept.shed(|_| true);
        assert_eq!(kept.bytes(), 0);
    }

    proptest! {
        #[test]
        fn never_more_than_there_is_room_for(
            room in 0usize..5000,
            given in prop::collection::vec((0u8..20, 0usize..2000), 0..200),
        ) {
            let mut kept = kept(room);
            for (key, bytes) in given {
                kept.insert(key, bytes, bytes);
                prop_assert!(kept.bytes() <= room);
                let fits = bytes + ENTRY <= room;
                prop_assert_eq!(kept.get(&key), fits.then_some(&bytes));
            }
            let counted: usize = kept.values.iter().map(|(_, (_, bytes))| bytes).sum();
            prop_assert_eq!((counted, kept.values.len()), (kept.bytes(), kept.count()));
        }
    }
}
