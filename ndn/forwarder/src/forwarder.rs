//! The forwarder: its state, and how a driver reaches it.

use crate::config::Config;
use crate::face::{Face, FaceCounters, FaceId, FaceSlot, FaceSpec, FaceTable, INTERNAL_SLOT};
use crate::mgmt::server::Manager;
use crate::output::Output;
use crate::rib::Rib;
use crate::status::{Queues, Status};
use crate::strategy::StrategyKind;
use crate::table::cs::ContentStore;
use crate::table::dead_nonce::DeadNonces;
use crate::table::fib::Fib;
use crate::table::hash::{HashKey, HashedName, NameHashes, splitmix64};
use crate::table::learned::LearnedTable;
use crate::table::name_table::NameTable;
use crate::table::pit::Pit;
use ndn_packet::{NackReason, Name, NetKind, NetPacket};
use std::collections::VecDeque;
use std::time::Duration;

/// Nanoseconds of a duration; some 584 years fit.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A forwarder. See the [crate's page](crate) for how to drive it.
///
/// After any call that may have changed something, take what [`Forwarder::poll_output`] gives until it gives nothing,
/// and ask [`Forwarder::deadline`] again.
#[derive(Debug)]
pub struct Forwarder {
    pub(crate) config: Config,
    pub(crate) key: HashKey,
    pub(crate) faces: FaceTable,
    pub(crate) fib: Fib,
    pub(crate) rib: Rib,
    pub(crate) pit: Pit,
    pub(crate) cs: ContentStore,
    pub(crate) dead_nonces: DeadNonces,
    pub(crate) learned: LearnedTable,
    pub(crate) strategies: NameTable<StrategyKind>,
    pub(crate) manager: Manager,
    /// Packets for the internal face.
    pub(crate) internal: VecDeque<NetPacket>,
    pub(crate) outputs: VecDeque<Output>,
    /// The time of the call in progress, nanoseconds.
    pub(crate) now: u64,
    pub(crate) totals: FaceCounters,
    pub(crate) floods: u64,
    pub(crate) satisfied: u64,
    pub(crate) unsatisfied: u64,
    queues: Queues,
    random: u64,
    /// Room for the names of the packets in progress.
    pub(crate) hashes: NameHashes,
    pub(crate) places: Vec<(u32, u32)>,
}

impl Forwarder {
    /// A forwarder without faces (but the internal one), routes or content.
    pub fn new(config: Config) -> Self {
        let mut random = config.seed;
        let key = HashKey::new(splitmix64(&mut random));
        let mut forwarder = Forwarder {
            key,
            faces: FaceTable::new(),
            fib: Fib::new(),
            rib: Rib::default(),
            pit: Pit::new(),
            cs: ContentStore::new(
                config.cs_capacity_bytes,
                config.cs_copy_below_bytes,
                config.cs_policy,
            ),
            dead_nonces: DeadNonces::new(
                nanos(config.dead_nonce_lifetime),
                config.dead_nonce_max_entries,
            ),
            learned: LearnedTable::new(config.learned_max_entries),
            strategies: NameTable::new(),
            manager: Manager::new(&config),
            internal: VecDeque::new(),
            outputs: VecDeque::new(),
            now: 0,
            totals: FaceCounters::default(),
            floods: 0,
            satisfied: 0,
            unsatisfied: 0,
            queues: Queues::default(),
            random,
            hashes: NameHashes::default(),
            places: Vec::new(),
            config,
        };
        forwarder.add_management_routes();
        forwarder
    }

    /// Adds a face that is up.
    pub fn add_face(&mut self, now: Duration, spec: FaceSpec) -> FaceId {
        self.set_now(now);
        let (_, id) = self.faces.add(spec);
        self.announce_face(id, crate::mgmt::FaceEventKind::Created);
        self.run_management();
        id
    }

