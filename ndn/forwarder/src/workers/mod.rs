//! One forwarder made of several workers: each a [`Forwarder`] with its part of the PIT, the content store, the dead
//! nonces and what strategies remember, and with a copy of the FIB.
//!
//! A name's home is the worker that a hash of its first components says, its last one left out: names that differ in
//! their last component alone, as segments do, have one home, and with it what self-learning knows of them. What is of
//! this host (`/localhost`, `/localhop`) is at home with worker 0, the first, as is management, and with it the RIB; its
//! changes go to the others. A worker takes whatever packets its driver has for it, and passes on to its home what is
//! not its own ([`Forwarder::poll_message`], [`Forwarder::receive_messages`]). The tokens of its Interests carry its
//! number, so that their Data and Nacks come back without a hash.
//!
//! An Interest with CanBePrefix may have a name so short that the names under it have many homes. It waits at the home of
//! its own name, and before it does it visits the other content stores. While a worker has such an Interest waiting, a
//! Data visits that worker on its way home ([`Tour`]). So a name is cached in one place, and whoever may have it gets it.
//!
//! What differs from one worker: what self-learning learns by such a short Interest, its home alone knows; bounds are
//! shared out, so that one home may be full while others are not; and what happens to different names has no order.

mod errand;
mod exchange;
mod message;
mod tour;

pub use message::Message;

pub(crate) use errand::{Errand, Figures, Task};
pub(crate) use message::Control;
pub(crate) use tour::Tour;

use crate::config::Config;
use crate::forwarder::Forwarder;
use crate::state::{LOCALHOP, LOCALHOST};
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
    count: usize,
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
    fn part(&self, number: usize, all: usize) -> usize {
        all / self.count + usize::from(number < all % self.count)
    }

    /// What a worker's bounds are where these are the bounds of all together.
    fn share(&self, number: usize, config: Config) -> Config {
        let part = |all| self.part(number, all);
        Config {
            cs_capacity_bytes: part(config.cs_capacity_bytes),
            pit_max_entries: part(config.pit_max_entries).min(MAX_ENTRIES),
            pit_max_bytes: part(config.pit_max_bytes),
            dead_nonce_max_entries: part(config.dead_nonce_max_entries),
            learned_max_entries: part(config.learned_max_entries),
            learned_max_bytes: part(config.learned_max_bytes),
            routes_max_bytes: part(config.routes_max_bytes),
            outputs_max_bytes: part(config.outputs_max_bytes),
            ..config
        }
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
    fn spread(&self, hash: u64) -> usize {
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
    fn home_of(&self, key: &HashKey, name: NameRef<'_>) -> usize {
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

    fn bit(&self) -> u64 {
        1 << self.number
    }

    /// The workers at which short Interests wait.
    fn with_short(&self) -> u64 {
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
    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.number;
        (0..self.workers.count).filter(move |number| *number != own)
    }

    /// The same, a bit each.
    fn other_bits(&self) -> u64 {
        self.others().fold(0, |bits, number| bits | 1 << number)
    }

    /// The worker whose number a token carries.
    fn of_token(&self, token: &PitToken) -> Option<usize> {
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

impl Forwarder {
    /// One of the workers of a forwarder, the `number`th from 0. The configuration is that of all together, the same for
    /// each.
    pub fn worker(config: Config, workers: &Workers, number: usize) -> Self {
        if workers.count == 1 {
            return Self::new(config);
        }
        let capacity = config.cs_capacity_bytes;
        let place = Place {
            workers: workers.clone(),
            number,
        };
        let mut worker = Self::placed(workers.share(number, config), Some(place));
        worker.cs_capacity = capacity;
        worker
    }

    /// Whether it has the RIB and does what management commands say: it is the only worker, or the first.
    pub(crate) fn manages(&self) -> bool {
        self.state
            .place
            .as_ref()
            .is_none_or(|place| place.number == 0)
    }
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

    #[test]
    fn bounds_are_shared_out_and_come_to_what_they_were() {
        let workers = Workers::new(3, 4);
        let config = Config {
            cs_capacity_bytes: 1000,
            ..Config::default()
        };
        let shares = (0..3).map(|n| workers.share(n, config.clone()).cs_capacity_bytes);
        assert_eq!(shares.collect::<Vec<_>>(), [334, 333, 333]);
    }
}
