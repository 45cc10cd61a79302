//! Which pending Interests a face has a record in, so that a face that goes is cleared without a walk of the table.
//!
//! For each face and direction a log of the entries that got a record. Nothing is taken out when an entry ends, which
//! would cost each packet a second table; what is stale is dropped when the log has doubled, so that a record costs a
//! constant time on average and a log is at most about twice as long as what is pending.

use crate::face::FaceSlot;

/// A PIT entry in one life of its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryRef {
    pub(crate) id: u32,
    pub(crate) generation: u16,
}

/// Which records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// In-records: the face is a downstream.
    In,
    /// Out-records: the face is an upstream.
    Out,
}

/// Entries that a log has room for beside twice what is pending.
const SPARE: usize = 64;
/// Where memory is tight, one in so many entries more is all that a log grows by.
const TIGHT_SHARE: usize = 8;

#[derive(Debug, Default)]
struct Log {
    /// When there is no room left, stale ones are dropped.
    entries: Vec<EntryRef>,
    /// A record of an entry that lives on was dropped: the entry may come twice.
    has_doubles: bool,
}

impl Log {
    fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<EntryRef>()
    }

    /// Entries for which a log of so many gets room beside: as many again, and few where memory is tight.
    fn spare(len: usize, tight: bool) -> usize {
        SPARE + if tight { len / TIGHT_SHARE } else { len }
    }

    /// Bytes that one more entry takes.
    #[inline]
    fn growth(&self, tight: bool) -> usize {
        if self.entries.len() < self.entries.capacity() {
            return 0;
        }
        Self::spare(self.entries.len(), tight) * size_of::<EntryRef>()
    }

    #[inline]
    fn push(&mut self, entry: EntryRef, tight: bool, is_live: impl Fn(EntryRef) -> bool) {
        if self.entries.len() == self.entries.capacity() {
            self.drop_stale(is_live);
            let len = self.entries.len();
            let spare = Self::spare(len, tight);
            self.entries.shrink_to(len + spare);
            self.entries.reserve_exact(spare);
        }
        self.entries.push(entry);
    }

    #[cold]
    fn drop_stale(&mut self, is_live: impl Fn(EntryRef) -> bool) {
        self.entries.retain(|&entry| is_live(entry));
        if std::mem::take(&mut self.has_doubles) {
            self.entries.sort_unstable();
            self.entries.dedup();
        }
    }
}

/// The logs of all faces, and what is charged to each.
#[derive(Debug, Default)]
pub(crate) struct FaceIndex {
    logs: Vec<[Log; 2]>,
    bytes: usize,
    /// Bytes of the entries in the share of each face. Itself a part of what a face costs, as its counters are.
    charged: Vec<usize>,
    /// Whose faces are strangers'. Itself a part of what a face costs.
    strangers: Vec<bool>,
}