    /// Removes a face and all that depends on it: what it waited for, what was expected of it, its routes.
    pub fn remove_face(&mut self, now: Duration, face: FaceId) {
        self.set_now(now);
        let Some(slot) = self.faces.slot(face).filter(|&slot| slot != INTERNAL_SLOT) else {
            return;
        };
        self.announce_face(face, crate::mgmt::FaceEventKind::Destroyed);
        self.fail_upstream(slot);
        self.drop_downstream(slot);
        let affected = self.rib.remove_face(slot);
        self.update_fib(affected);
        self.learned.forget_face(slot);
        self.faces.remove(slot);
        self.run_management();
    }

    /// Tells that a face went down or came up again. While it is down no Interest is sent to it, and what it was asked
    /// is asked of others.
    pub fn set_face_up(&mut self, now: Duration, face: FaceId, up: bool) {
        self.set_now(now);
        let Some(slot) = self.faces.slot(face) else {
            return;
        };
        let Some(entry) = self.faces.get_mut(slot).filter(|f| f.up != up) else {
            return;
        };
        entry.up = up;
        if !up {
            self.fail_upstream(slot);
            self.learned.forget_face(slot);
        }
        let kind = if up {
            crate::mgmt::FaceEventKind::Up
        } else {
            crate::mgmt::FaceEventKind::Down
        };
        self.announce_face(face, kind);
        self.run_management();
    }

    /// Replaces what is said of a face, after its link changed (another MTU, a jumbo agreement).
    pub fn face_updated(&mut self, face: FaceId, spec: FaceSpec) {
        if let Some(entry) = self
            .faces
            .slot(face)
            .and_then(|slot| self.faces.get_mut(slot))
        {
            entry.spec = spec;
        }
    }

    /// What is known of a face.
    pub fn face(&self, face: FaceId) -> Option<&FaceSpec> {
        self.faces.by_id(face).map(|f| &f.spec)
    }

    /// All faces, the internal one included: number, description, whether it is up, counters.
    pub fn faces(&self) -> impl Iterator<Item = (FaceId, &FaceSpec, bool, FaceCounters)> {
        self.faces
            .iter()
            .map(|(_, f)| (f.id, &f.spec, f.up, f.counters))
    }

    /// Counters of a face.
    pub fn counters(&self, face: FaceId) -> Option<FaceCounters> {
        self.faces.by_id(face).map(|f| f.counters)
    }

    /// Figures of the whole forwarder.
    pub fn status(&self) -> Status {
        Status {
            faces: self.faces.iter().count(),
            fib_entries: self.fib.len(),
            fib_bytes: self.fib.memory(),
            rib_routes: self.rib.len(),
            pit_entries: self.pit.len(),
            pit_bytes: self.pit.bytes(),
            cs_entries: self.cs.len(),
            cs_bytes: self.cs.bytes(),
            cs_table_bytes: self.cs.memory(),
            cs_capacity_bytes: self.cs.capacity(),
            cs_hits: self.cs.hits,
            cs_misses: self.cs.misses,
            learned_prefixes: self.learned.len(),
            floods: self.floods,
            satisfied_interests: self.satisfied,
            unsatisfied_interests: self.unsatisfied,
            queues: self.queues,
            packets: self.totals,
        }
    }

    /// Tells what waits to be sent now, for who asks for the status.
    pub fn set_queues(&mut self, queues: Queues) {
        self.queues = queues;
    }

    /// Takes in one packet from a face. One from a face that does not exist is ignored.
    pub fn receive(&mut self, now: Duration, face: FaceId, packet: NetPacket) {
        self.set_now(now);
        if let Some(slot) = self.faces.slot(face) {
            self.process(slot, &packet);
        }
        self.run_management();
    }

    /// What the driver must do next, if anything.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Forwarder::on_deadline`] wants to be called.
    pub fn deadline(&self) -> Option<Duration> {
        let due = [self.pit.deadline(), self.rib.deadline()]
            .into_iter()
            .flatten()
            .min()?;
        Some(Duration::from_nanos(due))
    }

