//! Room given back: what is still needed of a log is moved to the end, then the log is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use redb::ReadableTable;

use super::PacketStore;
use super::commit::{decode, key_of};
use super::extent::Extent;
use super::log;
use super::record::{Change, Key, Kind, record_len};
use super::series::{Entry, Series};
use crate::error::{At, Result};
use crate::index::{SERIES, failed};

/// Packets moved while nothing can be put or removed.
const MOVED_AT_ONCE: u64 = 1024;

impl PacketStore {
    /// Gives back the room of logs of which less than three quarters are needed, by moving what is.
    pub fn compact(&self) -> Result<()> {
        let _alone = self
            .compacting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.close()?;
        // What an insertion that goes on has written looks like what nobody needs.
        let end = self
            .logs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .first_in_use();
        let needed = self.needed()?;
        let folder = log::folder();
        let mut numbers: Vec<u32> = self
            .disk
            .list(folder)
            .at(folder)?
            .iter()
            .filter_map(|file| log::number(file))
            .filter(|number| *number < end)
            .collect();
        numbers.sort_unstable();
        for number in numbers {
            let path = log::path(number);
            let size = self.disk.open(&path).and_then(|f| f.size()).at(&path)?;
            let live = needed.get(&number).copied().unwrap_or(0);
            if live < size / 4 * 3 {
                self.empty(number)?;
                // Damaged packets can't be moved: they keep their log, where `verify` finds them.
                if !self.needed()?.contains_key(&number) {
                    self.remove_log(number)?;
                }
            }
        }
        Ok(())
    }

    /// Bytes that are needed of each log.
    fn needed(&self) -> Result<BTreeMap<u32, u64>> {
        let mut needed: BTreeMap<u32, u64> = BTreeMap::new();
        let tx = self.index.read()?;
        let table = tx.open_table(SERIES).map_err(failed)?;
        for row in table.iter().map_err(failed)? {
            for extent in decode(row.map_err(failed)?.1.value())? {
                *needed.entry(extent.log).or_default() += extent.bytes;
                *needed.entry(extent.table_log).or_default() +=
                    record_len(8 * extent.count as usize) as u64;
            }
        }
        Ok(needed)
    }

    /// Moves all that is needed of a log.
    fn empty(&self, number: u32) -> Result<()> {
        let keys: BTreeSet<(Vec<u8>, bool)> = {
            let tx = self.index.read()?;
            let table = tx.open_table(SERIES).map_err(failed)?;
            let mut keys = BTreeSet::new();
            for row in table.iter().map_err(failed)? {
                let (key, value) = row.map_err(failed)?;
                let extents = decode(value.value())?;
                if extents.iter().any(|e| is_in(e, number)) {
                    keys.insert((key.value().0.to_vec(), key.value().1));
                }
            }
            keys
        };
        for (name, segmented) in keys {
            let key = key_of((&name, segmented))?;
            let mut from = 0;
            while let Some(next) = self.move_some(&key, number, from)? {
                from = next;
            }
        }
        Ok(())
    }

    /// Moves packets of `key` from segment `from` on that are in log `number`; tells with which segment to go on.
    fn move_some(&self, key: &Key, number: u32, from: u64) -> Result<Option<u64>> {
        let _moves = self.moves.write().unwrap_or_else(PoisonError::into_inner);
        let Some(series) = self.series(key.name.as_ref(), key.segmented)? else {
            return Ok(None);
        };
        let Some(extent) = series
            .extents
            .iter()
            .find(|e| is_in(e, number) && e.end() > from)
        else {
            return Ok(None);
        };
        let first = extent.first.max(from);
        let entries = series.entries(self, extent, first, MOVED_AT_ONCE)?;
        let end = first + entries.len() as u64;
        let moved = self.copy(&series, extent, first, &entries)?;
        if !moved.is_empty() {
            self.commit(Change::Put(key.clone(), moved))?;
        }
        Ok(Some(end))
    }

    /// Copies packets to the end of the logs; those that are damaged stay where they are.
    fn copy(
        &self,
        series: &Series,
        extent: &Extent,
        first: u64,
        entries: &[Entry],
    ) -> Result<Vec<Extent>> {
        let mut extents = Vec::new();
        let mut run: Option<(u64, u32, u64, Vec<Entry>)> = None;
        for (segment, entry) in (first..).zip(entries) {
            let packet = match series.read(self, extent.log, *entry, segment) {
                Ok(packet) => packet,
                Err(error @ crate::error::RepoError::Damaged { .. }) => {
                    tracing::error!(%error, "damaged packet not moved; its segment log is kept");
                    continue;
                }
                Err(error) => return Err(error),
            };
            let place = self
                .logs
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .append(&*self.disk, Kind::Packet, &packet)?;
            let goes_on = run.as_ref().is_some_and(|(start, log, _, entries)| {
                *log == place.log && start + entries.len() as u64 == segment
            });
            if !goes_on && let Some((start, log, bytes, entries)) = run.take() {
                extents.push(self.append_table(start, log, bytes, &entries)?);
            }
            let run = run.get_or_insert((segment, place.log, 0, Vec::new()));
            run.2 += record_len(packet.len()) as u64;
            run.3.push(Entry {
                at: place.at as u32,
                len: entry.len,
            });
        }
        if let Some((start, log, bytes, entries)) = run.take() {
            extents.push(self.append_table(start, log, bytes, &entries)?);
        }
        Ok(extents)
    }

    /// Removes a log that nothing needs: once the index is durable that says so.
    fn remove_log(&self, number: u32) -> Result<()> {
        {
            let _leading = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
            self.index.sync()?;
        }
        let path = log::path(number);
        self.disk.remove(&path).at(&path)?;
        self.forget_file(number);
        Ok(())
    }
}

fn is_in(extent: &Extent, log: u32) -> bool {
    extent.log == log || extent.table_log == log
}
