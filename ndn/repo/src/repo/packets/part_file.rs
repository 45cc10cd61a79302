//! What is written down of an insertion that goes on, so that it can be gone on with after a restart.
//!
//! ```text
//!   <id>.part  magic │ record: log that it began in 4 │ key │ tag
//!              record: first segment 8 │ log 4 │ for each packet its place and length, 4 bytes each
//!              record: …
//!   record     length of payload 4 │ CRC-32 of payload 4 │ payload
//! ```
//! Nothing of it is ever synced, and it proves nothing: an insertion goes on from packets that were read and checked.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::BufMut;

use super::extent::MAX_COUNT;
use super::log::folder;
use super::record::Key;
use super::series::{ENTRY, Entry};
use crate::disk::{Disk, DiskFile};
use crate::ids::random;

pub(super) const MAGIC: &[u8; 4] = b"TLP1";
/// Bytes before a record's payload.
pub(super) const HEADER: u64 = 8;
/// Bytes before a run's entries.
const RUN_HEADER: usize = 12;
/// Longest payload: a run of the most packets that an extent may have.
const MAX_PAYLOAD: usize = RUN_HEADER + ENTRY as usize * MAX_COUNT as usize;
pub(super) const SUFFIX: &str = ".part";

/// The file of one insertion.
#[derive(Debug)]
pub(crate) struct PartFile {
    pub path: PathBuf,
    pub file: Arc<dyn DiskFile>,
    /// Where the next record goes.
    pub at: u64,
}

impl PartFile {
    /// Of a new insertion.
    pub fn create(disk: &dyn Disk, key: &Key, began_in: u32, tag: &[u8]) -> io::Result<Self> {
        let path = folder().join(format!("{:016x}{SUFFIX}", random()));
        let file = disk.create(&path)?;
        let mut part = Self { path, file, at: 0 };
        part.file.write_at(0, MAGIC)?;
        part.at = MAGIC.len() as u64;
        let mut payload = Vec::new();
        payload.put_u32_le(began_in);
        key.encode(&mut payload);
        payload.put_slice(tag);
        part.append(&payload)?;
        Ok(part)
    }

    /// Tells of packets of consecutive segments that are in one log, and in its file.
    pub fn tell(&mut self, first: u64, log: u32, entries: &[Entry]) -> io::Result<()> {
        let mut payload = Vec::with_capacity(RUN_HEADER + entries.len() * ENTRY as usize);
        payload.put_u64_le(first);
        payload.put_u32_le(log);
        payload.extend(entries.iter().flat_map(|e| e.encode()));
        self.append(&payload)
    }

    fn append(&mut self, payload: &[u8]) -> io::Result<()> {
        let mut record = Vec::with_capacity(HEADER as usize + payload.len());
        record.put_u32_le(payload.len() as u32);
        record.put_u32_le(crc32fast::hash(payload));
        record.put_slice(payload);
        self.file.write_at(self.at, &record)?;
        self.at += record.len() as u64;
        Ok(())
    }

    /// The next record; `None` where there is none, or what is there is none.
    pub fn next(&mut self) -> Option<Vec<u8>> {
        let mut header = [0; HEADER as usize];
        self.file.read_at(self.at, &mut header).ok()?;
        let half = |at: usize| {
            let bytes = header[at..].first_chunk();
            bytes.map_or(0, |b| u32::from_le_bytes(*b))
        };
        let (len, crc) = (half(0) as usize, half(4));
        if len > MAX_PAYLOAD {
            return None;
        }
        let mut payload = vec![0; len];
        self.file.read_at(self.at + HEADER, &mut payload).ok()?;
        (crc32fast::hash(&payload) == crc).then_some(payload)
    }

    /// The insertion is over.
    pub fn remove(self, disk: &dyn Disk) {
        remove(disk, &self.path);
    }
}

/// Removes a part file that is not needed.
pub(super) fn remove(disk: &dyn Disk, path: &std::path::Path) {
    if let Err(error) = disk.remove(path) {
        tracing::warn!(path = %path.display(), %error, "can't remove a file that is not needed");
    }
}
