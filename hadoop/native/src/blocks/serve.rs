//! From a replica whose files are open to the packet that answers.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use ndn_packet::{ComponentBuf, Data, Interest, NackReason, NetPacket, PitToken};

use super::METADATA_FRESHNESS;
use super::counters::count;
use super::replica::Replica;
use super::request::{self, Asked};
use super::source::Shared;
use crate::metadata::BlockMetadata;
use crate::segment::{HEADER_LEN, SegmentHeader};
use crate::seldom::Seldom;
use crate::wire;

/// Said of block files that do not read, which may be asked for without end.
static UNREADABLE: Seldom = Seldom::new();

/// An Interest that waits for an answer of Java, or for its turn to be read.
pub(super) struct Wanted {
    pub interest: Interest,
    pub token: Option<PitToken>,
    pub asked: Asked,
}

/// Says that nobody here has what was asked, or that there is too much to do.
pub(super) fn refuse(
    shared: &Shared,
    reason: NackReason,
    wanted: Wanted,
    out: &mut Vec<NetPacket>,
) {
    count(&shared.counters.nacks);
    out.push(wire::nack(reason, wanted.interest, wanted.token));
}

/// Answers for a replica whose files are open: metadata at once, a segment by
/// way of the workers.
pub(super) fn serve(
    shared: &Arc<Shared>,
    replica: &Arc<Replica>,
    wanted: Wanted,
    out: &mut Vec<NetPacket>,
) {
    match wanted.asked {
        Asked::Metadata => {
            let asked = wanted.interest.name_owned();
            let version = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            let made = BlockMetadata::of(replica).packet(
                &asked.parent(),
                version.as_micros() as u64,
                METADATA_FRESHNESS,
            );
            count(&shared.counters.metadata);
            out.extend(wire::data(made, wanted.token));
        }
        Asked::Segment { genstamp, segment } => {
            let header = replica
                .header(segment)
                .filter(|_| genstamp == replica.genstamp());
            match header {
                Some(header) => queue(shared, replica, header, wanted, out),
                None => refuse(shared, NackReason::NoRoute, wanted, out),
            }
        }
    }
}

fn queue(
    shared: &Arc<Shared>,
    replica: &Arc<Replica>,
    header: SegmentHeader,
    wanted: Wanted,
    out: &mut Vec<NetPacket>,
) {
    // Weak: a job in the queue must not keep the queue.
    let weak: Weak<Shared> = Arc::downgrade(shared);
    let replica = replica.clone();
    let (interest, token) = (wanted.interest.clone(), wanted.token);
    let job = Box::new(move || {
        if let Some(shared) = weak.upgrade() {
            let packet = read(&shared, &replica, &header, interest, token);
            shared.outbox.send(packet);
        }
    });
    if shared.workers.submit(job).is_err() {
        refuse(shared, NackReason::Congestion, wanted, out);
    }
}

/// A worker's job: the segment as a packet, or a Nack when its files do not
/// read.
fn read(
    shared: &Shared,
    replica: &Replica,
    header: &SegmentHeader,
    interest: Interest,
    token: Option<PitToken>,
) -> Option<NetPacket> {
    let name = interest.name_owned();
    let made = Data::builder(&name)
        .final_block_id(ComponentBuf::segment(replica.last_segment()))
        .content_with(HEADER_LEN + header.body_len(), |content| {
            replica.read(header, content)
        })
        .sign(&shared.verify.signer(header.checksum));
    match made {
        Ok(made) => {
            count(&shared.counters.segments);
            shared
                .counters
                .bytes
                .fetch_add(header.data_len.into(), Ordering::Relaxed);
            wire::data(made, token)
        }
        Err(error) => {
            if UNREADABLE.says() {
                tracing::warn!(%name, %error, "a block file does not read");
            }
            count(&shared.counters.read_errors);
            if let Some((key, _)) = request::parse(&shared.prefix, name.as_ref()) {
                shared.forget(&key);
            }
            Some(wire::nack(NackReason::NoRoute, interest, token))
        }
    }
}
