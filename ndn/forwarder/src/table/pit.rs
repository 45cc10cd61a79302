//! Pending Interest table.
//!
//! Entries lie in slots that are used again together with their buffers, so that a pending Interest allocates nothing
//! once the table has warmed up. A slot and its generation make the token that a forwarded Interest carries: Data that
//! brings it back needs no search.

use super::cs::{implicit_digest, name_offset};
use super::hash::HashedName;
use super::index::HashIndex;
use super::memory::prefetch;
use super::name_table::{Lengths, MAX_COMPONENTS};
use super::slab::Slab;
use super::strategy_choice::StrategyIndex;
use super::wheel::Wheel;
use crate::face::FaceSlot;
use ndn_packet::{Data, Interest, NackReason, PitToken};
use smallvec::SmallVec;
use std::cell::OnceCell;

/// A downstream that waits for the Data.
#[derive(Debug)]
pub(crate) struct InRecord {
    pub(crate) face: FaceSlot,
    pub(crate) nonce: u32,
    /// When the downstream stops waiting, nanoseconds.
    pub(crate) expiry: u64,
    /// Token that the Data must bring back to the downstream.
    pub(crate) token: Option<PitToken>,
}

/// An upstream that was asked.
#[derive(Debug)]
pub(crate) struct OutRecord {
    pub(crate) face: FaceSlot,
    pub(crate) nonce: u32,
    /// When it was last asked, nanoseconds.
    pub(crate) sent: u64,
    /// When it is no longer expected to answer, nanoseconds.
    pub(crate) expiry: u64,
    /// Interval within which it is not asked again, if the strategy keeps one for each upstream; nanoseconds.
    pub(crate) suppression: u64,
    /// Why it refused.
    pub(crate) nack: Option<NackReason>,
    /// What the strategy in charge notes; 0 at first.
    pub(crate) strategy_info: u32,
}

impl OutRecord {
    /// Of an upstream that is asked now; times are nanoseconds.
    pub(crate) fn new(face: FaceSlot, nonce: u32, sent: u64, expiry: u64) -> Self {
        OutRecord {
            face,
            nonce,
            sent,
            expiry,
            suppression: 0,
            nack: None,
            strategy_info: 0,
        }
    }

    /// Whether an answer is still expected.
    pub(crate) fn is_pending(&self, now: u64) -> bool {
        self.nack.is_none() && self.expiry >= now
    }
}

/// A pending Interest.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// The Interest as it was first received, with one hop less.
    wire: Vec<u8>,
    /// Hash of the name it is filed under: its own, without an implicit digest.
    hash: u64,
    /// Hash of its whole name.
    full_hash: u64,
    name_at: u32,
    name_len: u32,
    /// Components of the name it is filed under.
    depth: u16,
    /// Lives of the slot before this one, as far as a token tells them apart.
    generation: u16,
    live: bool,
    can_be_prefix: bool,
    must_be_fresh: bool,
    has_digest: bool,
    /// Another entry is, or was, filed under the same name.
    has_sibling: bool,
    /// The strategy in charge.
    pub(crate) strategy: StrategyIndex,
    /// Retransmissions forwarded.
    pub(crate) retransmissions: u32,
    /// Interval within which retransmissions are not forwarded, nanoseconds.
    pub(crate) suppression: u64,
    pub(crate) ins: SmallVec<[InRecord; 2]>,
    pub(crate) outs: SmallVec<[OutRecord; 2]>,
}

impl Entry {
    /// The whole name.
    #[inline]
    pub(crate) fn name(&self) -> &[u8] {
        &self.wire[self.name_at as usize..][..self.name_len as usize]
    }

    /// Hash of the whole name.
    pub(crate) fn name_hash(&self) -> u64 {
        self.full_hash
    }

    /// The Interest's bytes.
    pub(crate) fn wire(&self) -> &[u8] {
        &self.wire
    }

    pub(crate) fn must_be_fresh(&self) -> bool {
        self.must_be_fresh
    }

    /// The name it is filed under.
    #[inline]
    fn filed_name(&self) -> &[u8] {
        const DIGEST_COMPONENT: usize = 34;
        let name = self.name();
        if self.has_digest {
            &name[..name.len() - DIGEST_COMPONENT]
        } else {
            name
        }
    }

    fn is_answered_by(&self, name: &HashedName<'_>, data: &Answer<'_>) -> bool {
        if self.has_digest {
            self.filed_name() == name.value() && self.name().ends_with(data.digest())
        } else if self.can_be_prefix {
            name.value().starts_with(self.name())
        } else {
            name.value() == self.name()
        }
    }

