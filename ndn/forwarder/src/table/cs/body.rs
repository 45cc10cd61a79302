//! The Data of a node in the content store, with its name beside it.

use super::super::memory::{prefetch, prefetch_at, prefetch_end};
use ndn_packet::Data;

/// Bytes of a name that are kept in place.
const INLINE: usize = 72;

/// A Data, and enough to find and send it without reading the packet: three cache lines in a row, of which a search for
/// a short name needs the first alone.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Body {
    name: Name,
    /// Until when the Data is fresh, nanoseconds.
    pub(super) fresh_until: u64,
    data: Option<Data>,
}

/// The first bytes of the name's value.
#[derive(Debug)]
struct Name([u8; INLINE]);

impl Default for Name {
    fn default() -> Self {
        Name([0; INLINE])
    }
}

impl Body {
    /// Puts a Data in, giving back the one it replaces.
    pub(super) fn put(&mut self, data: &Data, copy: bool, fresh_until: u64) -> Option<Data> {
        let kept = if copy { data.compact() } else { data.clone() };
        if copy {
            // A buffer's first sharing allocates: better now than when the packet is sent.
            drop(kept.clone());
        }
        let name = data.name().value();
        let inline = name.len().min(INLINE);
        self.name.0[..inline].copy_from_slice(&name[..inline]);
        self.fresh_until = fresh_until;
        self.data.replace(kept)
    }

    /// Takes the Data out.
    pub(super) fn take(&mut self) -> Option<Data> {
        self.data.take()
    }

    #[inline]
    pub(super) fn data(&self) -> Option<&Data> {
        self.data.as_ref()
    }

    /// Whether the Data's name begins with these bytes.
    #[inline]
    pub(super) fn name_starts_with(&self, prefix: &[u8]) -> bool {
        if prefix.len() <= INLINE {
            return self.name.0[..prefix.len()] == *prefix;
        }
        self.data()
            .is_some_and(|data| data.name().value().starts_with(prefix))
    }

    /// Fetches ahead what a search reads of the body.
    #[inline]
    pub(super) fn prefetch_name(&self) {
        prefetch(self);
    }

    /// Fetches ahead what else there is of the body.
    #[inline]
    pub(super) fn prefetch_data(&self) {
        prefetch(&self.fresh_until);
        prefetch_end(self);
    }

    /// Fetches ahead what lies beyond the body: the rest of a long name, and the packet's count of users (by reading
    /// that; a buffer does not tell its address).
    #[inline]
    pub(super) fn prefetch_beyond(&self, name_len: usize) {
        if let Some(data) = &self.data {
            if name_len > INLINE {
                prefetch_at(data.wire(), 0);
                prefetch_at(data.wire(), name_len);
            }
            std::hint::black_box(data.wire().is_unique());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_three_cache_lines() {
        assert_eq!(size_of::<Body>(), 192);
    }
}
