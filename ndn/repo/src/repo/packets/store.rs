//! The store of packets: logs, their index, and what is kept at hand for reading.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use ndn_packet::{Data, Name, NameRef};

use super::commit::{decode, key_of};
use super::extent::Extent;
use super::insert::Insertion;
use super::kept::KeptInsertion;
use super::log;
use super::record::{Change, HEADER, Key, Kind};
use super::series::{Entry, Series};
use super::{PacketStore, SeriesInfo};
use crate::disk::DiskFile;
use crate::error::{At, RepoError, Result};
use crate::index::{SERIES, failed};
use crate::repo::{Inner, Repo};

impl PacketStore {
    /// These were not over when the repository ended last: their logs stay as long as they may be gone on with.
    pub fn keep(&mut self, kept: Vec<KeptInsertion>) {
        let logs = self.logs.get_mut().unwrap_or_else(PoisonError::into_inner);
        for one in &kept {
            logs.go_on_with_insertion(one.began_in());
        }
        *self.kept.get_mut().unwrap_or_else(PoisonError::into_inner) = kept;
    }

    /// An insertion that began in this log is over.
    pub fn end_insertion(&self, began_in: u32) {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        logs.end_insertion(began_in);
    }

    /// The file of a log, to read.
    pub fn log_file(&self, number: u32) -> Result<Arc<dyn DiskFile>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = files.get(|n| *n == number) {
            return Ok(file.clone());
        }
        let path = log::path(number);
        let file = self.disk.open(&path).at(&path)?;
        files.insert(number, file.clone());
        Ok(file)
    }

    /// The packets of a key, if there are any.
    pub fn series(&self, name: NameRef<'_>, segmented: bool) -> Result<Option<Arc<Series>>> {
        let mut kept = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(series) = kept.get(|k| k.segmented == segmented && k.name == name) {
            return Ok(Some(series.clone()));
        }
        // Looked up while it is held, so that a change made meanwhile is not forgotten before it is kept.
        let tx = self.index.read()?;
        let table = tx.open_table(SERIES).map_err(failed)?;
        let Some(row) = table.get((name.value(), segmented)).map_err(failed)? else {
            return Ok(None);
        };
        let key = Key {
            name: name.to_name(),
            segmented,
        };
        let series = Arc::new(Series::new(key.clone(), decode(row.value())?));
        kept.insert(key, series.clone());
        Ok(Some(series))
    }

    /// What was known of a key's packets is no longer so.
    pub fn forget(&self, key: &Key) {
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        series.remove(key);
    }

    /// A log is gone.
    pub fn forget_file(&self, number: u32) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.remove(&number);
    }

    /// The packet of this very name.
    pub fn packet(&self, name: NameRef<'_>) -> Result<Option<Bytes>> {
        self.twice(|| {
            if let Some(segment) = name.last().and_then(|c| c.as_segment())
                && let Some(series) = self.series(name.parent(), true)?
                && let Some(packet) = series.packet(self, segment)?
            {
                return Ok(Some(packet));
            }
            match self.series(name, false)? {
                Some(series) => series.packet(self, 0),
                None => Ok(None),
            }
        })
    }

    /// The first packet whose name begins with `prefix`.
    pub fn first_under(&self, prefix: NameRef<'_>) -> Result<Option<Bytes>> {
        self.twice(|| {
            let found = {
                let tx = self.index.read()?;
                let table = tx.open_table(SERIES).map_err(failed)?;
                let mut range = table
                    .range::<(&[u8], bool)>((prefix.value(), false)..)
                    .map_err(failed)?;
                match range.next().transpose().map_err(failed)? {
                    Some((key, value)) if key.value().0.starts_with(prefix.value()) => {
                        Series::new(key_of(key.value())?, decode(value.value())?)
                    }
                    _ => return Ok(None),
                }
            };
            match found.extents.first() {
                Some(extent) => found.packet(self, extent.first),
                None => Ok(None),
            }
        })
    }

    /// Packets may be moved in the moment in which they are read; then they are elsewhere the second time.
    fn twice<T>(&self, read: impl Fn() -> Result<T>) -> Result<T> {
        match read() {
            Err(RepoError::Io { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {
                read()
            }
            other => other,
        }
    }

    /// Appends the table of a run of packets that are in log `log`.
    pub fn append_table(
        &self,
        first: u64,
        log: u32,
        bytes: u64,
        entries: &[Entry],
    ) -> Result<Extent> {
        let table: Vec<u8> = entries.iter().flat_map(|e| e.encode()).collect();
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        let place = logs.append(&*self.disk, Kind::Table, &table)?;
        Ok(Extent {
            first,
            count: entries.len() as u64,
            log,
            table_log: place.log,
            table: place.at + HEADER as u64,
            bytes,
        })
    }

    /// Calls `visit` with each series at or under `name`.
    pub fn walk(&self, name: &Name, visit: &mut dyn FnMut(Series) -> Result<bool>) -> Result<()> {
        let tx = self.index.read()?;
        let table = tx.open_table(SERIES).map_err(failed)?;
        for row in table
            .range::<(&[u8], bool)>((name.value(), false)..)
            .map_err(failed)?
        {
            let (key, value) = row.map_err(failed)?;
            if !key.value().0.starts_with(name.value()) {
                break;
            }
            if !visit(Series::new(key_of(key.value())?, decode(value.value())?))? {
                break;
            }
        }
        Ok(())
    }

    /// Ends the log being written, and makes the index durable.
    pub fn close(&self) -> Result<()> {
        let _leading = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        self.logs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .end_open()?;
        self.sync_logs()?;
        self.index.sync()
    }

    /// Bytes of all logs.
    pub fn log_bytes(&self) -> Result<u64> {
        let folder = log::folder();
        let mut bytes = 0;
        for file in self.disk.list(folder).at(folder)? {
            let path = Path::new(folder).join(&file);
            match self.disk.open(&path).and_then(|f| f.size()) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                other => bytes += other.at(&path)?,
            }
        }
        Ok(bytes)
    }
}

