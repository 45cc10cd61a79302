//! The index: what is where, in an ordered store (redb) of a few dozen bytes an entry. No packet, no file and no signature
//! is in it.
//!
//! | table | key | value |
//! |---|---|---|
//! | `files` | object's name, version | [`FileEntry`] |
//! | `folders` | name of a folder made by hand | when, in nanoseconds since the Unix epoch |
//! | `doomed` | content id | files on disk that no entry names any more |
//! | `bundled`, `bundles` | content id; bundle | where small versions lie, see [`crate::bundles`] |
//! | `series` | name, whether it is a prefix of segments | where its packets are, see [`crate::packets`] |
//! | `commands` | key | time of the last command taken |
//! | `meta` | word | format, checkpoint of the logs |

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use ndn_packet::Name;
use redb::{
    Builder, Database, Durability, ReadTransaction, ReadableDatabase, ReadableTable,
    StorageBackend, TableDefinition, WriteTransaction,
};

use crate::ballast::Ballast;
use crate::bundles::{Appended, BUNDLED, BUNDLES, Bundles};
use crate::disk::{Disk, DiskFile};
use crate::error::{At, RepoError, Result};
use crate::layout::sync_incoming;
use crate::pending::{self, Pending};
use crate::tables::{Bytes8, Tables};
pub(crate) use crate::tables::{FILES, FileEntry, Kept, failed};

pub(crate) const FOLDERS: TableDefinition<'_, Bytes8, u64> = TableDefinition::new("folders");
pub(crate) const UNREFERENCED: TableDefinition<'_, u64, ()> = TableDefinition::new("doomed");
pub(crate) const SERIES: TableDefinition<'_, (Bytes8, bool), Bytes8> =
    TableDefinition::new("series");
pub(crate) const COMMANDS: TableDefinition<'_, Bytes8, u64> = TableDefinition::new("commands");
pub(crate) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

/// The layout of tables and files on disk. Another number is another layout.
const FORMAT: u64 = 2;
/// The layout without bundles, which is gone on with.
const WITHOUT_BUNDLES: u64 = 1;
const FORMAT_KEY: &str = "format";
/// Memory that the index may use for pages.
const CACHE_BYTES: usize = 8 << 20;

/// The index of an open repository.
#[derive(Debug)]
pub(crate) struct Index {
    db: Database,
    disk: Arc<dyn Disk>,
    pub ballast: Ballast,
    pub bundles: Bundles,
    /// What is published and not in the tables yet.
    pub pending: Pending,
    /// Held by who publishes.
    publishing: Mutex<()>,
    /// Held from before a change takes what is pending until that is gone from there: the next one would take it again,
    /// over what this one has changed.
    changing: Mutex<()>,
    waiting: Mutex<PendingSync>,
    /// Held by who syncs contents.
    syncing: Mutex<()>,
}

/// What is in the index and not durable yet.
#[derive(Debug, Default)]
struct PendingSync {
    /// Content ids of files that must be synced before the index is.
    unsynced: Vec<u64>,
    /// How many of them, from the first on, are synced already.
    synced: usize,
    /// How many are in bundles.
    bundled: usize,
    /// Content ids of files that were synced, with the index, and lie in `incoming`.
    unsettled: Vec<u64>,
    /// Whether there are files that no entry names any more, and nobody is about to remove.
    unreferenced: bool,
}

impl PendingSync {
    /// What is synced now, and will be durable by the commit in hand. Nobody adds to it meanwhile.
    fn take_synced(&mut self) -> Vec<u64> {
        (self.synced, self.bundled) = (0, 0);
        std::mem::take(&mut self.unsynced)
    }

    /// What no entry names after all. Nobody may be syncing contents meanwhile.
    fn forget(&mut self, contents: &[u64]) {
        let (before, synced) = (std::mem::take(&mut self.unsynced), self.synced);
        for (i, content) in before.into_iter().enumerate() {
            if !contents.contains(&content) {
                self.unsynced.push(content);
            } else if i < synced {
                self.synced -= 1;
            }
        }
    }
}

