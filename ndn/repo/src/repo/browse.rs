//! Looking around in bounded steps, for those who answer strangers: a question costs so much, and the next one goes on.

use bytes::Bytes;
use ndn_packet::{Name, NameRef};

use super::{FileInfo, Repo};
use crate::error::Result;
use crate::index::{FILES, failed, file_entry, name_of};

/// A part of what a search finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPage {
    /// The newest versions of files that are wanted, in the order of names.
    pub files: Vec<FileInfo>,
    /// The name after which a next search goes on; `None` where all has been looked at.
    pub next: Option<Name>,
}

impl Repo {
    /// Files under `folder` whose names `wanted` says yes to, from the one after `after` on: at most `most`, and no more
    /// than `budget` versions (at least one file) are looked at.
    ///
    /// # Errors
    /// What the index says.
    pub fn search(
        &self,
        folder: &Name,
        after: Option<&Name>,
        most: usize,
        budget: usize,
        wanted: &dyn Fn(NameRef<'_>) -> bool,
    ) -> Result<SearchPage> {
        let tx = self.inner.index.read()?;
        let files = tx.open_table(FILES).map_err(failed)?;
        let from = match after {
            Some(name) => [name.value(), &[0]].concat(),
            None => folder.value().to_vec(),
        };
        let mut found = SearchPage {
            files: Vec::new(),
            next: None,
        };
        // The file looked at last, and whether it is wanted.
        let mut last: Option<(Bytes, bool)> = None;
        let rows = files
            .range::<(&[u8], u64)>((&from[..], 0)..)
            .map_err(failed)?;
        for (looked, row) in rows.enumerate() {
            let (key, value) = row.map_err(failed)?;
            let (name, version) = key.value();
            if !name.starts_with(folder.value()) {
                return Ok(found);
            }
            let is_same = last.as_ref().is_some_and(|(n, _)| n == name);
            if !is_same {
                if looked >= budget || found.files.len() >= most {
                    found.next = last.map(|(n, _)| name_of(n)).transpose()?;
                    return Ok(found);
                }
                let is_wanted = NameRef::from_value(name).is_ok_and(wanted);
                last = Some((Bytes::copy_from_slice(name), is_wanted));
            }
            let Some((name, true)) = &last else {
                continue;
            };
            let info = FileInfo {
                name: name_of(name.clone())?,
                version,
                entry: file_entry(value.value())?,
            };
            match found.files.last_mut() {
                // Versions come the oldest first.
                Some(newest) if is_same => *newest = info,
                _ => found.files.push(info),
            }
        }
        Ok(found)
    }

    /// Versions of a file, the newest first, those before `before` where one is given, at most `most`.
    ///
    /// # Errors
    /// What the index says.
    pub fn versions_before(
        &self,
        name: &Name,
        before: Option<u64>,
        most: usize,
    ) -> Result<Vec<FileInfo>> {
        let Some(newest) = before.map_or(Some(u64::MAX), |v| v.checked_sub(1)) else {
            return Ok(Vec::new());
        };
        let tx = self.inner.index.read()?;
        let files = tx.open_table(FILES).map_err(failed)?;
        let key = name.value();
        files
            .range::<(&[u8], u64)>((key, 0)..=(key, newest))
            .map_err(failed)?
            .rev()
            .take(most)
            .map(|row| {
                let (key, value) = row.map_err(failed)?;
                Ok(FileInfo {
                    name: name.clone(),
                    version: key.value().1,
                    entry: file_entry(value.value())?,
                })
            })
            .collect()
    }

    /// Counts something damaged that was asked for and not sent, for [`crate::Status::damaged_answers`]: of those who send
    /// by other ways than [`Repo::answer`].
    pub fn count_damaged(&self) {
        self.inner
            .damaged
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}
