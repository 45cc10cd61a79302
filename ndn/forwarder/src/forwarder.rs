//! The forwarder: its state, and how a driver reaches it.

use crate::config::Config;
use crate::face::{FaceCounters, FaceId, FaceSlot, FaceSpec, FaceTable, INTERNAL_SLOT};
use crate::manager::Manager;
use crate::memory::{MemoryUse, TableMemory};
use crate::output::Output;
use crate::outputs::Outputs;
use crate::rib::Rib;
use crate::shard::{Control, Place, token_tag};
use crate::state::{State, nanos};
use crate::status::{Queues, Status};
use crate::strategy::Strategies;
use crate::table::cs::ContentStore;
use crate::table::dead_nonce::DeadNonces;
use crate::table::fib::Fib;
use crate::table::hash::{HashKey, HashedName, NameHashes};
use crate::table::pit::Pit;
use crate::table::strategy_choice::StrategyChoices;
use ndn_packet::{NetKind, NetPacket};
use std::collections::VecDeque;
use std::time::Duration;

/// A forwarder. See the [crate's page](crate) for how to drive it.
///
/// After any call that may have changed something, take what [`Forwarder::poll_output`] gives until it gives nothing,
/// and ask [`Forwarder::deadline`] again.
#[derive(Debug)]
pub struct Forwarder {
    pub(crate) config: Config,
    pub(crate) state: State,
    pub(crate) rib: Rib,
    pub(crate) cs: ContentStore,
    pub(crate) strategies: Strategies,
    pub(crate) strategy_choices: StrategyChoices,
    pub(crate) manager: Manager,
    queues: Queues,
    driver_memory: Vec<(&'static str, MemoryUse)>,
    /// For nonces; not for secrets.
    pub(crate) random: fastrand::Rng,
    /// Room for the names of the packets in progress.
    pub(crate) hashes: NameHashes,
    pub(crate) places: Vec<(u32, u32)>,
    /// Capacity of the content stores of all workers together.
    pub(crate) cs_capacity: usize,
    /// Room for packets that other workers have for this one.
    pub(crate) arrived: Vec<(FaceSlot, NetPacket)>,
    /// Room for packets whose homes are looked for.
    pub(crate) sorted: Vec<NetPacket>,
}

impl Forwarder {
    /// A forwarder without faces (but the internal one), routes or content.
    pub fn new(config: Config) -> Self {
        Self::placed(config, None)
    }

    /// The same, or one of several workers with its share of the bounds.
    pub(crate) fn placed(config: Config, place: Option<Place>) -> Self {
        let key = HashKey::new(config.seed);
        let (number, count) = place
            .as_ref()
            .map_or((0, 1), |place| (place.number, place.workers.count()));
        // Nonces are seen by others, and must not tell the key.
        let random = fastrand::Rng::with_seed(key.pair(0, number as u64));
        let state = State {
            key,
            faces: FaceTable::new(config.prefix_rules.clone(), number, count),
            fib: Fib::new(),
            pit: Pit::new(config.pit_max_entries, config.pit_max_bytes).tagged(token_tag(number)),
            dead_nonces: DeadNonces::new(
                nanos(config.dead_nonce_lifetime),
                config.dead_nonce_max_entries,
            ),
            internal: VecDeque::new(),
            outputs: Outputs::new(config.outputs_max_bytes),
            place,
            messages: VecDeque::new(),
            short: 0,
            now: 0,
            max_interest_lifetime: nanos(config.max_interest_lifetime),
            producer_regions: config.producer_regions.clone(),
            totals: FaceCounters::default(),
            satisfied: 0,
            unsatisfied: 0,
            floods: 0,
        };
        let mut forwarder = Forwarder {
            state,
            rib: Rib::default(),
            cs: ContentStore::new(
                config.cs_capacity_bytes,
                config.cs_copy_below_bytes,
                config.cs_policy,
            ),
            strategies: Strategies::new(&config.strategy_settings()),
            strategy_choices: StrategyChoices::new(config.default_strategy.index()),
            manager: Manager::new(config.commands.clone(), config.unix_time_at_zero),
            queues: Queues::default(),
            driver_memory: Vec::new(),
            random,
            hashes: NameHashes::default(),
            places: Vec::new(),
            cs_capacity: config.cs_capacity_bytes,
            arrived: Vec::new(),
            sorted: Vec::new(),
            config,
        };
        if forwarder.manages() {
            forwarder.add_management_routes();
        }
        forwarder
    }

    /// Adds a face that is up.
    pub fn add_face(&mut self, now: Duration, spec: FaceSpec) -> FaceId {
        self.state.set_now(now);
        let (slot, id) = self.state.faces.add(spec.clone());
        self.state.meet(slot);
        self.tell_others(|| Control::FaceAdded(id, spec.clone()));
        self.announce_face(id, crate::mgmt::FaceEventKind::Created);
        self.run_management();
        id
    }

