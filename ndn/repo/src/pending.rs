//! Small versions that are published and not in the index's tables yet: one change of those takes many of them along, where
//! each would cost one of its own. Whoever looks for a single name looks here, too; for all else they are put into the tables
//! first.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::WriteTransaction;

use crate::bundles::{self, Appended};
use crate::error::{RepoError, Result};
use crate::tables::{FILES, FileEntry, failed};

/// So many get into the tables without anybody asking for it.
pub(crate) const MOST: usize = 1024;

/// What waits to get into the tables.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    rows: Mutex<Rows>,
}

#[derive(Debug, Default)]
struct Rows {
    /// By name and version, as in the table.
    by_name: BTreeMap<(Vec<u8>, u64), Row>,
    /// How many there were ever.
    count: u64,
}

#[derive(Debug)]
struct Row {
    /// How many came before it.
    number: u64,
    entry: FileEntry,
    appended: Appended,
}

impl Pending {
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.rows().by_name.len()
    }

    /// One more, whose name and version no other has.
    pub fn push(&self, name: &[u8], version: u64, entry: FileEntry, appended: Appended) {
        let mut rows = self.rows();
        let number = rows.count;
        rows.count += 1;
        let row = Row {
            number,
            entry,
            appended,
        };
        rows.by_name.insert((name.to_vec(), version), row);
    }

    /// The version of `name`, the newest if none is told.
    pub fn find(&self, name: &[u8], version: Option<u64>) -> Option<(u64, FileEntry)> {
        let rows = self.rows();
        if rows.by_name.is_empty() {
            return None;
        }
        let (from, to) = (version.unwrap_or(0), version.unwrap_or(u64::MAX));
        let versions = (name.to_vec(), from)..=(name.to_vec(), to);
        let (key, row) = rows.by_name.range(versions).next_back()?;
        Some((key.1, row.entry))
    }

    /// Whether something is in the folder `name`.
    pub fn is_folder(&self, name: &[u8]) -> bool {
        let rows = self.rows();
        let after = Bound::Excluded((name.to_vec(), u64::MAX));
        let next = rows.by_name.range((after, Bound::Unbounded)).next();
        next.is_some_and(|((found, _), _)| found.starts_with(name))
    }

    /// Puts into the tables what waits; tells up to which. They wait on until [`Pending::done`]: others see them all the time.
    pub fn apply(&self, tx: &WriteTransaction) -> Result<u64> {
        let rows = self.rows();
        if rows.by_name.is_empty() {
            return Ok(rows.count);
        }
        let mut files = tx.open_table(FILES).map_err(failed)?;
        for ((name, version), row) in &rows.by_name {
            files
                .insert((&name[..], *version), &row.entry.encode()[..])
                .map_err(failed)?;
        }
        let places = rows.by_name.values();
        bundles::note_all(
            tx,
            places.map(|row| (row.entry.content, row.appended.place)),
        )?;
        Ok::<_, RepoError>(rows.count)
    }

    /// Those before `upto` are in the tables.
    pub fn done(&self, upto: u64) {
        self.rows().by_name.retain(|_, row| row.number >= upto);
    }
}
