//! Routing information base: who wants which prefix, and the FIB that follows from it.
//!
//! A route may be inherited by longer prefixes (ChildInherit), and a prefix may refuse to inherit (Capture). Next hops
//! that fib commands set directly are kept apart and merged in.

use crate::face::FaceSlot;
use crate::table::fib::NextHop;
use ndn_packet::Name;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, btree_map};

/// Flag of a route: longer prefixes inherit it.
pub const CHILD_INHERIT: u64 = 1;
/// Flag of a route: its prefix inherits nothing from shorter ones.
pub const CAPTURE: u64 = 2;

/// Well-known origins of routes.
pub mod origin {
    /// Registered by an application.
    pub const APP: u64 = 0;
    /// From the forwarder's configuration or an operator's command.
    pub const STATIC: u64 = 255;
}

/// A route to a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) face: FaceSlot,
    pub(crate) origin: u64,
    /// The other end of its face has registered it, not somebody on this host.
    pub(crate) by_peer: bool,
    pub(crate) cost: u64,
    pub(crate) flags: u64,
    /// When it ends, nanoseconds.
    pub(crate) expiry: Option<u64>,
}

impl Route {
    pub(crate) fn key(&self) -> RouteKey {
        let Route {
            face,
            origin,
            by_peer,
            ..
        } = *self;
        RouteKey {
            face,
            origin,
            by_peer,
        }
    }
}

/// Which of the routes to a prefix. What a face's other end registers stands beside what was set on this host, whatever
/// origin it gives: it neither changes nor removes that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RouteKey {
    pub(crate) face: FaceSlot,
    pub(crate) origin: u64,
    pub(crate) by_peer: bool,
}

#[derive(Debug, Default)]
struct Prefix {
    routes: Vec<Route>,
    /// Next hops set by fib commands.
    direct: Vec<NextHop>,
}

impl Prefix {
    fn is_empty(&self) -> bool {
        self.routes.is_empty() && self.direct.is_empty()
    }

    /// Bytes that a prefix of this name takes.
    fn memory(&self, name: &Name) -> usize {
        PREFIX_BYTES
            + name.value().len()
            + self.routes.capacity() * size_of::<Route>()
            + self.direct.capacity() * size_of::<NextHop>()
    }

    fn captures(&self) -> bool {
        self.routes.iter().any(|r| r.flags & CAPTURE != 0)
    }
}

/// The table.
#[derive(Debug, Default)]
pub(crate) struct Rib {
    /// In canonical order: the names under a prefix follow it.
    prefixes: BTreeMap<Name, Prefix>,
    expiries: BTreeSet<(u64, Name, RouteKey)>,
    by_face: FxHashMap<FaceSlot, BTreeSet<Name>>,
    routes: usize,
    /// Bytes of the names of all prefixes, and of their lists of routes and next hops.
    prefix_bytes: usize,
    /// Names in `by_face`.
    face_names: usize,
}

/// Bytes that a prefix takes beside its name: its place in a tree whose nodes may be half full, and its buffer's own.
const PREFIX_BYTES: usize = 2 * (size_of::<Name>() + size_of::<Prefix>()) + 32;
/// Bytes that a face's entry for a prefix takes.
const FACE_NAME_BYTES: usize = 2 * size_of::<Name>();
/// Bytes that the end of a route takes.
const EXPIRY_BYTES: usize = 2 * size_of::<(u64, Name, RouteKey)>();