    /// Removes a face and all that depends on it: what it waited for, what was expected of it, its routes.
    pub fn remove_face(&mut self, now: Duration, face: FaceId) {
        self.state.set_now(now);
        // Before what follows from it for the routes.
        self.tell_others(|| Control::FaceRemoved(face));
        self.drop_face(face);
        self.run_management();
    }

    pub(crate) fn drop_face(&mut self, face: FaceId) {
        let Some(slot) = self
            .state
            .faces
            .slot(face)
            .filter(|&slot| slot != INTERNAL_SLOT)
        else {
            return;
        };
        self.announce_face(face, crate::mgmt::FaceEventKind::Destroyed);
        self.fail_upstream(slot);
        self.drop_downstream(slot);
        let affected = self.rib.remove_face(slot);
        self.update_fib(affected);
        self.strategies.after_face_down(slot);
        self.state.faces.remove(slot);
    }

    /// Tells that a face went down or came up again. While it is down no Interest is sent to it, and what it was asked
    /// is asked of others.
    pub fn set_face_up(&mut self, now: Duration, face: FaceId, up: bool) {
        self.state.set_now(now);
        self.turn_face(face, up);
        self.tell_others(|| Control::FaceUp(face, up));
        self.run_management();
    }

    pub(crate) fn turn_face(&mut self, face: FaceId, up: bool) {
        let Some(slot) = self.state.faces.slot(face) else {
            return;
        };
        let Some(entry) = self.state.faces.get_mut(slot).filter(|f| f.up != up) else {
            return;
        };
        entry.up = up;
        if !up {
            self.fail_upstream(slot);
            self.strategies.after_face_down(slot);
        }
        let kind = if up {
            crate::mgmt::FaceEventKind::Up
        } else {
            crate::mgmt::FaceEventKind::Down
        };
        self.announce_face(face, kind);
    }

    /// Replaces what is said of a face, after its link changed (another MTU, a jumbo agreement, another peer). Where its
    /// other end proves to have other names, it is another one: what the former one has registered, and what was learned
    /// of it, is forgotten, and what it has asked for is not sent to the new one. Routes set on this host stay.
    pub fn face_updated(&mut self, face: FaceId, spec: FaceSpec) {
        self.tell_others(|| Control::FaceLink(face, spec.clone()));
        self.relink(face, |_| spec);
    }

    /// Replaces what is said of a face by what `change` makes of it.
    pub(crate) fn relink(&mut self, face: FaceId, change: impl FnOnce(&FaceSpec) -> FaceSpec) {
        let Some(slot) = self.state.faces.slot(face) else {
            return;
        };
        let Some(former) = self.state.faces.get(slot) else {
            return;
        };
        let spec = change(&former.spec);
        let is_another = former.spec.peer_names != spec.peer_names;
        self.state.faces.update(slot, spec);
        self.state.meet(slot);
        if is_another {
            let affected = self.rib.remove_registered(slot);
            self.update_fib(affected);
            self.strategies.after_face_down(slot);
            self.drop_downstream(slot);
        }
    }

    /// What is known of a face.
    pub fn face(&self, face: FaceId) -> Option<&FaceSpec> {
        self.state.faces.by_id(face).map(|f| &f.spec)
    }

    /// All faces, the internal one included: number, description, whether it is up, counters.
    pub fn faces(&self) -> impl Iterator<Item = (FaceId, &FaceSpec, bool, FaceCounters)> {
        self.state
            .faces
            .iter()
            .map(|(_, f)| (f.id, &f.spec, f.up, f.counters))
    }

    /// Counters of a face.
    pub fn counters(&self, face: FaceId) -> Option<FaceCounters> {
        self.state.faces.by_id(face).map(|f| f.counters)
    }

    /// Figures of the whole forwarder.
    pub fn status(&self) -> Status {
        Status {
            faces: self.state.faces.iter().count(),
            fib_entries: self.state.fib.len(),
            fib_bytes: self.state.fib.memory(),
            rib_routes: self.rib.len(),
            pit_entries: self.state.pit.len(),
            pit_bytes: self.state.pit.bytes(),
            cs_entries: self.cs.len(),
            cs_bytes: self.cs.bytes(),
            cs_table_bytes: self.cs.memory(),
            cs_capacity_bytes: self.cs.capacity(),
            cs_hits: self.cs.hits,
            cs_misses: self.cs.misses,
            learned_prefixes: self.strategies.memory().entries,
            floods: self.state.floods,
            satisfied_interests: self.state.satisfied,
            unsatisfied_interests: self.state.unsatisfied,
            queues: self.queues,
            packets: self.state.totals,
        }
    }

