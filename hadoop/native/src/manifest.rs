//! The digests of all segments of a finalized block, by which a reader knows
//! them: one [`SegmentDigest`](crate::SegmentDigest) after the other, fetched in
//! packets as `<block>/v=<genstamp>/32=manifest/seg=<n>`. The block's metadata
//! tells the SHA-256 of the whole.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use ndn_packet::{Name, sha256};

use crate::error::Result;
use crate::fetch::{FetchSettings, Fetches};
use crate::metadata::BlockMetadata;
use crate::segment::DIGEST_LEN;

/// Segments of a block that is read by name, at most: 16 MiB of digests.
pub(crate) const MAX_SEGMENTS: u64 = 1 << 20;

/// Most bytes of a manifest in one packet: whole digests, and no more than a
/// segment of the block has data.
pub(crate) fn packet_bytes(segment_bytes: u64) -> usize {
    (segment_bytes as usize / DIGEST_LEN).max(1) * DIGEST_LEN
}

/// Fetches the manifest that the metadata tells of, past the caches, and whoever
/// answered, if they have another. `None` when nobody has it, or the block is too long.
pub(crate) fn fetch(
    fetches: &Fetches,
    block: &Name,
    facts: &BlockMetadata,
    timeout: Duration,
) -> Result<Option<Bytes>> {
    let segments = facts.length.div_ceil(facts.segment_bytes).max(1);
    let Some(digest) = facts.manifest_digest.filter(|_| segments <= MAX_SEGMENTS) else {
        return Ok(None);
    };
    let name = block
        .append_version(facts.genstamp)
        .append_keyword("manifest");
    let len = segments as usize * DIGEST_LEN;
    for rejected in [false, true] {
        let settings = FetchSettings {
            must_be_fresh: rejected,
            can_be_prefix: false,
            rejected,
            timeout,
        };
        let Some(manifest) = collect(fetches, &name, len, facts.segment_bytes, settings)? else {
            return Ok(None);
        };
        if sha256(&manifest) == digest {
            return Ok(Some(manifest));
        }
    }
    Ok(None)
}

/// All packets, one after the other; `None` when one does not come. What is of
/// another length is given back as it is.
fn collect(
    fetches: &Fetches,
    name: &Name,
    len: usize,
    segment_bytes: u64,
    settings: FetchSettings,
) -> Result<Option<Bytes>> {
    let mut manifest = BytesMut::new();
    for packet in 0..len.div_ceil(packet_bytes(segment_bytes)) as u64 {
        let Some(part) = fetches.fetch(&name.append_segment(packet), settings)? else {
            return Ok(None);
        };
        manifest.extend_from_slice(part.content_slice());
        if manifest.len() >= len {
            break;
        }
    }
    Ok(Some(manifest.freeze()))
}
