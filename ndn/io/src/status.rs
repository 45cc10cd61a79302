//! What a node says of itself.

use std::time::Duration;

use ndn_forwarder::{FaceCounters, FaceId, FaceSpec};
use rustc_hash::FxHashMap;

use crate::config::MEMORY_PARTS;
use crate::face::link::LinkCounters;
use crate::uri::FaceUri;

/// A node at one moment.
#[derive(Debug, Clone)]
pub struct NodeStatus {
    /// Time since the node's start; the loop's own clock.
    pub uptime: Duration,
    /// Its faces, the forwarder's internal one not among them.
    pub faces: Vec<FaceStatus>,
    /// Its listeners.
    pub listeners: Vec<ListenerStatus>,
    /// The forwarder's tables and counters.
    pub forwarder: ndn_forwarder::Status,
    /// What is held in memory and may be, part by part.
    pub memory: Vec<(&'static str, ndn_forwarder::MemoryUse)>,
}

/// What one loop of a node tells.
pub(crate) struct LoopStatus {
    /// Its faces and its worker.
    pub status: NodeStatus,
    /// What its worker has counted for each face, those of other loops among them.
    pub counters: Vec<(FaceId, FaceCounters)>,
}

impl LoopStatus {
    /// What the loops of a node tell together, the first loop's first.
    pub fn sum(loops: Vec<LoopStatus>) -> Option<NodeStatus> {
        let mut loops = loops.into_iter();
        let LoopStatus {
            status: mut sum,
            counters,
        } = loops.next()?;
        let mut by_face: FxHashMap<FaceId, FaceCounters> = counters.into_iter().collect();
        let mut several = false;
        for LoopStatus { status, counters } in loops {
            several = true;
            sum.forwarder.add(&status.forwarder);
            sum.faces.extend(status.faces);
            for (face, counters) in counters {
                by_face.entry(face).or_default().add(&counters);
            }
            // What all faces take is one account: each loop tells of all.
            for (name, part) in &mut sum.memory {
                let name = *name;
                let other = status.memory.iter().find(|(other, _)| *other == name);
                if let Some((_, other)) = other.filter(|_| !MEMORY_PARTS.contains(&name)) {
                    part.bytes += other.bytes;
                    part.capacity_bytes += other.capacity_bytes;
                }
            }
        }
        if several {
            sum.faces.sort_by_key(|face| face.id);
            for face in &mut sum.faces {
                face.packets = by_face.get(&face.id).copied().unwrap_or_default();
            }
        }
        Some(sum)
    }
}

/// One face at one moment.
#[derive(Debug, Clone)]
pub struct FaceStatus {
    /// Its number.
    pub id: FaceId,
    /// URIs, scope, persistency, as the forwarder has them.
    pub spec: FaceSpec,
    /// Whether it is connected (always, for UDP and applications).
    pub up: bool,
    /// Whether both ends have agreed to jumbo packets.
    pub jumbo: bool,
    /// Whether its bytes go through shared memory.
    pub shared_memory: bool,
    /// Differentiated services code point of the IP packets sent, as the system has it; `None` where there is no IP
    /// header, or no connection.
    pub dscp: Option<u8>,
    /// Bytes waiting to be sent.
    pub queued_bytes: usize,
    /// Packets, as the forwarder counts them.
    pub packets: FaceCounters,
    /// Bytes, drops and marks on the link.
    pub link: LinkCounters,
}

/// One listener at one moment.
#[derive(Debug, Clone)]
pub struct ListenerStatus {
    /// Where.
    pub uri: FaceUri,
    /// Faces open that came in here.
    pub open_faces: usize,
    /// Peers refused because too many faces were open, or the system had no room.
    pub refused: u64,
    /// Datagrams of strangers that were no packet, and made no face.
    pub malformed: u64,
    /// Peers that got no face as their handshake failed: no certificate, another CA's, none that is valid, or not in time.
    pub unproven: u64,
}
