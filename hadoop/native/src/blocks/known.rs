//! Replicas whose files are open: a bounded table by what Java was asked about,
//! the least recently used going first.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::ANSWER_LIFETIME;
use super::request::{BlockKey, Subject};
use super::served::Served;

struct Entry {
    served: Arc<Served>,
    answered: Instant,
    used: u64,
}

/// Open replicas.
pub struct Known {
    entries: HashMap<Subject, Entry>,
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

    /// The replica and when Java told of it, unless that is too long ago.
    pub fn get(&mut self, key: &Subject, now: Instant) -> Option<(Arc<Served>, Instant)> {
        let entry = self.entries.get_mut(key)?;
        if now.duration_since(entry.answered) >= ANSWER_LIFETIME {
            self.entries.remove(key);
            return None;
        }
        self.uses += 1;
        entry.used = self.uses;
        Some((entry.served.clone(), entry.answered))
    }

    /// Remembers a replica, and forgets the block's other generations.
    pub fn insert(&mut self, key: Subject, served: Arc<Served>, now: Instant) {
        let genstamp = served.replica().genstamp();
        self.entries.retain(|held, entry| {
            held.block != key.block || entry.served.replica().genstamp() == genstamp
        });
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
                served,
                answered: now,
                used: self.uses,
            },
        );
    }

    /// Forgets a block.
    pub fn remove(&mut self, block: &BlockKey) {
        self.entries.retain(|key, _| key.block != *block);
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
    use crate::blocks::replica::Replica;
    use crate::blocks::request::About;
    use std::path::Path;

    fn replica(genstamp: u64) -> Arc<Served> {
        let dir = std::env::temp_dir().join(format!("trunkline-known-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let meta = dir.join(format!("meta-{genstamp}"));
        std::fs::write(&meta, [0, 1, 2, 0, 0, 2, 0]).unwrap();
        let replica = Replica::open(Path::new("/dev/null"), &meta, 0, genstamp, 64_512).unwrap();
        Arc::new(Served::new(replica, None))
    }

    fn key(block: i64) -> Subject {
        Subject {
            block: BlockKey {
                pool: "p".into(),
                block,
            },
            about: About::Replica,
        }
    }

    #[test]
    fn bound_lifetime_and_removal() {
        let mut known = Known::new(2);
        let start = Instant::now();
        let replica = replica(1);
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
        known.insert(
            Subject {
                about: About::WriteKey,
                ..key(3)
            },
            replica.clone(),
            start,
        );
        known.remove(&key(3).block);
        assert!(known.len() < 2, "whatever it was asked about");
        assert!(known.get(&key(3), start).is_none());
        assert!(
            known.get(&key(1), start + ANSWER_LIFETIME).is_none(),
            "too old"
        );
        known.insert(key(4), replica, start);
        known.sweep(start + ANSWER_LIFETIME);
        assert!(known.is_empty());
    }

    #[test]
    fn another_generation_takes_the_place_of_all_there_was_of_the_block() {
        let mut known = Known::new(4);
        let now = Instant::now();
        let written = Subject {
            about: About::WriteKey,
            ..key(1)
        };
        known.insert(key(1), replica(2), now);
        known.insert(written.clone(), replica(2), now);
        known.insert(key(2), replica(2), now);
        assert_eq!(known.len(), 3);
        known.insert(key(1), replica(3), now);
        assert!(known.get(&written, now).is_none());
        let (served, _) = known.get(&key(1), now).unwrap();
        assert_eq!(served.replica().genstamp(), 3);
        assert!(known.get(&key(2), now).is_some(), "another block");
    }
}
