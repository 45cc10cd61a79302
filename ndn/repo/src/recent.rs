//! A few things kept at hand, those used last.

/// At most so many values; the one not used for longest makes room.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    most: usize,
    /// The one used last is first.
    kept: Vec<(K, V)>,
}

impl<K: PartialEq, V> Recent<K, V> {
    /// Room for `most` values.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            kept: Vec::new(),
        }
    }

    /// The value whose key fits.
    pub fn get(&mut self, fits: impl Fn(&K) -> bool) -> Option<&V> {
        let at = self.kept.iter().position(|(key, _)| fits(key))?;
        self.kept[..=at].rotate_right(1);
        self.kept.first().map(|(_, value)| value)
    }

    /// Keeps a value.
    pub fn insert(&mut self, key: K, value: V) {
        self.remove(&key);
        self.kept.truncate(self.most.saturating_sub(1));
        self.kept.insert(0, (key, value));
    }

    /// Lets go of a value.
    pub fn remove(&mut self, key: &K) {
        self.kept.retain(|(k, _)| k != key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_not_used_for_longest_goes() {
        let mut recent = Recent::new(2);
        recent.insert(1, "a");
        recent.insert(2, "b");
        assert_eq!(recent.get(|k| *k == 1), Some(&"a"));
        recent.insert(3, "c");
        assert_eq!(recent.get(|k| *k == 2), None);
        assert_eq!(recent.get(|k| *k == 1), Some(&"a"));
        recent.insert(1, "A");
        assert_eq!(recent.get(|k| *k == 1), Some(&"A"));
        recent.remove(&1);
        assert_eq!(recent.get(|k| *k == 1), None);
        assert_eq!(recent.get(|_| true), Some(&"c"));
    }
}
