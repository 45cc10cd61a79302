//! Replicas whose files are open: a bounded table by block, the least recently
//! used going first.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::ANSWER_LIFETIME;
use super::replica::Replica;
use super::request::BlockKey;

struct Entry {
    replica: Arc<Replica>,
    answered: Instant,
    used: u64,
}

/// Open replicas.
pub struct Known {
    entries: HashMap<BlockKey, Entry>,
    uses: u64,
    max: usize,
}

impl Known {
    /// Holds at most `max` replicas, two open files each.
    pub fn new(max: usize) -> Self {
        Known {
            entries: HashMap::new(),
            uses: 0,
            max: max.max(1),
        }
    }

    /// The replica of a block and when Java told of it, unless that is too long
    /// ago.
    pub fn get(&mut self, key: &BlockKey, now: Instant) -> Option<(Arc<Replica>, Instant)> {
        let entry = self.entries.get_mut(key)?;
        if now.duration_since(entry.answered) >= ANSWER_LIFETIME {
            self.entries.remove(key);
            return None;
        }
        self.uses += 1;
        entry.used = self.uses;
        Some((entry.replica.clone(), entry.answered))
    }

    /// Remembers a replica.
    pub fn insert(&mut self, key: BlockKey, replica: Arc<Replica>, now: Instant) {
        if self.entries.len() >= self.max && !self.entries.contains_key(&key) {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.entries.remove(&oldest);
            }
        }
        self.uses += 1;
        self.entries.insert(
            key,
            Entry {
                replica,
                answered: now,
                used: self.uses,
            },
        );
    }

    /// Forgets a block.
    pub fn remove(&mut self, key: &BlockKey) {
        self.entries.remove(key);
    }

    /// Forgets what is too old.
    pub fn sweep(&mut self, now: Instant) {
        self.entries
            .retain(|_, entry| now.duration_since(entry.answered) < ANSWER_LIFETIME);
    }

    /// Replicas held.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn replica() -> Arc<Replica> {
        let dir = std::env::temp_dir().join(format!("trunkline-known-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let meta = dir.join("meta");
        std::fs::write(&meta, [0, 1, 2, 0, 0, 2, 0]).unwrap();
        Arc::new(Replica::open(Path::new("/dev/null"), &meta, 0, 1, 64_512).unwrap())
    }

    fn key(block: i64) -> BlockKey {
        BlockKey {
            pool: "p".into(),
            block,
        }
    }

    #[test]
    fn bound_lifetime_and_removal() {
        let mut known = Known::new(2);
        let start = Instant::now();
        let replica = replica();
        known.insert(key(1), replica.clone(), start);
        known.insert(key(2), replica.clone(), start);
        assert!(known.get(&key(1), start).is_some());
        known.insert(key(3), replica.clone(), start);
        assert_eq!(known.len(), 2);
        assert!(
            known.get(&key(2), start).is_none(),
            "least recently used goes first"
        );
        assert!(known.get(&key(3), start).is_some());
        known.remove(&key(3));
        assert!(known.get(&key(3), start).is_none());
        assert!(
            known.get(&key(1), start + ANSWER_LIFETIME).is_none(),
            "too old"
        );
        known.insert(key(4), replica, start);
        known.sweep(start + ANSWER_LIFETIME);
        assert!(known.is_empty());
    }
}