impl Index {
    /// Opens the index file on `disk`, making it where there is none. It gets its name when it is whole: a crash never
    /// leaves half an index.
    pub fn open(disk: &Arc<dyn Disk>) -> Result<Self> {
        let (path, new) = (Path::new("index.redb"), Path::new("index.new"));
        let (file, is_new) = match disk.open(path) {
            Ok(file) => (file, false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match disk.remove(new) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).at(new)?,
                    _ => {}
                }
                (disk.create(new).at(new)?, true)
            }
            Err(error) => return Err(error).at(path),
        };
        let db = Builder::new()
            .set_cache_size(CACHE_BYTES)
            .create_with_backend(IndexFile(file))
            .map_err(failed)?;
        let index = Self {
            db,
            disk: disk.clone(),
            ballast: Ballast::new(disk),
            bundles: Bundles::new(disk),
            pending: Pending::default(),
            publishing: Mutex::default(),
            changing: Mutex::default(),
            waiting: Mutex::default(),
            syncing: Mutex::default(),
        };
        index.check_format(path)?;
        if is_new {
            disk.rename(new, path).at(new)?;
            disk.sync_dir(Path::new("")).at(Path::new("."))?;
        }
        Ok(index)
    }

    fn check_format(&self, path: &Path) -> Result<()> {
        let found = self.change(Kept::Durably, |tx| {
            tx.open_table(SERIES).map_err(failed)?;
            tx.open_table(FILES).map_err(failed)?;
            tx.open_table(FOLDERS).map_err(failed)?;
            tx.open_table(UNREFERENCED).map_err(failed)?;
            tx.open_table(COMMANDS).map_err(failed)?;
            tx.open_table(BUNDLED).map_err(failed)?;
            tx.open_table(BUNDLES).map_err(failed)?;
            let mut meta = tx.open_table(META).map_err(failed)?;
            let found = meta.get(FORMAT_KEY).map_err(failed)?.map(|v| v.value());
            if found.is_none_or(|found| found == WITHOUT_BUNDLES) {
                meta.insert(FORMAT_KEY, FORMAT).map_err(failed)?;
                return Ok(FORMAT);
            }
            Ok(found.unwrap_or(FORMAT))
        })?;
        if found == FORMAT {
            return Ok(());
        }
        Err(RepoError::Format {
            path: path.to_owned(),
            cause: format!(
                "has format {found}, this version writes {FORMAT}; use the version that made it"
            ),
        })
    }

    /// A view of the index as it is now.
    pub fn read(&self) -> Result<ReadTransaction> {
        self.settle_pending()?;
        self.read_tables()
    }

    /// A view of the tables alone: for who has looked at [`Index::pending`] before.
    pub fn read_tables(&self) -> Result<ReadTransaction> {
        self.db.begin_read().map_err(failed)
    }

    /// Puts into the tables what is published and not in them yet.
    fn settle_pending(&self) -> Result<()> {
        match self.pending.len() {
            0 => Ok(()),
            _ => self.change(Kept::UntilCrash, |_| Ok(())),
        }
    }

    /// A small version, which is in a bundle, is there from now on, and durable by the next sync.
    pub fn publish_small(
        &self,
        name: &Name,
        version: u64,
        entry: FileEntry,
        appended: Appended,
    ) -> Result<()> {
        {
            let _one = self.publishing();
            if self.entry(name, Some(version))?.is_some() {
                return Err(RepoError::version_exists(name, version));
            }
            self.pending.push(name.value(), version, entry, appended);
        }
        self.waiting().bundled += 1;
        if self.pending.len() >= pending::MOST
            && let Err(error) = self.settle_pending()
        {
            // They wait on, and the next sync tells.
            tracing::warn!(%error, "the index takes nothing");
        }
        Ok(())
    }

    /// The version, the newest if none is named, and what is known of it.
    pub fn entry(&self, name: &Name, version: Option<u64>) -> Result<Option<(u64, FileEntry)>> {
        // In this order: what gets into the tables meanwhile is found there.
        let pending = self.pending.find(name.value(), version);
        if version.is_some() && pending.is_some() {
            return Ok(pending);
        }
        let tx = self.read_tables()?;
        let files = tx.open_table(FILES).map_err(failed)?;
        let there = match version {
            None => newest(&files, name.value())?,
            Some(version) => files
                .get((name.value(), version))
                .map_err(failed)?
                .map(|row| file_entry(row.value()).map(|entry| (version, entry)))
                .transpose()?,
        };
        Ok(there
            .into_iter()
            .chain(pending)
            .max_by_key(|(version, _)| *version))
    }

    fn publishing(&self) -> MutexGuard<'_, ()> {
        self.publishing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the index: all that `change` does, or nothing. One change at a time; others wait.
    pub fn change<T>(
        &self,
        kept: Kept,
        change: impl FnOnce(&WriteTransaction) -> Result<T>,
    ) -> Result<T> {
        self.change_naming(kept, &[], 0, change)
    }

    /// As [`Index::change`], of a change that names `contents` for the first time, and so many that are in bundles: where it
    /// is kept until a crash, the next sync makes them durable before the index is.
    pub fn change_naming<T>(
        &self,
        kept: Kept,
        contents: &[u64],
        bundled: usize,
        change: impl FnOnce(&WriteTransaction) -> Result<T>,
    ) -> Result<T> {
        let is_published = !contents.is_empty() || bundled > 0;
        let _one = is_published.then(|| self.publishing());
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.ballast.lend();
        let mut tx = self.db.begin_write().map_err(failed)?;
        let durability = match kept {
            Kept::Durably => Durability::Immediate,
            Kept::UntilCrash => Durability::None,
        };
        tx.set_durability(durability).map_err(failed)?;
        let changed = self.pending.apply(&tx);
        let (pending, value) = match changed.and_then(|upto| Ok((upto, change(&tx)?))) {
            Ok(changed) => changed,
            Err(error) => {
                tx.abort().map_err(failed)?;
                return Err(error);
            }
        };
        let committed = match kept {
            Kept::Durably => self.commit_durably(tx),
            Kept::UntilCrash => self.commit_lazily(tx, contents, bundled),
        };
        if committed.is_ok() {
            self.pending.done(pending);
        }
        self.ballast.restore();
        committed.map(|()| value)
    }

    /// Makes durable all that was changed before, too.
    fn commit_durably(&self, tx: WriteTransaction) -> Result<()> {
        if let Err(error) = self.sync_contents() {
            tx.abort().map_err(failed)?;
            return Err(error);
        }
        let synced = self.waiting().take_synced();
        let committed = tx.commit().map_err(failed);
        let mut waiting = self.waiting();
        match &committed {
            Ok(()) => waiting.unsettled.extend(synced),
            Err(_) => waiting.unsynced.extend(synced),
        }
        committed
    }

    /// The contents join those that wait while no other change can be made durable, and only where nothing of this one
    /// can be refused any more.
    fn commit_lazily(&self, tx: WriteTransaction, contents: &[u64], bundled: usize) -> Result<()> {
        {
            let mut waiting = self.waiting();
            waiting.unsynced.extend(contents);
            waiting.bundled += bundled;
        }
        let committed = tx.commit().map_err(failed);
        if committed.is_err() {
            let _none = self.syncing();
            self.waiting().forget(contents);
        }
        committed
    }

    /// Makes durable what was changed before.
    pub fn sync(&self) -> Result<()> {
        // Most of the waiting is done while others may still change the index.
        self.sync_contents()?;
        self.change(Kept::Durably, |_| Ok(()))
    }

    /// As [`Index::sync`]; gives the content ids of the files that no entry names any more, which is durable then.
    pub fn sync_and_list_unreferenced(&self) -> Result<Vec<u64>> {
        self.sync_contents()?;
        self.change(Kept::Durably, |tx| {
            list_unreferenced(&tx.open_table(UNREFERENCED).map_err(failed)?)
        })
    }

    /// As [`Index::sync_and_list_unreferenced`], where there are such files and nobody else was given them.
    pub fn sync_and_take_unreferenced(&self) -> Result<Vec<u64>> {
        if !std::mem::take(&mut self.waiting().unreferenced) {
            return self.sync().map(|()| Vec::new());
        }
        let unreferenced = self.sync_and_list_unreferenced();
        if unreferenced.is_err() {
            self.leave_unreferenced();
        }
        unreferenced
    }

    /// Syncs the contents that must be durable before the index is. It keeps them in the list: who commits takes them out.
    fn sync_contents(&self) -> Result<()> {
        let _one = self.syncing();
        let contents = {
            let waiting = self.waiting();
            waiting.unsynced[waiting.synced..].to_vec()
        };
        self.bundles.sync()?;
        sync_incoming(&*self.disk, &contents)?;
        self.waiting().synced += contents.len();
        Ok(())
    }

    fn syncing(&self) -> MutexGuard<'_, ()> {
        self.syncing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, PendingSync> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Files are in the list of those that no entry names any more.
    pub fn leave_unreferenced(&self) {
        self.waiting().unreferenced = true;
    }

    /// How many contents wait for a sync.
    pub fn unsynced(&self) -> usize {
        let waiting = self.waiting();
        waiting.unsynced.len() + waiting.bundled
    }

    /// Content ids of what is durable now and still to be moved.
    pub fn take_unsettled(&self) -> Vec<u64> {
        std::mem::take(&mut self.waiting().unsettled)
    }

    /// Bytes of the index on disk.
    pub fn bytes(&self, disk: &dyn Disk) -> Result<u64> {
        let path = Path::new("index.redb");
        disk.open(path).and_then(|file| file.size()).at(path)
    }
}