    pub(crate) fn out_mut(&mut self, face: FaceSlot) -> Option<&mut OutRecord> {
        self.outs.iter_mut().find(|r| r.face == face)
    }

    pub(crate) fn has_out(&self, face: FaceSlot) -> bool {
        self.outs.iter().any(|r| r.face == face)
    }

    /// Whether an answer is still expected from anybody.
    pub(crate) fn has_pending_out(&self, now: u64) -> bool {
        self.outs.iter().any(|r| r.is_pending(now))
    }
}

/// A Data that came; its digest is computed once at most, however many entries ask for it by digest.
struct Answer<'a> {
    data: &'a Data,
    digest: OnceCell<[u8; 32]>,
}

impl Answer<'_> {
    fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| self.data.implicit_digest())
    }
}

/// Fixed bytes of an entry beside its Interest.
pub(crate) const ENTRY_BYTES: usize = size_of::<Entry>() + Wheel::BYTES_PER_SLOT + 16;
/// Buffers above this size are given back with their entry.
const KEEP_BUFFER: usize = 1024;

/// Most entries under one name. They are searched one by one, so that who asks for one name by ever other digests must
/// meet a bound of their number.
const MAX_SIBLINGS: usize = 32;

/// Matches of one Data.
pub(crate) type Matches = SmallVec<[u32; 4]>;

/// The table.
#[derive(Debug)]
pub(crate) struct Pit {
    index: HashIndex,
    entries: Slab<Entry, 4>,
    wheel: Wheel,
    /// Lengths of names of entries with CanBePrefix.
    prefixes: Lengths,
    /// Entries with CanBePrefix whose names are longer than [`Lengths`] counts.
    long_prefixes: usize,
    len: usize,
    bytes: usize,
}

