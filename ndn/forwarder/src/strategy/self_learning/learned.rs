//! What self-learning knows: which face answered under a prefix, and which were given what it is about. Bounded in entries and in bytes, names included; the
//! least recently used is forgotten.

use crate::face::FaceSlot;
use crate::strategy::hooks::StrategyMemory;
use crate::table::hash::HashedName;
use crate::table::index::HashIndex;
use crate::table::list::List;
use crate::table::name_table::StoredName;
use crate::table::slab::Slab;
use smallvec::SmallVec;

/// So many of those that were given an object are remembered: as many as HDFS mostly makes replicas, and one.
const MAX_HOLDERS: usize = 4;

/// What is known of a prefix.
#[derive(Debug)]
pub(super) struct Learned {
    key: StoredName,
    hash: u64,
    /// The face that answered last; `None` while a flood waits for its first answer.
    face: Option<FaceSlot>,
    /// The life of that face slot in which it answered.
    life: u32,
    /// A face whose Data was rejected, in that life of its slot: it does not take over from another by answering.
    doubted: Option<(FaceSlot, u32)>,
    /// Faces that were given Data under the prefix, in that life of their slots, and have not refused since.
    holders: [Option<(FaceSlot, u32)>; MAX_HOLDERS],
    /// When one of them was given something last, nanoseconds.
    pub(super) given_at: u64,
    /// An Interest sent to that face went unanswered.
    pub(super) suspect: bool,
    /// When an Interest under the prefix was last flooded, nanoseconds.
    pub(super) flooded_at: u64,
}

impl Learned {
    /// The face that answered last, unless it went down since.
    pub(super) fn face(&self) -> Option<FaceSlot> {
        self.face
    }
}

/// The table.
#[derive(Debug)]
pub(super) struct LearnedTable {
    index: HashIndex,
    entries: Slab<Option<Learned>, 8>,
    order: List,
    max_entries: usize,
    max_bytes: usize,
    bytes: usize,
    /// How often each face slot went down: what was learned of an earlier life of it counts no more, and is forgotten
    /// when it is next looked at, so that nobody has to walk the table.
    lives: Vec<u32>,
}

/// Bytes of an entry beside a long name: itself, its places in the index and in the order of use.
const ENTRY_BYTES: usize =
    size_of::<Option<Learned>>() + HashIndex::BYTES_PER_ENTRY + List::BYTES_PER_ENTRY;

impl LearnedTable {
    /// At most so many entries, and so many bytes of them and their names.
    pub(super) fn new(max_entries: usize, max_bytes: usize) -> Self {
        LearnedTable {
            index: HashIndex::new(),
            entries: Slab::new(),
            order: List::new(),
            max_entries,
            max_bytes,
            bytes: 0,
            lives: Vec::new(),
        }
    }