/// Content ids of the files that no entry names any more.
pub(crate) fn list_unreferenced(table: &impl ReadableTable<u64, ()>) -> Result<Vec<u64>> {
    table
        .iter()
        .map_err(failed)?
        .map(|row| Ok(row.map_err(failed)?.0.value()))
        .collect()
}

impl Tables for Index {
    fn view(&self) -> Result<ReadTransaction> {
        self.read()
    }

    fn alter(
        &self,
        kept: Kept,
        change: &mut dyn FnMut(&WriteTransaction) -> Result<()>,
    ) -> Result<()> {
        self.change(kept, change)
    }
}

/// The smallest bytes that are greater than all that begin with `prefix`; `None` when there are none.
pub(crate) fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = prefix.to_vec();
    while let Some(last) = bytes.pop() {
        if last < u8::MAX {
            bytes.push(last + 1);
            return Some(bytes);
        }
    }
    None
}

/// The index's file, as redb wants it.
#[derive(Debug)]
struct IndexFile(Arc<dyn DiskFile>);

impl StorageBackend for IndexFile {
    fn len(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_size(len)?;
        // Its pages are written where there is room for sure. Where there is none now, the ballast is for them.
        if let Err(error) = self.0.reserve(0..len) {
            tracing::debug!(%error, "no room is reserved for the index");
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, data)
    }
}