impl Rib {
    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.prefix_bytes + self.face_names * FACE_NAME_BYTES + self.expiries.len() * EXPIRY_BYTES
    }

    /// What [`Rib::memory`] should be, counted one by one.
    #[cfg(test)]
    pub(crate) fn recount(&self) -> usize {
        let prefixes = self.prefixes.iter().map(|(name, p)| p.memory(name));
        let names: usize = self.by_face.values().map(BTreeSet::len).sum();
        prefixes.sum::<usize>() + names * FACE_NAME_BYTES + self.expiries.len() * EXPIRY_BYTES
    }

    /// Changes a prefix, making it if need be, and dropping it if nothing is left of it.
    fn change<R>(&mut self, name: &Name, f: impl FnOnce(&mut Prefix) -> R) -> R {
        let prefix = match self.prefixes.entry(name.clone()) {
            btree_map::Entry::Occupied(entry) => {
                self.prefix_bytes -= entry.get().memory(name);
                entry.into_mut()
            }
            btree_map::Entry::Vacant(entry) => entry.insert(Prefix::default()),
        };
        let result = f(prefix);
        if prefix.is_empty() {
            self.prefixes.remove(name);
        } else {
            self.prefix_bytes += prefix.memory(name);
        }
        result
    }

    /// Notes that a face has something at a prefix.
    fn note(&mut self, face: FaceSlot, name: &Name) {
        let names = self.by_face.entry(face).or_default();
        self.face_names += usize::from(names.insert(name.clone()));
    }

    /// Number of routes.
    pub(crate) fn len(&self) -> usize {
        self.routes
    }

    /// Adds or changes a route; returns the prefixes whose next hops may have changed.
    pub(crate) fn add(&mut self, name: &Name, route: Route) -> Vec<Name> {
        let name = name.compact();
        let same = |r: &&mut Route| r.key() == route.key();
        let old = self.change(&name, |prefix| match prefix.routes.iter_mut().find(same) {
            Some(old) => Some(std::mem::replace(old, route)),
            None => {
                prefix.routes.push(route);
                None
            }
        });
        let mut flags = route.flags;
        match old {
            None => self.routes += 1,
            Some(old) => {
                flags |= old.flags;
                self.forget_expiry(&name, &old);
            }
        }
        if let Some(expiry) = route.expiry {
            self.expiries.insert((expiry, name.clone(), route.key()));
        }
        self.note(route.face, &name);
        self.affected(name, flags)
    }

    /// Removes a route; returns the prefixes whose next hops may have changed.
    pub(crate) fn remove(&mut self, name: &Name, key: RouteKey) -> Vec<Name> {
        if !self.prefixes.contains_key(name) {
            return Vec::new();
        }
        let is_it = |r: &Route| r.key() == key;
        let removed = self.change(name, |prefix| {
            let at = prefix.routes.iter().position(is_it)?;
            Some(prefix.routes.remove(at))
        });
        let Some(route) = removed else {
            return Vec::new();
        };
        self.routes -= 1;
        self.forget_expiry(name, &route);
        self.forget_if_unused(name, key.face);
        self.affected(name.compact(), route.flags)
    }

    /// Sets a next hop directly; returns the prefixes whose next hops may have changed.
    pub(crate) fn add_direct(&mut self, name: &Name, hop: NextHop) -> Vec<Name> {
        let name = name.compact();
        self.change(&name, |prefix| {
            prefix.direct.retain(|h| h.face != hop.face);
            prefix.direct.push(hop);
        });
        self.note(hop.face, &name);
        vec![name]
    }

    /// Sets all direct next hops of a prefix; returns the prefixes whose next hops may have changed.
    pub(crate) fn set_direct(&mut self, name: &Name, hops: Vec<NextHop>) -> Vec<Name> {
        let name = name.compact();
        let faces: Vec<FaceSlot> = hops.iter().map(|hop| hop.face).collect();
        let before = self.change(&name, |prefix| std::mem::replace(&mut prefix.direct, hops));
        for hop in before {
            self.forget_if_unused(&name, hop.face);
        }
        for face in faces {
            self.note(face, &name);
        }
        vec![name]
    }

    /// Removes a next hop that was set directly; returns the prefixes whose next hops may have changed.
    pub(crate) fn remove_direct(&mut self, name: &Name, face: FaceSlot) -> Vec<Name> {
        if !self.prefixes.contains_key(name) {
            return Vec::new();
        }
        self.change(name, |prefix| prefix.direct.retain(|h| h.face != face));
        self.forget_if_unused(name, face);
        vec![name.compact()]
    }

    /// Removes all routes and next hops of a face; returns the prefixes whose next hops may have changed.
    pub(crate) fn remove_face(&mut self, face: FaceSlot) -> Vec<Name> {
        let names = self.by_face.remove(&face).unwrap_or_default();
        self.face_names -= names.len();
        let mut affected = BTreeSet::new();
        for name in names {
            let mut removed = Vec::new();
            self.change(&name, |prefix| {
                prefix.direct.retain(|h| h.face != face);
                let (gone, kept) = prefix.routes.iter().partition(|r| r.face == face);
                (removed, prefix.routes) = (gone, kept);
            });
            self.routes -= removed.len();
            removed.iter().for_each(|r| self.forget_expiry(&name, r));
            let flags = removed.iter().fold(0, |flags, r| flags | r.flags);
            affected.extend(self.affected(name, flags));
        }
        affected.into_iter().collect()
    }

    /// Removes the routes that the other end of a face has registered; returns the prefixes whose next hops may have
    /// changed.
    pub(crate) fn remove_registered(&mut self, face: FaceSlot) -> Vec<Name> {
        let names = self.by_face.get(&face).into_iter().flatten();
        let registered = names.flat_map(|name| {
            let routes = self.prefixes.get(name).map(|prefix| &prefix.routes);
            let keys = routes.into_iter().flatten().map(Route::key);
            keys.map(move |key| (name.clone(), key))
        });
        let registered: Vec<_> = registered
            .filter(|(_, key)| key.face == face && key.by_peer)
            .collect();
        let affected: BTreeSet<Name> = registered
            .iter()
            .flat_map(|(name, key)| self.remove(name, *key))
            .collect();
        affected.into_iter().collect()
    }

    /// Removes a route that has expired at `now`; returns its prefix and which it is. Call until there is none.
    pub(crate) fn pop_expired(&mut self, now: u64) -> Option<(Name, RouteKey)> {
        let (expiry, ..) = self.expiries.first()?;
        if *expiry > now {
            return None;
        }
        let (_, name, key) = self.expiries.pop_first()?;
        Some((name, key))
    }

    /// When the next route expires, nanoseconds.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.expiries.first().map(|(expiry, ..)| *expiry)
    }

    /// The next hops of a prefix: its own and inherited ones, the cheapest for each face.
    pub(crate) fn next_hops(&self, name: &Name) -> Vec<NextHop> {
        let mut hops: Vec<NextHop> = Vec::new();
        let mut merge = |face: FaceSlot, cost: u32| match hops.iter_mut().find(|h| h.face == face) {
            Some(hop) => hop.cost = hop.cost.min(cost),
            None => hops.push(NextHop { face, cost }),
        };
        let cost = |r: &Route| u32::try_from(r.cost).unwrap_or(u32::MAX);
        let Some(own) = self.prefixes.get(name) else {
            return hops;
        };
        own.direct.iter().for_each(|h| merge(h.face, h.cost));
        own.routes.iter().for_each(|r| merge(r.face, cost(r)));
        if own.routes.is_empty() || own.captures() {
            // What only fib commands know of inherits nothing.
            return hops;
        }
        let own_faces: Vec<FaceSlot> = own.routes.iter().map(|r| r.face).collect();
        for n in (0..name.len()).rev() {
            let Some(ancestor) = self.prefixes.get(name.prefix(n).value()) else {
                continue;
            };
            for route in ancestor
                .routes
                .iter()
                .filter(|r| r.flags & CHILD_INHERIT != 0)
            {
                // A face's own route to the prefix counts, not the one it inherits.
                if !own_faces.contains(&route.face) {
                    merge(route.face, cost(route));
                }
            }
            if ancestor.captures() {
                break;
            }
        }
        hops
    }

    /// All prefixes with their routes, in canonical order; prefixes without any are left out.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Name, &[Route])> {
        self.prefixes
            .iter()
            .filter(|(_, p)| !p.routes.is_empty())
            .map(|(name, p)| (name, &p.routes[..]))
    }

    fn forget_expiry(&mut self, name: &Name, route: &Route) {
        if let Some(expiry) = route.expiry {
            self.expiries.remove(&(expiry, name.clone(), route.key()));
        }
    }

    fn forget_if_unused(&mut self, name: &Name, face: FaceSlot) {
        let is_used = self.prefixes.get(name).is_some_and(|prefix| {
            prefix.direct.iter().any(|h| h.face == face)
                || prefix.routes.iter().any(|r| r.face == face)
        });
        if !is_used && let Some(names) = self.by_face.get_mut(&face) {
            self.face_names -= usize::from(names.remove(name));
            if names.is_empty() {
                self.by_face.remove(&face);
            }
        }
    }

    /// A prefix and, if a route with these flags concerns them, those under it.
    fn affected(&self, name: Name, flags: u64) -> Vec<Name> {
        if flags & (CHILD_INHERIT | CAPTURE) == 0 {
            return vec![name];
        }
        let below = self
            .prefixes
            .range(name.clone()..)
            .map(|(n, _)| n)
            .take_while(|n| name.is_prefix_of(n));
        let mut affected: Vec<Name> = below.filter(|n| **n != name).cloned().collect();
        affected.push(name);
        affected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    fn route(face: FaceSlot, cost: u64, flags: u64) -> Route {
        Route {
            face,
            origin: origin::APP,
            by_peer: false,
            cost,
            flags,
            expiry: None,
        }
    }

    fn hops(rib: &Rib, uri: &str) -> Vec<(FaceSlot, u32)> {
        let mut hops: Vec<_> = rib
            .next_hops(&name(uri))
            .iter()
            .map(|h| (h.face, h.cost))
            .collect();
        hops.sort();
        hops
    }

    #[test]
    fn longer_prefixes_inherit_until_one_captures() {
        let mut rib = Rib::default();
        rib.add(&name("/"), route(1, 10, CHILD_INHERIT));
        rib.add(&name("/a"), route(2, 20, CHILD_INHERIT));
        rib.add(&name("/a/b"), route(3, 30, 0));
        assert_eq!(hops(&rib, "/a/b"), [(1, 10), (2, 20), (3, 30)]);
        let affected = rib.add(&name("/a"), route(2, 20, CHILD_INHERIT | CAPTURE));
        assert_eq!(affected.len(), 2);
        assert_eq!(hops(&rib, "/a"), [(2, 20)]);
        assert_eq!(hops(&rib, "/a/b"), [(2, 20), (3, 30)]);
        rib.add(&name("/a/b"), route(4, 40, CAPTURE));
        assert_eq!(hops(&rib, "/a/b"), [(3, 30), (4, 40)]);
    }

    #[test]
    fn a_faces_own_route_counts_more_than_an_inherited_cheaper_one() {
        let mut rib = Rib::default();
        rib.add(&name("/"), route(1, 10, CHILD_INHERIT));
        rib.add(&name("/a"), route(1, 50, 0));
        assert_eq!(hops(&rib, "/a"), [(1, 50)]);
    }

    #[test]
    fn several_origins_make_one_next_hop_of_the_least_cost() {
        let mut rib = Rib::default();
        rib.add(&name("/a"), route(1, 10, 0));
        rib.add(
            &name("/a"),
            Route {
                origin: origin::STATIC,
                ..route(1, 5, 0)
            },
        );
        assert_eq!(hops(&rib, "/a"), [(1, 5)]);
        let key = RouteKey {
            face: 1,
            origin: origin::STATIC,
            by_peer: false,
        };
        rib.remove(&name("/a"), key);
        assert_eq!(hops(&rib, "/a"), [(1, 10)]);
        assert_eq!(rib.len(), 1);
    }

    #[test]
    fn routes_expire_once() {
        let mut rib = Rib::default();
        rib.add(
            &name("/a"),
            Route {
                expiry: Some(100),
                ..route(1, 0, 0)
            },
        );
        rib.add(
            &name("/a"),
            Route {
                expiry: Some(200),
                ..route(1, 0, 0)
            },
        );
        assert_eq!(rib.deadline(), Some(200));
        assert!(rib.pop_expired(199).is_none());
        let (prefix, key) = rib.pop_expired(200).unwrap();
        assert_eq!(rib.remove(&prefix, key), [name("/a")]);
        assert_eq!(rib.len(), 0);
        assert!(hops(&rib, "/a").is_empty());
    }

    #[test]
    fn a_removed_face_takes_its_routes_and_direct_next_hops_along() {
        let mut rib = Rib::default();
        rib.add(&name("/a"), route(1, 0, CHILD_INHERIT));
        rib.add(&name("/a/b"), route(2, 0, 0));
        rib.add_direct(&name("/c"), NextHop { face: 1, cost: 3 });
        assert_eq!(hops(&rib, "/c"), [(1, 3)]);
        let mut affected = rib.remove_face(1);
        affected.sort();
        assert_eq!(affected, [name("/a"), name("/a/b"), name("/c")]);
        assert!(hops(&rib, "/a").is_empty());
        assert_eq!(hops(&rib, "/a/b"), [(2, 0)]);
        assert_eq!(rib.len(), 1);
    }

    #[test]
    fn what_a_peer_registers_stands_beside_what_this_host_has_set() {
        let mut rib = Rib::default();
        let registered = |face, cost| Route {
            by_peer: true,
            expiry: Some(50),
            ..route(face, cost, CHILD_INHERIT)
        };
        rib.add(&name("/a"), route(1, 10, CHILD_INHERIT));
        rib.add(&name("/a"), registered(1, 5));
        rib.add(&name("/a"), registered(2, 7));
        rib.add(&name("/a/b"), registered(1, 6));
        rib.add_direct(&name("/c"), NextHop { face: 1, cost: 3 });
        assert_eq!(rib.len(), 4);
        assert_eq!(hops(&rib, "/a"), [(1, 5), (2, 7)]);
        let mut affected = rib.remove_registered(1);
        affected.sort();
        assert_eq!(affected, [name("/a"), name("/a/b")]);
        assert_eq!(hops(&rib, "/a"), [(1, 10), (2, 7)]);
        assert!(hops(&rib, "/a/b").is_empty());
        assert_eq!(hops(&rib, "/c"), [(1, 3)]);
        assert_eq!((rib.len(), rib.memory()), (2, rib.recount()));
        assert!(rib.remove_registered(1).is_empty());
        // Its end is its own, too.
        let (prefix, key) = rib.pop_expired(50).unwrap();
        assert_eq!((key.face, key.by_peer), (2, true));
        rib.remove(&prefix, key);
        assert!(rib.pop_expired(50).is_none());
        assert_eq!(hops(&rib, "/a"), [(1, 10)]);
    }
}
