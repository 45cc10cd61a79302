//! A table keyed by names, with longest-prefix match.
//!
//! One hash index for names of all lengths. The lengths in use are counted, so that a search tries those alone. An
//! entry is compact: short names lie in it, and with a small value it fills one cache line.

use super::hash::HashedName;
use super::index::HashIndex;
use super::prefetch::{prefetch, prefetch_at};
use super::slab::Slab;
use ndn_packet::NameRef;

/// Most components of a name in such a table.
pub(crate) const MAX_COMPONENTS: usize = 63;

const INLINE: usize = 38;

/// The bytes of a name, in place when they are few.
#[derive(Debug)]
pub(crate) enum StoredName {
    Inline(u8, [u8; INLINE]),
    Heap(Box<[u8]>),
}

impl StoredName {
    pub(crate) fn new(value: &[u8]) -> Self {
        if value.len() <= INLINE {
            let mut bytes = [0; INLINE];
            bytes[..value.len()].copy_from_slice(value);
            StoredName::Inline(value.len() as u8, bytes)
        } else {
            StoredName::Heap(value.into())
        }
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match self {
            StoredName::Inline(len, bytes) => &bytes[..usize::from(*len)],
            StoredName::Heap(bytes) => bytes,
        }
    }

    /// Bytes held outside.
    pub(crate) fn memory(&self) -> usize {
        match self {
            StoredName::Inline(..) => 0,
            StoredName::Heap(bytes) => bytes.len(),
        }
    }
}

#[derive(Debug)]
#[repr(align(64))]
struct Entry<V> {
    key: StoredName,
    hash: u64,
    value: V,
}

/// How many names of each length there are.
#[derive(Debug, Clone)]
pub(crate) struct Lengths {
    counts: [u32; MAX_COMPONENTS + 1],
    /// Bit `n` is set when `counts[n]` is not 0.
    used: u64,
}

impl Lengths {
    pub(crate) fn new() -> Self {
        Lengths {
            counts: [0; MAX_COMPONENTS + 1],
            used: 0,
        }
    }

    /// Counts a name of `n` components; `n` is at most [`MAX_COMPONENTS`].
    #[inline]
    pub(crate) fn add(&mut self, n: usize) {
        self.counts[n] += 1;
        self.used |= 1 << n;
    }

    #[inline]
    pub(crate) fn remove(&mut self, n: usize) {
        self.counts[n] -= 1;
        if self.counts[n] == 0 {
            self.used &= !(1 << n);
        }
    }

    /// The lengths in use of at most `n` components, the longest first.
    #[inline]
    pub(crate) fn up_to(&self, n: usize) -> LengthsDown {
        LengthsDown(self.used & (u64::MAX >> (MAX_COMPONENTS - n.min(MAX_COMPONENTS))))
    }
}

/// Lengths, descending.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LengthsDown(u64);

impl Iterator for LengthsDown {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let n = self.0.checked_ilog2()?;
        self.0 &= !(1 << n);
        Some(n as usize)
    }
}

/// From names to values.
#[derive(Debug)]
pub(crate) struct NameTable<V> {
    index: HashIndex,
    entries: Slab<Option<Entry<V>>, 4>,
    lengths: Lengths,
    /// Bytes of names outside their entries.
    key_bytes: usize,
}

impl<V> NameTable<V> {
    pub(crate) fn new() -> Self {
        NameTable {
            index: HashIndex::new(),
            entries: Slab::new(),
            lengths: Lengths::new(),
            key_bytes: 0,
        }
    }

    /// Number of names.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Bytes of memory held, not counting what the values hold outside.
    pub(crate) fn memory(&self) -> usize {
        self.index.memory() + self.entries.memory() + self.key_bytes
    }

    #[inline]
    fn entry(&self, id: u32) -> Option<&Entry<V>> {
        self.entries.get(id).as_ref()
    }

    #[inline]
    fn find(&self, hash: u64, value: &[u8]) -> Option<u32> {
        self.index.find(hash, |id| {
            self.entry(id)
                .is_some_and(|e| e.hash == hash && e.key.value() == value)
        })
    }

    /// The value at this very name.
    #[cfg(test)]
    pub(crate) fn get(&self, name: &HashedName<'_>) -> Option<&V> {
        self.entry(self.find(name.full(), name.value())?)
            .map(|e| &e.value)
    }

    /// The value at the longest prefix of this name that has one, and that prefix's length.
    #[inline]
    pub(crate) fn longest_prefix(&self, name: &HashedName<'_>) -> Option<(usize, &V)> {
        self.lengths.up_to(name.len()).find_map(|n| {
            let id = self.find(name.hash(n), name.prefix(n))?;
            Some((n, &self.entry(id)?.value))
        })
    }

    /// Fetches ahead what a search for this name reads first.
    #[inline]
    pub(crate) fn prefetch_index(&self, name: &HashedName<'_>) {
        for n in self.lengths.up_to(name.len()) {
            self.index.prefetch(name.hash(n));
        }
    }

    /// The entry that a search for this name will probably find.
    #[inline]
    fn peek(&self, name: &HashedName<'_>) -> Option<u32> {
        self.lengths
            .up_to(name.len())
            .find_map(|n| self.index.peek(name.hash(n)))
    }