    /// The memory account: what each table holds, and may hold.
    pub fn memory(&self) -> TableMemory {
        let held = |bytes, capacity_bytes| MemoryUse {
            bytes,
            capacity_bytes,
        };
        let (state, strategies) = (&self.state, self.strategies.memory());
        TableMemory {
            content_store: held(self.cs.bytes(), self.cs.capacity()),
            pit: held(state.pit.memory(), state.pit.capacity()),
            routes: held(self.routes_memory(), self.config.routes_max_bytes),
            dead_nonces: held(state.dead_nonces.memory(), state.dead_nonces.capacity()),
            strategies: held(strategies.bytes, strategies.capacity_bytes),
            management: match self.manages() {
                true => self.manager.memory(),
                false => MemoryUse::default(),
            },
            outputs: held(state.outputs.bytes(), state.outputs.capacity()),
        }
    }

    /// Bytes of packets that wait for [`Forwarder::poll_output`]: a driver that can't send stops reading when they are
    /// many.
    pub fn outputs_bytes(&self) -> usize {
        self.state.outputs.waiting()
    }

    /// Tells what the driver itself holds and may hold in memory, by name, for who asks for the status.
    pub fn set_driver_memory(
        &mut self,
        parts: impl IntoIterator<Item = (&'static str, MemoryUse)>,
    ) {
        self.driver_memory.clear();
        self.driver_memory.extend(parts);
    }

    /// Memory of the tables, and of what the driver has told of itself, by name.
    pub fn memory_parts(&self) -> impl Iterator<Item = (&'static str, MemoryUse)> + '_ {
        self.memory_with(self.memory().tables())
    }

    /// The same with these figures of the tables.
    pub(crate) fn memory_with(
        &self,
        tables: [(&'static str, MemoryUse); 7],
    ) -> impl Iterator<Item = (&'static str, MemoryUse)> + '_ {
        tables.into_iter().chain(self.driver_memory.iter().copied())
    }

    /// Tells what waits to be sent now, for who asks for the status.
    pub fn set_queues(&mut self, queues: Queues) {
        self.queues = queues;
    }

    /// Takes in one packet from a face. One from a face that does not exist is ignored.
    pub fn receive(&mut self, now: Duration, face: FaceId, packet: NetPacket) {
        if self.state.place.is_some() {
            return self.receive_batch(now, face, &mut vec![packet]);
        }
        self.state.set_now(now);
        if let Some(slot) = self.state.faces.slot(face) {
            self.process(slot, &packet);
        }
        self.run_management();
    }

    /// How many outputs wait for the driver. While there are many it had better take them than bring more packets.
    pub fn pending_outputs(&self) -> usize {
        self.state.outputs.len()
    }

    /// What the driver must do next, if anything.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.state.outputs.pop()
    }

    /// When [`Forwarder::on_deadline`] wants to be called.
    pub fn deadline(&self) -> Option<Duration> {
        let due = [self.state.pit.deadline(), self.rib.deadline()]
            .into_iter()
            .flatten()
            .min()?;
        Some(Duration::from_nanos(due))
    }

    /// Does what is due by now: ends pending Interests and routes that have expired.
    pub fn on_deadline(&mut self, now: Duration) {
        self.state.set_now(now);
        while let Some(id) = self.state.pit.pop_expired(self.state.now) {
            self.expire(id);
        }
        while let Some((name, key)) = self.rib.pop_expired(self.state.now) {
            let affected = self.rib.remove(&name, key);
            self.update_fib(affected);
        }
    }

    fn process(&mut self, face: FaceSlot, packet: &NetPacket) {
        let mut hashes = std::mem::take(&mut self.hashes);
        hashes.clear();
        hashes.push(&self.state.key, packet.name());
        self.dispatch(face, packet, &hashes.last(packet.name()));
        self.hashes = hashes;
    }

    pub(crate) fn process_from_management(&mut self, packet: &NetPacket) {
        self.process(INTERNAL_SLOT, packet);
    }

    pub(crate) fn dispatch(&mut self, face: FaceSlot, packet: &NetPacket, name: &HashedName<'_>) {
        match &packet.packet {
            NetKind::Interest(interest) => self.on_interest(face, packet, interest, name, false),
            NetKind::Data(data) => match self.away(name) {
                None => self.on_data(face, packet, data, name),
                Some(_) => self.on_stray(face, packet),
            },
            NetKind::Nack { reason, interest } => match self.away(name) {
                None => self.on_nack(face, packet, *reason, interest, name),
                Some(_) => self.on_stray(face, packet),
            },
        }
    }

    /// An Interest that has visited all other content stores is back at home.
    pub(crate) fn process_again(&mut self, face: FaceId, packet: &NetPacket) {
        if let Some(slot) = self.state.faces.slot(face)
            && let NetKind::Interest(interest) = &packet.packet
        {
            let mut hashes = NameHashes::default();
            hashes.push(&self.state.key, interest.name());
            let name = hashes.last(interest.name());
            self.on_interest(slot, packet, interest, &name, true);
        }
    }
}