    pub(super) fn memory(&self) -> StrategyMemory {
        StrategyMemory {
            entries: self.index.len(),
            bytes: self.bytes,
            capacity_bytes: self.max_bytes,
        }
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

    fn life(&self, face: FaceSlot) -> u32 {
        self.lives.get(face as usize).copied().unwrap_or(0)
    }

    /// What is known of this very prefix; counts as use.
    pub(super) fn get(&mut self, prefix: &HashedName<'_>) -> Option<&mut Learned> {
        let id = self.find(prefix)?;
        self.order.touch(id);
        let entry = self.entries.get_mut(id).as_mut()?;
        if let Some(face) = entry.face
            && entry.life != self.lives.get(face as usize).copied().unwrap_or(0)
        {
            entry.face = None;
        }
        Some(entry)
    }

    /// As [`LearnedTable::get`], beginning to know the prefix if need be; `None` when there is no room for it at all.
    pub(super) fn get_or_insert(&mut self, prefix: &HashedName<'_>) -> Option<&mut Learned> {
        if self.find(prefix).is_none() {
            self.insert(prefix);
        }
        self.get(prefix)
    }

    fn insert(&mut self, prefix: &HashedName<'_>) {
        let key = StoredName::new(prefix.value());
        let bytes = ENTRY_BYTES + key.memory();
        if self.max_entries == 0 || bytes > self.max_bytes {
            return;
        }
        while (self.index.len() >= self.max_entries || self.bytes + bytes > self.max_bytes)
            && let Some(last) = self.order.last()
        {
            self.forget(last);
        }
        let hash = prefix.full();
        let id = self.entries.allocate();
        *self.entries.get_mut(id) = Some(Learned {
            key,
            hash,
            face: None,
            life: 0,
            doubted: None,
            holders: [None; MAX_HOLDERS],
            given_at: 0,
            suspect: false,
            flooded_at: 0,
        });
        self.index.insert(hash, id);
        self.order.push_front(id);
        self.bytes += bytes;
    }

    fn forget(&mut self, id: u32) {
        if let Some(entry) = self.entries.get_mut(id).take() {
            self.index.remove(entry.hash, id);
            self.order.remove(id);
            self.entries.release(id);
            self.bytes -= ENTRY_BYTES + entry.key.memory();
        }
    }

    /// A face answered for a prefix: it is remembered if something is known of the prefix already or, with `begin`,
    /// even if not.
    pub(super) fn answered(&mut self, prefix: &HashedName<'_>, face: FaceSlot, begin: bool) {
        let life = self.life(face);
        let known = if begin {
            self.get_or_insert(prefix)
        } else {
            self.get(prefix)
        };
        if let Some(known) = known {
            let knows_better = !known.suspect && known.face.is_some_and(|other| other != face);
            if knows_better && known.doubted == Some((face, life)) {
                return;
            }
            known.face = Some(face);
            known.life = life;
            known.suspect = false;
        }
    }

    /// A Data from this face was rejected: another that answers under the prefix takes its place.
    pub(super) fn doubt(&mut self, prefix: &HashedName<'_>, face: FaceSlot) {
        let life = self.life(face);
        if let Some(known) = self.get(prefix) {
            known.doubted = Some((face, life));
        }
    }

    /// A face has nothing, or says nothing: it is known no more for the prefix, which is forgotten with the last face.
    pub(super) fn refused(&mut self, prefix: &HashedName<'_>, face: FaceSlot) {
        let Some(id) = self.find(prefix) else {
            return;
        };
        let Some(known) = self.entries.get_mut(id).as_mut() else {
            return;
        };
        for holder in &mut known.holders {
            if holder.is_some_and(|(slot, _)| slot == face) {
                *holder = None;
            }
        }
        if known.face == Some(face) {
            known.face = None;
            if known.holders.iter().all(Option::is_none) {
                self.forget(id);
            }
        }
    }

    /// Faces were given Data under a prefix of which something is known. The first ones are remembered: replicas get a
    /// block as it is written, readers later.
    pub(super) fn given(
        &mut self,
        prefix: &HashedName<'_>,
        now: u64,
        faces: impl Iterator<Item = FaceSlot>,
    ) {
        let Some(id) = self.find(prefix) else {
            return;
        };
        let Some(known) = self.entries.get_mut(id).as_mut() else {
            return;
        };
        let lives = &self.lives;
        let life = |face: FaceSlot| lives.get(face as usize).copied().unwrap_or(0);
        for face in faces {
            known.given_at = now;
            let holder = Some((face, life(face)));
            if known.holders.contains(&holder) {
                continue;
            }
            let is_free = |h: &Option<(FaceSlot, u32)>| h.is_none_or(|(f, l)| life(f) != l);
            if let Some(free) = known.holders.iter_mut().find(|holder| is_free(holder)) {
                *free = holder;
            }
        }
    }

    /// The faces that were given Data under a prefix and are still there.
    pub(super) fn holders(&self, prefix: &HashedName<'_>) -> SmallVec<[FaceSlot; MAX_HOLDERS]> {
        let known = self.find(prefix).map(|id| self.entries.get(id));
        let holders = known.and_then(Option::as_ref).map(|known| known.holders);
        let holders = holders.into_iter().flatten().flatten();
        holders
            .filter(|&(face, life)| self.life(face) == life)
            .map(|(face, _)| face)
            .collect()
    }

    /// What was learned of a face counts no more.
    pub(super) fn forget_face(&mut self, face: FaceSlot) {
        let at = face as usize;
        if at >= self.lives.len() {
            self.lives.resize(at + 1, 0);
        }
        self.lives[at] = self.lives[at].wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::hash::{HashKey, NameHashes};
    use ndn_packet::Name;
    use proptest::prelude::*;

    fn with<R>(name: &str, f: impl FnOnce(&HashedName<'_>) -> R) -> R {
        let name: Name = name.parse().unwrap();
        let mut hashes = NameHashes::default();
        hashes.push(&HashKey::new(5), name.as_ref());
        f(&hashes.last(name.as_ref()))
    }

    fn learn(table: &mut LearnedTable, name: &str, face: FaceSlot) {
        with(name, |n| table.answered(n, face, true));
    }

    fn face(table: &mut LearnedTable, name: &str) -> Option<FaceSlot> {
        with(name, |n| table.get(n).and_then(|l| l.face()))
    }

    /// Bytes of the entries, counted one by one.
    fn recount(table: &LearnedTable) -> usize {
        let held = |id| table.entries.get(id).as_ref();
        let entries = table.entries.ids().filter_map(held);
        entries.map(|e| ENTRY_BYTES + e.key.memory()).sum()
    }

    #[test]
    fn the_least_recently_used_is_forgotten() {
        let mut table = LearnedTable::new(2, 1 << 20);
        learn(&mut table, "/a", 1);
        learn(&mut table, "/b", 2);
        assert_eq!(face(&mut table, "/a"), Some(1));
        learn(&mut table, "/c", 3);
        assert_eq!(face(&mut table, "/b"), None);
        assert_eq!(face(&mut table, "/a"), Some(1));
        assert_eq!(table.memory().entries, 2);
    }

    #[test]
    fn a_face_is_forgotten_everywhere_and_its_slot_begins_anew() {
        let mut table = LearnedTable::new(10, 1 << 20);
        learn(&mut table, "/a", 1);
        learn(&mut table, "/b", 2);
        with("/b", |n| table.refused(n, 1));
        assert_eq!(face(&mut table, "/b"), Some(2));
        table.forget_face(1);
        assert_eq!(face(&mut table, "/a"), None);
        learn(&mut table, "/a", 1);
        assert_eq!(
            face(&mut table, "/a"),
            Some(1),
            "the next face in that slot"
        );
        with("/b", |n| table.refused(n, 2));
        assert_eq!(table.memory().entries, 1);
    }

    #[test]
    fn who_was_given_something_is_known_until_it_refuses_or_goes() {
        let mut table = LearnedTable::new(10, 1 << 20);
        let held = |table: &LearnedTable| with("/a", |n| table.holders(n).to_vec());
        with("/a", |n| table.given(n, 1, [2].into_iter()));
        assert_eq!(
            table.memory().entries,
            0,
            "nothing is learned by that alone"
        );
        learn(&mut table, "/a", 1);
        with("/a", |n| table.given(n, 1, [2, 3, 2, 4, 5, 6].into_iter()));
        assert_eq!(held(&table), [2, 3, 4, 5], "the first ones");
        with("/a", |n| table.refused(n, 1));
        assert_eq!(face(&mut table, "/a"), None);
        assert_eq!(held(&table), [2, 3, 4, 5]);
        with("/a", |n| table.refused(n, 3));
        table.forget_face(4);
        assert_eq!(held(&table), [2, 5]);
        with("/a", |n| table.given(n, 1, [4, 6].into_iter()));
        assert_eq!(held(&table), [2, 4, 6, 5], "the next face in slot 4");
        for face in [2, 4, 5, 6] {
            with("/a", |n| table.refused(n, face));
        }
        learn(&mut table, "/a", 7);
        with("/a", |n| table.refused(n, 7));
        assert_eq!(table.memory().entries, 0);
    }

    #[test]
    fn who_is_doubted_takes_over_from_nobody_who_answers() {
        let mut table = LearnedTable::new(10, 1 << 20);
        with("/a", |n| table.doubt(n, 1));
        assert_eq!(table.memory().entries, 0, "nothing is learned by a doubt");
        learn(&mut table, "/a", 1);
        with("/a", |n| table.doubt(n, 1));
        assert_eq!(face(&mut table, "/a"), Some(1), "until another answers");
        learn(&mut table, "/a", 2);
        learn(&mut table, "/a", 1);
        assert_eq!(face(&mut table, "/a"), Some(2));
        with("/a", |n| table.get(n).expect("known").suspect = true);
        learn(&mut table, "/a", 1);
        assert_eq!(face(&mut table, "/a"), Some(1), "2 has stayed silent");
        learn(&mut table, "/a", 2);
        table.forget_face(1);
        learn(&mut table, "/a", 1);
        assert_eq!(
            face(&mut table, "/a"),
            Some(1),
            "the next face in that slot"
        );
    }

    #[test]
    fn a_name_larger_than_the_table_is_not_learned() {
        let mut table = LearnedTable::new(10, ENTRY_BYTES + 100);
        learn(&mut table, &format!("/{}", "x".repeat(200)), 1);
        assert_eq!(table.memory().entries, 0);
        learn(&mut table, "/a", 1);
        assert_eq!(face(&mut table, "/a"), Some(1));
    }

    proptest! {
        /// Names of any length, learned in any order, stay within both bounds, and the account is right.
        #[test]
        fn bounded_in_entries_and_bytes(names in prop::collection::vec((0usize..40, 0usize..400), 1..200)) {
            let mut table = LearnedTable::new(20, 4000);
            for (n, len) in names {
                learn(&mut table, &format!("/{n}/{}", "x".repeat(len.max(1))), n as FaceSlot);
                let memory = table.memory();
                prop_assert!(memory.entries <= 20 && memory.bytes <= 4000);
                prop_assert_eq!(memory.bytes, recount(&table));
            }
        }
    }
}
