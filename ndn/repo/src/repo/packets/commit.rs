//! Changes made durable and visible, in groups: whoever comes first syncs the log for all that came meanwhile.
//!
//! ```text
//!   logs that are full synced ──▶ record appended ──▶ (queue) ──▶ log synced ──▶ index changed ──▶ acknowledged
//! ```
//! A change's record is never in a later log than one that may still lose bytes: after a crash, what a log tells is true of
//! all logs before it.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use bytes::Bytes;
use redb::{ReadableTable, WriteTransaction};

use super::PacketStore;
use super::extent::{self, Extent, replace};
use super::log::{LogFile, Logs, Place, Unsynced, folder, path};
use super::record::{Change, Key};
use super::series::Series;
use crate::error::{At, RepoError, Result};
use crate::index::{Kept, META, SERIES, failed, name_of};

/// Where the logs are to be read from after a crash.
pub(crate) const CHECKPOINT_LOG: &str = "checkpoint_log";
pub(crate) const CHECKPOINT_AT: &str = "checkpoint_at";
/// The index is made durable after so many bytes of log: as much is read at most at the next start.
const CHECKPOINT_EVERY: u64 = 64 << 20;

/// How many packets a change concerned, or why it failed, which several may have in common.
type Done = std::result::Result<u64, Arc<RepoError>>;

/// A change whose record is in a log.
#[derive(Debug)]
struct Logged {
    number: u64,
    change: Change,
    /// The log that its record is in.
    log: u32,
}

/// Changes that wait for a sync, and what became of those that were not asked about yet.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Vec<Logged>,
    /// The end of the log after the last of them.
    end: Option<Place>,
    next: u64,
    /// By number: how many packets a change concerned, or why it failed.
    done: HashMap<u64, Done>,
    since_checkpoint: u64,
}

impl PacketStore {
    /// Makes a change durable and visible; tells how many packets it put or removed.
    pub fn commit(&self, change: Change) -> Result<u64> {
        let number = self.enqueue(change)?;
        self.sync_waiting();
        self.result(number)
    }

    /// Makes changes durable and visible, with one sync for all of them. Each for itself: one that fails does not stop those
    /// after it.
    pub fn commit_all(&self, changes: Vec<Change>) -> Vec<Result<u64>> {
        let numbers: Vec<Result<u64>> = changes.into_iter().map(|c| self.enqueue(c)).collect();
        self.sync_waiting();
        let result = |number: Result<u64>| self.result(number?);
        numbers.into_iter().map(result).collect()
    }

    /// Appends the change's record; the order of records is the order of changes.
    fn enqueue(&self, change: Change) -> Result<u64> {
        let (kind, payload) = change.encode();
        loop {
            // Not under the lock: others append meanwhile.
            let full = self.logs().full();
            self.sync_unsynced(&full)?;
            let mut queue = self.queue();
            let mut logs = self.logs();
            logs.make_room(payload.len())?;
            if !logs.full().files.is_empty() {
                continue; // Another one is full since.
            }
            let place = logs.append(&*self.disk, kind, &payload)?;
            // A log may have been broken since the packets were appended; then they are lost.
            if let Change::Put(key, extents) = &change
                && !is_sound(&logs, extents)
            {
                return Err(lost(key, place.log));
            }
            queue.end = Some(logs.end());
            let number = queue.next;
            queue.next += 1;
            queue.since_checkpoint += payload.len() as u64;
            if let Change::Put(_, extents) = &change {
                queue.since_checkpoint += extents.iter().map(|e| e.bytes).sum::<u64>();
            }
            queue.waiting.push(Logged {
                number,
                change,
                log: place.log,
            });
            return Ok(number);
        }
    }

    /// Makes all that waits durable and visible, unless somebody else has done so.
    fn sync_waiting(&self) {
        let _leading = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        let (group, end) = {
            let mut queue = self.queue();
            (std::mem::take(&mut queue.waiting), queue.end)
        };
        if group.is_empty() {
            return; // Another one's sync was ours, too.
        }
        let synced = self.sync_logs();
        let (sound, broken): (Vec<_>, Vec<_>) = {
            let logs = self.logs();
            group.into_iter().partition(|logged| {
                logs.is_sound(logged.log)
                    && match &logged.change {
                        Change::Put(_, extents) => is_sound(&logs, extents),
                        Change::Remove(..) => true,
                    }
            })
        };
        let said = match synced {
            Ok(()) => Arc::new(RepoError::Index(String::from("its log was lost"))),
            Err(error) => Arc::new(error),
        };
        let mut done: Vec<(u64, Done)> = broken
            .into_iter()
            .map(|logged| (logged.number, Err(said.clone())))
            .collect();
        let counts = match sound.is_empty() {
            true => Ok(Vec::new()),
            false => self.change_index(&sound, end).map_err(Arc::new),
        };
        match counts {
            Ok(counts) => {
                let numbers = sound.iter().map(|logged| logged.number);
                done.extend(numbers.zip(counts));
            }
            Err(error) => {
                let numbers = sound.iter().map(|logged| logged.number);
                done.extend(numbers.map(|number| (number, Err(error.clone()))));
            }
        }
        self.queue().done.extend(done);
    }

