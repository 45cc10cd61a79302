//! A pending Interest: what it asks, who waits for it, who was asked.

use super::super::hash::HashedName;
use super::super::strategy_choice::StrategyIndex;
use crate::face::FaceSlot;
use ndn_packet::{Data, NackReason, PitToken};
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
    pub(super) wire: Vec<u8>,
    /// Hash of the name it is filed under: its own, without an implicit digest.
    pub(super) hash: u64,
    /// Hash of its whole name.
    pub(super) full_hash: u64,
    pub(super) name_at: u32,
    pub(super) name_len: u32,
    /// Components of the name it is filed under.
    pub(super) depth: u16,
    /// Lives of the slot before this one, as far as a token tells them apart.
    pub(super) generation: u16,
    pub(super) live: bool,
    pub(super) can_be_prefix: bool,
    pub(super) must_be_fresh: bool,
    pub(super) has_digest: bool,
    /// Another entry is, or was, filed under the same name.
    pub(super) has_sibling: bool,
    /// The downstream in whose share the entry is.
    pub(super) charged_to: FaceSlot,
    /// The strategy in charge.
    pub(crate) strategy: StrategyIndex,
    /// Retransmissions forwarded.
    pub(crate) retransmissions: u32,
    /// Interval within which retransmissions are not forwarded, nanoseconds.
    pub(crate) suppression: u64,
    /// A downstream has rejected a Data of this name.
    pub(crate) rejected: bool,
    /// The face that the rejected Data came from, to be asked after all others.
    pub(crate) doubted: Option<FaceSlot>,
    /// Names under its own may be at home with other workers.
    pub(crate) is_short: bool,
    /// The downstreams; [`Pit`](super::Pit) alone adds and drops them.
    pub(crate) ins: SmallVec<[InRecord; 2]>,
    /// The upstreams asked; [`Pit`](super::Pit) alone adds and drops them.
    pub(crate) outs: SmallVec<[OutRecord; 2]>,
}

/// Buffers of a free slot above this many bytes are given back.
const KEEP_WIRE: usize = 512;
/// Records for which a free slot keeps room.
const KEEP_RECORDS: usize = 8;

/// Bytes that a list of records takes beside its entry, when it has room for so many.
fn spilled<T, const N: usize>(records: &SmallVec<[T; N]>) -> usize
where
    [T; N]: smallvec::Array<Item = T>,
{
    if records.spilled() {
        records.capacity() * size_of::<T>()
    } else {
        0
    }
}

/// Bytes that one more record takes beside its entry.
fn growth<T, const N: usize>(records: &SmallVec<[T; N]>) -> usize
where
    [T; N]: smallvec::Array<Item = T>,
{
    if records.len() < records.capacity() {
        0
    } else {
        2 * records.capacity() * size_of::<T>() - spilled(records)
    }
}

fn push<T, const N: usize>(records: &mut SmallVec<[T; N]>, record: T)
where
    [T; N]: smallvec::Array<Item = T>,
{
    if records.len() == records.capacity() {
        records.grow(2 * records.capacity());
    }
    records.push(record);
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
    pub(super) fn filed_name(&self) -> &[u8] {
        const DIGEST_COMPONENT: usize = 34;
        let name = self.name();
        if self.has_digest {
            &name[..name.len() - DIGEST_COMPONENT]
        } else {
            name
        }
    }

    pub(super) fn is_answered_by(&self, name: &HashedName<'_>, data: &Answer<'_>) -> bool {
        if self.has_digest {
            self.filed_name() == name.value() && self.name().ends_with(data.digest())
        } else if self.can_be_prefix {
            name.value().starts_with(self.name())
        } else {
            name.value() == self.name()
        }
    }

    /// Bytes that the entry takes beside its slot.
    pub(super) fn heap(&self) -> usize {
        self.wire.capacity() + spilled(&self.ins) + spilled(&self.outs)
    }

    /// Bytes that one more in-record takes beside the slot.
    pub(super) fn in_growth(&self) -> usize {
        growth(&self.ins)
    }

    /// Bytes that one more out-record takes beside the slot.
    pub(super) fn out_growth(&self) -> usize {
        growth(&self.outs)
    }

    pub(super) fn push_in(&mut self, record: InRecord) {
        push(&mut self.ins, record);
    }

    pub(super) fn push_out(&mut self, record: OutRecord) {
        push(&mut self.outs, record);
    }

    /// Empties the records and what is large, so that the slot can wait for its next user.
    pub(super) fn clear(&mut self) {
        self.ins.clear();
        self.outs.clear();
        if self.ins.capacity() > KEEP_RECORDS {
            self.ins = SmallVec::new();
        }
        if self.outs.capacity() > KEEP_RECORDS {
            self.outs = SmallVec::new();
        }
        if self.wire.capacity() > KEEP_WIRE {
            self.wire = Vec::new();
        }
    }

    /// Gives back all memory of a free slot but the slot itself.
    pub(super) fn release(&mut self) {
        self.ins = SmallVec::new();
        self.outs = SmallVec::new();
        self.wire = Vec::new();
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
pub(super) struct Answer<'a> {
    data: &'a Data,
    digest: OnceCell<[u8; 32]>,
}

impl<'a> Answer<'a> {
    pub(super) fn new(data: &'a Data) -> Self {
        Answer {
            data,
            digest: OnceCell::new(),
        }
    }

    fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| self.data.implicit_digest())
    }
}