    /// Does what is due by now: ends pending Interests and routes that have expired.
    pub fn on_deadline(&mut self, now: Duration) {
        self.set_now(now);
        while let Some(id) = self.pit.pop_expired(self.now) {
            self.expire(id);
        }
        while let Some((name, face, origin)) = self.rib.pop_expired(self.now) {
            let affected = self.rib.remove(&name, face, origin);
            self.update_fib(affected);
        }
    }

    pub(crate) fn set_now(&mut self, now: Duration) {
        self.now = self.now.max(nanos(now));
    }

    /// A random number; not for secrets.
    pub(crate) fn random(&mut self) -> u64 {
        splitmix64(&mut self.random)
    }

    fn process(&mut self, face: FaceSlot, packet: &NetPacket) {
        let mut hashes = std::mem::take(&mut self.hashes);
        hashes.clear();
        hashes.push(&self.key, packet.name());
        self.dispatch(face, packet, &hashes.last(packet.name()));
        self.hashes = hashes;
    }

    pub(crate) fn process_from_management(&mut self, packet: &NetPacket) {
        self.process(INTERNAL_SLOT, packet);
    }

    pub(crate) fn dispatch(&mut self, face: FaceSlot, packet: &NetPacket, name: &HashedName<'_>) {
        match &packet.packet {
            NetKind::Interest(interest) => self.on_interest(face, packet, interest, name),
            NetKind::Data(data) => self.on_data(face, packet, data, name),
            NetKind::Nack { reason, interest } => {
                self.on_nack(face, packet, *reason, interest, name)
            }
        }
    }

    /// Counts for a face and for all.
    #[inline]
    pub(crate) fn count(&mut self, face: FaceSlot, change: impl Fn(&mut FaceCounters)) {
        self.faces.count(face, &change);
        change(&mut self.totals);
    }

    /// Hashes a name and calls `f` with it.
    pub(crate) fn with_hashes<R>(&self, name: &Name, f: impl FnOnce(&HashedName<'_>) -> R) -> R {
        let mut hashes = NameHashes::default();
        hashes.push(&self.key, name.as_ref());
        f(&hashes.last(name.as_ref()))
    }

    /// Puts a packet out on a face, filling in and taking out what is between us and local applications.
    pub(crate) fn send(&mut self, to: FaceSlot, from: Option<FaceId>, mut packet: NetPacket) {
        let Some(face) = self.faces.get_mut(to) else {
            return;
        };
        packet.incoming_face = if face.spec.local_fields {
            from.map(|id| id.0)
        } else {
            None
        };
        packet.next_hop_face = None;
        let bytes = packet.wire().len() as u64;
        let id = face.id;
        let kind = match packet.packet {
            NetKind::Interest(_) => |c: &mut FaceCounters| c.out_interests += 1,
            NetKind::Data(_) => |c: &mut FaceCounters| c.out_data += 1,
            NetKind::Nack { .. } => |c: &mut FaceCounters| c.out_nacks += 1,
        };
        for counters in [&mut face.counters, &mut self.totals] {
            kind(counters);
            counters.out_bytes += bytes;
        }
        if to == INTERNAL_SLOT {
            self.internal.push_back(packet);
        } else {
            self.outputs.push_back(Output::Send { face: id, packet });
        }
    }

    /// Sends a Nack for an Interest, unless the link is one where Nacks have no place.
    pub(crate) fn send_nack(
        &mut self,
        to: FaceSlot,
        reason: NackReason,
        interest: ndn_packet::Interest,
        token: Option<ndn_packet::PitToken>,
    ) {
        if self.faces.get(to).is_some_and(Face::is_point_to_point) {
            self.send(
                to,
                None,
                NetPacket::nack(reason, interest).with_pit_token(token),
            );
        }
    }
}
