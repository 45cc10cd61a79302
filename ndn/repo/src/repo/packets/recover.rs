//! After a start: what the logs tell and the index does not know yet, from the checkpoint on.

use std::sync::Arc;

use super::PacketStore;
use super::commit::{CHECKPOINT_AT, CHECKPOINT_LOG, checkpoint};
use super::kept::KeptInsertion;
use super::log::{self, Place};
use super::record::{Change, HEADER, Header, Kind, record_len};
use crate::disk::{Disk, DiskFile};
use crate::error::{At, Result};
use crate::index::{Index, Kept, META, failed};

/// Bytes read at once.
const CHUNK: usize = 1 << 20;

/// Opens the store; what was acknowledged is in it.
pub(crate) fn recover(
    disk: Arc<dyn Disk>,
    index: Arc<Index>,
    log_bytes: u64,
) -> Result<PacketStore> {
    let mut numbers: Vec<u32> = disk
        .list(log::folder())
        .at(log::folder())?
        .iter()
        .filter_map(|file| log::number(file))
        .collect();
    numbers.sort_unstable();
    let from = read_checkpoint(&index)?;
    let next = numbers
        .last()
        .map_or(0, |n| n.saturating_add(1))
        .max(from.log);
    let mut store = PacketStore::new(disk.clone(), index.clone(), log_bytes, next);
    let mut changes = Vec::new();
    for number in numbers.into_iter().filter(|n| *n >= from.log) {
        let start = if number == from.log { from.at } else { 0 };
        let path = log::path(number);
        let file = disk.open(&path).at(&path)?;
        let end = scan(&*file, number, start, &mut |change| changes.push(change)).at(&path)?;
        // What is beyond was never acknowledged; without it, it can never look as if it had been. Where nothing is, room
        // may be reserved still.
        file.set_size(end).at(&path)?;
        // Where the process was killed, what was read may not be on the disk yet, and the index is about to tell of it.
        file.sync().at(&path)?;
        if end == 0 {
            disk.remove(&path).at(&path)?;
        }
    }
    let end = Place { log: next, at: 0 };
    if !changes.is_empty() || end != from {
        index.change(Kept::Durably, |tx| {
            for change in &changes {
                store.apply(tx, change)?;
            }
            checkpoint(tx, end)
        })?;
    }
    store.keep(KeptInsertion::read_all(&*disk)?);
    Ok(store)
}

fn read_checkpoint(index: &Index) -> Result<Place> {
    let tx = index.read()?;
    let meta = tx.open_table(META).map_err(failed)?;
    let word = |key| Ok(meta.get(key).map_err(failed)?.map_or(0, |v| v.value()));
    Ok(Place {
        log: u32::try_from(word(CHECKPOINT_LOG)?).unwrap_or(u32::MAX),
        at: word(CHECKPOINT_AT)?,
    })
}

/// Reads records from `at` on, up to the first that is none; tells the changes in them, and where it ends.
pub(crate) fn scan(
    file: &dyn DiskFile,
    log: u32,
    mut at: u64,
    tell: &mut dyn FnMut(Change),
) -> std::io::Result<u64> {
    let size = file.size()?;
    let mut chunk: Vec<u8> = Vec::new();
    let mut chunk_at = at;
    loop {
        let mut bytes = |from: u64, len: usize| -> std::io::Result<Option<Vec<u8>>> {
            if from + len as u64 > size {
                return Ok(None);
            }
            let inside = from
                .checked_sub(chunk_at)
                .is_some_and(|skip| skip as usize + len <= chunk.len());
            if !inside {
                let n = (size - from).min(CHUNK.max(len) as u64) as usize;
                chunk.resize(n, 0);
                file.read_at(from, &mut chunk)?;
                chunk_at = from;
            }
            let skip = (from - chunk_at) as usize;
            Ok(Some(chunk[skip..skip + len].to_vec()))
        };
        let Some(header) = bytes(at, HEADER)?
            .as_deref()
            .and_then(|b| b.first_chunk())
            .and_then(Header::decode)
        else {
            return Ok(at);
        };
        let Some(payload) = bytes(at + HEADER as u64, header.len)? else {
            return Ok(at);
        };
        if !header.holds(log, at, &payload) {
            return Ok(at);
        }
        if matches!(header.kind, Kind::Put | Kind::Remove) {
            match Change::decode(header.kind, &payload) {
                Some(change) => tell(change),
                None => return Ok(at),
            }
        }
        at += record_len(header.len) as u64;
    }
}
