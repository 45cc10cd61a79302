//! The manifest of a file version, a file beside its content: for each segment the digest that signs it and a checksum,
//! and at the end the signed metadata packet that vouches for all of them.
//!
//! ```text
//!   magic 8 │ length of facts 4 │ facts │ CRC-32 of all before 4
//!   digest 32 │ CRC-32 of the segment's content and the digest 4      for each segment
//!   SHA-256 of all digests 32 │ length 4 │ metadata packet │ CRC-32 of this part 4
//! ```
//! Numbers are little-endian. The facts are enough to find out, after a crash, whose content this is.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ndn_packet::Name;

use super::segments::DIGEST_BYTES;
use crate::disk::DiskFile;
use crate::error::{At, RepoError, Result};
use crate::index::FileEntry;

const MAGIC: &[u8; 8] = b"TLMAN\0\0\x01";
/// Begins the manifest of a version that was to be kept before it was published.
const DRAFT_MAGIC: &[u8; 8] = b"TLMAN\0\x01\x01";
/// Bytes of an entry.
pub(crate) const ENTRY_BYTES: usize = DIGEST_BYTES + 4;
/// Longest facts that are read: a name of NDN's greatest packet and the entry.
const MAX_FACTS: usize = 16 * 1024;
/// Longest metadata packet that is read.
const MAX_METADATA: usize = 16 * 1024;

/// Whose manifest it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    pub name: Name,
    pub version: u64,
    /// The size is 0 in the manifest of a version whose size was not known at the start.
    pub entry: FileEntry,
}

impl Facts {
    /// The beginning of the manifest.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_with(MAGIC)
    }

    /// The beginning of a draft's manifest; as long as the other.
    pub fn encode_draft(&self) -> Vec<u8> {
        self.encode_with(DRAFT_MAGIC)
    }

    fn encode_with(&self, magic: &[u8; 8]) -> Vec<u8> {
        let entry = self.entry.encode();
        let name = self.name.value();
        let mut bytes = Vec::with_capacity(32 + entry.len() + name.len());
        bytes.extend_from_slice(magic);
        bytes.extend_from_slice(&((8 + entry.len() + name.len()) as u32).to_le_bytes());
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&entry);
        bytes.extend_from_slice(name);
        let crc = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the beginning of a manifest: the facts, and where the entries begin.
    pub fn decode(bytes: &[u8]) -> Option<(Self, u64)> {
        let len = facts_len(bytes)?;
        let whole = bytes.get(..12 + len + 4)?;
        let (told, crc) = whole.split_at(12 + len);
        if crc32fast::hash(told).to_le_bytes() != crc {
            return None;
        }
        let version = u64::from_le_bytes(*told[12..].first_chunk()?);
        let entry_end = told.len().min(20 + FileEntry::BYTES);
        let entry = FileEntry::decode(told.get(20..entry_end)?)?;
        let name = Name::from_value(Bytes::copy_from_slice(told.get(entry_end..)?)).ok()?;
        Some((
            Self {
                name,
                version,
                entry,
            },
            whole.len() as u64,
        ))
    }

    /// Reads them from a file.
    pub fn read(file: &dyn DiskFile) -> Option<(Self, u64)> {
        let mut head = [0; 12];
        file.read_at(0, &mut head).ok()?;
        let mut bytes = vec![0; 12 + facts_len(&head)? + 4];
        file.read_at(0, &mut bytes).ok()?;
        Self::decode(&bytes)
    }
}

fn facts_len(bytes: &[u8]) -> Option<usize> {
    let len = bytes
        .strip_prefix(MAGIC)
        .or_else(|| bytes.strip_prefix(DRAFT_MAGIC))?
        .first_chunk()
        .map(|b| u32::from_le_bytes(*b) as usize)?;
    (8 + FileEntry::BYTES..=MAX_FACTS)
        .contains(&len)
        .then_some(len)
}

/// Whether a manifest is a draft's: see [`super::FileWriter::keep`].
pub(crate) fn is_draft(file: &dyn DiskFile) -> bool {
    let mut magic = [0; 8];
    file.read_at(0, &mut magic).is_ok() && magic == *DRAFT_MAGIC
}

/// Digest and checksum of one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentEntry {
    pub digest: [u8; DIGEST_BYTES],
    crc: u32,
}

impl SegmentEntry {
    pub fn new(digest: [u8; DIGEST_BYTES], content: &[u8]) -> Self {
        Self {
            digest,
            crc: checksum(&digest, content),
        }
    }

    pub fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..DIGEST_BYTES].copy_from_slice(&self.digest);
        bytes[DIGEST_BYTES..].copy_from_slice(&self.crc.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8; ENTRY_BYTES]) -> Self {
        let (digest, crc) = bytes.split_at(DIGEST_BYTES);
        Self {
            digest: digest.try_into().unwrap_or_default(),
            crc: crc.try_into().map(u32::from_le_bytes).unwrap_or_default(),
        }
    }

    /// Whether content and digest are what was put there.
    pub fn holds(&self, content: &[u8]) -> bool {
        checksum(&self.digest, content) == self.crc
    }
}

