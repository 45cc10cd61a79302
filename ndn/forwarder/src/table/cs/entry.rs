//! A name or prefix in the content store, and its Data.

use super::super::NIL;
use super::super::prefetch::{prefetch, prefetch_at, prefetch_end};
use ndn_packet::Data;

/// Bytes of a name that are kept in place.
const INLINE: usize = 64;

/// A node of the tree of names: three cache lines in a row, of which a search for a name of up to 48 bytes reads the
/// first alone, for one of up to [`INLINE`] the first two, and for a longer one the packet as well.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Entry {
    /// What the index has of the name's hash.
    pub(super) tag: u32,
    name_len: u16,
    has_data: bool,
    /// Whether the Data is a [compact](Data::compact) copy.
    copied: bool,
    /// Until when the Data is fresh, nanoseconds.
    fresh_until: u64,
    /// The first bytes of the name's value.
    name: [u8; INLINE],
    data: Option<Data>,
}

impl Default for Entry {
    fn default() -> Self {
        Entry {
            tag: 0,
            name_len: 0,
            has_data: false,
            copied: false,
            fresh_until: 0,
            name: [0; INLINE],
            data: None,
        }
    }
}

/// What of a node most searches do not read: where it hangs in the tree, and where its Data came from.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) parent: u32,
    /// The child added last.
    pub(super) child: u32,
    pub(super) prev: u32,
    pub(super) next: u32,
    pub(super) origin: Origin,
}

/// Where a Data came from. Faces by their short numbers; 0 is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The face that it came from.
    pub(crate) from: u32,
    /// The downstreams that have been given it in answer to a reject, once and again, as bits: two may share one, and
    /// one of them is then given it less often. None where it came in answer to no reject.
    given: u32,
    again: u32,
    /// When it came, in milliseconds of the forwarder's clock, which begin anew after 49 days.
    came: u32,
}

impl Origin {
    /// So long after a Data has come in answer to a reject, others' rejects may mean the one before it. Whoever got
    /// that one has rejected it by then; who has made others' bad Data the answer to a reject keeps it there no longer.
    const SETTLES_MS: u32 = 4000;

    /// From this face, now; `rejecter` is the downstream that had rejected what came before it, or 0.
    pub(crate) fn new(from: u32, rejecter: u32, now: u64) -> Self {
        Origin {
            from,
            given: if rejecter == 0 { 0 } else { bit(rejecter) },
            again: 0,
            came: milliseconds(now),
        }
    }

    /// A downstream has rejected a Data of this name: whether this is the one. If the Data came in answer to a reject,
    /// the downstream may not have had it, or may have lost it on the way and asks again: it is given it once more.
    pub(super) fn is_rejected_by(&mut self, downstream: u32, now: u64) -> bool {
        let settled = milliseconds(now).wrapping_sub(self.came) >= Self::SETTLES_MS;
        let downstream = bit(downstream);
        if self.given == 0 || self.again & downstream != 0 || settled {
            return true;
        }
        self.again |= self.given & downstream;
        self.given |= downstream;
        false
    }
}

fn bit(face: u32) -> u32 {
    1 << (face % u32::BITS)
}

fn milliseconds(now: u64) -> u32 {
    (now / 1_000_000) as u32
}

impl Default for Branch {
    fn default() -> Self {
        Branch {
            parent: NIL,
            child: NIL,
            prev: NIL,
            next: NIL,
            origin: Origin::default(),
        }
    }
}

impl Entry {
    /// Makes a freed entry one of this name, without Data; the name has at most 65,535 bytes.
    pub(super) fn set_name(&mut self, tag: u32, name: &[u8]) {
        self.tag = tag;
        self.name_len = name.len() as u16;
        let inline = name.len().min(INLINE);
        self.name[..inline].copy_from_slice(&name[..inline]);
    }

    /// Puts a Data of the entry's name in, giving back the one it replaces.
    pub(super) fn put(&mut self, data: &Data, copy: bool, fresh_until: u64) -> Option<Data> {
        let kept = if copy { data.compact() } else { data.clone() };
        self.has_data = true;
        self.copied = copy;
        self.fresh_until = fresh_until;
        self.data.replace(kept)
    }

    /// Takes the Data out.
    pub(super) fn take(&mut self) -> Option<Data> {
        self.has_data = false;
        self.data.take()
    }

    #[inline]
    pub(super) fn data(&self) -> Option<&Data> {
        self.data.as_ref()
    }

    /// Whether there is a Data of this very name.
    #[inline]
    pub(super) fn has_data(&self) -> bool {
        self.has_data
    }

    /// Whether there is a Data that is fresh at this time.
    #[inline]
    pub(super) fn is_fresh(&self, now: u64) -> bool {
        self.has_data && now < self.fresh_until
    }

    /// Whether this is the entry's name; `below` finds a Data of this name or one that begins with it.
    #[inline]
    pub(super) fn is_named<'a>(
        &self,
        name: &[u8],
        below: impl FnOnce() -> Option<&'a Data>,
    ) -> bool {
        if usize::from(self.name_len) != name.len() {
            return false;
        }
        if name.len() <= INLINE {
            return self.name[..name.len()] == *name;
        }
        below().is_some_and(|data| data.name().value().starts_with(name))
    }

    /// Fetches ahead what a search for a name of this length reads of the entry.
    #[inline]
    pub(super) fn prefetch_name(&self, name_len: usize) {
        prefetch(self);
        if name_len > INLINE {
            self.prefetch_data();
        } else {
            prefetch_at(&self.name, name_len);
        }
    }

    /// Fetches ahead the whole entry.
    #[inline]
    pub(super) fn prefetch_data(&self) {
        prefetch(self);
        prefetch_at(&self.name, INLINE - 1);
        prefetch_end(self);
    }

    /// Fetches ahead what lies beyond the entry: the rest of a long name, and the packet's count of users.
    #[inline]
    pub(super) fn prefetch_beyond(&self) {
        if let Some(data) = &self.data {
            if self.copied {
                // The count is on the same line. This waits for nothing, where reading it waits for a few at a time.
                prefetch_at(data.wire(), 0);
            } else {
                // A buffer does not tell where its count is, but reads it.
                std::hint::black_box(data.wire().is_unique());
            }
            if usize::from(self.name_len) > INLINE {
                prefetch_at(data.wire(), 0);
                prefetch_at(data.wire(), self.name_len.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_three_cache_lines() {
        assert_eq!(size_of::<Entry>(), 192);
    }
}
