//! Which Data a full content store gives up first.
//!
//! ```text
//!   S3-FIFO            asked for twice or more
//!   new ──▶ small ──────────────────────────────▶ main ◀─┐ asked for since:
//!             │ else                                │ └──┘ goes round again
//!             ▼                                     ▼ else
//!           ghost (names alone) ── new again ──▶   out
//! ```
//! Least recently used lets one long read push out everything. S3-FIFO (Yang et al., SOSP 2023) keeps what comes for the
//! first time in a tenth of the room and what has proved itself in the rest, so that a stream that nobody reads twice
//! passes by.

use super::super::list::List;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::fmt;

/// How a content store chooses what to give up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CachePolicy {
    /// What was not asked for the longest.
    #[default]
    Lru,
    /// First what came once and was not asked for again (S3-FIFO).
    S3Fifo,
}

impl CachePolicy {
    /// All policies.
    pub const ALL: [CachePolicy; 2] = [CachePolicy::Lru, CachePolicy::S3Fifo];

    /// What people call it.
    pub const fn label(self) -> &'static str {
        match self {
            CachePolicy::Lru => "lru",
            CachePolicy::S3Fifo => "s3-fifo",
        }
    }

    /// The policy of this [label](Self::label).
    pub fn from_label(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.label() == text)
    }
}

impl fmt::Display for CachePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// The part of the room that is for what came for the first time: one in so many.
const SMALL_SHARE: usize = 10;
/// Uses after which what leaves the small queue goes on to the main one.
const PROVED: u8 = 2;
/// Uses that are told apart.
const MOST_USES: u8 = 3;

/// The order in which slots are given up.
#[derive(Debug)]
pub(super) enum Order {
    Lru(List),
    S3Fifo(Box<S3Fifo>),
}

impl Order {
    pub(super) fn new(policy: CachePolicy) -> Self {
        match policy {
            CachePolicy::Lru => Order::Lru(List::new()),
            CachePolicy::S3Fifo => Order::S3Fifo(Box::default()),
        }
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        match self {
            Order::Lru(list) => list.memory(),
            Order::S3Fifo(queues) => queues.memory(),
        }
    }

    /// A slot that is not in the order came with a name of this hash.
    pub(super) fn add(&mut self, id: u32, hash: u64) {
        match self {
            Order::Lru(list) => list.push_front(id),
            Order::S3Fifo(queues) => queues.add(id, hash),
        }
    }

    /// A slot in the order was used.
    #[inline]
    pub(super) fn touch(&mut self, id: u32) {
        match self {
            Order::Lru(list) => list.touch(id),
            Order::S3Fifo(queues) => queues.touch(id),
        }
    }

    /// Takes a slot out.
    pub(super) fn remove(&mut self, id: u32) {
        match self {
            Order::Lru(list) => list.remove(id),
            Order::S3Fifo(queues) => queues.remove(id),
        }
    }

    /// The slot to give up next. It stays until it is removed.
    pub(super) fn victim(&mut self) -> Option<u32> {
        match self {
            Order::Lru(list) => list.last(),
            Order::S3Fifo(queues) => queues.victim(),
        }
    }

    #[inline]
    pub(super) fn prefetch(&self, id: u32) {
        if let Order::Lru(list) = self {
            list.prefetch(id);
        }
    }

    #[inline]
    pub(super) fn prefetch_neighbours(&self, id: u32) {
        if let Order::Lru(list) = self {
            list.prefetch_neighbours(id);
        }
    }
}

/// What S3-FIFO knows of a slot.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    hash: u64,
    uses: u8,
    in_main: bool,
}

/// The queues of S3-FIFO, counted in slots.
#[derive(Debug)]
pub(super) struct S3Fifo {
    slots: Vec<Slot>,
    small: List,
    main: List,
    small_len: usize,
    main_len: usize,
    /// Hashes of names that left the small queue, and which entry of `ghosts` stands for each.
    known: FxHashMap<u64, u64>,
    ghosts: VecDeque<(u64, u64)>,
    ghost: u64,
}

impl Default for S3Fifo {
    fn default() -> Self {
        S3Fifo {
            slots: Vec::new(),
            small: List::new(),
            main: List::new(),
            small_len: 0,
            main_len: 0,
            known: FxHashMap::default(),
            ghosts: VecDeque::new(),
            ghost: 0,
        }
    }
}

