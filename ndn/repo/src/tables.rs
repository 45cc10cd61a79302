//! What the index and the bundles tell each other: the table of files, an entry of it, and how tables are read and changed.

use ndn_endpoint::rdr::Metadata;
use ndn_packet::Name;
use redb::{ReadTransaction, TableDefinition, WriteTransaction};

use crate::error::{RepoError, Result};

pub(crate) type Bytes8 = &'static [u8];

pub(crate) const FILES: TableDefinition<'_, (Bytes8, u64), Bytes8> = TableDefinition::new("files");

/// What a crash may do to a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Nothing.
    Durably,
    /// Undo it: the logs tell it again.
    UntilCrash,
}

/// What the store says, with the file that it is about.
pub(crate) fn failed(error: impl Into<redb::Error>) -> RepoError {
    match error.into() {
        redb::Error::Io(error) => RepoError::Io {
            path: "index.redb".into(),
            error,
        },
        other => RepoError::Index(other.to_string()),
    }
}

/// Tables that are read and changed.
pub(crate) trait Tables {
    /// A view of the tables as they are now.
    fn view(&self) -> Result<ReadTransaction>;

    /// Changes them: all that `change` does, or nothing. One change at a time; others wait.
    fn alter(
        &self,
        kept: Kept,
        change: &mut dyn FnMut(&WriteTransaction) -> Result<()>,
    ) -> Result<()>;
}

/// One version of a file, as the index keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileEntry {
    /// Names the files on disk that hold content and manifest.
    pub content: u64,
    /// Bytes of the file.
    pub size: u64,
    /// Bytes of content in each segment but the last.
    pub segment_bytes: u32,
    /// FreshnessPeriod of the segments in milliseconds.
    pub freshness_ms: u32,
    /// Whether every segment bears FinalBlockId; else the last alone does, because the size was not known before.
    pub final_in_all: bool,
    /// `st_mode`.
    pub mode: u32,
    /// Time of the file's last change, nanoseconds since the Unix epoch.
    pub mtime_ns: u64,
}

/// Bytes of a [`FileEntry`] in the index.
const FILE_ENTRY_LEN: usize = 37;

impl FileEntry {
    /// Bytes that an entry takes.
    pub(crate) const BYTES: usize = FILE_ENTRY_LEN;

    /// Number of the last segment.
    pub fn last_segment(&self) -> u64 {
        self.size
            .div_ceil(u64::from(self.segment_bytes))
            .saturating_sub(1)
    }

    /// What RDR tells of it under its versioned name.
    pub(crate) fn metadata(&self, versioned: Name) -> Metadata {
        Metadata {
            last: Some(self.last_segment()),
            segment_bytes: Some(u64::from(self.segment_bytes)),
            size: Some(self.size),
            mode: Some(u64::from(self.mode)),
            mtime_ns: Some(self.mtime_ns),
            ..Metadata::new(versioned)
        }
    }

    pub(crate) fn encode(&self) -> [u8; FILE_ENTRY_LEN] {
        let mut bytes = [0; FILE_ENTRY_LEN];
        bytes[..8].copy_from_slice(&self.content.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.size.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.segment_bytes.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.freshness_ms.to_le_bytes());
        bytes[24] = u8::from(self.final_in_all);
        bytes[25..29].copy_from_slice(&self.mode.to_le_bytes());
        bytes[29..].copy_from_slice(&self.mtime_ns.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != FILE_ENTRY_LEN {
            return None;
        }
        let word = |at: usize| bytes[at..].first_chunk().map(|b| u64::from_le_bytes(*b));
        let half = |at: usize| bytes[at..].first_chunk().map(|b| u32::from_le_bytes(*b));
        Some(Self {
            content: word(0)?,
            size: word(8)?,
            segment_bytes: half(16).filter(|n| *n > 0)?,
            freshness_ms: half(20)?,
            final_in_all: bytes[24] != 0,
            mode: half(25)?,
            mtime_ns: word(29)?,
        })
    }
}
