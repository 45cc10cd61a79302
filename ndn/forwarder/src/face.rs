//! Faces as the forwarder sees them: a number, what kind of link it is, counters.

use crate::prefix_policy::{Announces, PrefixRule};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Number of a face, as NFD's management protocol shows it. Unique for the forwarder's lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FaceId(pub u64);

impl FaceId {
    /// The worker whose driver has the face, of so many.
    pub fn worker(self, of: usize) -> usize {
        (self.0.saturating_sub(Self::FIRST.0) % of.max(1) as u64) as usize
    }

    /// The face by which the forwarder reaches its own management.
    pub const INTERNAL: FaceId = FaceId(1);
    /// Shown as the incoming face of Data from the content store.
    pub const CONTENT_STORE: FaceId = FaceId(254);
    /// First number of a face that a driver adds; smaller ones are reserved.
    pub const FIRST: FaceId = FaceId(256);

    /// The number in 31 bits; 0, which no face has, where it is larger.
    pub(crate) fn short(self) -> u32 {
        u32::try_from(self.0)
            .ok()
            .filter(|id| id >> 31 == 0)
            .unwrap_or(0)
    }
}

impl std::fmt::Display for FaceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether the other end is on the same host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaceScope {
    /// Another host.
    NonLocal,
    /// The same host: `/localhost` names may pass.
    Local,
}

/// What ends a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FacePersistency {
    /// A socket error.
    Persistent,
    /// A socket error, or idleness.
    OnDemand,
    /// Nothing but a command: it is mended after errors.
    Permanent,
}

/// What kind of link a face is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkType {
    /// Exactly one other end.
    PointToPoint,
    /// All on the link hear everything.
    MultiAccess,
    /// Not all on the link hear each other: a packet may have to go out where it came in.
    AdHoc,
}

/// What a driver says of a face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaceSpec {
    /// FaceUri of the other end.
    pub remote_uri: String,
    /// FaceUri of this end.
    pub local_uri: String,
    /// Whether the other end is on this host.
    pub scope: FaceScope,
    /// What ends the face.
    pub persistency: FacePersistency,
    /// Kind of link.
    pub link_type: LinkType,
    /// Greatest packet that the face carries in one piece, bytes; `None` is no limit. Shown, not enforced, here.
    pub mtu: Option<u64>,
    /// Largest packet that the other end takes, link-layer header included, bytes; `None` is no limit. Larger Data is not
    /// sent on the face: who asked for it is told so by a Nack.
    pub max_packet_bytes: Option<u64>,
    /// NextHopFaceId is obeyed, and IncomingFaceId given, on this face. Only for local faces.
    pub local_fields: bool,
    /// The face marks congestion. Shown, not enforced, here.
    pub congestion_marking: bool,
    /// First interval of congestion marking in nanoseconds, for status.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Queue length from which congestion is marked, in bytes, for status.
    pub default_congestion_threshold: Option<u64>,
    /// Self-learning strategies may try this face for names that no route covers.
    pub discovery: bool,
    /// Names that the other end has proven to have, by its certificate. What it may announce follows from them where
    /// [`Config::prefix_rules`](crate::Config::prefix_rules) has rules.
    pub peer_names: Vec<String>,
}

impl FaceSpec {
    /// A face to an application on this host.
    pub fn local(remote_uri: impl Into<String>, local_uri: impl Into<String>) -> Self {
        FaceSpec {
            remote_uri: remote_uri.into(),
            local_uri: local_uri.into(),
            scope: FaceScope::Local,
            persistency: FacePersistency::OnDemand,
            link_type: LinkType::PointToPoint,
            mtu: None,
            max_packet_bytes: None,
            local_fields: false,
            congestion_marking: false,
            base_congestion_marking_interval_ns: None,
            default_congestion_threshold: None,
            discovery: false,
            peer_names: Vec::new(),
        }
    }

    /// A face to another host.
    pub fn remote(remote_uri: impl Into<String>, local_uri: impl Into<String>) -> Self {
        FaceSpec {
            scope: FaceScope::NonLocal,
            persistency: FacePersistency::Persistent,
            discovery: true,
            ..FaceSpec::local(remote_uri, local_uri)
        }
    }
}

