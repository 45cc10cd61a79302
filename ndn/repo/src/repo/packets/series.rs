//! The packets of one key, as they are read.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use ndn_packet::{Data, Name};

use super::PacketStore;
use super::extent::Extent;
use super::log::path;
use super::record::{HEADER, Header, Key, Kind};
use crate::error::{At, RepoError, Result};

/// Table entries read at once.
const WINDOW: u64 = 512;
/// Bytes of a table's entry.
pub(crate) const ENTRY: u64 = 8;

/// The packets of a key, at one moment.
#[derive(Debug)]
pub(crate) struct Series {
    pub key: Key,
    pub extents: Vec<Extent>,
    /// The entries read last, and the segment of the first.
    window: Mutex<(u64, Arc<[Entry]>)>,
}

/// Where a packet's record is in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub at: u32,
    /// Bytes of the packet.
    pub len: u32,
}

impl Entry {
    pub fn encode(self) -> [u8; ENTRY as usize] {
        let mut bytes = [0; ENTRY as usize];
        bytes[..4].copy_from_slice(&self.at.to_le_bytes());
        bytes[4..].copy_from_slice(&self.len.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8; ENTRY as usize]) -> Self {
        let half = |at: usize| {
            bytes[at..]
                .first_chunk()
                .map_or(0, |b| u32::from_le_bytes(*b))
        };
        Self {
            at: half(0),
            len: half(4),
        }
    }
}

impl Series {
    pub fn new(key: Key, extents: Vec<Extent>) -> Self {
        Self {
            key,
            extents,
            window: Mutex::new((0, Arc::new([]))),
        }
    }

    /// The name of a segment's packet.
    pub fn name_of(&self, segment: u64) -> Name {
        match self.key.segmented {
            true => self.key.name.append_segment(segment),
            false => self.key.name.clone(),
        }
    }

    /// The extent that has this segment.
    fn extent(&self, segment: u64) -> Option<&Extent> {
        let after = self.extents.partition_point(|e| e.first <= segment);
        let extent = self.extents.get(after.checked_sub(1)?)?;
        (segment < extent.end()).then_some(extent)
    }

    /// The packet of a segment, as it came.
    pub fn packet(&self, store: &PacketStore, segment: u64) -> Result<Option<Bytes>> {
        let Some(extent) = self.extent(segment) else {
            return Ok(None);
        };
        let entry = self.entry(store, extent, segment)?;
        self.read(store, extent.log, entry, segment).map(Some)
    }

    fn entry(&self, store: &PacketStore, extent: &Extent, segment: u64) -> Result<Entry> {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = segment
            .checked_sub(window.0)
            .and_then(|i| window.1.get(i as usize))
        {
            return Ok(*entry);
        }
        let entries = self.entries(store, extent, segment, WINDOW)?;
        *window = (segment, entries.into());
        window
            .1
            .first()
            .copied()
            .ok_or_else(|| self.damaged(segment))
    }

    /// Entries of an extent from a segment on.
    pub fn entries(
        &self,
        store: &PacketStore,
        extent: &Extent,
        from: u64,
        most: u64,
    ) -> Result<Vec<Entry>> {
        let count = (extent.end() - from).min(most);
        let mut bytes = vec![0; (count * ENTRY) as usize];
        let at = extent.table + (from - extent.first) * ENTRY;
        self.read_at(store, extent.table_log, at, &mut bytes, from)?;
        Ok(bytes
            .as_chunks::<{ ENTRY as usize }>()
            .0
            .iter()
            .map(Entry::decode)
            .collect())
    }

    /// Reads and checks a packet's record.
    pub fn read(&self, store: &PacketStore, log: u32, entry: Entry, segment: u64) -> Result<Bytes> {
        if entry.len as usize > ndn_packet::MAX_JUMBO_PACKET {
            return Err(self.damaged(segment));
        }
        let mut record = vec![0; HEADER + entry.len as usize];
        self.read_at(store, log, u64::from(entry.at), &mut record, segment)?;
        let record = Bytes::from(record);
        let payload = record.slice(HEADER..);
        let sound = record
            .first_chunk::<HEADER>()
            .and_then(Header::decode)
            .is_some_and(|h| h.kind == Kind::Packet && h.holds(log, u64::from(entry.at), &payload));
        let is_it = || {
            let name = Data::parse(payload.clone()).ok()?.name().to_name();
            Some(name == self.name_of(segment))
        };
        if sound && is_it() == Some(true) {
            Ok(payload)
        } else {
            Err(self.damaged(segment))
        }
    }

    fn read_at(
        &self,
        store: &PacketStore,
        log: u32,
        at: u64,
        bytes: &mut [u8],
        segment: u64,
    ) -> Result<()> {
        let file = store.log_file(log)?;
        match file.read_at(at, bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(self.damaged(segment))
            }
            other => other.at(Path::new(&path(log))),
        }
    }

    fn damaged(&self, segment: u64) -> RepoError {
        RepoError::Damaged {
            name: self.name_of(segment),
            cause: String::from("its packet is not what was put there"),
        }
    }
}
