//! Things kept at hand within a bound in bytes; the oldest make room.

use std::hash::Hash;

use lru::LruCache;

/// What an entry takes beside the bytes that its key and its value point to: themselves, links and table.
const ENTRY_BYTES: usize = 192;

/// Values by key, of so many bytes in all.
#[derive(Debug)]
pub(crate) struct Recent<K: Eq + Hash, V> {
    room: usize,
    used: usize,
    values: LruCache<K, (V, usize)>,
}

impl<K: Eq + Hash + Clone, V> Recent<K, V> {
    /// Room for `room` bytes.
    pub fn new(room: usize) -> Self {
        Self {
            room,
            used: 0,
            values: LruCache::unbounded(),
        }
    }

    /// The value of `key`.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.values.peek(key).map(|(value, _)| value)
    }

    /// Keeps a value, in place of the one of the same key, where both point to so many bytes. The newest is kept however
    /// large it is.
    pub fn insert(&mut self, key: K, value: V, bytes: usize) {
        let bytes = bytes + ENTRY_BYTES;
        self.used += bytes;
        if let Some((_, before)) = self.values.put(key, (value, bytes)) {
            self.used -= before;
        }
        while self.used > self.room
            && self.values.len() > 1
            && let Some((_, (_, gone))) = self.values.pop_lru()
        {
            self.used -= gone;
        }
    }

    /// Lets go of the values whose keys `fit`.
    pub fn remove_all(&mut self, fit: impl Fn(&K) -> bool) {
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

    /// Lets go of the value of `key`, and tells it.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let (value, bytes) = self.values.pop(key)?;
        self.used -= bytes;
        Some(value)
    }

    /// Values that are kept, and what they take.
    #[cfg(test)]
    pub fn kept(&self) -> (usize, usize) {
        (self.values.len(), self.used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_make_room_for_what_is_as_large() {
        let of = |entries: usize, bytes: usize| entries * ENTRY_BYTES + bytes;
        let mut recent = Recent::new(of(3, 1000));
        for n in 0..5 {
            recent.insert(n, n * 10, 300);
            recent.insert(n, n * 100, 300);
        }
        assert_eq!(recent.get(&1), None);
        assert_eq!((recent.get(&2), recent.get(&4)), (Some(&200), Some(&400)));
        recent.insert(2, 0, 400);
        assert_eq!((recent.get(&2), recent.get(&3)), (Some(&0), Some(&300)));
        recent.insert(9, 9, 5000);
        assert_eq!(recent.kept(), (1, of(1, 5000)));
        recent.remove_all(|n| *n == 9);
        assert_eq!(recent.kept(), (0, 0));
    }
}
