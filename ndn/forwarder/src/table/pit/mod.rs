//! Pending Interest table.
//!
//! Entries lie in slots that are used again together with their buffers, so that a pending Interest allocates nothing
//! once the table has warmed up. A slot and its generation make the token that a forwarded Interest carries: Data that
//! brings it back needs no search.
//!
//! Faces share entries and bytes by dynamic thresholds (Choudhury and Hahne, "Dynamic queue length thresholds for
//! shared-memory packet switches", 1998): a face may have as many as are left to others. `n` faces that ask without end
//! hold equal shares, and another such share is free for the next one. An entry is charged, records of all its
//! downstreams and upstreams included, to one face that asked for it. As a stranger may connect as often as it likes,
//! strangers' faces leave a part of all to the others.

use super::cs::{implicit_digest, name_offset};
use super::hash::HashedName;
use super::index::HashIndex;
use super::name_table::{Lengths, MAX_COMPONENTS};
use super::prefetch::prefetch;
use super::slab::Slab;
use super::wheel::Wheel;
use crate::face::FaceSlot;
use entry::Answer;
use face_index::{EntryRef, FaceIndex};
use ndn_packet::{Data, Interest, PitToken};
use smallvec::SmallVec;

mod entry;
mod face_index;

pub(crate) use entry::{Entry, InRecord, OutRecord};
pub(crate) use face_index::Direction;

/// Bytes of a slot: the entry, its timer, its places in the index and among the free slots.
const SLOT_BYTES: usize =
    size_of::<Entry>() + Wheel::BYTES_PER_SLOT + HashIndex::BYTES_PER_ENTRY + size_of::<u32>();
/// Slots take at most so many quarters of the bound: they are never given back, and names and records need the rest.
const SLOT_QUARTERS: usize = 3;
/// One part in so many of the bound may be kept for later users before it is asked back.
const KEPT_SHARE: usize = 32;
/// Strangers leave one part in so many of the bounds to other faces.
const KEPT_FROM_STRANGERS: usize = 8;
/// Before it is asked back again, one Interest or record is refused for so many free slots and notes by face that were
/// looked at: what a flood costs is a few of them for each of its packets.
const WALKED_A_REFUSAL: usize = 4;
/// Buffers of Interests are of a multiple of so many bytes, so that a slot's next user mostly finds enough.
const BUFFER_STEP: usize = 64;

fn buffer_size(interest: &Interest) -> usize {
    interest.wire().len().next_multiple_of(BUFFER_STEP)
}

/// Whether an entry is still pending.
fn is_live(entries: &Slab<Entry, 4>, entry: EntryRef) -> bool {
    let slot = entries.get(entry.id);
    slot.live && slot.generation == entry.generation
}

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
    /// Added to the numbers of entries in tokens: which worker's they are.
    tag: u32,
    by_face: FaceIndex,
    /// As many as were asked for, and as there may be slots.
    max_entries: usize,
    max_bytes: usize,
    /// Bytes of the live entries, their slots included.
    bytes: usize,
    /// Bytes that all slots hold beside themselves, live or free.
    heap: usize,
    /// The least that [`Pit::kept`] was since it was last brought down.
    kept_after_trim: usize,
    /// Refusals to come until what is kept may be asked back again.
    trim_pause: usize,
    /// Entries, free slots and notes by face looked at to clear a face or to ask back what is kept.
    #[cfg(test)]
    pub(crate) steps: usize,
}

impl Pit {
    /// A table that holds so many entries, and so many bytes, at most.
    pub(crate) fn new(max_entries: usize, max_bytes: usize) -> Self {
        Pit {
            index: HashIndex::new(),
            entries: Slab::new(),
            wheel: Wheel::new(),
            prefixes: Lengths::new(),
            long_prefixes: 0,
            len: 0,
            tag: 0,
            by_face: FaceIndex::default(),
            max_entries: max_entries.min(max_bytes / 4 * SLOT_QUARTERS / SLOT_BYTES),
            max_bytes,
            bytes: 0,
            heap: 0,
            kept_after_trim: 0,
            trim_pause: 0,
            #[cfg(test)]
            steps: 0,
        }
    }