impl Pit {
    pub(crate) fn new() -> Self {
        Pit {
            index: HashIndex::new(),
            entries: Slab::new(),
            wheel: Wheel::new(),
            prefixes: Lengths::new(),
            long_prefixes: 0,
            len: 0,
            bytes: 0,
        }
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> &Entry {
        self.entries.get(id)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: u32) -> &mut Entry {
        self.entries.get_mut(id)
    }

    /// Numbers of all live entries.
    pub(crate) fn live(&self) -> Vec<u32> {
        self.entries.ids().filter(|&id| self.get(id).live).collect()
    }

    /// The entry for the same name and selectors; else how many there are for the same name, its digest left aside.
    #[inline]
    pub(crate) fn find(&self, name: &HashedName<'_>, interest: &Interest) -> Result<u32, usize> {
        let digest = usize::from(implicit_digest(name).is_some());
        let depth = name.len() - digest;
        let hash = name.hash(depth);
        let mut siblings = 0;
        let found = self.index.find(hash, |id| {
            let entry = self.get(id);
            if entry.hash != hash || entry.filed_name() != name.prefix(depth) {
                return false;
            }
            siblings += 1;
            entry.can_be_prefix == interest.can_be_prefix()
                && entry.must_be_fresh == interest.must_be_fresh()
                && entry.name() == name.value()
        });
        found.ok_or(siblings)
    }

    /// Whether one more entry may be filed under the name of an Interest which has so many already.
    pub(crate) fn has_room_beside(siblings: usize, name: &HashedName<'_>) -> bool {
        siblings < MAX_SIBLINGS || implicit_digest(name).is_none()
    }

    /// Fetches ahead what a search for this hash reads first.
    #[inline]
    pub(crate) fn prefetch_index(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// Fetches ahead the entry that a token leads to.
    #[inline]
    pub(crate) fn prefetch_entry(&self, token: &PitToken) {
        if let Some(entry) = token.as_u48().and_then(|t| self.entries.try_get(t as u32)) {
            prefetch(entry);
        }
    }

    /// Adds an entry without records for an Interest that has none yet; `has_sibling` is what [`Pit::find`] said.
    pub(crate) fn insert(
        &mut self,
        name: &HashedName<'_>,
        interest: &Interest,
        has_sibling: bool,
    ) -> u32 {
        let has_digest = implicit_digest(name).is_some();
        let depth = name.len() - usize::from(has_digest);
        let hash = name.hash(depth);
        while has_sibling
            && let Some(id) = self.index.find(hash, |id| {
                let entry = self.entries.get(id);
                entry.hash == hash && !entry.has_sibling && entry.filed_name() == name.prefix(depth)
            })
        {
            self.entries.get_mut(id).has_sibling = true;
        }
        let id = self.entries.take();
        let entry = self.entries.get_mut(id);
        entry.wire.clear();
        entry.wire.extend_from_slice(interest.wire());
        entry.hash = hash;
        entry.full_hash = name.full();
        entry.name_at = name_offset(interest.wire()).unwrap_or(0) as u32;
        entry.name_len = name.value().len() as u32;
        entry.depth = u16::try_from(depth).unwrap_or(u16::MAX);
        entry.live = true;
        entry.can_be_prefix = interest.can_be_prefix();
        entry.must_be_fresh = interest.must_be_fresh();
        entry.has_digest = has_digest;
        entry.has_sibling = has_sibling;
        entry.retransmissions = 0;
        entry.suppression = 0;
        self.index.insert(hash, id);
        self.bytes += ENTRY_BYTES + interest.wire().len();
        self.len += 1;
        if interest.can_be_prefix() && !has_digest {
            if depth <= MAX_COMPONENTS {
                self.prefixes.add(depth);
            } else {
                self.long_prefixes += 1;
            }
        }
        id
    }

    /// Removes an entry. Its records are gone afterwards.
    pub(crate) fn remove(&mut self, id: u32) {
        let entry = self.entries.get_mut(id);
        debug_assert!(entry.live);
        entry.live = false;
        entry.generation = entry.generation.wrapping_add(1);
        entry.ins.clear();
        entry.outs.clear();
        self.bytes -= ENTRY_BYTES + entry.wire.len();
        if entry.wire.capacity() > KEEP_BUFFER {
            entry.wire = Vec::new();
        }
        let (hash, depth) = (entry.hash, usize::from(entry.depth));
        if entry.can_be_prefix && !entry.has_digest {
            if depth <= MAX_COMPONENTS {
                self.prefixes.remove(depth);
            } else {
                self.long_prefixes -= 1;
            }
        }
        self.index.remove(hash, id);
        self.wheel.cancel(id);
        self.entries.give_back(id);
        self.len -= 1;
    }

    /// The token that leads back to an entry.
    #[inline]
    pub(crate) fn token(&self, id: u32) -> PitToken {
        PitToken::from_u48(u64::from(self.get(id).generation) << 32 | u64::from(id))
    }

    /// The entry that a token of ours leads to.
    #[inline]
    pub(crate) fn by_token(&self, token: &PitToken) -> Option<u32> {
        let token = token.as_u48()?;
        let id = token as u32;
        let entry = self.entries.try_get(id)?;
        (entry.live && u64::from(entry.generation) == token >> 32).then_some(id)
    }

    /// All entries that a Data answers.
    #[inline]
    pub(crate) fn matches(
        &self,
        name: &HashedName<'_>,
        data: &Data,
        token: Option<&PitToken>,
    ) -> Matches {
        let mut found = Matches::new();
        let data = Answer {
            data,
            digest: OnceCell::new(),
        };
        let mut alone = false;
        if let Some(id) = token.and_then(|t| self.by_token(t)) {
            let entry = self.get(id);
            if entry.is_answered_by(name, &data) {
                found.push(id);
                alone = !entry.has_sibling && usize::from(entry.depth) == name.len();
            }
        }
        if !alone {
            self.collect(name.len(), name, &data, &mut found);
        }
        if name.len() > 0 {
            for n in self.prefixes.up_to(name.len() - 1) {
                self.collect(n, name, &data, &mut found);
            }
        }
        if self.long_prefixes > 0 {
            for n in MAX_COMPONENTS + 1..name.len() {
                self.collect(n, name, &data, &mut found);
            }
        }
        found
    }

    fn collect(&self, n: usize, name: &HashedName<'_>, data: &Answer<'_>, found: &mut Matches) {
        let hash = name.hash(n);
        self.index.find(hash, |id| {
            let entry = self.get(id);
            if entry.hash == hash && entry.is_answered_by(name, data) && !found.contains(&id) {
                found.push(id);
            }
            false
        });
    }

    /// Sets when an entry expires; times are nanoseconds.
    #[inline]
    pub(crate) fn expire_at(&mut self, now: u64, id: u32, due: u64) {
        self.wheel.arm(now, id, due);
    }

    /// When the next entry expires, nanoseconds.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.wheel.deadline()
    }

    /// An entry that has expired at `now`; call until there is none.
    pub(crate) fn pop_expired(&mut self, now: u64) -> Option<u32> {
        self.wheel.pop(now)
    }
}
