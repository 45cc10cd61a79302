//! Things kept at hand within bounds; the oldest make room.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Values by key, of limited weight in all.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    room: usize,
    used: usize,
    values: HashMap<K, Kept<V>>,
    /// Keys by when their values came.
    order: BTreeMap<u64, K>,
    next: u64,
}

#[derive(Debug)]
struct Kept<V> {
    value: V,
    weight: usize,
    came: u64,
}

impl<K: Eq + Hash + Clone, V> Recent<K, V> {
    /// Room for values that weigh `room` in all.
    pub fn new(room: usize) -> Self {
        Self {
            room,
            used: 0,
            values: HashMap::new(),
            order: BTreeMap::new(),
            next: 0,
        }
    }

    /// The value of `key`.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.values.get(key).map(|kept| &kept.value)
    }

    /// Keeps a value, in place of the one of the same key; the newest is kept however much it weighs.
    pub fn insert(&mut self, key: K, value: V, weight: usize) {
        self.remove(&key);
        while self.used + weight > self.room
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.used -= self.values.remove(&oldest).map_or(0, |kept| kept.weight);
        }
        let came = self.next;
        self.next += 1;
        self.used += weight;
        self.order.insert(came, key.clone());
        let kept = Kept {
            value,
            weight,
            came,
        };
        self.values.insert(key, kept);
    }

    /// Lets go of the values whose keys `fit`.
    pub fn remove_all(&mut self, fit: impl Fn(&K) -> bool) {
        let keys: Vec<K> = self.values.keys().filter(|key| fit(key)).cloned().collect();
        for key in keys {
            self.remove(&key);
        }
    }

    /// Lets go of the value of `key`.
    pub fn remove(&mut self, key: &K) {
        if let Some(kept) = self.values.remove(key) {
            self.order.remove(&kept.came);
            self.used -= kept.weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_make_room_for_what_weighs_as_much() {
        let mut recent = Recent::new(10);
        for n in 0..5 {
            recent.insert(n, n * 10, 3);
            recent.insert(n, n * 100, 3);
        }
        assert_eq!(recent.get(&1), None);
        assert_eq!((recent.get(&2), recent.get(&4)), (Some(&200), Some(&400)));
        recent.insert(2, 0, 4);
        assert_eq!((recent.get(&2), recent.get(&3)), (Some(&0), Some(&300)));
        recent.insert(9, 9, 50);
        assert_eq!(
            (recent.values.len(), recent.order.len(), recent.used),
            (1, 1, 50)
        );
        recent.remove_all(|n| *n == 9);
        assert_eq!(
            (recent.values.len(), recent.order.len(), recent.used),
            (0, 0, 0)
        );
    }
}
