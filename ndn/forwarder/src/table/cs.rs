//! Content store: Data kept for later Interests, bounded in bytes; `order.rs` says what goes first.
//!
//! A tree of names over a hash index: each Data is a node, and so is each prefix of its name, so that an Interest with
//! CanBePrefix finds its node by one probe and goes down from there. Of a name too long for its node the rest is read
//! from a Data of that name or below it. One Data is kept for each name; a newer one takes its place.

use super::NIL;
use super::hash::{HashedName, is_digest};
use super::index::{HashIndex, tag_of};
use super::slab::Slab;
use entry::{Branch, Entry};
use ndn_packet::{Data, tlv};
use order::Order;
use rustc_hash::FxHashMap;

mod entry;
mod order;

pub(crate) use entry::Origin;
pub use order::CachePolicy;

/// Data whose names have more components are not kept.
const MAX_COMPONENTS: usize = 64;
/// Most nodes that one search for fresh Data below a prefix looks at.
const MAX_SEARCH: usize = 256;

/// What an Interest asks of the content store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query {
    pub(crate) can_be_prefix: bool,
    pub(crate) must_be_fresh: bool,
    /// Now, nanoseconds.
    pub(crate) now: u64,
}

/// What a downstream that has rejected a Data may mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// None that is held.
    Unknown,
    /// The one held, from this face ([`Origin::from`]).
    Held(u32),
    /// One from before, as far as is known: the one held came a moment ago, because a downstream had rejected that.
    Earlier,
}

/// The store.
#[derive(Debug)]
pub(crate) struct ContentStore {
    index: HashIndex,
    nodes: Slab<Entry, 6>,
    /// How the nodes of the same numbers hang together.
    tree: Slab<Branch, 6>,
    order: Order,
    /// Implicit digests of the Data that were asked for by digest, by node.
    digests: FxHashMap<u64, [u8; 32]>,
    capacity: usize,
    copy_below: usize,
    bytes: usize,
    entries: usize,
    pub(crate) admit: bool,
    pub(crate) serve: bool,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

/// Bytes that a node costs beside the packet: itself, its place in the index and in the order of use.
const NODE_BYTES: usize = size_of::<Entry>() + size_of::<Branch>() + 16 + 8;
/// Bytes of bookkeeping of a buffer that is shared with whoever made it.
const BUFFER_BYTES: usize = 32;
/// Bytes that a digest takes which was computed.
const DIGEST_BYTES: usize = 2 * (32 + 8);

impl ContentStore {
    pub(crate) fn new(capacity: usize, copy_below: usize, policy: CachePolicy) -> Self {
        ContentStore {
            index: HashIndex::new(),
            nodes: Slab::new(),
            tree: Slab::new(),
            order: Order::new(policy),
            digests: FxHashMap::default(),
            capacity,
            copy_below,
            bytes: 0,
            entries: 0,
            admit: true,
            serve: true,
            hits: 0,
            misses: 0,
        }
    }

    /// Number of Data.
    pub(crate) fn len(&self) -> usize {
        self.entries
    }

    /// Bytes in use, entries included.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Bytes of the tables themselves, packets not counted.
    pub(crate) fn memory(&self) -> usize {
        self.index.memory()
            + self.nodes.memory()
            + self.tree.memory()
            + self.order.memory()
            + self.digests.capacity() * size_of::<(u64, [u8; 32])>()
    }

    /// What [`ContentStore::bytes`] should be, counted one by one.
    #[cfg(test)]
    pub(crate) fn recount(&self) -> usize {
        let data = self.nodes.ids().filter_map(|id| self.nodes.get(id).data());
        let packets: usize = data.map(|data| self.packet_bytes(data)).sum();
        packets + self.index.len() * NODE_BYTES + self.digests.len() * DIGEST_BYTES
    }

    /// Whether a packet is kept as a copy, lest it keep a larger buffer alive.
    fn copies(&self, data: &Data) -> bool {
        data.wire().len() < self.copy_below
    }

    /// Bytes that keeping a packet takes beside its nodes.
    fn packet_bytes(&self, data: &Data) -> usize {
        let len = data.wire().len();
        match self.copies(data) {
            true => Data::compact_bytes(len),
            false => len + BUFFER_BYTES,
        }
    }

    /// Changes the capacity in bytes, dropping what no longer fits.
    pub(crate) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.evict();
    }

    /// The node's own Data or, for a prefix, that of the node below it which was added last.
    fn data_below(&self, mut id: u32) -> Option<&Data> {
        while !self.nodes.get(id).has_data() && self.tree.get(id).child != NIL {
            id = self.tree.get(id).child;
        }
        self.nodes.get(id).data()
    }

    #[inline]
    fn find_node(&self, hash: u64, name: &[u8]) -> Option<u32> {
        self.index.find(hash, |id| {
            self.nodes.get(id).is_named(name, || self.data_below(id))
        })
    }

