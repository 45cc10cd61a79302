//! Routing information base: who wants which prefix, and the FIB that follows from it.
//!
//! A route may be inherited by longer prefixes (ChildInherit), and a prefix may refuse to inherit (Capture). Next hops
//! that fib commands set directly are kept apart and merged in.

use crate::face::FaceSlot;
use crate::table::fib::NextHop;
use ndn_packet::Name;
use std::collections::{BTreeMap, BTreeSet, HashMap};

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
    pub(crate) cost: u64,
    pub(crate) flags: u64,
    /// When it ends, nanoseconds.
    pub(crate) expiry: Option<u64>,
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

    fn captures(&self) -> bool {
        self.routes.iter().any(|r| r.flags & CAPTURE != 0)
    }
}

/// The table.
#[derive(Debug, Default)]
pub(crate) struct Rib {
    /// In canonical order: the names under a prefix follow it.
    prefixes: BTreeMap<Name, Prefix>,
    expiries: BTreeSet<(u64, Name, FaceSlot, u64)>,
    by_face: HashMap<FaceSlot, BTreeSet<Name>>,
    routes: usize,
}

impl Rib {
    /// Number of routes.
    pub(crate) fn len(&self) -> usize {
        self.routes
    }

    /// Adds or changes a route; returns the prefixes whose next hops may have changed.
    pub(crate) fn add(&mut self, name: &Name, route: Route) -> Vec<Name> {
        let name = name.compact();
        let prefix = self.prefixes.entry(name.clone()).or_default();
        let mut flags = route.flags;
        let same = |r: &&mut Route| r.face == route.face && r.origin == route.origin;
        if let Some(old) = prefix.routes.iter_mut().find(same) {
            flags |= old.flags;
            if let Some(expiry) = old.expiry {
                self.expiries
                    .remove(&(expiry, name.clone(), route.face, route.origin));
            }
            *old = route;
        } else {
            prefix.routes.push(route);
            self.routes += 1;
        }
        if let Some(expiry) = route.expiry {
            self.expiries
                .insert((expiry, name.clone(), route.face, route.origin));
        }
        self.by_face
            .entry(route.face)
            .or_default()
            .insert(name.clone());
        self.affected(name, flags)
    }

    /// Removes a route; returns the prefixes whose next hops may have changed.
    pub(crate) fn remove(&mut self, name: &Name, face: FaceSlot, origin: u64) -> Vec<Name> {
        let Some(prefix) = self.prefixes.get_mut(name) else {
            return Vec::new();
        };
        let Some(at) = prefix
            .routes
            .iter()
            .position(|r| r.face == face && r.origin == origin)
        else {
            return Vec::new();
        };
        let route = prefix.routes.remove(at);
        self.routes -= 1;
        if let Some(expiry) = route.expiry {
            self.expiries.remove(&(expiry, name.clone(), face, origin));
        }
        self.forget_if_unused(name, face);
        self.affected(name.compact(), route.flags)
    }

    /// Sets a next hop directly; returns the prefixes whose next hops may have changed.
    pub(crate) fn add_direct(&mut self, name: &Name, hop: NextHop) -> Vec<Name> {
        let name = name.compact();
        let prefix = self.prefixes.entry(name.clone()).or_default();
        prefix.direct.retain(|h| h.face != hop.face);
        prefix.direct.push(hop);
        self.by_face
            .entry(hop.face)
            .or_default()
            .insert(name.clone());
        vec![name]
    }

    /// Removes a next hop that was set directly; returns the prefixes whose next hops may have changed.
    pub(crate) fn remove_direct(&mut self, name: &Name, face: FaceSlot) -> Vec<Name> {
        let Some(prefix) = self.prefixes.get_mut(name) else {
            return Vec::new();
        };
        prefix.direct.retain(|h| h.face != face);
        self.forget_if_unused(name, face);
        vec![name.compact()]
    }

    /// Removes all routes and next hops of a face; returns the prefixes whose next hops may have changed.
    pub(crate) fn remove_face(&mut self, face: FaceSlot) -> Vec<Name> {
        let mut affected = Vec::new();
        for name in self.by_face.remove(&face).unwrap_or_default() {
            let Some(prefix) = self.prefixes.get_mut(&name) else {
                continue;
            };
            let mut flags = 0;
            prefix.direct.retain(|h| h.face != face);
            prefix.routes.retain(|r| {
                if r.face != face {
                    return true;
                }
                flags |= r.flags;
                self.routes -= 1;
                if let Some(expiry) = r.expiry {
                    self.expiries
                        .remove(&(expiry, name.clone(), face, r.origin));
                }
                false
            });
            if prefix.is_empty() {
                self.prefixes.remove(&name);
            }
            affected.extend(self.affected(name, flags));
        }
        affected
    }

    /// Removes a route that has expired at `now`; returns its prefix, face and origin. Call until there is none.
    pub(crate) fn pop_expired(&mut self, now: u64) -> Option<(Name, FaceSlot, u64)> {
        let (expiry, ..) = self.expiries.first()?;
        if *expiry > now {
            return None;
        }
        let (_, name, face, origin) = self.expiries.pop_first()?;
        Some((name, face, origin))
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

    fn forget_if_unused(&mut self, name: &Name, face: FaceSlot) {
        let Some(prefix) = self.prefixes.get(name) else {
            return;
        };
        let used = prefix.direct.iter().any(|h| h.face == face)
            || prefix.routes.iter().any(|r| r.face == face);
        if prefix.is_empty() {
            self.prefixes.remove(name);
        }
        if !used && let Some(names) = self.by_face.get_mut(&face) {
            names.remove(name);
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
        rib.remove(&name("/a"), 1, origin::STATIC);
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
        let (prefix, face, origin) = rib.pop_expired(200).unwrap();
        assert_eq!(rib.remove(&prefix, face, origin), [name("/a")]);
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
}
