//! From a replica whose files are open to the packet that answers.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use ndn_packet::{
    ComponentBuf, Data, Interest, NackReason, Name, NetPacket, PitToken, SigningKey, sha256,
};

use super::METADATA_FRESHNESS;
use super::counters::count;
use super::replica::Replica;
use super::request::{self, Asked, Wanted};
use super::shared::Shared;
use crate::manifest;
use crate::metadata::BlockMetadata;
use crate::rate_limit::RateLimit;
use crate::segment::HEADER_LEN;
use crate::wire;

/// Said of block files that do not read, which may be asked for without end.
static UNREADABLE: RateLimit = RateLimit::new();

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

/// Answers for a replica whose files are open, by way of the workers.
pub(super) fn serve(
    shared: &Arc<Shared>,
    replica: &Arc<Replica>,
    wanted: Wanted,
    out: &mut Vec<NetPacket>,
) {
    let asked = wanted.asked;
    if asked
        .genstamp()
        .is_some_and(|asked| asked != replica.genstamp())
    {
        return refuse(shared, NackReason::NoRoute, wanted, out);
    }
    // Weak: a job in the queue must not keep the queue.
    let weak: Weak<Shared> = Arc::downgrade(shared);
    let replica = replica.clone();
    let (interest, token) = (wanted.interest.clone(), wanted.token);
    let job = Box::new(move || {
        if let Some(shared) = weak.upgrade() {
            let packet = answer(&shared, &replica, asked, interest, token);
            shared.outbox.send(packet);
        }
    });
    if shared.workers.submit(job).is_err() {
        refuse(shared, NackReason::Congestion, wanted, out);
    }
}

/// A worker's job: the packet, or a Nack when there is none or the files do not
/// read.
fn answer(
    shared: &Shared,
    replica: &Replica,
    asked: Asked,
    interest: Interest,
    token: Option<PitToken>,
) -> Option<NetPacket> {
    let name = interest.name_owned();
    let made = if replica.is_in_place() {
        make(shared, replica, asked, &name)
    } else {
        Err(io::Error::other("its files were taken away"))
    };
    let nack = match made {
        Ok(Some(made)) => return wire::data(made, token),
        Ok(None) => wire::nack(NackReason::NoRoute, interest, token),
        Err(error) => {
            if UNREADABLE.allows() {
                tracing::warn!(%name, %error, "a replica is not served any more");
            }
            count(&shared.counters.read_errors);
            if let Some((key, _)) = request::parse(&shared.prefix, name.as_ref()) {
                shared.forget(&key);
            }
            wire::nack(NackReason::NoRoute, interest, token)
        }
    };
    count(&shared.counters.nacks);
    Some(nack)
}

/// The packet of that name; `None` when it lies past the end.
fn make(
    shared: &Shared,
    replica: &Replica,
    asked: Asked,
    name: &Name,
) -> io::Result<Option<Bytes>> {
    match asked {
        Asked::Metadata => {
            let version = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            let made = metadata(replica)?.packet(
                &name.parent(),
                version.as_micros() as u64,
                METADATA_FRESHNESS,
            );
            count(&shared.counters.metadata);
            Ok(Some(made))
        }
        Asked::Segment { segment, .. } => {
            let Some(header) = replica.header(segment) else {
                return Ok(None);
            };
            let made = Data::builder(name)
                .final_block_id(ComponentBuf::segment(replica.last_segment()))
                .content_with(HEADER_LEN + header.body_len(), |content| {
                    replica.read(&header, content)
                })
                .sign(&shared.verify.signer(header.checksum))?;
            count(&shared.counters.segments);
            let bytes = &shared.counters.bytes;
            bytes.fetch_add(header.data_len.into(), Ordering::Relaxed);
            Ok(Some(made))
        }
        Asked::Manifest { packet, .. } => {
            let manifest = replica.manifest()?.unwrap_or_default();
            let parts = manifest::packet_bytes(replica.segment_bytes().into());
            let Some(part) = usize::try_from(packet)
                .ok()
                .and_then(|n| manifest.chunks(parts).nth(n))
            else {
                return Ok(None);
            };
            let last = manifest.len().div_ceil(parts) - 1;
            let builder = Data::builder(name).final_block_id(ComponentBuf::segment(last as u64));
            Ok(Some(builder.content(part).sign(&SigningKey::DigestSha256)))
        }
    }
}

/// The facts of a replica.
///
/// # Errors
/// When its checksum file does not read.
fn metadata(replica: &Replica) -> std::io::Result<BlockMetadata> {
    Ok(BlockMetadata {
        genstamp: replica.genstamp(),
        length: replica.length(),
        segment_bytes: replica.segment_bytes().into(),
        checksum_type: replica.checksum() as u64,
        bytes_per_checksum: replica.bytes_per_checksum().into(),
        manifest_digest: replica.manifest()?.map(|manifest| sha256(&manifest)),
    })
}
