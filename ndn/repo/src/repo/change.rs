//! Changes to what is in a repository: all of one or nothing of it, durable at once or by the next sync.

use std::path::Path;
use std::sync::PoisonError;

use ndn_packet::Name;
use redb::ReadableTable;

use super::files::{self, Facts, Staged};
use super::{FileInfo, Repo};
use crate::bundles::{self, Appended};
use crate::error::{At, RepoError, Result};
use crate::ids::now_us;
use crate::index::{FILES, FOLDERS, Kept, UNREFERENCED, failed, file_entry};
use crate::layout::{SYNC_ALL_FROM, incoming, settle};

/// What is to be changed, as a whole.
#[derive(Default)]
pub struct Change {
    /// Files that are to be there.
    pub publish: Vec<Staged>,
    /// Versions that are to be gone; what is not there need not be removed.
    pub remove: Vec<(Name, u64)>,
    /// Folders that are to be listed even while they are empty.
    pub make_folders: Vec<Name>,
    /// Folders that are not to be listed for themselves any more.
    pub remove_folders: Vec<Name>,
    /// Versions whose attributes are to be others in listings.
    pub attributes: Vec<NewAttributes>,
}

/// What listings are to tell of a version. Its signed metadata goes on telling what was so when it was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAttributes {
    /// The object.
    pub name: Name,
    /// The version.
    pub version: u64,
    /// `st_mode`.
    pub mode: u32,
    /// Time of last change, nanoseconds since the Unix epoch.
    pub mtime_ns: u64,
}

/// What a change has done.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// What is there now, in the order asked for.
    pub published: Vec<FileInfo>,
    /// How many versions were there and are gone.
    pub removed: u64,
}

/// A change that was not made; nothing is other than it was.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct NotChanged {
    /// Why.
    #[source]
    pub error: RepoError,
    /// The files that were to be published, so that it can be tried again.
    pub publish: Vec<Staged>,
}

impl Change {
    /// Where it is one small version more and nothing else: which.
    fn is_one_more(&self) -> Option<&Facts> {
        let [staged] = &self.publish[..] else {
            return None;
        };
        let is_all = self.remove.is_empty()
            && self.make_folders.is_empty()
            && self.remove_folders.is_empty()
            && self.attributes.is_empty();
        (is_all && staged.small.is_some()).then_some(&staged.facts)
    }
}

impl Repo {
    /// The same repository, whose changes are seen at once and durable by the next [`Repo::sync`], or by the next change
    /// of one that is not lazy. What is not durable when the power fails, or the process is killed, is undone.
    #[must_use]
    pub fn lazy(&self) -> Repo {
        Repo {
            inner: self.inner.clone(),
            kept: Kept::UntilCrash,
        }
    }

    /// Makes durable all that was changed before.
    ///
    /// # Errors
    /// What the disk says.
    pub fn sync(&self) -> Result<()> {
        let inner = &self.inner;
        let unreferenced = inner.index.sync_and_take_unreferenced()?;
        for content in inner.index.take_unsettled() {
            // It is found where it was written, too; the next start moves it if this fails.
            if let Err(error) = settle(&*inner.disk, content) {
                tracing::warn!(%error, "can't move a published file out of incoming; the next start tries again");
            }
        }
        self.remove_unreferenced(&unreferenced);
        if !unreferenced.is_empty()
            && let Err(error) = inner.index.bundles.compact(&*inner.index)
        {
            tracing::warn!(%error, "can't give back the room of small versions removed");
        }
        Ok(())
    }

    /// Changes since the last [`Repo::sync`] that wait for it, in files published.
    pub fn unsynced(&self) -> usize {
        self.inner.index.unsynced()
    }

    /// Makes a change.
    ///
    /// # Errors
    /// [`RepoError::VersionExists`], else what the disk says.
    pub fn apply(&self, change: Change) -> std::result::Result<Changed, NotChanged> {
        match self.try_apply(&change) {
            Ok(unreferenced) => Ok(self.applied(change, &unreferenced)),
            Err(error) => Err(NotChanged {
                error,
                publish: change.publish,
            }),
        }
    }

