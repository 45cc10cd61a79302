//! What the workers of one forwarder know of each other: which is the home of a name, and what they send each other.
//! What they do with it is in [`workers`](crate::workers).

mod errand;
mod message;
mod tour;

pub use message::Message;

pub(crate) use errand::{Errand, Figures, Task};
pub(crate) use message::{Body, Control};
pub(crate) use tour::Tour;

use crate::scope::{LOCALHOP, LOCALHOST};
use crate::table::cs::implicit_digest;
use crate::table::hash::{HashKey, HashedName};
use ndn_packet::{NameRef, PitToken};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Most workers that a forwarder can have.
pub const MAX_WORKERS: usize = 64;
/// Where the worker's number stands in a token, above an entry's.
const NUMBER_SHIFT: u32 = 26;
/// Entries that the PIT of one of several workers may have, so that their numbers and the worker's go into a token.
pub(crate) const MAX_ENTRIES: usize = 1 << NUMBER_SHIFT;

/// What the workers of one forwarder have in common.
#[derive(Debug, Clone)]
pub struct Workers {
    pub(crate) count: usize,
    /// Components of a name that tell its home, at most.
    prefix_components: usize,
    /// The workers at which short Interests with CanBePrefix wait, a bit each.
    with_short: Arc<AtomicU64>,
}

impl Workers {
    /// So many workers, 1 to [`MAX_WORKERS`], among which names are shared out by their first `prefix_components`
    /// components at most, at least one.
    pub fn new(count: usize, prefix_components: usize) -> Self {
        Workers {
            count: count.clamp(1, MAX_WORKERS),
            prefix_components: prefix_components.max(1),
            with_short: Arc::default(),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// What is a worker's of a bound of all together.
    pub(crate) fn part(&self, number: usize, all: usize) -> usize {
        all / self.count + usize::from(number < all % self.count)
    }
}

/// A worker's place among the others.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) workers: Workers,
    pub(crate) number: usize,
}

impl Place {
    /// What is this worker's of a bound of all together.
    pub(crate) fn share(&self, all: usize) -> usize {
        self.workers.part(self.number, all)
    }

    /// The homes of names whose hashes spread evenly.
    pub(crate) fn spread(&self, hash: u64) -> usize {
        // The tables take the high bits, and a worker's names are not to have those in common.
        let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        ((mixed * self.workers.count as u64) >> 32) as usize
    }

    /// The worker that a name is at home with.
    #[inline]
    pub(crate) fn home(&self, name: &HashedName<'_>) -> usize {
        if is_of_this_host(name.value()) {
            return 0;
        }
        let digest = usize::from(implicit_digest(name).is_some());
        let but_last = name.len().saturating_sub(digest + 1);
        self.spread(name.hash(but_last.min(self.workers.prefix_components)))
    }

    /// The same, of a name that has not been hashed.
    pub(crate) fn home_of(&self, key: &HashKey, name: NameRef<'_>) -> usize {
        if is_of_this_host(name.value()) {
            return 0;
        }
        self.spread(key.first_components(name, self.workers.prefix_components))
    }

    /// Whether names under this one, which has so many components and is an Interest's with CanBePrefix, may have
    /// several homes.
    pub(crate) fn is_short(&self, components: usize, name: &[u8]) -> bool {
        components <= self.workers.prefix_components && !is_of_this_host(name)
    }

    pub(crate) fn bit(&self) -> u64 {
        1 << self.number
    }

    /// The workers at which short Interests wait.
    pub(crate) fn with_short(&self) -> u64 {
        self.workers.with_short.load(Relaxed)
    }

    /// Says whether short Interests wait at this worker.
    pub(crate) fn set_short(&self, any: bool) {
        if any {
            self.workers.with_short.fetch_or(self.bit(), Relaxed);
        } else {
            self.workers.with_short.fetch_and(!self.bit(), Relaxed);
        }
    }

    /// All workers but this one.
    pub(crate) fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.number;
        (0..self.workers.count).filter(move |number| *number != own)
    }

    /// The same, a bit each.
    pub(crate) fn other_bits(&self) -> u64 {
        self.others().fold(0, |bits, number| bits | 1 << number)
    }

    /// The worker whose number a token carries.
    pub(crate) fn of_token(&self, token: &PitToken) -> Option<usize> {
        let number = (token.as_u48()? as u32 >> NUMBER_SHIFT) as usize;
        (number < self.workers.count).then_some(number)
    }
}

fn is_of_this_host(name: &[u8]) -> bool {
    name.starts_with(LOCALHOST) || name.starts_with(LOCALHOP)
}

/// What the worker of a number adds to the numbers of its PIT entries in tokens.
pub(crate) fn token_tag(number: usize) -> u32 {
    (number as u32) << NUMBER_SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::hash::NameHashes;
    use ndn_packet::Name;

    fn place(count: usize, components: usize) -> Place {
        Place {
            workers: Workers::new(count, components),
            number: 0,
        }
    }

    fn home(place: &Place, uri: &str) -> usize {
        let key = HashKey::new(3);
        let name: Name = uri.parse().unwrap();
        let mut hashes = NameHashes::default();
        hashes.push(&key, name.as_ref());
        let home = place.home(&hashes.last(name.as_ref()));
        assert_eq!(place.home_of(&key, name.as_ref()), home, "{uri}");
        home
    }

    #[test]
    fn segments_and_digests_have_their_names_home() {
        let place = place(8, 4);
        let digest = "sha256digest=".to_owned() + &"5a".repeat(32);
        for prefix in ["/", "/a", "/a/b", "/a/b/c", "/a/b/c/d"] {
            let under = |last: String| format!("{}/{last}", prefix.trim_end_matches('/'));
            let first = home(&place, &under("seg=0".to_owned()));
            for n in 1..50 {
                assert_eq!(home(&place, &under(format!("seg={n}"))), first, "{prefix}");
            }
            let by_digest = under(format!("seg=0/{digest}"));
            assert_eq!(home(&place, &by_digest), first, "{prefix}");
        }
        let deep = home(&place, "/a/b/c/d/e/f");
        assert_eq!(home(&place, "/a/b/c/d/x"), deep);
        assert_eq!(home(&place, &format!("/{digest}")), home(&place, "/"));
    }

    #[test]
    fn blocks_spread_and_what_is_of_this_host_does_not() {
        let place = place(8, 4);
        let mut names = [0; 8];
        for block in 0..8000 {
            names[home(&place, &format!("/hadoop/blocks/BP-1/{block}/v=1/seg=0"))] += 1;
        }
        assert!(names.iter().all(|n| (800..1200).contains(n)), "{names:?}");
        for uri in ["/localhost/nfd/rib/list", "/localhop/a/b", "/localhost"] {
            assert_eq!(home(&place, uri), 0);
        }
    }
}
