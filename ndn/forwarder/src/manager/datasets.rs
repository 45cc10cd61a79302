//! Datasets that were asked for, kept for a while so that all segments are of one version.

use crate::state::nanos;
use bytes::Bytes;
use ndn_packet::{ComponentBuf, Data, Name, SigningKey};
use std::collections::VecDeque;
use std::time::Duration;

/// Freshness of all that management answers.
pub(crate) const FRESHNESS: Duration = Duration::from_secs(1);
/// Bytes of content in a segment.
const SEGMENT: usize = 8000;
/// How long a version is kept after its last segment was asked for.
const KEEP: Duration = Duration::from_secs(10);
/// Bytes of versions kept, except that the newest is always kept.
pub(super) const MAX_BYTES: usize = 64 << 20;
/// Versions kept.
const MAX_VERSIONS: usize = 64;

/// Versions of datasets, oldest first.
#[derive(Debug, Default)]
pub(crate) struct DatasetStore {
    versions: VecDeque<Version>,
    bytes: usize,
    /// The last version number given out.
    pub(crate) last: u64,
}

#[derive(Debug)]
struct Version {
    /// Its name, up to the version.
    name: Name,
    content: Bytes,
    until: u64,
}

impl DatasetStore {
    /// Bytes of the versions kept.
    pub(super) fn memory(&self) -> usize {
        self.bytes
    }

    /// Keeps a version of a dataset, whose name ends in the version.
    pub(crate) fn push(&mut self, now: u64, name: Name, content: Bytes) {
        self.bytes += content.len();
        self.versions.push_back(Version {
            name,
            content,
            until: now + nanos(KEEP),
        });
        while self.versions.len() > 1 {
            let crowded = self.bytes > MAX_BYTES || self.versions.len() > MAX_VERSIONS;
            if !crowded && self.versions.front().is_some_and(|v| v.until > now) {
                break;
            }
            if let Some(old) = self.versions.pop_front() {
                self.bytes -= old.content.len();
            }
        }
    }

    /// A segment of a version that is kept, as a packet.
    pub(crate) fn segment(&mut self, now: u64, name: &Name, segment: u64) -> Option<Bytes> {
        let version = self.versions.iter_mut().find(|v| v.name == *name)?;
        version.until = now + nanos(KEEP);
        let start = usize::try_from(segment).ok()?.checked_mul(SEGMENT)?;
        let last = version.content.len().saturating_sub(1) / SEGMENT;
        let end = (start + SEGMENT).min(version.content.len());
        let content = version.content.get(start..end)?;
        let wire = Data::builder(&name.append_segment(segment))
            .freshness(FRESHNESS)
            .final_block_id(ComponentBuf::segment(last as u64))
            .content(content)
            .sign(&SigningKey::DigestSha256);
        Some(wire)
    }
}
