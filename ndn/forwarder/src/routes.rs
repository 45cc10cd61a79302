//! Routes, strategy choices and content, for owners in the same process.

use crate::face::FaceId;
use crate::forwarder::Forwarder;
use crate::output::RouteError;
use crate::rib::{CHILD_INHERIT, Route, RouteKey, origin};
use crate::shard::Control;
use crate::strategy::StrategyKind;
use crate::table::fib::NextHop;
use crate::table::hash::NameHashes;
use crate::table::name_table::MAX_COMPONENTS;
use ndn_packet::Name;

impl Forwarder {
    /// Adds a static route, or changes its cost. Names under the prefix that have routes of their own inherit it.
    ///
    /// # Errors
    /// When there is no such face, the prefix is too long, or the RIB is full.
    pub fn add_route(&mut self, prefix: &Name, face: FaceId, cost: u64) -> Result<(), RouteError> {
        let slot = self
            .state
            .faces
            .slot(face)
            .ok_or(RouteError::NoSuchFace(face))?;
        let route = Route {
            face: slot,
            origin: origin::STATIC,
            by_peer: false,
            cost,
            flags: CHILD_INHERIT,
            expiry: None,
        };
        self.insert_route(prefix, route)
    }

    /// Removes a static route; false when there was none.
    pub fn remove_route(&mut self, prefix: &Name, face: FaceId) -> bool {
        match self.state.faces.slot(face) {
            Some(face) => {
                let key = RouteKey {
                    face,
                    origin: origin::STATIC,
                    by_peer: false,
                };
                self.withdraw_route(prefix, key)
            }
            None => false,
        }
    }

    pub(crate) fn insert_route(&mut self, prefix: &Name, route: Route) -> Result<(), RouteError> {
        if prefix.len() > MAX_COMPONENTS {
            return Err(RouteError::PrefixTooLong);
        }
        if self.rib.len() >= self.config.rib_max_routes || !self.has_room_for_routes() {
            return Err(RouteError::TooManyRoutes);
        }
        let affected = self.rib.add(prefix, route);
        self.update_fib(affected);
        Ok(())
    }

    /// Bytes of routes, of the FIB that follows from them, and of strategy choices.
    pub(crate) fn routes_memory(&self) -> usize {
        self.rib.memory() + self.state.fib.memory() + self.strategy_choices.memory()
    }

    /// Whether routes and strategy choices may be added.
    pub(crate) fn has_room_for_routes(&self) -> bool {
        self.routes_memory() < self.config.routes_max_bytes
    }

    pub(crate) fn withdraw_route(&mut self, prefix: &Name, key: RouteKey) -> bool {
        let affected = self.rib.remove(prefix, key);
        let any = !affected.is_empty();
        self.update_fib(affected);
        any
    }

    /// Brings the FIB in line with the RIB for these prefixes.
    pub(crate) fn update_fib(&mut self, prefixes: Vec<Name>) {
        for prefix in prefixes {
            let hops = self.rib.next_hops(&prefix);
            let mut hashes = NameHashes::default();
            hashes.push(&self.state.key, prefix.as_ref());
            if self.manages() {
                let with_id = |hop: &NextHop| Some((self.state.faces.get(hop.face)?.id, hop.cost));
                let known: Vec<_> = hops.iter().filter_map(with_id).collect();
                self.tell_others(|| Control::NextHops(prefix.clone(), known.clone()));
            }
            self.state.fib.set(&hashes.last(prefix.as_ref()), hops);
        }
    }

    /// The next hops that Interests of this very prefix or, without an entry of its own, of its longest prefix go to:
    /// face and cost, the cheapest first.
    pub fn lookup_route(&self, name: &Name) -> Vec<(FaceId, u64)> {
        let hops = self
            .state
            .with_hashes(name, |name| self.state.fib.lookup(name).1);
        hops.iter()
            .filter_map(|h| Some((self.state.faces.get(h.face)?.id, u64::from(h.cost))))
            .collect()
    }

    /// Chooses the strategy for a prefix and all names under it that have no choice of their own; false when the
    /// prefix is too long, or no memory may be taken for it.
    pub fn set_strategy(&mut self, prefix: &Name, strategy: StrategyKind) -> bool {
        if !prefix.is_empty() && !self.has_room_for_routes() {
            return false;
        }
        let is_set = self.choose(prefix, strategy);
        if is_set {
            self.tell_others(|| Control::Strategy(prefix.clone(), Some(strategy.index())));
        }
        is_set
    }

    pub(crate) fn choose(&mut self, prefix: &Name, strategy: StrategyKind) -> bool {
        let (choices, index) = (&mut self.strategy_choices, strategy.index());
        self.state
            .with_hashes(prefix, |prefix| choices.set(prefix, index))
    }

    /// Takes the choice for a prefix back; false when there was none. That for `/` stays.
    pub fn unset_strategy(&mut self, prefix: &Name) -> bool {
        self.tell_others(|| Control::Strategy(prefix.clone(), None));
        self.unchoose(prefix)
    }

    pub(crate) fn unchoose(&mut self, prefix: &Name) -> bool {
        let choices = &mut self.strategy_choices;
        self.state
            .with_hashes(prefix, |prefix| choices.unset(prefix))
    }

    /// The strategy that is in charge of a name.
    pub fn strategy(&self, name: &Name) -> StrategyKind {
        let index = self
            .state
            .with_hashes(name, |name| self.strategy_choices.lookup(name));
        StrategyKind::from_index(index)
    }

    /// Drops all content under a prefix from the content store; returns how many packets, of this worker's.
    pub fn erase_cs(&mut self, prefix: &Name) -> usize {
        self.tell_others(|| Control::Erase(prefix.clone()));
        self.erase_own(prefix, usize::MAX).0
    }

    /// Drops so much content under a prefix from the store of this worker; returns how many packets, and whether there
    /// are more.
    pub(crate) fn erase_own(&mut self, prefix: &Name, most: usize) -> (usize, bool) {
        let mut hashes = NameHashes::default();
        hashes.push(&self.state.key, prefix.as_ref());
        self.cs.erase(&hashes.last(prefix.as_ref()), most)
    }

    /// Changes the capacity of the content store, in bytes; of those of all workers together.
    pub fn set_cs_capacity(&mut self, bytes: usize) {
        self.set_stores(bytes, self.cs.admit, self.cs.serve);
    }

    /// The same, and whether content is admitted and served.
    pub(crate) fn set_stores(&mut self, capacity: usize, admit: bool, serve: bool) {
        self.tell_others(|| Control::Store {
            capacity,
            admit,
            serve,
        });
        self.set_store(capacity, admit, serve);
    }

    /// Sets the store of this worker; the capacity is that of all together.
    pub(crate) fn set_store(&mut self, capacity: usize, admit: bool, serve: bool) {
        self.cs_capacity = capacity;
        let place = self.state.place.as_ref();
        self.cs
            .set_capacity(place.map_or(capacity, |place| place.share(capacity)));
        (self.cs.admit, self.cs.serve) = (admit, serve);
    }
}