fn checksum(digest: &[u8], content: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(content);
    crc.update(digest);
    crc.finalize()
}

/// The end of the manifest.
pub(crate) fn encode_end(root: &[u8; DIGEST_BYTES], metadata: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(40 + metadata.len());
    bytes.extend_from_slice(root);
    bytes.extend_from_slice(&(metadata.len() as u32).to_le_bytes());
    bytes.extend_from_slice(metadata);
    let crc = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

/// A finished manifest.
#[derive(Debug)]
pub(crate) struct Manifest {
    file: Arc<dyn DiskFile>,
    name: Name,
    segments: u64,
    entries_at: u64,
}

impl Manifest {
    /// Reads the beginning of the manifest of version `version` of `name`.
    pub fn open(
        file: Arc<dyn DiskFile>,
        name: &Name,
        version: u64,
        entry: &FileEntry,
    ) -> Result<Self> {
        let damaged = || RepoError::Damaged {
            name: name.append_version(version),
            cause: String::from("its manifest is not its own"),
        };
        let (facts, entries_at) = Facts::read(&*file).ok_or_else(damaged)?;
        if facts.name != *name || facts.version != version || facts.entry.content != entry.content {
            return Err(damaged());
        }
        Ok(Self {
            file,
            name: name.append_version(version),
            segments: entry.last_segment() + 1,
            entries_at,
        })
    }

    /// Fills `entries` with those from segment `first` on; as many as there are.
    pub fn entries(&self, first: u64, most: usize) -> Result<Vec<SegmentEntry>> {
        let count = self.segments.saturating_sub(first).min(most as u64) as usize;
        let mut bytes = vec![0; count * ENTRY_BYTES];
        let at = self.entries_at + first * ENTRY_BYTES as u64;
        self.read(at, &mut bytes)?;
        Ok(bytes
            .as_chunks::<ENTRY_BYTES>()
            .0
            .iter()
            .map(SegmentEntry::decode)
            .collect())
    }

    /// The digest over all digests, and the signed metadata packet.
    pub fn end(&self) -> Result<([u8; DIGEST_BYTES], Bytes)> {
        let at = self.entries_at + self.segments * ENTRY_BYTES as u64;
        let mut head = [0; DIGEST_BYTES + 4];
        self.read(at, &mut head)?;
        let (root, len) = head.split_at(DIGEST_BYTES);
        let len = len
            .try_into()
            .map_or(usize::MAX, |b| u32::from_le_bytes(b) as usize);
        if len > MAX_METADATA {
            return Err(self.damaged());
        }
        let mut rest = vec![0; len + 4];
        self.read(at + head.len() as u64, &mut rest)?;
        let (metadata, crc) = rest.split_at(len);
        let mut found = crc32fast::Hasher::new();
        found.update(&head);
        found.update(metadata);
        if found.finalize().to_le_bytes() != crc {
            return Err(self.damaged());
        }
        let root = root.try_into().unwrap_or_default();
        Ok((root, Bytes::copy_from_slice(metadata)))
    }

    fn damaged(&self) -> RepoError {
        RepoError::Damaged {
            name: self.name.clone(),
            cause: String::from("the end of its manifest is damaged"),
        }
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<()> {
        match self.file.read_at(at, bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(RepoError::Damaged {
                    name: self.name.clone(),
                    cause: String::from("its manifest is cut short"),
                })
            }
            other => other.at(Path::new("manifest")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn facts() -> Facts {
        Facts {
            name: "/a/b".parse().expect("a name"),
            version: 3,
            entry: FileEntry {
                content: 9,
                size: 10,
                segment_bytes: 4,
                freshness_ms: 1000,
                final_in_all: true,
                mode: 0o644,
                mtime_ns: 5,
            },
        }
    }

    #[test]
    fn facts_go_round_and_no_bit_may_change() {
        let bytes = facts().encode();
        assert_eq!(Facts::decode(&bytes), Some((facts(), bytes.len() as u64)));
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Facts::decode(&changed), None, "bit {bit}");
        }
    }

    #[test]
    fn an_entry_vouches_for_content_and_digest() {
        let entry = SegmentEntry::new([7; 32], b"content");
        assert!(entry.holds(b"content") && !entry.holds(b"Content"));
        for bit in 0..ENTRY_BYTES * 8 {
            let mut bytes = entry.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!SegmentEntry::decode(&bytes).holds(b"content"));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes: Vec<u8>) {
            let _ = Facts::decode(&bytes);
            let mut begun = MAGIC.to_vec();
            begun.extend_from_slice(&bytes);
            let _ = Facts::decode(&begun);
        }
    }
}