/// Packets of one face, or of all faces together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FaceCounters {
    /// Interests received.
    pub in_interests: u64,
    /// Data received.
    pub in_data: u64,
    /// Nacks received.
    pub in_nacks: u64,
    /// Bytes of packets received, link-layer headers not counted.
    pub in_bytes: u64,
    /// Interests sent.
    pub out_interests: u64,
    /// Data sent.
    pub out_data: u64,
    /// Nacks sent.
    pub out_nacks: u64,
    /// Bytes of packets sent, link-layer headers not counted.
    pub out_bytes: u64,
    /// Interests dropped because the face had too many pending, or all had.
    pub dropped_pit_full: u64,
    /// Packets dropped because their names may not cross to or from another host.
    pub dropped_scope: u64,
    /// Interests dropped because they have no hop left.
    pub dropped_hop_limit: u64,
    /// Interests dropped because their nonce was seen before.
    pub dropped_loop: u64,
    /// Data dropped because nothing was asked of this face that it answers.
    pub dropped_unsolicited: u64,
    /// Packets not sent because the driver had too many yet to take.
    pub dropped_outputs_full: u64,
    /// Data from this face that a downstream has rejected since, as it says: it did not verify.
    pub rejected: u64,
    /// Pending Interests that have this face as a downstream now.
    pub pending_in: u64,
    /// Pending Interests that were sent to this face and not answered yet.
    pub pending_out: u64,
}

impl FaceCounters {
    /// Adds what another worker has counted.
    pub fn add(&mut self, other: &FaceCounters) {
        let FaceCounters {
            in_interests,
            in_data,
            in_nacks,
            in_bytes,
            out_interests,
            out_data,
            out_nacks,
            out_bytes,
            dropped_pit_full,
            dropped_scope,
            dropped_hop_limit,
            dropped_loop,
            dropped_unsolicited,
            dropped_outputs_full,
            rejected,
            pending_in,
            pending_out,
        } = other;
        self.in_interests += in_interests;
        self.in_data += in_data;
        self.in_nacks += in_nacks;
        self.in_bytes += in_bytes;
        self.out_interests += out_interests;
        self.out_data += out_data;
        self.out_nacks += out_nacks;
        self.out_bytes += out_bytes;
        self.dropped_pit_full += dropped_pit_full;
        self.dropped_scope += dropped_scope;
        self.dropped_hop_limit += dropped_hop_limit;
        self.dropped_loop += dropped_loop;
        self.dropped_unsolicited += dropped_unsolicited;
        self.dropped_outputs_full += dropped_outputs_full;
        self.rejected += rejected;
        self.pending_in += pending_in;
        self.pending_out += pending_out;
    }
}

/// Slot of a face in the table: what records and next hops hold.
pub(crate) type FaceSlot = u32;

/// A face in the table.
#[derive(Debug)]
pub(crate) struct Face {
    pub(crate) id: FaceId,
    pub(crate) spec: FaceSpec,
    pub(crate) up: bool,
    pub(crate) counters: FaceCounters,
    /// What it may register, and answer for where no route leads.
    pub(crate) announces: Announces,
    /// Whether the driver was told that Data from it was rejected.
    pub(crate) is_reported: bool,
    /// When it may make strategies doubt as often as ever what they have learned, nanoseconds.
    doubts_full_at: u64,
}

/// How often a face's rejects may make a strategy ask around, although it has learned whom to ask: so many times at
/// once, and one more after so many nanoseconds.
const DOUBTS_AT_ONCE: u64 = 10;
const DOUBTS_EVERY: u64 = 200_000_000;

impl Face {
    pub(crate) fn is_local(&self) -> bool {
        self.spec.scope == FaceScope::Local
    }

    /// Whether anybody who reaches this host could have made it, as often as they like.
    pub(crate) fn is_strangers(&self) -> bool {
        !self.is_local()
            && self.spec.persistency == FacePersistency::OnDemand
            && self.spec.peer_names.is_empty()
    }

    pub(crate) fn is_point_to_point(&self) -> bool {
        self.spec.link_type == LinkType::PointToPoint
    }