    /// The same, whose tokens have this tag: it has no bit in common with an entry's number.
    pub(crate) fn tagged(self, tag: u32) -> Self {
        Pit { tag, ..self }
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of the pending Interests: names, nonces, tokens, in- and out-records.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of memory held: those of the pending Interests, of free slots, and of the index by face. Bounded.
    pub(crate) fn memory(&self) -> usize {
        self.entries.len() * SLOT_BYTES + self.heap + self.by_face.memory()
    }

    /// Bytes that may be held.
    pub(crate) fn capacity(&self) -> usize {
        self.max_bytes
    }

    /// Whether so many more bytes may be held because of a face. Free slots and the index by face give back what they
    /// can spare if that helps; not each time, since they are walked for it.
    #[inline]
    fn has_room(&mut self, face: FaceSlot, more: usize) -> bool {
        self.is_within_share(face, more) || self.has_room_after_trim(face, more)
    }

    /// Whether little is left: what is noted by face is then to leave it to the Interests of those who have few.
    #[inline]
    fn is_tight(&self) -> bool {
        self.memory() > self.max_bytes - self.max_bytes / 8
    }

    /// Whether a face that takes so many more bytes has no more than is left then.
    #[inline]
    fn is_within_share(&self, face: FaceSlot, more: usize) -> bool {
        let held = self.by_face.charged(face) + self.memory() + more;
        held <= self.for_face(face, self.max_bytes)
    }

    /// How much of a bound there is for a face, others' shares included.
    #[inline]
    fn for_face(&self, face: FaceSlot, bound: usize) -> usize {
        match self.by_face.is_stranger(face) {
            true => bound - bound / KEPT_FROM_STRANGERS,
            false => bound,
        }
    }

    /// A face was added, or is another one than before.
    pub(crate) fn meet(&mut self, face: FaceSlot, is_stranger: bool) {
        self.by_face.meet(face, is_stranger);
    }

    #[cold]
    fn has_room_after_trim(&mut self, face: FaceSlot, more: usize) -> bool {
        let kept = self.kept();
        self.kept_after_trim = self.kept_after_trim.min(kept);
        self.trim_pause = self.trim_pause.saturating_sub(1);
        if self.trim_pause > 0 || kept < self.kept_after_trim + self.max_bytes / KEPT_SHARE {
            return false;
        }
        let (heap, mut walked) = (&mut self.heap, 0);
        self.entries.for_free(|entry| {
            *heap -= entry.heap();
            entry.release();
            walked += 1;
        });
        let entries = &self.entries;
        walked += self.by_face.trim(|entry| is_live(entries, entry));
        self.trim_pause = walked / WALKED_A_REFUSAL;
        #[cfg(test)]
        {
            self.steps += walked;
        }
        self.kept_after_trim = self.kept();
        self.is_within_share(face, more)
    }

    /// Bytes held, slots aside, that are no part of a pending Interest.
    fn kept(&self) -> usize {
        self.heap + self.by_face.memory() + self.len * SLOT_BYTES - self.bytes
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> &Entry {
        self.entries.get(id)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: u32) -> &mut Entry {
        self.entries.get_mut(id)
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
        let entry = token.as_u48().map(|token| token as u32 ^ self.tag);
        if let Some(entry) = entry.and_then(|id| self.entries.try_get(id)) {
            prefetch(entry);
        }
    }

    /// Whether an Interest of a face that has `pending` records as a downstream may get an entry with a record, as far
    /// as the bounds and the face's share of them are concerned.
    #[inline]
    pub(crate) fn has_room_for(
        &mut self,
        face: FaceSlot,
        pending: usize,
        interest: &Interest,
    ) -> bool {
        if self.len + pending >= self.for_face(face, self.max_entries) {
            return false;
        }
        let buffer = buffer_size(interest);
        let more = match self.entries.next_free() {
            Some(entry) => buffer.saturating_sub(entry.wire.capacity()),
            None => SLOT_BYTES + buffer,
        };
        more == 0 || self.has_room(face, more)
    }

    /// Adds an entry without records for an Interest of `face` that has none yet; `has_sibling` is what [`Pit::find`]
    /// said.
    pub(crate) fn insert(
        &mut self,
        face: FaceSlot,
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
        let id = self.entries.allocate();
        let entry = self.entries.get_mut(id);
        entry.wire.clear();
        if entry.wire.capacity() < interest.wire().len() {
            self.heap -= entry.wire.capacity();
            entry.wire.reserve_exact(buffer_size(interest));
            self.heap += entry.wire.capacity();
        }
        entry.wire.extend_from_slice(interest.wire());
        let charge = SLOT_BYTES + entry.heap();
        self.bytes += charge;
        self.by_face.charge(face, charge);
        entry.charged_to = face;
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
        entry.rejected = false;
        entry.doubted = None;
        entry.is_short = false;
        self.index.insert(hash, id);
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
        let before = entry.heap();
        entry.clear();
        self.bytes -= SLOT_BYTES + before;
        self.by_face
            .discharge(entry.charged_to, SLOT_BYTES + before);
        self.heap = self.heap + entry.heap() - before;
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
        self.entries.release(id);
        self.len -= 1;
    }

    /// Adds a downstream that the entry does not have yet; false when there is no room.
    #[inline]
    pub(crate) fn add_in(&mut self, id: u32, record: InRecord) -> bool {
        let more = self.get(id).in_growth();
        if !self.grow(id, record.face, more, record.face, Direction::In) {
            return false;
        }
        self.note(id, record.face, Direction::In);
        self.get_mut(id).push_in(record);
        true
    }

    /// Adds an upstream that the entry does not have yet, because `asker` asks; false when there is no room.
    #[inline]
    pub(crate) fn add_out(&mut self, id: u32, asker: FaceSlot, record: OutRecord) -> bool {
        let more = self.get(id).out_growth();
        if !self.grow(id, asker, more, record.face, Direction::Out) {
            return false;
        }
        self.note(id, record.face, Direction::Out);
        self.get_mut(id).push_out(record);
        true
    }

    /// Makes room for a record of `face`, for which `asker` asks: `more` bytes in the entry, and in the index by face.
    #[inline]
    fn grow(
        &mut self,
        id: u32,
        asker: FaceSlot,
        more: usize,
        face: FaceSlot,
        direction: Direction,
    ) -> bool {
        let index = self.by_face.growth(face, direction, self.is_tight());
        if more + index == 0 {
            return true;
        }
        let has_room = self.has_room(asker, more + index);
        if has_room {
            self.heap += more;
            self.bytes += more;
            self.by_face.charge(self.get(id).charged_to, more);
        }
        has_room
    }

    #[inline]
    fn note(&mut self, id: u32, face: FaceSlot, direction: Direction) {
        let entries = &self.entries;
        let generation = entries.get(id).generation;
        let entry = EntryRef { id, generation };
        let is_live = |entry| is_live(entries, entry);
        let tight = self.is_tight();
        self.by_face.add(face, direction, entry, tight, is_live);
    }

    /// Drops a downstream from an entry; false when it was none.
    pub(crate) fn drop_in(&mut self, id: u32, face: FaceSlot) -> bool {
        let ins = &mut self.get_mut(id).ins;
        let Some(at) = ins.iter().position(|r| r.face == face) else {
            return false;
        };
        ins.remove(at);
        let next = ins.first().map(|r| r.face);
        self.by_face.record_dropped(face, Direction::In);
        let entry = self.entries.get_mut(id);
        if let Some(next) = next.filter(|_| entry.charged_to == face) {
            entry.charged_to = next;
            let charge = SLOT_BYTES + entry.heap();
            self.by_face.discharge(face, charge);
            self.by_face.charge(next, charge);
        }
        true
    }

    /// Drops an upstream from an entry; false when it was none.
    pub(crate) fn drop_out(&mut self, id: u32, face: FaceSlot) -> bool {
        let outs = &mut self.get_mut(id).outs;
        let Some(at) = outs.iter().position(|r| r.face == face) else {
            return false;
        };
        outs.remove(at);
        self.by_face.record_dropped(face, Direction::Out);
        true
    }

    /// The entries in which a face had a record, for [`Pit::is_still`] to confirm. They are not told of again.
    pub(crate) fn take_face(&mut self, face: FaceSlot, direction: Direction) -> Vec<EntryRef> {
        let taken = self.by_face.take(face, direction);
        #[cfg(test)]
        {
            self.steps += taken.len();
        }
        taken
    }

    /// The number of an entry, if it is still pending.
    pub(crate) fn is_still(&self, entry: EntryRef) -> Option<u32> {
        is_live(&self.entries, entry).then_some(entry.id)
    }

    /// The token that leads back to an entry.
    #[inline]
    pub(crate) fn token(&self, id: u32) -> PitToken {
        PitToken::from_u48(u64::from(self.get(id).generation) << 32 | u64::from(id | self.tag))
    }

    /// The entry that a token of ours leads to.
    #[inline]
    pub(crate) fn by_token(&self, token: &PitToken) -> Option<u32> {
        let token = token.as_u48()?;
        let id = token as u32 ^ self.tag;
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
        let data = Answer::new(data);
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

#[cfg(test)]
impl Pit {
    /// What is charged to each face, counted one by one, is what the index by face has.
    pub(crate) fn charges_are_right(&self) -> bool {
        let mut charges = vec![0; self.by_face.charged_faces()];
        for entry in self.entries.ids().map(|id| self.get(id)) {
            if entry.live {
                charges[entry.charged_to as usize] += SLOT_BYTES + entry.heap();
            }
        }
        let mut faces = charges.iter().enumerate();
        faces.all(|(face, charge)| self.by_face.charged(face as FaceSlot) == *charge)
    }

    /// What [`Pit::bytes`] and [`Pit::memory`] should be, counted one by one.
    pub(crate) fn recount(&self) -> (usize, usize) {
        let (mut bytes, mut memory) = (0, self.by_face.recount());
        for id in self.entries.ids() {
            let entry = self.get(id);
            let mut held = SLOT_BYTES + entry.wire.capacity();
            if entry.ins.spilled() {
                held += entry.ins.capacity() * size_of::<InRecord>();
            }
            if entry.outs.spilled() {
                held += entry.outs.capacity() * size_of::<OutRecord>();
            }
            memory += held;
            bytes += held * usize::from(entry.live);
        }
        (bytes, memory)
    }
}