impl S3Fifo {
    fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
            + self.small.memory()
            + self.main.memory()
            + self.ghosts.capacity() * size_of::<(u64, u64)>()
            + self.known.capacity() * (size_of::<(u64, u64)>() + 1)
    }

    fn add(&mut self, id: u32, hash: u64) {
        let at = id as usize;
        if at >= self.slots.len() {
            self.slots.resize(at + 1, Slot::default());
        }
        let in_main = self.known.remove(&hash).is_some();
        self.slots[at] = Slot {
            hash,
            uses: 0,
            in_main,
        };
        if in_main {
            self.main.push_front(id);
            self.main_len += 1;
        } else {
            self.small.push_front(id);
            self.small_len += 1;
        }
    }

    #[inline]
    fn touch(&mut self, id: u32) {
        if let Some(slot) = self.slots.get_mut(id as usize) {
            slot.uses = (slot.uses + 1).min(MOST_USES);
        }
    }

    fn remove(&mut self, id: u32) {
        if self.slots[id as usize].in_main {
            self.main.remove(id);
            self.main_len -= 1;
        } else {
            self.small.remove(id);
            self.small_len -= 1;
        }
    }

    fn victim(&mut self) -> Option<u32> {
        loop {
            let is_small_full = self.small_len * SMALL_SHARE > self.small_len + self.main_len;
            let from_small = self.small.last().filter(|_| is_small_full);
            if let Some(id) = from_small {
                let slot = self.slots[id as usize];
                if slot.uses < PROVED {
                    self.remember(slot.hash);
                    return Some(id);
                }
                self.remove(id);
                self.slots[id as usize].in_main = true;
                self.slots[id as usize].uses = 0;
                self.main.push_front(id);
                self.main_len += 1;
                continue;
            }
            let Some(id) = self.main.last() else {
                return self.small.last();
            };
            let slot = &mut self.slots[id as usize];
            if slot.uses == 0 {
                return Some(id);
            }
            slot.uses -= 1;
            self.main.touch(id);
        }
    }

    /// A name leaves the small queue; as many are remembered as slots are held.
    fn remember(&mut self, hash: u64) {
        self.ghost += 1;
        self.known.insert(hash, self.ghost);
        self.ghosts.push_back((hash, self.ghost));
        while self.ghosts.len() > self.small_len + self.main_len
            && let Some((hash, number)) = self.ghosts.pop_front()
        {
            if self.known.get(&hash) == Some(&number) {
                self.known.remove(&hash);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// A store of `room` slots that is asked for names; hits.
    fn hits(policy: CachePolicy, room: usize, asked: impl IntoIterator<Item = u64>) -> usize {
        let mut order = Order::new(policy);
        let mut held: HashMap<u64, u32> = HashMap::new();
        let mut free: Vec<u32> = (0..=room as u32).rev().collect();
        let mut hits = 0;
        for name in asked {
            if let Some(&id) = held.get(&name) {
                hits += 1;
                order.touch(id);
                continue;
            }
            let id = free.pop().expect("a slot is free");
            held.insert(name, id);
            order.add(id, name);
            if held.len() > room {
                let victim = order.victim().expect("something is held");
                order.remove(victim);
                held.retain(|_, id| *id != victim);
                free.push(victim);
            }
        }
        hits
    }

    /// What is read again and again, between long reads of what nobody reads twice.
    fn reads_and_scans() -> Vec<u64> {
        let mut asked = Vec::new();
        let mut scanned = 1_000_000;
        for _ in 0..20 {
            asked.extend((0..60).chain(0..60).chain(0..60));
            asked.extend(scanned..scanned + 150);
            scanned += 150;
        }
        asked
    }

    #[test]
    fn a_long_read_does_not_push_out_what_is_read_again() {
        let lru = hits(CachePolicy::Lru, 100, reads_and_scans());
        let s3 = hits(CachePolicy::S3Fifo, 100, reads_and_scans());
        assert_eq!(lru, 20 * 120, "the first round misses each time");
        assert!(s3 > 20 * 120 + 15 * 60, "{s3} against {lru}");
    }

    #[test]
    fn a_ghost_goes_straight_to_the_main_queue() {
        let mut queues = S3Fifo::default();
        (0..20).for_each(|id| queues.add(id, id.into()));
        let victim = queues.victim().expect("one");
        assert_eq!(victim, 0, "the first in");
        queues.remove(victim);
        queues.add(20, 0);
        assert!(queues.slots[20].in_main);
        queues.add(21, 0);
        assert!(!queues.slots[21].in_main, "once");
    }

    proptest! {
        /// Whatever is asked for, a victim is held, nothing is lost, and memory of names is bounded.
        #[test]
        fn victims_are_held_and_ghosts_bounded(
            room in 1usize..40,
            asked in prop::collection::vec(0u64..80, 1..600),
        ) {
            for policy in CachePolicy::ALL {
                hits(policy, room, asked.iter().copied());
            }
            let mut queues = S3Fifo::default();
            for (id, name) in asked.iter().enumerate() {
                queues.add(id as u32, *name);
                if id >= room {
                    let victim = queues.victim().expect("held");
                    queues.remove(victim);
                }
                prop_assert!(queues.small_len + queues.main_len <= room);
                prop_assert!(queues.known.len() <= queues.ghosts.len());
                prop_assert!(queues.ghosts.len() <= room + 1);
            }
        }
    }
}