    /// Takes one of the doubts that the face may cast now, if one is left.
    pub(crate) fn take_doubt(&mut self, now: u64) -> bool {
        let full_at = self.doubts_full_at.max(now) + DOUBTS_EVERY;
        let is_left = full_at <= now + DOUBTS_AT_ONCE * DOUBTS_EVERY;
        if is_left {
            self.doubts_full_at = full_at;
        }
        is_left
    }
}

/// Slot of the internal face.
pub(crate) const INTERNAL_SLOT: FaceSlot = 0;

/// All faces.
#[derive(Debug)]
pub(crate) struct FaceTable {
    slots: Vec<Option<Face>>,
    free: Vec<FaceSlot>,
    /// Numbers given out here, so that a cheap hash will do.
    by_id: FxHashMap<u64, FaceSlot>,
    next_id: u64,
    /// From one number given out here to the next.
    step: u64,
    rules: Option<Arc<[PrefixRule]>>,
}

impl FaceTable {
    /// A table that holds the internal face alone. What others may announce is as the rules say, where there are any.
    /// Of several tables of one forwarder, this is the `first`st of `step`.
    pub(crate) fn new(rules: Option<Arc<[PrefixRule]>>, first: usize, step: usize) -> Self {
        let internal = Face {
            id: FaceId::INTERNAL,
            spec: FaceSpec {
                persistency: FacePersistency::Permanent,
                local_fields: true,
                ..FaceSpec::local("internal://", "internal://")
            },
            up: true,
            counters: FaceCounters::default(),
            announces: Announces::All,
            is_reported: false,
            doubts_full_at: 0,
        };
        let mut by_id = FxHashMap::default();
        by_id.insert(FaceId::INTERNAL.0, INTERNAL_SLOT);
        FaceTable {
            slots: vec![Some(internal)],
            free: Vec::new(),
            by_id,
            next_id: FaceId::FIRST.0 + first as u64,
            step: step as u64,
            rules,
        }
    }

    pub(crate) fn add(&mut self, spec: FaceSpec) -> (FaceSlot, FaceId) {
        let id = FaceId(self.next_id);
        self.next_id += self.step;
        (self.add_as(id, spec), id)
    }

    /// Adds a face that has a number already.
    pub(crate) fn add_as(&mut self, id: FaceId, spec: FaceSpec) -> FaceSlot {
        let face = Some(Face {
            id,
            announces: announces(self.rules.as_deref(), &spec),
            spec,
            up: true,
            counters: FaceCounters::default(),
            is_reported: false,
            doubts_full_at: 0,
        });
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = face;
                slot
            }
            None => {
                self.slots.push(face);
                (self.slots.len() - 1) as FaceSlot
            }
        };
        self.by_id.insert(id.0, slot);
        slot
    }

    /// Replaces what is said of a face.
    pub(crate) fn update(&mut self, slot: FaceSlot, spec: FaceSpec) {
        let announces = announces(self.rules.as_deref(), &spec);
        if let Some(face) = self.get_mut(slot) {
            (face.spec, face.announces) = (spec, announces);
        }
    }

    pub(crate) fn remove(&mut self, slot: FaceSlot) -> Option<Face> {
        let face = self.slots.get_mut(slot as usize)?.take()?;
        self.by_id.remove(&face.id.0);
        self.free.push(slot);
        Some(face)
    }

    #[inline]
    pub(crate) fn slot(&self, id: FaceId) -> Option<FaceSlot> {
        self.by_id.get(&id.0).copied()
    }

    #[inline]
    pub(crate) fn get(&self, slot: FaceSlot) -> Option<&Face> {
        self.slots.get(slot as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: FaceSlot) -> Option<&mut Face> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    pub(crate) fn by_id(&self, id: FaceId) -> Option<&Face> {
        self.get(self.slot(id)?)
    }

    /// Counters of a face; those of a face that is gone go nowhere.
    #[inline]
    pub(crate) fn count(&mut self, slot: FaceSlot, change: impl FnOnce(&mut FaceCounters)) {
        if let Some(face) = self.get_mut(slot) {
            change(&mut face.counters);
        }
    }

    /// All faces with their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (FaceSlot, &Face)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(slot, face)| Some((slot as FaceSlot, face.as_ref()?)))
    }
}

fn announces(rules: Option<&[PrefixRule]>, spec: &FaceSpec) -> Announces {
    Announces::new(rules, spec.scope == FaceScope::Local, &spec.peer_names)
}
