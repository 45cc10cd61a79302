//! The status of a node as JSON.

use std::sync::Weak;

use ndn_forwarder::FacePersistency;
use ndn_io::{FaceStatus, NodeStatus};
use serde::Serialize;

use crate::blocks::{BlockSource, BlockSourceStats};
use crate::config::NodeSettings;
use crate::fixed::FixedData;
use crate::producer::StreamProducer;
use crate::pull::Pull;
use crate::totals::{Ended, ProducerTotals, PullTotals};

/// What is open, for the status and the close.
#[derive(Default)]
pub(crate) struct Opened {
    pub producers: Vec<Weak<StreamProducer>>,
    pub pulls: Vec<Weak<Pull>>,
    pub fixed: Vec<Weak<FixedData>>,
    pub sources: Vec<Weak<BlockSource>>,
}

#[derive(Serialize)]
pub(crate) struct Status<'a> {
    name: &'a str,
    root: String,
    uptime_ms: u128,
    /// The face to the router; absent when the node stands alone.
    router: Option<Router<'a>>,
    faces: Vec<Face<'a>>,
    listening: Vec<String>,
    forwarder: Forwarder,
    producers: ProducerTotals,
    /// Set aside for what producers keep.
    reserved_bytes: u64,
    pulls: PullTotals,
    /// Set aside for what pulls have received and nobody has taken.
    pull_reserved_bytes: u64,
    fetches: Fetches,
    published: Vec<Published>,
    block_source: BlockSourceStats,
}

#[derive(Serialize)]
struct Router<'a> {
    uri: &'a str,
    up: bool,
    face: Option<u64>,
}

#[derive(Serialize)]
struct Face<'a> {
    id: u64,
    remote: &'a str,
    local: &'a str,
    up: bool,
    jumbo: bool,
    /// Differentiated services code point of what is sent; absent without an IP header.
    dscp: Option<u8>,
    in_interests: u64,
    in_data: u64,
    in_nacks: u64,
    out_interests: u64,
    out_data: u64,
    out_nacks: u64,
    /// On the link, headers included; packets alone on faces of applications.
    in_bytes: u64,
    out_bytes: u64,
    queued_bytes: usize,
    queue_drops: u64,
    reconnects: u64,
}

#[derive(Serialize)]
struct Forwarder {
    pit_entries: usize,
    cs_entries: usize,
    cs_bytes: usize,
    cs_capacity_bytes: usize,
    cs_hits: u64,
    cs_misses: u64,
    floods: u64,
    satisfied_interests: u64,
    unsatisfied_interests: u64,
}

#[derive(Serialize)]
struct Fetches {
    answered: u64,
    unanswered: u64,
}

#[derive(Serialize)]
struct Published {
    name: String,
    served: u64,
}

/// The face to the router: the one that the node opened by itself, for good.
pub(crate) fn router(status: &NodeStatus) -> Option<&FaceStatus> {
    let permanent = |face: &&FaceStatus| face.spec.persistency == FacePersistency::Permanent;
    status.faces.iter().find(permanent)
}

/// All of it.
pub(crate) fn of<'a>(
    settings: &'a NodeSettings,
    node: &'a NodeStatus,
    opened: &Opened,
    ended: &Ended,
    (answered, unanswered): (u64, u64),
    (reserved_bytes, pull_reserved_bytes): (u64, u64),
) -> Status<'a> {
    let (mut producers, mut pulls) = ended.totals();
    let open = opened.producers.iter().filter_map(Weak::upgrade);
    open.filter_map(|p| p.stats())
        .for_each(|stats| producers.add(&stats, true));
    let open = opened.pulls.iter().filter_map(Weak::upgrade);
    open.filter_map(|p| p.stats())
        .for_each(|stats| pulls.add(&stats, true));
    let mut block_source = BlockSourceStats::default();
    let open = opened.sources.iter().filter_map(Weak::upgrade);
    open.for_each(|source| block_source.add(&source.stats()));
    let published = opened.fixed.iter().filter_map(Weak::upgrade);
    let forwarder = &node.forwarder;
    Status {
        name: &settings.name,
        root: settings.root.to_string(),
        uptime_ms: node.uptime.as_millis(),
        router: settings.face.as_deref().map(|uri| Router {
            uri,
            up: router(node).is_some_and(|face| face.up),
            face: router(node).map(|face| face.id.0),
        }),
        faces: node.faces.iter().map(face).collect(),
        listening: node.listeners.iter().map(|l| l.uri.to_string()).collect(),
        forwarder: Forwarder {
            pit_entries: forwarder.pit_entries,
            cs_entries: forwarder.cs_entries,
            cs_bytes: forwarder.cs_bytes,
            cs_capacity_bytes: forwarder.cs_capacity_bytes,
            cs_hits: forwarder.cs_hits,
            cs_misses: forwarder.cs_misses,
            floods: forwarder.floods,
            satisfied_interests: forwarder.satisfied_interests,
            unsatisfied_interests: forwarder.unsatisfied_interests,
        },
        producers,
        reserved_bytes,
        pull_reserved_bytes,
        pulls,
        fetches: Fetches {
            answered,
            unanswered,
        },
        published: published
            .map(|fixed| Published {
                name: fixed.name().to_string(),
                served: fixed.served(),
            })
            .collect(),
        block_source,
    }
}

fn face(face: &FaceStatus) -> Face<'_> {
    let (packets, link) = (&face.packets, &face.link);
    Face {
        id: face.id.0,
        remote: &face.spec.remote_uri,
        local: &face.spec.local_uri,
        up: face.up,
        jumbo: face.jumbo,
        dscp: face.dscp,
        in_interests: packets.in_interests,
        in_data: packets.in_data,
        in_nacks: packets.in_nacks,
        out_interests: packets.out_interests,
        out_data: packets.out_data,
        out_nacks: packets.out_nacks,
        in_bytes: link.in_bytes.max(packets.in_bytes),
        out_bytes: link.out_bytes.max(packets.out_bytes),
        queued_bytes: face.queued_bytes,
        queue_drops: link.queue_drops,
        reconnects: link.reconnects,
    }
}
