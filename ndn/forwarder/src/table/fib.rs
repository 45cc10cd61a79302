//! Forwarding information base: which faces lead to a name.

use super::hash::HashedName;
use super::name_table::NameTable;
use crate::face::FaceSlot;
use ndn_packet::NameRef;

/// A face that leads to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextHop {
    pub(crate) face: FaceSlot,
    /// Smaller is better.
    pub(crate) cost: u32,
}

/// The next hops of one name, the cheapest first; never empty inside a FIB.
#[derive(Debug)]
pub(crate) enum NextHops {
    One(NextHop),
    Many(Box<[NextHop]>),
}

impl NextHops {
    fn new(mut hops: Vec<NextHop>) -> Option<Self> {
        hops.sort_by_key(|h| (h.cost, h.face));
        match hops[..] {
            [] => None,
            [hop] => Some(NextHops::One(hop)),
            _ => Some(NextHops::Many(hops.into())),
        }
    }

    /// Bytes held outside.
    fn memory(&self) -> usize {
        match self {
            NextHops::One(_) => 0,
            NextHops::Many(hops) => size_of_val(&**hops),
        }
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[NextHop] {
        match self {
            NextHops::One(hop) => std::slice::from_ref(hop),
            NextHops::Many(hops) => hops,
        }
    }
}

/// The table.
#[derive(Debug)]
pub(crate) struct Fib {
    names: NameTable<NextHops>,
    /// Bytes of next hops outside their entries.
    hop_bytes: usize,
}

impl Fib {
    pub(crate) fn new() -> Self {
        Fib {
            names: NameTable::new(),
            hop_bytes: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.names.memory() + self.hop_bytes
    }

    /// Next hops of the longest prefix that has any, and its length.
    #[inline]
    pub(crate) fn lookup(&self, name: &HashedName<'_>) -> (usize, &[NextHop]) {
        self.names
            .longest_prefix(name)
            .map_or((0, &[]), |(n, hops)| (n, hops.as_slice()))
    }

    /// See [`NameTable::prefetch_index`].
    #[inline]
    pub(crate) fn prefetch_index(&self, name: &HashedName<'_>) {
        self.names.prefetch_index(name);
    }

    /// See [`NameTable::prefetch_entry`].
    #[inline]
    pub(crate) fn prefetch_entry(&self, name: &HashedName<'_>) {
        self.names.prefetch_entry(name);
    }

    /// See [`NameTable::prefetch_key`].
    #[inline]
    pub(crate) fn prefetch_key(&self, name: &HashedName<'_>) {
        self.names.prefetch_key(name);
    }

    /// Sets the next hops of a name; none removes it. False when the name is too long.
    pub(crate) fn set(&mut self, name: &HashedName<'_>, hops: Vec<NextHop>) -> bool {
        let bytes = |hops: Option<NextHops>| hops.map_or(0, |hops| hops.memory());
        match NextHops::new(hops) {
            Some(hops) => {
                let more = hops.memory();
                let Ok(old) = self.names.insert(name, hops) else {
                    return false;
                };
                self.hop_bytes = self.hop_bytes + more - bytes(old);
            }
            None => self.hop_bytes -= bytes(self.names.remove(name)),
        }
        true
    }

    /// All names with their next hops, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (NameRef<'_>, &[NextHop])> {
        self.names
            .iter()
            .map(|(name, hops)| (name, hops.as_slice()))
    }
}