    /// Gives the content ids of the files that no entry names any more.
    fn try_apply(&self, change: &Change) -> Result<Vec<u64>> {
        let inner = &self.inner;
        if !change.publish.is_empty() {
            inner.index.ballast.check_room().at(Path::new("incoming"))?;
        }
        if self.kept == Kept::Durably {
            self.sync_contents(&change.publish)?;
        }
        let has_files = |staged: &&Staged| staged.small.is_none();
        let contents: Vec<u64> = change
            .publish
            .iter()
            .filter(has_files)
            .map(|staged| staged.facts.entry.content)
            .collect();
        // They stay until the index names them.
        let mut bundled = self.bundle(&change.publish)?;
        if self.kept == Kept::UntilCrash
            && let Some(facts) = change.is_one_more()
            && let Some((_, appended)) = bundled.pop()
        {
            let (name, version) = (&facts.name, facts.version);
            inner
                .index
                .publish_small(name, version, facts.entry, appended)?;
            return Ok(Vec::new());
        }
        let count = bundled.len();
        inner
            .index
            .change_naming(self.kept, &contents, count, |tx| {
                let places = bundled.iter();
                bundles::note_all(tx, places.map(|(content, new)| (*content, new.place)))?;
                let mut files = tx.open_table(FILES).map_err(failed)?;
                for Staged { facts, .. } in &change.publish {
                    let bytes = facts.entry.encode();
                    let before = files
                        .insert((facts.name.value(), facts.version), &bytes[..])
                        .map_err(failed)?;
                    if before.is_some() {
                        return Err(RepoError::version_exists(&facts.name, facts.version));
                    }
                }
                for new in &change.attributes {
                    let key = (new.name.value(), new.version);
                    let found = files.get(key).map_err(failed)?;
                    let Some(mut entry) = found.map(|row| file_entry(row.value())).transpose()?
                    else {
                        return Err(RepoError::NotFound(new.name.append_version(new.version)));
                    };
                    (entry.mode, entry.mtime_ns) = (new.mode, new.mtime_ns);
                    files.insert(key, &entry.encode()[..]).map_err(failed)?;
                }
                let mut removed = Vec::new();
                if !change.remove.is_empty() {
                    let mut unreferenced = tx.open_table(UNREFERENCED).map_err(failed)?;
                    for (name, version) in &change.remove {
                        let content =
                            match files.remove((name.value(), *version)).map_err(failed)? {
                                None => continue,
                                Some(row) => file_entry(row.value())?.content,
                            };
                        unreferenced.insert(content, ()).map_err(failed)?;
                        removed.push(content);
                    }
                }
                if !(change.make_folders.is_empty() && change.remove_folders.is_empty()) {
                    let mut folders = tx.open_table(FOLDERS).map_err(failed)?;
                    for name in &change.remove_folders {
                        folders.remove(name.value()).map_err(failed)?;
                    }
                    for name in &change.make_folders {
                        if folders.get(name.value()).map_err(failed)?.is_none() {
                            folders
                                .insert(name.value(), now_us() * 1000)
                                .map_err(failed)?;
                        }
                    }
                }
                Ok(removed)
            })
    }

    /// Small versions go to a bundle.
    fn bundle(&self, staged: &[Staged]) -> Result<Vec<(u64, Appended)>> {
        let bundles = &self.inner.index.bundles;
        let small = staged
            .iter()
            .filter_map(|staged| Some((staged.facts.entry.content, staged.small.as_ref()?)));
        small
            .map(|(content, small)| {
                let appended = bundles.append(&small.content, &small.manifest);
                Ok((content, appended.at(Path::new("bundles"))?))
            })
            .collect()
    }

    /// Contents go before the index that names them. Bundles go with the index.
    fn sync_contents(&self, staged: &[Staged]) -> Result<()> {
        let disk = &self.inner.disk;
        let staged: Vec<&Staged> = staged.iter().filter(|s| s.small.is_none()).collect();
        if staged.is_empty() {
            return Ok(());
        }
        if staged.len() >= SYNC_ALL_FROM && disk.sync_all().is_ok() {
            return Ok(());
        }
        for file in staged {
            let (content, manifest) = incoming(file.facts.entry.content);
            for path in [content, manifest] {
                disk.open(&path).and_then(|f| f.sync()).at(&path)?;
            }
        }
        let folder = Path::new("incoming");
        disk.sync_dir(folder).at(folder)
    }

    /// What follows once the index is changed.
    fn applied(&self, change: Change, unreferenced: &[u64]) -> Changed {
        let inner = &self.inner;
        inner.changed();
        let mut readers = inner.readers.lock().unwrap_or_else(PoisonError::into_inner);
        for key in &change.remove {
            readers.remove(key);
        }
        for new in &change.attributes {
            readers.remove(&(new.name.clone(), new.version));
        }
        drop(readers);
        let mut published = Vec::with_capacity(change.publish.len());
        for mut file in change.publish {
            file.published = true;
            // A lazy one is moved when it is durable: whatever is in `incoming` at a start and not in the index is removed.
            if self.kept == Kept::Durably
                && file.small.is_none()
                && let Err(error) = settle(&*inner.disk, file.facts.entry.content)
            {
                tracing::warn!(%error, "can't move a published file out of incoming; the next start tries again");
            }
            published.push(FileInfo {
                name: file.facts.name.clone(),
                version: file.facts.version,
                entry: file.facts.entry,
            });
        }
        match self.kept {
            Kept::Durably => self.remove_unreferenced(unreferenced),
            Kept::UntilCrash if unreferenced.is_empty() => {}
            Kept::UntilCrash => inner.index.leave_unreferenced(),
        }
        Changed {
            published,
            removed: unreferenced.len() as u64,
        }
    }

    /// They are out of the index for good; if this fails, the next start does it.
    fn remove_unreferenced(&self, unreferenced: &[u64]) {
        let inner = &self.inner;
        if let Err(error) = files::remove_unreferenced(&*inner.disk, &inner.index, unreferenced) {
            tracing::warn!(%error, "can't delete the files of removed versions; the next start tries again");
        }
    }
}
