//! Packets, or names, that come together: their searches of the tables go step by step.
//!
//! With large tables a search waits for memory at each of its steps. Here a step is taken for all of a burst, which
//! begins to fetch what the next step will read, before the next one is taken for any: the waits overlap.

use crate::face::{FaceId, FaceSlot};
use crate::forwarder::Forwarder;
use crate::table::hash::{HashedName, NameHashes};
use ndn_packet::{Name, NetKind, NetPacket};
use smallvec::SmallVec;
use std::time::Duration;

/// Packets of a burst: enough to keep the memory busy, few enough for what was fetched to stay in the nearest cache.
const BURST: usize = 64;

impl Forwarder {
    /// Takes in packets that came from a face together, leaving `packets` empty.
    ///
    /// Does what [`Forwarder::receive`] does for each, faster when the tables are large.
    pub fn receive_batch(&mut self, now: Duration, face: FaceId, packets: &mut Vec<NetPacket>) {
        self.state.set_now(now);
        if let Some(slot) = self.state.faces.slot(face) {
            if self.state.place.is_some() {
                self.pass_on(slot, packets);
            }
            for burst in packets.chunks(BURST) {
                self.process_burst(burst.iter().map(|packet| (slot, packet)));
            }
        }
        packets.clear();
        self.run_management();
    }

    /// Takes in packets that other workers have passed on, leaving `packets` empty.
    pub(crate) fn process_arrived(&mut self, packets: &mut Vec<(FaceSlot, NetPacket)>) {
        for burst in packets.chunks(BURST) {
            self.process_burst(burst.iter().map(|(face, packet)| (*face, packet)));
        }
        packets.clear();
    }

    fn process_burst<'a>(
        &mut self,
        packets: impl Iterator<Item = (FaceSlot, &'a NetPacket)> + Clone,
    ) {
        let mut hashes = std::mem::take(&mut self.hashes);
        let mut places = std::mem::take(&mut self.places);
        hashes.clear();
        places.clear();
        places.extend(
            packets
                .clone()
                .map(|(_, packet)| hashes.push(&self.state.key, packet.name())),
        );
        let named = || {
            let packets = packets.clone().zip(&places);
            packets.map(|((face, packet), place)| (face, packet, hashes.get(*place, packet.name())))
        };
        self.prefetch(named().map(|(_, packet, name)| (packet, name)));
        for (face, packet, name) in named() {
            self.dispatch(face, packet, &name);
        }
        self.hashes = hashes;
        self.places = places;
    }

    /// Fetches ahead what processing these packets will read.
    fn prefetch<'a>(&self, packets: impl Iterator<Item = (&'a NetPacket, HashedName<'a>)> + Clone) {
        for (packet, name) in packets.clone() {
            self.cs.prefetch_index(name.full());
            self.state.pit.prefetch_index(name.full());
            match (&packet.packet, &packet.pit_token) {
                (NetKind::Interest(interest), _) => {
                    self.state.fib.prefetch_index(&name);
                    self.state
                        .dead_nonces
                        .prefetch(self.state.fingerprint(&name, interest.nonce().unwrap_or(0)));
                }
                (NetKind::Data(_), Some(token)) => self.state.pit.prefetch_entry(token),
                _ => {}
            }
        }
        let mut cached: SmallVec<[u32; BURST]> = SmallVec::new();
        let mut routed: SmallVec<[HashedName<'_>; BURST]> = SmallVec::new();
        for (packet, name) in packets {
            if matches!(packet.packet, NetKind::Interest(_)) {
                match self.cs.prefetch_data(name.full()) {
                    Some(id) => cached.push(id),
                    None => {
                        self.state.fib.prefetch_entry(&name);
                        routed.push(name);
                    }
                }
            }
        }
        routed
            .iter()
            .for_each(|name| self.state.fib.prefetch_key(name));
        cached.iter().for_each(|&id| self.cs.prefetch_rest(id));
    }

    /// Looks up the routes of several names together: calls `f` with each name and its next hops, as
    /// [`Forwarder::lookup_route`] gives them.
    pub fn lookup_routes(&self, names: &[Name], mut f: impl FnMut(&Name, &[(FaceId, u64)])) {
        let mut found: SmallVec<[(FaceId, u64); 8]> = SmallVec::new();
        self.for_hashed(names, |names, hashed| {
            hashed
                .iter()
                .for_each(|name| self.state.fib.prefetch_index(name));
            hashed
                .iter()
                .for_each(|name| self.state.fib.prefetch_entry(name));
            hashed
                .iter()
                .for_each(|name| self.state.fib.prefetch_key(name));
            for (name, hashed) in names.iter().zip(hashed) {
                let hops = self.state.fib.lookup(hashed).1.iter();
                found.clear();
                found.extend(
                    hops.filter_map(|h| {
                        Some((self.state.faces.get(h.face)?.id, u64::from(h.cost)))
                    }),
                );
                f(name, &found);
            }
        });
    }

    /// How many of these very names the content store holds Data of. Counts neither as hits nor as use.
    pub fn count_cached(&self, names: &[Name]) -> usize {
        let mut held = 0;
        self.for_hashed(names, |_, hashed| {
            hashed
                .iter()
                .for_each(|name| self.cs.prefetch_index(name.full()));
            hashed.iter().for_each(|name| self.cs.prefetch_name(name));
            held += hashed.iter().filter(|name| self.cs.holds(name)).count();
        });
        held
    }

    /// Calls `f` with the names and their hashes, burst by burst.
    fn for_hashed(&self, names: &[Name], mut f: impl FnMut(&[Name], &[HashedName<'_>])) {
        let mut hashes = NameHashes::default();
        for burst in names.chunks(BURST) {
            hashes.clear();
            let places: SmallVec<[(u32, u32); BURST]> = burst
                .iter()
                .map(|name| hashes.push(&self.state.key, name.as_ref()))
                .collect();
            let hashed: SmallVec<[HashedName<'_>; BURST]> = burst
                .iter()
                .zip(&places)
                .map(|(name, place)| hashes.get(*place, name.as_ref()))
                .collect();
            f(burst, &hashed);
        }
    }
}