/// The name in a row's key.
pub(crate) fn name_of(value: Bytes) -> Result<Name> {
    Name::from_value(value).map_err(|e| RepoError::Index(format!("a name in it is malformed: {e}")))
}

/// The entry of a row of the `files` table.
pub(crate) fn file_entry(bytes: &[u8]) -> Result<FileEntry> {
    FileEntry::decode(bytes)
        .ok_or_else(|| RepoError::Index(String::from("an entry of `files` is malformed")))
}

/// The newest version of `name`, if it has any.
pub(crate) fn newest(
    files: &impl ReadableTable<(Bytes8, u64), Bytes8>,
    name: &[u8],
) -> Result<Option<(u64, FileEntry)>> {
    let mut range = files
        .range::<(&[u8], u64)>((name, 0)..=(name, u64::MAX))
        .map_err(failed)?;
    match range.next_back() {
        None => Ok(None),
        Some(row) => {
            let (key, value) = row.map_err(failed)?;
            Ok(Some((key.value().1, file_entry(value.value())?)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_forgotten_does_not_count_as_synced() {
        let mut waiting = PendingSync {
            unsynced: vec![1, 2, 3, 4],
            synced: 3,
            ..PendingSync::default()
        };
        waiting.forget(&[2, 4]);
        assert_eq!((&waiting.unsynced[..], waiting.synced), (&[1, 3][..], 2));
        assert_eq!(waiting.take_synced(), [1, 3]);
    }

    #[test]
    fn successors() {
        assert_eq!(successor(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(successor(&[1, 255, 255]), Some(vec![2]));
        assert_eq!(successor(&[255]), None);
        assert_eq!(successor(&[]), None);
    }

    proptest! {
        #[test]
        fn entries_go_round(content: u64, size: u64, segment in 1u32.., freshness: u32, all: bool, mode: u32, mtime: u64) {
            let entry = FileEntry {
                content, size, segment_bytes: segment, freshness_ms: freshness, final_in_all: all, mode, mtime_ns: mtime,
            };
            prop_assert_eq!(FileEntry::decode(&entry.encode()), Some(entry));
        }

        #[test]
        fn no_bytes_are_a_panic(bytes: Vec<u8>) {
            let _ = FileEntry::decode(&bytes);
        }
    }
}