impl FaceIndex {
    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.bytes + self.logs.capacity() * size_of::<[Log; 2]>()
    }

    /// Bytes of the entries that are in a face's share.
    #[inline]
    pub(crate) fn charged(&self, face: FaceSlot) -> usize {
        self.charged.get(face as usize).copied().unwrap_or(0)
    }

    /// Puts bytes into a face's share.
    #[inline]
    pub(crate) fn charge(&mut self, face: FaceSlot, bytes: usize) {
        let at = face as usize;
        if at >= self.charged.len() {
            self.charged.resize(at + 1, 0);
        }
        self.charged[at] += bytes;
    }

    /// Takes bytes out of a face's share.
    #[inline]
    pub(crate) fn discharge(&mut self, face: FaceSlot, bytes: usize) {
        self.charged[face as usize] -= bytes;
    }

    /// Whether a face is a stranger's.
    #[inline]
    pub(crate) fn is_stranger(&self, face: FaceSlot) -> bool {
        self.strangers.get(face as usize).copied().unwrap_or(false)
    }

    /// Says so of a face.
    pub(crate) fn meet(&mut self, face: FaceSlot, is_stranger: bool) {
        let at = face as usize;
        if at >= self.strangers.len() {
            self.strangers.resize(at + 1, false);
        }
        self.strangers[at] = is_stranger;
    }

    /// Bytes that noting one more entry takes at most; fewer where memory is `tight`.
    #[inline]
    pub(crate) fn growth(&self, face: FaceSlot, direction: Direction, tight: bool) -> usize {
        let logs = self.logs.get(face as usize);
        let log = logs.map(|logs| &logs[direction as usize]);
        log.map_or(SPARE * size_of::<EntryRef>(), |log| log.growth(tight))
    }

    /// Drops all that is stale, with the room it took; returns how many entries it has looked at.
    pub(crate) fn trim(&mut self, is_live: impl Fn(EntryRef) -> bool) -> usize {
        let mut walked = 0;
        for log in self.logs.iter_mut().flatten() {
            self.bytes -= log.memory();
            walked += log.entries.len();
            log.drop_stale(&is_live);
            log.entries.shrink_to_fit();
            self.bytes += log.memory();
        }
        walked
    }

    /// Notes that an entry got a record of a face; `is_live` says whether an entry is still pending.
    #[inline]
    pub(crate) fn add(
        &mut self,
        face: FaceSlot,
        direction: Direction,
        entry: EntryRef,
        tight: bool,
        is_live: impl Fn(EntryRef) -> bool,
    ) {
        if let Some(logs) = self.logs.get_mut(face as usize) {
            let log = &mut logs[direction as usize];
            if log.entries.len() < log.entries.capacity() {
                return log.entries.push(entry);
            }
        }
        self.add_with_growth(face, direction, entry, tight, is_live);
    }

    #[cold]
    fn add_with_growth(
        &mut self,
        face: FaceSlot,
        direction: Direction,
        entry: EntryRef,
        tight: bool,
        is_live: impl Fn(EntryRef) -> bool,
    ) {
        let at = face as usize;
        if at >= self.logs.len() {
            self.logs.resize_with(at + 1, Default::default);
        }
        let log = &mut self.logs[at][direction as usize];
        let before = log.memory();
        log.push(entry, tight, is_live);
        self.bytes = self.bytes + log.memory() - before;
    }

    /// A face's record was dropped from an entry that lives on.
    pub(crate) fn record_dropped(&mut self, face: FaceSlot, direction: Direction) {
        if let Some(logs) = self.logs.get_mut(face as usize) {
            logs[direction as usize].has_doubles = true;
        }
    }

    /// All that was noted of a face, stale entries and doubles included; nothing is noted of it afterwards.
    pub(crate) fn take(&mut self, face: FaceSlot, direction: Direction) -> Vec<EntryRef> {
        let Some(logs) = self.logs.get_mut(face as usize) else {
            return Vec::new();
        };
        let log = std::mem::take(&mut logs[direction as usize]);
        self.bytes -= log.memory();
        log.entries
    }

    /// Faces to which something is, or was, charged.
    #[cfg(test)]
    pub(crate) fn charged_faces(&self) -> usize {
        self.charged.len()
    }

    /// Bytes of the logs, counted one by one.
    #[cfg(test)]
    pub(crate) fn recount(&self) -> usize {
        let logs = self.logs.iter().flatten();
        logs.map(Log::memory).sum::<usize>() + self.logs.capacity() * size_of::<[Log; 2]>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// What is pending is never forgotten, and a log stays about as short as what is pending.
        #[test]
        fn holds_what_is_pending_and_little_else(
            ops in prop::collection::vec((0u8..3, 0u32..300), 1..3000),
        ) {
            let mut index = FaceIndex::default();
            let mut pending: BTreeSet<EntryRef> = BTreeSet::new();
            let mut most = 0;
            for (n, (op, id)) in ops.into_iter().enumerate() {
                let entry = EntryRef { id, generation: n as u16 };
                match op {
                    0 | 1 => {
                        pending.insert(entry);
                        most = most.max(pending.len());
                        index.add(1, Direction::In, entry, n % 2 == 0, |e| pending.contains(&e));
                    }
                    _ => {
                        let first = pending.first().copied();
                        first.map(|first| pending.remove(&first));
                    }
                }
                prop_assert_eq!(index.memory(), index.recount());
                prop_assert!(index.logs.get(1).is_none_or(|l| l[0].entries.len() <= 2 * most + SPARE));
            }
            prop_assert!(index.take(1, Direction::Out).is_empty());
            let taken: BTreeSet<EntryRef> = index.take(1, Direction::In).into_iter().collect();
            prop_assert!(pending.is_subset(&taken));
            prop_assert!(index.take(1, Direction::In).is_empty());
            prop_assert_eq!(index.bytes, 0);
        }
    }

    /// An entry whose record comes and goes does not make the log grow.
    #[test]
    fn doubles_are_dropped() {
        let mut index = FaceIndex::default();
        let entry = EntryRef {
            id: 1,
            generation: 0,
        };
        for _ in 0..10_000 {
            index.add(0, Direction::In, entry, false, |_| true);
            index.record_dropped(0, Direction::In);
        }
        assert!(index.take(0, Direction::In).len() <= 2 * SPARE + 2);
    }
}