    /// Fetches ahead what a search for this name reads next, after [`NameTable::prefetch_index`].
    #[inline]
    pub(crate) fn prefetch_entry(&self, name: &HashedName<'_>) {
        if let Some(entry) = self.peek(name).and_then(|id| self.entries.try_get(id)) {
            prefetch(entry);
        }
    }

    /// Fetches ahead what a search for this name reads last, after [`NameTable::prefetch_entry`].
    #[inline]
    pub(crate) fn prefetch_key(&self, name: &HashedName<'_>) {
        let entry = self.peek(name).and_then(|id| self.entry(id));
        if let Some(StoredName::Heap(bytes)) = entry.map(|entry| &entry.key) {
            prefetch_at(bytes, 0);
            prefetch_at(bytes, bytes.len() - 1);
        }
    }

    /// Sets the value at a name, returning the old one. `Err` when the name has more than [`MAX_COMPONENTS`].
    pub(crate) fn insert(&mut self, name: &HashedName<'_>, value: V) -> Result<Option<V>, V> {
        if name.len() > MAX_COMPONENTS {
            return Err(value);
        }
        let hash = name.full();
        if let Some(id) = self.find(hash, name.value())
            && let Some(entry) = self.entries.get_mut(id)
        {
            return Ok(Some(std::mem::replace(&mut entry.value, value)));
        }
        let id = self.entries.allocate();
        let key = StoredName::new(name.value());
        self.key_bytes += key.memory();
        *self.entries.get_mut(id) = Some(Entry { key, hash, value });
        self.index.insert(hash, id);
        self.lengths.add(name.len());
        Ok(None)
    }

    /// Removes a name.
    pub(crate) fn remove(&mut self, name: &HashedName<'_>) -> Option<V> {
        let hash = name.full();
        let id = self.find(hash, name.value())?;
        self.index.remove(hash, id);
        self.lengths.remove(name.len());
        self.entries.release(id);
        let entry = self.entries.get_mut(id).take()?;
        self.key_bytes -= entry.key.memory();
        Some(entry.value)
    }

    fn iter_entries(&self) -> impl Iterator<Item = &Entry<V>> {
        self.entries.ids().filter_map(|id| self.entry(id))
    }

    /// All names with their values, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (NameRef<'_>, &V)> {
        self.iter_entries().map(|e| {
            (
                NameRef::from_value(e.key.value()).unwrap_or_default(),
                &e.value,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash::{HashKey, NameHashes};
    use super::*;
    use ndn_packet::{Component, Name};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn with<R>(name: &Name, f: impl FnOnce(&HashedName<'_>) -> R) -> R {
        let mut hashes = NameHashes::default();
        hashes.push(&HashKey::new(5), name.as_ref());
        f(&hashes.last(name.as_ref()))
    }

    #[test]
    fn entry_with_a_small_value_is_one_cache_line() {
        assert_eq!(size_of::<Option<Entry<crate::table::fib::NextHops>>>(), 64);
    }

    #[test]
    fn names_too_long_are_refused() {
        let name: Name = (0..64).map(|_| Component::generic(b"x")).collect();
        let mut table = NameTable::new();
        assert_eq!(with(&name, |n| table.insert(n, 1)), Err(1));
        assert_eq!(with(&name.prefix(63), |n| table.insert(n, 1)), Ok(None));
        assert_eq!(
            with(&name, |n| table.longest_prefix(n).map(|(n, v)| (n, *v))),
            Some((63, 1))
        );
    }

    fn names() -> impl Strategy<Value = Name> {
        let component = prop::sample::select(vec![
            "a",
            "b",
            "a-component-of-more-than-forty-bytes-in-length",
        ]);
        prop::collection::vec(component, 0..5).prop_map(|c| {
            c.into_iter()
                .map(|c| Component::generic(c.as_bytes()))
                .collect()
        })
    }

    proptest! {
        #[test]
        fn agrees_with_a_naive_table(ops in prop::collection::vec((0u8..4, names(), any::<u8>()), 1..120)) {
            let mut table = NameTable::new();
            let mut model: BTreeMap<Name, u8> = BTreeMap::new();
            for (op, name, value) in ops {
                match op {
                    0 | 1 => prop_assert_eq!(with(&name, |n| table.insert(n, value)), Ok(model.insert(name.clone(), value))),
                    2 => prop_assert_eq!(with(&name, |n| table.remove(n)), model.remove(&name)),
                    _ => {}
                }
                let naive = model.iter().filter(|(p, _)| p.is_prefix_of(&name)).max_by_key(|(p, _)| p.len());
                let found = with(&name, |n| table.longest_prefix(n).map(|(n, v)| (n, *v)));
                prop_assert_eq!(found, naive.map(|(p, v)| (p.len(), *v)));
                prop_assert_eq!(with(&name, |n| table.get(n).copied()), model.get(&name).copied());
                prop_assert_eq!(table.len(), model.len());
            }
            let all: BTreeMap<Name, u8> = table.iter().map(|(n, v)| (n.to_name(), *v)).collect();
            prop_assert_eq!(all, model);
        }
    }
}
