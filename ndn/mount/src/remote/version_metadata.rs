//! What the metadata of a version say that a file system must know.

use ndn_endpoint::rdr::Metadata;
use ndn_packet::{MAX_JUMBO_PACKET, Name};

use super::RemoteError;
use super::network_loop::Fetched;
use crate::xattr::signature_text;

/// One version of a file. It never changes.
#[derive(Debug)]
pub struct VersionMetadata {
    /// Name, without version.
    pub name: Name,
    pub version: u64,
    /// Bytes.
    pub size: u64,
    /// Bytes of content in each segment but the last.
    pub segment_bytes: u64,
    /// The last segment.
    pub last: u64,
    /// `st_mode`.
    pub mode: u32,
    pub mtime_ns: u64,
    /// How the metadata is signed.
    pub signature: String,
    pub metadata: Metadata,
}

impl VersionMetadata {
    /// Of the metadata that were fetched for the file `name`.
    ///
    /// # Errors
    /// They lack what a file system must know.
    pub fn read(name: &Name, fetched: &Fetched) -> Result<Self, RemoteError> {
        let malformed = |what: &str| RemoteError::Malformed(format!("{name}: {what}"));
        let (Some(metadata), Some(packet)) = (&fetched.metadata, &fetched.packet) else {
            return Err(malformed("no metadata came"));
        };
        let metadata = metadata.clone();
        let version = (metadata.name.parent() == *name)
            .then(|| metadata.name.last().and_then(|c| c.as_version()))
            .flatten()
            .ok_or_else(|| malformed("its metadata are of another file"))?;
        let (Some(size), Some(segment_bytes)) = (metadata.size, metadata.segment_bytes) else {
            return Err(malformed(
                "its metadata have no size; fetch it with trunkline get",
            ));
        };
        let last = size.div_ceil(segment_bytes.max(1)).max(1) - 1;
        let is_sound = (1..=MAX_JUMBO_PACKET as u64).contains(&segment_bytes)
            && metadata.last.is_none_or(|told| told == last);
        if !is_sound {
            return Err(malformed(
                "its metadata have a size that its segments can't have",
            ));
        }
        Ok(Self {
            name: name.clone(),
            version,
            size,
            segment_bytes,
            last,
            mode: metadata
                .mode
                .and_then(|mode| u32::try_from(mode).ok())
                .unwrap_or(libc::S_IFREG | 0o644),
            // Versions are times, where nothing else is told.
            mtime_ns: metadata
                .mtime_ns
                .unwrap_or_else(|| version.saturating_mul(1000)),
            signature: signature_text(packet),
            metadata,
        })
    }

    /// Bytes in memory, about.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.name.wire_len()
            + self.metadata.name.wire_len()
            + self.signature.len()
    }

    /// Bytes of content in a segment.
    pub fn len_of(&self, segment: u64) -> u64 {
        self.size
            .saturating_sub(segment.saturating_mul(self.segment_bytes))
            .min(self.segment_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndn_packet::{Data, SigningKey};
    use std::time::Duration;

    fn read(change: impl FnOnce(&mut Metadata)) -> Result<VersionMetadata, RemoteError> {
        let name: Name = "/a/f".parse().expect("a name");
        let mut metadata = Metadata {
            size: Some(2_000),
            segment_bytes: Some(1_500),
            last: Some(1),
            ..Metadata::new(name.append_version(7))
        };
        change(&mut metadata);
        let wire = metadata.packet(&name, 7, Duration::ZERO, &SigningKey::DigestSha256);
        let fetched = Fetched {
            metadata: Some(metadata),
            packet: Some(Data::parse(wire).expect("well formed")),
            manifest: None,
        };
        VersionMetadata::read(&name, &fetched)
    }

    #[test]
    fn what_can_be_a_file_is_one() {
        let told = read(|_| {}).expect("a file");
        assert_eq!((told.version, told.last, told.mtime_ns), (7, 1, 7000));
        assert_eq!(
            (told.len_of(0), told.len_of(1), told.len_of(2)),
            (1500, 500, 0)
        );
        let empty = read(|m| (m.size, m.last) = (Some(0), Some(0))).expect("a file");
        assert_eq!((empty.last, empty.len_of(0)), (0, 0));
    }

    #[test]
    fn what_can_be_none_is_refused() {
        let changes: [fn(&mut Metadata); 6] = [
            |m| m.size = None,
            |m| m.segment_bytes = None,
            |m| m.segment_bytes = Some(0),
            |m| m.segment_bytes = Some(u64::MAX),
            |m| m.last = Some(2),
            |m| m.name = "/a/g/v=7".parse().expect("a name"),
        ];
        for change in changes {
            assert!(matches!(read(change), Err(RemoteError::Malformed(_))));
        }
    }
}
