//! From a replica whose files are open to the packet that answers.

use std::cell::RefCell;
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
use super::found::Found;
use super::replica::Replica;
use super::request::{self, Asked, Wanted};
use super::served::{Served, sealed_len};
use super::shared::Shared;
use crate::content_key::{Granted, Secret};
use crate::manifest;
use crate::metadata::BlockMetadata;
use crate::rate_limit::RateLimit;
use crate::segment::{HEADER_LEN, SegmentHeader};
use crate::wire;

/// Said of block files that do not read, which may be asked for without end.
static UNREADABLE: RateLimit = RateLimit::new();

thread_local! {
    /// Where a worker has a segment before it is sealed.
    static OPEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
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

/// Answers for a replica whose files are open, by way of the workers.
pub(super) fn serve(
    shared: &Arc<Shared>,
    served: &Arc<Served>,
    wanted: Wanted,
    out: &mut Vec<NetPacket>,
) {
    let other = wanted
        .asked
        .genstamp()
        .is_some_and(|asked| asked != served.replica().genstamp());
    let unknown = matches!(&wanted.asked, Asked::Sealed { id, .. } if !served.admits(id));
    if other || unknown {
        return refuse(shared, NackReason::NoRoute, wanted, out);
    }
    let served = served.clone();
    work(shared, wanted, out, move |shared, asked, name| {
        in_place(&served)?;
        make(shared, &served, asked, name)
    });
}

/// Gives the first of these keys that there is to who has proven to have the
/// token of `password`, by way of the workers.
pub(super) fn grant(
    shared: &Arc<Shared>,
    (found, password): (Arc<Found>, Secret),
    wanted: Wanted,
    out: &mut Vec<NetPacket>,
) {
    work(shared, wanted, out, move |shared, asked, name| {
        let Asked::ContentKey { genstamp, request } = asked else {
            return Ok(None);
        };
        for served in found.replicas(shared) {
            in_place(&served)?;
            let replica = served.replica();
            let Some(seal) = served.seal()?.filter(|_| replica.genstamp() == *genstamp) else {
                continue;
            };
            let granted = Granted {
                id: seal.id,
                key: seal.key.clone(),
                metadata: metadata(replica, None),
            };
            let content = request
                .answer(name.as_ref(), &password, &granted)
                .map_err(io::Error::other)?;
            count(&shared.counters.content_keys);
            let made = Data::builder(name).content(&content);
            return Ok(Some(made.sign(&SigningKey::Null)));
        }
        Ok(None)
    });
}

/// Has a worker make the packet of `wanted`.
fn work(
    shared: &Arc<Shared>,
    wanted: Wanted,
    out: &mut Vec<NetPacket>,
    make: impl FnOnce(&Shared, &Asked, &Name) -> io::Result<Option<Bytes>> + Send + 'static,
) {
    // Weak: a job in the queue must not keep the queue.
    let weak: Weak<Shared> = Arc::downgrade(shared);
    let (interest, token) = (wanted.interest.clone(), wanted.token);
    let asked = wanted.asked.clone();
    let job = Box::new(move || {
        if let Some(shared) = weak.upgrade() {
            let name = interest.name_owned();
            let made = make(&shared, &asked, &name);
            let packet = answer(&shared, made, &name, interest, token);
            shared.outbox.send(packet);
        }
    });
    if shared.workers.submit(job).is_err() {
        refuse(shared, NackReason::Congestion, wanted, out);
    }
}

fn in_place(served: &Served) -> io::Result<()> {
    if served.replica().is_in_place() {
        return Ok(());
    }
    Err(io::Error::other("its files were taken away"))
}

/// The packet that was made, or a Nack when there is none or the files do not
/// read.
fn answer(
    shared: &Shared,
    made: io::Result<Option<Bytes>>,
    name: &Name,
    interest: Interest,
    token: Option<PitToken>,
) -> Option<NetPacket> {
    let nack = match made {
        Ok(Some(made)) => return wire::data(made, token),
        Ok(None) => wire::nack(NackReason::NoRoute, interest, token),
        Err(error) => {
            if UNREADABLE.allows() {
                tracing::warn!(%name, %error, "a replica is not served any more");
            }
            count(&shared.counters.read_errors);
            if let Some((block, _)) = request::block(&shared.prefix, name.as_ref()) {
                shared.forget(&block);
            }
            wire::nack(NackReason::NoRoute, interest, token)
        }
    };
    count(&shared.counters.nacks);
    Some(nack)
}

/// The packet of that name; `None` when it lies past the end.
fn make(shared: &Shared, served: &Served, asked: &Asked, name: &Name) -> io::Result<Option<Bytes>> {
    let replica = served.replica();
    match *asked {
        Asked::Metadata => {
            let version = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            let digest = replica.manifest()?.map(|manifest| sha256(&manifest));
            let made = metadata(replica, digest).packet(
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
            let len = HEADER_LEN + header.body_len();
            let made = Data::builder(name)
                .final_block_id(ComponentBuf::segment(replica.last_segment()))
                .content_with(len, |content| replica.read(&header, content))
                .sign_in(&shared.verify.signer(header.checksum), shared.buffer(len))?;
            served_segment(shared, &header);
            Ok(Some(made))
        }
        Asked::Sealed { id, segment, .. } => {
            let Some(seal) = served.seal()?.filter(|seal| seal.id == id) else {
                return Ok(None);
            };
            let Some(header) = replica.header(segment) else {
                return Ok(None);
            };
            let len = sealed_len(&header);
            let made = OPEN.with_borrow_mut(|room| {
                Data::builder(name)
                    .final_block_id(ComponentBuf::segment(replica.last_segment()))
                    .content_with(len, |to| {
                        served.read_sealed(seal, name, (segment, &header), room, to)
                    })
                    .sign_in(&SigningKey::Null, shared.buffer(len))
            })?;
            served_segment(shared, &header);
            Ok(Some(made))
        }
        Asked::ContentKey { .. } => Ok(None),
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

fn served_segment(shared: &Shared, header: &SegmentHeader) {
    count(&shared.counters.segments);
    let bytes = &shared.counters.bytes;
    bytes.fetch_add(header.data_len.into(), Ordering::Relaxed);
}

/// The facts of a replica.
fn metadata(replica: &Replica, manifest_digest: Option<[u8; 32]>) -> BlockMetadata {
    BlockMetadata {
        genstamp: replica.genstamp(),
        length: replica.length(),
        segment_bytes: replica.segment_bytes().into(),
        checksum_type: replica.checksum() as u64,
        bytes_per_checksum: replica.bytes_per_checksum().into(),
        manifest_digest,
    }
}
