//! What self-learning knows: which face answered under a prefix. Bounded; the least recently used is forgotten.

use super::hash::HashedName;
use super::index::HashIndex;
use super::list::List;
use super::name_table::Key;
use super::slab::Slab;
use crate::face::FaceSlot;

/// What is known of a prefix.
#[derive(Debug)]
pub(crate) struct Learned {
    key: Key,
    hash: u64,
    /// The face that answered last; `None` while a flood waits for its first answer.
    pub(crate) face: Option<FaceSlot>,
    /// An Interest sent to that face went unanswered.
    pub(crate) suspect: bool,
    /// When an Interest under the prefix was last flooded, nanoseconds.
    pub(crate) flooded_at: u64,
}

/// The table.
#[derive(Debug)]
pub(crate) struct LearnedTable {
    index: HashIndex,
    entries: Slab<Option<Learned>, 8>,
    order: List,
    max: usize,
}

impl LearnedTable {
    pub(crate) fn new(max: usize) -> Self {
        LearnedTable {
            index: HashIndex::new(),
            entries: Slab::new(),
            order: List::new(),
            max,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    fn find(&self, prefix: &HashedName<'_>) -> Option<u32> {
        let hash = prefix.full();
        self.index.find(hash, |id| {
            self.entries
                .get(id)
                .as_ref()
                .is_some_and(|e| e.hash == hash && e.key.value() == prefix.value())
        })
    }

    /// What is known of this very prefix; counts as use.
    pub(crate) fn get(&mut self, prefix: &HashedName<'_>) -> Option<&mut Learned> {
        let id = self.find(prefix)?;
        self.order.touch(id);
        self.entries.get_mut(id).as_mut()
    }

    /// As [`LearnedTable::get`], beginning to know the prefix if need be.
    pub(crate) fn get_or_insert(&mut self, prefix: &HashedName<'_>) -> Option<&mut Learned> {
        if self.max == 0 {
            return None;
        }
        let id = match self.find(prefix) {
            Some(id) => {
                self.order.touch(id);
                id
            }
            None => {
                while self.len() >= self.max
                    && let Some(last) = self.order.last()
                {
                    self.forget(last);
                }
                let hash = prefix.full();
                let id = self.entries.take();
                let key = Key::new(prefix.value());
                *self.entries.get_mut(id) = Some(Learned {
                    key,
                    hash,
                    face: None,
                    suspect: false,
                    flooded_at: 0,
                });
                self.index.insert(hash, id);
                self.order.push_front(id);
                id
            }
        };
        self.entries.get_mut(id).as_mut()
    }

    fn forget(&mut self, id: u32) {
        if let Some(entry) = self.entries.get_mut(id).take() {
            self.index.remove(entry.hash, id);
            self.order.remove(id);
            self.entries.give_back(id);
        }
    }

    /// Forgets a prefix if this face is what is known of it.
    pub(crate) fn forget_if(&mut self, prefix: &HashedName<'_>, face: FaceSlot) {
        if let Some(id) = self.find(prefix)
            && self
                .entries
                .get(id)
                .as_ref()
                .is_some_and(|e| e.face == Some(face))
        {
            self.forget(id);
        }
    }

    /// Forgets everything about a face.
    pub(crate) fn forget_face(&mut self, face: FaceSlot) {
        for id in self.entries.ids() {
            if self
                .entries
                .get(id)
                .as_ref()
                .is_some_and(|e| e.face == Some(face))
            {
                self.forget(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash::{HashKey, NameHashes};
    use super::*;
    use ndn_packet::Name;

    fn with<R>(name: &str, f: impl FnOnce(&HashedName<'_>) -> R) -> R {
        let name: Name = name.parse().unwrap();
        let mut hashes = NameHashes::default();
        hashes.push(&HashKey::new(5), name.as_ref());
        f(&hashes.last(name.as_ref()))
    }

    fn learn(table: &mut LearnedTable, name: &str, face: FaceSlot) {
        with(name, |n| table.get_or_insert(n).unwrap().face = Some(face));
    }

    fn face(table: &mut LearnedTable, name: &str) -> Option<FaceSlot> {
        with(name, |n| table.get(n).and_then(|l| l.face))
    }

    #[test]
    fn the_least_recently_used_is_forgotten() {
        let mut table = LearnedTable::new(2);
        learn(&mut table, "/a", 1);
        learn(&mut table, "/b", 2);
        assert_eq!(face(&mut table, "/a"), Some(1));
        learn(&mut table, "/c", 3);
        assert_eq!(face(&mut table, "/b"), None);
        assert_eq!(face(&mut table, "/a"), Some(1));
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn a_face_is_forgotten_everywhere() {
        let mut table = LearnedTable::new(10);
        learn(&mut table, "/a", 1);
        learn(&mut table, "/b", 2);
        with("/b", |n| table.forget_if(n, 1));
        assert_eq!(table.len(), 2);
        table.forget_face(1);
        assert_eq!(face(&mut table, "/a"), None);
        with("/b", |n| table.forget_if(n, 2));
        assert_eq!(table.len(), 0);
    }
}
