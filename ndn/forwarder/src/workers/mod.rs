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
mod tour;

use crate::config::Config;
use crate::forwarder::Forwarder;
use crate::shard::{MAX_ENTRIES, Place, Workers};

impl Workers {
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