    fn result(&self, number: u64) -> Result<u64> {
        let done = self.queue().done.remove(&number);
        match done {
            Some(Ok(count)) => Ok(count),
            Some(Err(error)) => Err(RepoError::Shared(error)),
            None => Err(RepoError::Index(String::from("a change was lost"))),
        }
    }

    /// Makes all that is in the logs durable; a log that can't be is broken.
    pub fn sync_logs(&self) -> Result<()> {
        let unsynced = self.logs().unsynced()?;
        self.sync_unsynced(&unsynced)
    }

    fn sync_unsynced(&self, unsynced: &Unsynced) -> Result<()> {
        if !unsynced.unnamed.is_empty() {
            if let Err(error) = self.disk.sync_dir(folder()) {
                let mut logs = self.logs();
                for log in &unsynced.unnamed {
                    logs.break_log(*log);
                }
                return Err(error).at(folder());
            }
            self.logs().named(&unsynced.unnamed);
        }
        let mut result = Ok(());
        for log in &unsynced.files {
            // Those after it may be sound.
            result = result.and(self.sync_log(log));
        }
        result
    }

    fn sync_log(&self, log: &LogFile) -> Result<()> {
        let synced = log.sync();
        let mut logs = self.logs();
        match synced {
            Ok(()) => {
                logs.synced(log);
                Ok(())
            }
            Err(error) => {
                logs.break_log(log.number);
                Err(error).at(&path(log.number))
            }
        }
    }

    /// Tells the index of changes that are durable in the logs.
    fn change_index(&self, group: &[Logged], end: Option<Place>) -> Result<Vec<Done>> {
        let kept = {
            let mut queue = self.queue();
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
                .map(|logged| self.apply_alone(tx, &logged.change))
                .collect::<Result<Vec<Done>>>()?;
            if let Some(end) = end {
                checkpoint(tx, end)?;
            }
            Ok(counts)
        })?;
        for logged in group {
            let (Change::Put(key, _) | Change::Remove(key, ..)) = &logged.change;
            self.forget(key);
        }
        Ok(counts)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn logs(&self) -> MutexGuard<'_, Logs> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`PacketStore::apply`]; what hinders this change alone hinders no other.
    ///
    /// # Errors
    /// What hinders all of them.
    fn apply_alone(&self, tx: &WriteTransaction, change: &Change) -> Result<Done> {
        match self.apply(tx, change) {
            Err(error @ (RepoError::Io { .. } | RepoError::Damaged { .. })) => {
                Ok(Err(Arc::new(error)))
            }
            other => other.map(Ok),
        }
    }

    /// What a change means for the index. What it leaves of extents that the disk has lost goes with it.
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

    /// An extent cut to the segments from `from` up to, without, `to`; `None` where it can't be read any more.
    fn part(&self, series: &Series, extent: &Extent, from: u64, to: u64) -> Result<Option<Extent>> {
        let entries = match series.entries(self, extent, from, to - from) {
            Err(error) if error.is_loss() => {
                tracing::error!(%error, from, to, "packets that the disk has lost are left out");
                return Ok(None);
            }
            entries => entries?,
        };
        Ok(Some(Extent {
            first: from,
            count: to - from,
            log: extent.log,
            table_log: extent.table_log,
            table: extent.table + (from - extent.first) * super::series::ENTRY,
            bytes: entries
                .iter()
                .map(|e| super::record::record_len(e.len as usize) as u64)
                .sum(),
        }))
    }
}

/// Whether the packets can be relied on.
fn is_sound(logs: &Logs, extents: &[Extent]) -> bool {
    let is_sound = |e: &Extent| logs.is_sound(e.log) && logs.is_sound(e.table_log);
    extents.iter().all(is_sound)
}

fn lost(key: &Key, log: u32) -> RepoError {
    RepoError::Io {
        path: path(log),
        error: std::io::Error::other(format!("packets of {} were lost", key.name)),
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
