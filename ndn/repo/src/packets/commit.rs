//! Changes made durable and visible, in groups: whoever comes first syncs the log for all that came meanwhile.
//!
//! ```text
//!   record appended ──▶ (queue) ──▶ log synced ──▶ index changed ──▶ acknowledged
//! ```

use std::collections::HashMap;
use std::sync::PoisonError;

use bytes::Bytes;
use redb::{ReadableTable, WriteTransaction};

use super::extent::{self, Extent, replace};
use super::log::Place;
use super::record::{Change, Key};
use super::series::Series;
use super::store::PacketStore;
use crate::error::{At, RepoError, Result};
use crate::index::{Kept, META, SERIES, failed, name_of};

/// Where the logs are to be read from after a crash.
pub(crate) const CHECKPOINT_LOG: &str = "checkpoint_log";
pub(crate) const CHECKPOINT_AT: &str = "checkpoint_at";
/// The index is made durable after so many bytes of log: as much is read at most at the next start.
const CHECKPOINT_EVERY: u64 = 64 << 20;

/// Changes that wait for a sync, and what became of those that were not asked about yet.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Vec<(u64, Change)>,
    /// The end of the log after the last of them.
    end: Option<Place>,
    next: u64,
    /// By number: how many packets a change concerned, or why it failed.
    done: HashMap<u64, std::result::Result<u64, (std::io::ErrorKind, String)>>,
    since_checkpoint: u64,
}