impl Repo {
    /// Begins to insert packets as they came: segments under `name`, or the one packet of that name.
    pub fn insert(&self, name: &Name, segmented: bool) -> Insertion {
        let key = Key {
            name: name.compact(),
            segmented,
        };
        Insertion::new(self.inner.clone(), key)
    }

    /// Removes packets: segments from `first` to `last`, both included, under `name`, or the packet of that very name
    /// where no segments are given. Tells how many there were.
    ///
    /// # Errors
    /// What the disk says; nothing is removed then.
    pub fn remove_packets(&self, name: &Name, segments: Option<(u64, u64)>) -> Result<u64> {
        let store = &self.inner.packets;
        let (key, first, last) = match segments {
            Some((first, last)) => (
                Key {
                    name: name.compact(),
                    segmented: true,
                },
                first,
                last,
            ),
            None => match name.last().and_then(|c| c.as_segment()) {
                // A segment's own name.
                Some(n) if store.series(name.as_ref(), false)?.is_none() => (
                    Key {
                        name: name.parent().compact(),
                        segmented: true,
                    },
                    n,
                    n,
                ),
                _ => (
                    Key {
                        name: name.compact(),
                        segmented: false,
                    },
                    0,
                    0,
                ),
            },
        };
        if store.series(key.name.as_ref(), key.segmented)?.is_none() {
            return Ok(0);
        }
        let _moves = store.moves.read().unwrap_or_else(PoisonError::into_inner);
        store.commit(Change::Remove(key, first, last))
    }

    /// Calls `visit` with each series of packets at or under `name`, until it says `false`.
    ///
    /// # Errors
    /// What the index says.
    pub fn walk_packets(
        &self,
        name: &Name,
        visit: &mut dyn FnMut(SeriesInfo) -> bool,
    ) -> Result<()> {
        self.inner
            .packets
            .walk(name, &mut |series| Ok(visit(info(&series))))
    }

    /// The packet that is kept as it came under this name, if there is one.
    ///
    /// # Errors
    /// [`RepoError::Damaged`] when it is damaged, else what the disk says.
    pub fn packet(&self, name: &Name) -> Result<Option<Bytes>> {
        self.inner.packets.packet(name.as_ref())
    }
}

fn info(series: &Series) -> SeriesInfo {
    SeriesInfo {
        name: series.key.name.clone(),
        segmented: series.key.segmented,
        first: series.extents.first().map_or(0, |e| e.first),
        last: series.extents.last().map_or(0, |e| e.end() - 1),
        packets: series.extents.iter().map(|e| e.count).sum(),
        bytes: series.extents.iter().map(|e| e.bytes).sum(),
        index_bytes: (series.key.name.value().len() + super::extent::encode(&series.extents).len())
            as u64,
    }
}

impl Inner {
    /// Reads every packet of a series; tells `progress` bytes read, and what is damaged.
    pub(crate) fn verify_series(
        &self,
        series: &Series,
        progress: &mut dyn FnMut(u64) -> bool,
        damaged: &mut dyn FnMut(Name, String),
    ) -> u64 {
        let mut packets = 0;
        for extent in &series.extents {
            for segment in extent.first..extent.end() {
                let name = series.name_of(segment);
                match series.packet(&self.packets, segment) {
                    Ok(Some(wire)) => {
                        packets += 1;
                        let len = wire.len() as u64;
                        let sound = Data::parse(wire).is_ok_and(|data| {
                            data.signature_type() != ndn_packet::signature_type::DIGEST_SHA256
                                || data.verify_digest()
                        });
                        if !sound {
                            damaged(name, String::from("its digest is wrong"));
                        }
                        if !progress(len) {
                            return packets;
                        }
                    }
                    Ok(None) => damaged(name, String::from("is gone")),
                    Err(RepoError::Damaged { name, cause }) => damaged(name, cause),
                    Err(error) => damaged(name, error.to_string()),
                }
            }
        }
        packets
    }
}