    /// Fetches ahead what a search for this hash reads first.
    #[inline]
    pub(crate) fn prefetch_index(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// Fetches ahead what a search for this name reads next, after [`ContentStore::prefetch_index`].
    #[inline]
    pub(crate) fn prefetch_name(&self, name: &HashedName<'_>) {
        if let Some(id) = self.index.peek(name.full()) {
            self.nodes.get(id).prefetch_name(name.value().len());
        }
    }

    /// The node that a search for this hash will probably find, after [`ContentStore::prefetch_index`]; fetches it
    /// ahead with all that it takes to send its Data.
    #[inline]
    pub(crate) fn prefetch_data(&self, hash: u64) -> Option<u32> {
        let id = self.index.peek(hash)?;
        self.nodes.get(id).prefetch_data();
        self.order.prefetch(id);
        Some(id)
    }

    /// Fetches ahead what else it takes to send a node's Data, after [`ContentStore::prefetch_data`].
    #[inline]
    pub(crate) fn prefetch_rest(&self, id: u32) {
        self.order.prefetch_neighbours(id);
        self.nodes.get(id).prefetch_beyond();
    }

    /// A Data that satisfies an Interest of this name; counts as use.
    pub(crate) fn find(&mut self, name: &HashedName<'_>, query: Query) -> Option<&Data> {
        match self.search_any(name, query) {
            Some(id) => {
                self.hits += 1;
                self.order.touch(id);
                self.nodes.get(id).data()
            }
            None => {
                self.misses += 1;
                None
            }
        }
    }

    /// The same for an Interest that looks into several stores: where this one has nothing, that is no miss.
    pub(crate) fn probe(&mut self, name: &HashedName<'_>, query: Query) -> Option<&Data> {
        let id = self.search_any(name, query)?;
        self.hits += 1;
        self.order.touch(id);
        self.nodes.get(id).data()
    }

    fn search_any(&mut self, name: &HashedName<'_>, query: Query) -> Option<u32> {
        match implicit_digest(name) {
            _ if !self.serve || self.entries == 0 => None,
            Some(digest) => self.search_exact(&name.without_last(1), digest, query),
            None => self.search(name, query),
        }
    }

    /// A downstream says that it has rejected a Data of this very name.
    pub(crate) fn reject(&mut self, name: &HashedName<'_>, downstream: u32, now: u64) -> Rejected {
        let found = self.find_node(name.full(), name.value());
        let Some(id) = found.filter(|&id| self.nodes.get(id).has_data()) else {
            return Rejected::Unknown;
        };
        let origin = &mut self.tree.get_mut(id).origin;
        match origin.is_rejected_by(downstream, now) {
            true => Rejected::Held(origin.from),
            false => Rejected::Earlier,
        }
    }

    /// Whether a Data of this very name is held.
    pub(crate) fn holds(&self, name: &HashedName<'_>) -> bool {
        self.find_node(name.full(), name.value())
            .is_some_and(|id| self.nodes.get(id).has_data())
    }

    fn search(&self, name: &HashedName<'_>, query: Query) -> Option<u32> {
        let top = self.find_node(name.full(), name.value())?;
        if self.answers(top, query) {
            return Some(top);
        }
        if !query.can_be_prefix {
            return None;
        }
        let mut id = top;
        for _ in 0..MAX_SEARCH {
            id = self.next_below(top, id)?;
            if self.answers(id, query) {
                return Some(id);
            }
        }
        None
    }

    /// The Data of this name, if it has this digest.
    fn search_exact(&mut self, name: &HashedName<'_>, digest: &[u8], query: Query) -> Option<u32> {
        let id = self.find_node(name.full(), name.value())?;
        let answers = self.answers(id, query) && self.digest(id)?[..] == *digest;
        answers.then_some(id)
    }

    /// The digest of a node's Data: computed once while the Data is held, whoever asks for whatever digest, and however
    /// often. Being asked for it the first time counts as use, so that the room which it takes is not its own.
    fn digest(&mut self, id: u32) -> Option<[u8; 32]> {
        if let Some(digest) = self.digests.get(&id.into()) {
            return Some(*digest);
        }
        let digest = self.nodes.get(id).data()?.implicit_digest();
        self.digests.insert(id.into(), digest);
        self.bytes += DIGEST_BYTES;
        self.order.touch(id);
        self.evict();
        self.nodes.get(id).has_data().then_some(digest)
    }

    fn forget_digest(&mut self, id: u32) {
        if self.digests.remove(&id.into()).is_some() {
            self.bytes -= DIGEST_BYTES;
        }
    }

    fn answers(&self, id: u32, query: Query) -> bool {
        let node = self.nodes.get(id);
        match query.must_be_fresh {
            true => node.is_fresh(query.now),
            false => node.has_data(),
        }
    }

    /// The node after `id` on a walk over all nodes below `top`, parents before children, younger before elder.
    fn next_below(&self, top: u32, mut id: u32) -> Option<u32> {
        if self.tree.get(id).child != NIL {
            return Some(self.tree.get(id).child);
        }
        while id != top {
            let node = self.tree.get(id);
            if node.next != NIL {
                return Some(node.next);
            }
            id = node.parent;
        }
        None
    }

    /// Keeps a Data of this name, fresh until `fresh_until` (nanoseconds); false when it is not admitted.
    pub(crate) fn insert(
        &mut self,
        name: &HashedName<'_>,
        data: &Data,
        fresh_until: u64,
        origin: Origin,
    ) -> bool {
        let n = name.len();
        let bytes = self.packet_bytes(data);
        if !self.admit
            || n > MAX_COMPONENTS
            || name.value().len() > usize::from(u16::MAX)
            || bytes + (n + 1) * NODE_BYTES > self.capacity
        {
            return false;
        }
        let found = self.find_node(name.full(), name.value());
        let id = found.unwrap_or_else(|| self.add_node(name, n));
        let copy = self.copies(data);
        let old = self.nodes.get_mut(id).put(data, copy, fresh_until);
        self.tree.get_mut(id).origin = origin;
        self.bytes += bytes;
        match old {
            None => {
                self.entries += 1;
                self.order.add(id, name.full());
            }
            Some(old) => {
                self.bytes -= self.packet_bytes(&old);
                self.forget_digest(id);
                self.order.touch(id);
            }
        }
        if found.is_none() {
            self.link(name, n, id);
        }
        self.evict();
        true
    }

    fn add_node(&mut self, name: &HashedName<'_>, n: usize) -> u32 {
        let id = self.nodes.allocate();
        let branch = self.tree.allocate();
        debug_assert_eq!(id, branch, "both are taken and given back together");
        let hash = name.hash(n);
        self.nodes
            .get_mut(id)
            .set_name(tag_of(hash), name.prefix(n));
        *self.tree.get_mut(id) = Branch::default();
        self.index.insert(hash, id);
        self.bytes += NODE_BYTES;
        id
    }

    /// Hangs a node of `n` components below its parent, making parents up to one that exists.
    fn link(&mut self, name: &HashedName<'_>, n: usize, mut id: u32) {
        for k in (0..n).rev() {
            let found = self.find_node(name.hash(k), name.prefix(k));
            let parent = found.unwrap_or_else(|| self.add_node(name, k));
            let elder = std::mem::replace(&mut self.tree.get_mut(parent).child, id);
            let node = self.tree.get_mut(id);
            node.parent = parent;
            node.next = elder;
            if elder != NIL {
                self.tree.get_mut(elder).prev = id;
            }
            if found.is_some() {
                break;
            }
            id = parent;
        }
    }

    fn evict(&mut self) {
        while self.bytes > self.capacity
            && let Some(id) = self.order.victim()
        {
            self.remove(id);
        }
    }

    /// Drops the Data of a node, and the nodes that nothing is left for.
    fn remove(&mut self, mut id: u32) {
        if let Some(data) = self.nodes.get_mut(id).take() {
            self.bytes -= self.packet_bytes(&data);
        }
        self.entries -= 1;
        self.order.remove(id);
        self.forget_digest(id);
        while id != NIL {
            let node = self.nodes.get(id);
            let &Branch {
                parent,
                child,
                prev,
                next,
                ..
            } = self.tree.get(id);
            if child != NIL || node.has_data() {
                break;
            }
            let tag = node.tag;
            if prev != NIL {
                self.tree.get_mut(prev).next = next;
            } else if parent != NIL {
                self.tree.get_mut(parent).child = next;
            }
            if next != NIL {
                self.tree.get_mut(next).prev = prev;
            }
            self.index.remove_tagged(tag, id);
            self.nodes.release(id);
            self.tree.release(id);
            self.bytes -= NODE_BYTES;
            id = parent;
        }
    }

    /// Drops up to `limit` Data under a prefix; returns how many, and whether some are left.
    pub(crate) fn erase(&mut self, prefix: &HashedName<'_>, limit: usize) -> (usize, bool) {
        let mut erased = 0;
        while let Some(top) = self.find_node(prefix.full(), prefix.value()) {
            let mut id = top;
            while !self.nodes.get(id).has_data() {
                match self.next_below(top, id) {
                    Some(next) => id = next,
                    None => return (erased, false),
                }
            }
            if erased == limit {
                return (erased, true);
            }
            self.remove(id);
            erased += 1;
        }
        (erased, false)
    }
}

/// Where the name's value starts in an Interest or Data.
pub(crate) fn name_offset(wire: &[u8]) -> Option<u8> {
    let (_, _, outer) = tlv::read_header(wire).ok()?;
    let (_, _, inner) = tlv::read_header(&wire[outer..]).ok()?;
    u8::try_from(outer + inner).ok()
}

/// The digest that a name ends in, if it does.
pub(crate) fn implicit_digest<'a>(name: &HashedName<'a>) -> Option<&'a [u8]> {
    let n = name.len();
    if n == 0 {
        return None;
    }
    let last = &name.value()[name.prefix(n - 1).len()..];
    is_digest(last).then(|| &last[2..])
}

#[cfg(test)]
mod tests;