impl PacketStore {
    /// Makes a change durable and visible; tells how many packets it put or removed.
    pub fn commit(&self, change: Change) -> Result<u64> {
        let number = self.enqueue(change)?;
        let _leading = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(result) = self.result(number) {
            return result; // Another one's sync was ours, too.
        }
        let (group, end) = {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            (std::mem::take(&mut queue.waiting), queue.end)
        };
        let outcome = self.commit_group(&group, end);
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok(counts) => {
                let counted = group.iter().zip(counts);
                queue
                    .done
                    .extend(counted.map(|((number, _), count)| (*number, Ok(count))));
            }
            Err(error) => {
                let kind = match &error {
                    RepoError::Io { error, .. } => error.kind(),
                    _ => std::io::ErrorKind::Other,
                };
                let told = (kind, error.to_string());
                queue
                    .done
                    .extend(group.iter().map(|(number, _)| (*number, Err(told.clone()))));
            }
        }
        drop(queue);
        self.result(number)
            .unwrap_or_else(|| Err(RepoError::Index(String::from("a change was lost"))))
    }

    /// Appends the change's record; the order of records is the order of changes.
    fn enqueue(&self, change: Change) -> Result<u64> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        let (kind, payload) = change.encode();
        let place = logs.append(&*self.disk, kind, &payload)?;
        // The log may have been broken since the packets were appended; then they are lost.
        if let Change::Put(key, extents) = &change
            && !extents
                .iter()
                .all(|e| logs.is_sound(e.log) && logs.is_sound(e.table_log))
        {
            return Err(RepoError::Io {
                path: super::log::path(place.log),
                error: std::io::Error::other(format!("packets of {} were lost", key.name)),
            });
        }
        queue.end = Some(logs.end());
        let number = queue.next;
        queue.next += 1;
        queue.since_checkpoint += payload.len() as u64;
        if let Change::Put(_, extents) = &change {
            queue.since_checkpoint += extents.iter().map(|e| e.bytes).sum::<u64>();
        }
        queue.waiting.push((number, change));
        Ok(number)
    }

    fn result(&self, number: u64) -> Option<Result<u64>> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let result = queue.done.remove(&number)?;
        Some(result.map_err(|(kind, said)| RepoError::Io {
            path: super::log::folder().to_owned(),
            error: std::io::Error::new(kind, said),
        }))
    }

    fn commit_group(&self, group: &[(u64, Change)], end: Option<Place>) -> Result<Vec<u64>> {
        let flushed = self
            .logs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .flush()?;
        if let Some((log, file)) = flushed
            && let Err(error) = file.sync()
        {
            let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
            logs.break_log(log);
            return Err(error).at(&super::log::path(log));
        }
        let kept = {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            if queue.since_checkpoint >= CHECKPOINT_EVERY {
                queue.since_checkpoint = 0;
                Kept::Durably
            } else {
                Kept::UntilCrash
            }
        };
        let counts = self.index.change(kept, |tx| {
            let counts = group
                .iter()
                .map(|(_, change)| self.apply(tx, change))
                .collect::<Result<Vec<u64>>>()?;
            if let Some(end) = end {
                checkpoint(tx, end)?;
            }
            Ok(counts)
        })?;
        for (_, change) in group {
            let (Change::Put(key, _) | Change::Remove(key, ..)) = change;
            self.forget(key);
        }
        Ok(counts)
    }

    /// What a change means for the index.
    pub(crate) fn apply(&self, tx: &WriteTransaction, change: &Change) -> Result<u64> {
        let (Change::Put(key, _) | Change::Remove(key, ..)) = change;
        let mut table = tx.open_table(SERIES).map_err(failed)?;
        let row = (key.name.value(), key.segmented);
        let old = match table.get(row).map_err(failed)? {
            Some(bytes) => decode(bytes.value())?,
            None => Vec::new(),
        };
        let before: u64 = old.iter().map(|e| e.count).sum();
        let series = Series::new(key.clone(), Vec::new());
        let part = |extent: &Extent, from: u64, to: u64| self.part(&series, extent, from, to);
        let (extents, count) = match change {
            Change::Put(_, extents) => {
                let count = extents.iter().map(|e| e.count).sum();
                (replace(&old, extents, part)?, count)
            }
            Change::Remove(_, first, last) => {
                let hole = Extent {
                    first: *first,
                    count: last
                        .saturating_sub(*first)
                        .saturating_add(1)
                        .min(u64::MAX - first),
                    log: 0,
                    table_log: 0,
                    table: 0,
                    bytes: 0,
                };
                let mut kept = replace(&old, &[hole], part)?;
                kept.retain(|e| *e != hole);
                let count = before - kept.iter().map(|e| e.count).sum::<u64>();
                (kept, count)
            }
        };
        if extents.is_empty() {
            table.remove(row).map_err(failed)?;
        } else {
            table
                .insert(row, &extent::encode(&extents)[..])
                .map_err(failed)?;
        }
        Ok(count)
    }

    /// An extent cut to the segments from `from` up to, without, `to`.
    fn part(&self, series: &Series, extent: &Extent, from: u64, to: u64) -> Result<Extent> {
        let entries = series.entries(self, extent, from, to - from)?;
        Ok(Extent {
            first: from,
            count: to - from,
            log: extent.log,
            table_log: extent.table_log,
            table: extent.table + (from - extent.first) * super::series::ENTRY,
            bytes: entries
                .iter()
                .map(|e| super::record::record_len(e.len as usize) as u64)
                .sum(),
        })
    }
}

/// Writes down that the index tells all that the logs do up to there.
pub(crate) fn checkpoint(tx: &WriteTransaction, end: Place) -> Result<()> {
    let mut meta = tx.open_table(META).map_err(failed)?;
    meta.insert(CHECKPOINT_LOG, u64::from(end.log))
        .map_err(failed)?;
    meta.insert(CHECKPOINT_AT, end.at).map_err(failed)?;
    Ok(())
}

/// The extents of a row of the `series` table.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<Extent>> {
    extent::decode(bytes)
        .ok_or_else(|| RepoError::Index(String::from("an entry of `series` is malformed")))
}

/// The key of a row of the `series` table.
pub(crate) fn key_of(row: (&[u8], bool)) -> Result<Key> {
    Ok(Key {
        name: name_of(Bytes::copy_from_slice(row.0))?,
        segmented: row.1,
    })
}
