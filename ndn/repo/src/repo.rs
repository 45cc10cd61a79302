//! The repository as its users see it: files in and out, listed and removed.

use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ndn_packet::{Name, SigningKey};

use crate::disk::{Disk, RealDisk};
use crate::error::{At, RepoError, Result};
use crate::files::{self, Facts, FileReader, FileWriter, PutOptions, Staged, incoming, settled};
use crate::index::{self, DOOMED, FILES, FOLDERS, FileEntry, Kept, failed, file_entry};
use crate::inner::{Inner, now_us};

/// How long caches may answer with a metadata packet: versions change while names stay.
pub(crate) const METADATA_FRESHNESS: Duration = Duration::from_millis(10);
/// From this many files on, one sync of the whole file system is cheaper than one of each.
const SYNC_ALL_FROM: usize = 8;
/// Greatest size of a segment's content in bytes: with its headers it fits into a jumbo packet.
pub const MAX_SEGMENT_BYTES: u32 = 65_000;

/// How a repository is kept. Start from the defaults and change fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoOptions {
    /// Bytes of a segment log, 64 KiB to 4 GiB. More means fewer files and a smaller index, less means that room comes back
    /// sooner.
    pub log_bytes: u64,
}

impl Default for RepoOptions {
    fn default() -> Self {
        Self { log_bytes: 1 << 30 }
    }
}

/// An open repository. Clones are the same repository; any number of threads may use it.
#[derive(Clone)]
pub struct Repo {
    pub(crate) inner: Arc<Inner>,
}

/// One version of a file in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileInfo {
    /// The object, without version.
    pub name: Name,
    /// The version.
    pub version: u64,
    /// What the index knows of it.
    pub entry: FileEntry,
}

impl Repo {
    /// Opens the repository in `folder`, making one where there is none, and puts in order what a crash has left. `key`
    /// is the owner's: it signs what is published from here on.
    ///
    /// # Errors
    /// [`RepoError::Locked`] when another repository has the folder, else what is wrong with it.
    pub fn open(folder: &Path, key: SigningKey, options: &RepoOptions) -> Result<Self> {
        let disk = RealDisk::open(folder).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => RepoError::Locked(folder.to_owned()),
            _ => RepoError::Io {
                path: folder.to_owned(),
                error,
            },
        })?;
        Self::open_on(Arc::new(disk), key, options)
    }

    /// As [`Repo::open`], on a disk of the caller's.
    ///
    /// # Errors
    /// As there.
    pub fn open_on(disk: Arc<dyn Disk>, key: SigningKey, options: &RepoOptions) -> Result<Self> {
        let inner = Inner::open(disk, key, options)?;
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Begins to put a file named `name` (plain components, no version), or goes on with an interrupted transfer of the
    /// same name, size, time of change and segment size: then [`FileWriter::position`] is where the source must go on.
    ///
    /// # Errors
    /// [`RepoError::BadName`], [`RepoError::VersionExists`] or [`RepoError::Setting`], else what the disk says.
    pub fn put(&self, name: &Name, options: &PutOptions) -> Result<FileWriter> {
        check_name(name)?;
        if !(1..=MAX_SEGMENT_BYTES).contains(&options.segment_bytes) {
            return Err(RepoError::Setting(format!(
                "segment size {}: is out of range; give 1 to {MAX_SEGMENT_BYTES}",
                options.segment_bytes
            )));
        }
        if let Some(writer) = files::partial_upload(&self.inner, name, options)? {
            return Ok(writer);
        }
        let (content, bytes, manifest) = self.inner.create_incoming()?;
        let entry = FileEntry {
            content,
            size: options.size.unwrap_or(0),
            segment_bytes: options.segment_bytes,
            freshness_ms: u32::try_from(options.freshness.as_millis()).unwrap_or(u32::MAX),
            final_in_all: options.size.is_some(),
            mode: options.mode,
            mtime_ns: options.mtime_ns.unwrap_or_else(|| now_us() * 1000),
        };
        let made = self.new_version(name, options.version).and_then(|version| {
            let facts = Facts {
                name: name.compact(),
                version,
                entry,
            };
            FileWriter::new(self.inner.clone(), facts, options.size, bytes, manifest)
        });
        if made.is_err() {
            self.inner.remove_incoming(content);
        }
        made
    }

    fn new_version(&self, name: &Name, wanted: Option<u64>) -> Result<u64> {
        let tx = self.inner.index.read()?;
        let files = tx.open_table(FILES).map_err(failed)?;
        match wanted {
            Some(version) => match files.get((name.value(), version)).map_err(failed)? {
                Some(_) => Err(version_exists(name, version)),
                None => Ok(version),
            },
            None => {
                let newest = index::newest(&files, name.value())?;
                Ok(newest.map_or(0, |(v, _)| v.saturating_add(1)).max(now_us()))
            }
        }
    }

    /// Makes files durable and visible, all or none. When this returns, they outlive any crash.
    ///
    /// # Errors
    /// [`RepoError::VersionExists`], else what the disk says; nothing is published then.
    pub fn publish(&self, mut staged: Vec<Staged>) -> Result<Vec<FileInfo>> {
        if staged.is_empty() {
            return Ok(Vec::new());
        }
        let inner = &self.inner;
        if staged.len() >= SYNC_ALL_FROM {
            inner.disk.sync_all().at(Path::new("."))?;
        } else {
            for file in &staged {
                let (content, manifest) = incoming(file.facts.entry.content);
                for path in [content, manifest] {
                    inner.disk.open(&path).and_then(|f| f.sync()).at(&path)?;
                }
            }
            let folder = Path::new("incoming");
            inner.disk.sync_dir(folder).at(folder)?;
        }
        inner.index.change(Kept::Durably, |tx| {
            let mut files = tx.open_table(FILES).map_err(failed)?;
            for Staged { facts, .. } in &staged {
                let bytes = facts.entry.encode();
                let before = files
                    .insert((facts.name.value(), facts.version), &bytes[..])
                    .map_err(failed)?;
                if before.is_some() {
                    return Err(version_exists(&facts.name, facts.version));
                }
            }
            Ok(())
        })?;
        inner.changed();
        let mut published = Vec::with_capacity(staged.len());
        for file in &mut staged {
            file.published = true;
            // A version is found where it was written, too; the next start moves it if this fails.
            if let Err(error) = files::settle(&*inner.disk, file.facts.entry.content) {
                tracing::warn!(%error, "a published file stays in incoming");
            }
            published.push(FileInfo {
                name: file.facts.name.clone(),
                version: file.facts.version,
                entry: file.facts.entry,
            });
        }
        Ok(published)
    }

    /// A file of other name with the same content, without copying it; still to be published. This is how a file gets a
    /// new name: its packets are others, so it is hashed once more.
    ///
    /// # Errors
    /// [`RepoError::NotFound`], and those of [`Repo::put`].
    pub fn link(&self, from: &FileInfo, to: &Name) -> Result<Staged> {
        check_name(to)?;
        let version = self.new_version(to, None)?;
        let (content, bytes, manifest) = self.inner.create_incoming()?;
        drop(bytes);
        let linked = (|| {
            let target = incoming(content).0;
            self.inner.disk.remove(&target).at(&target)?;
            let found = [
                settled(from.entry.content).0,
                incoming(from.entry.content).0,
            ]
            .into_iter()
            .any(|source| self.inner.disk.link(&source, &target).is_ok());
            if !found {
                return Err(RepoError::NotFound(from.name.append_version(from.version)));
            }
            let facts = Facts {
                name: to.compact(),
                version,
                entry: FileEntry {
                    content,
                    ..from.entry
                },
            };
            let bytes = self.inner.disk.open(&target).at(&target)?;
            FileWriter::linked(self.inner.clone(), facts, bytes, manifest)?.finish()
        })();
        if linked.is_err() {
            self.inner.remove_incoming(content);
        }
        linked
    }

    /// The newest version of a file, or the one asked for.
    ///
    /// # Errors
    /// What the index says.
    pub fn find(&self, name: &Name, version: Option<u64>) -> Result<Option<FileInfo>> {
        let tx = self.inner.index.read()?;
        let files = tx.open_table(FILES).map_err(failed)?;
        let found = match version {
            None => index::newest(&files, name.value())?,
            Some(version) => files
                .get((name.value(), version))
                .map_err(failed)?
                .map(|row| file_entry(row.value()))
                .transpose()?
                .map(|entry| (version, entry)),
        };
        Ok(found.map(|(version, entry)| FileInfo {
            name: name.clone(),
            version,
            entry,
        }))
    }

    /// All versions of a file, the oldest first.
    ///
    /// # Errors
    /// What the index says.
    pub fn versions(&self, name: &Name) -> Result<Vec<FileInfo>> {
        let tx = self.inner.index.read()?;
        let files = tx.open_table(FILES).map_err(failed)?;
        let key = name.value();
        files
            .range::<(&[u8], u64)>((key, 0)..=(key, u64::MAX))
            .map_err(failed)?
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

    /// Opens a version for reading.
    ///
    /// # Errors
    /// [`RepoError::NotFound`], or what is wrong with its files.
    pub fn open_file(&self, name: &Name, version: Option<u64>) -> Result<Arc<FileReader>> {
        self.inner
            .reader(name, version)?
            .ok_or_else(|| RepoError::NotFound(name.clone()))
    }

    /// Removes versions of files, all or none; what is not there need not be removed. Tells how many were there.
    ///
    /// # Errors
    /// What the disk says; nothing is removed then.
    pub fn remove(&self, versions: &[(Name, u64)]) -> Result<u64> {
        let inner = &self.inner;
        let removed = inner.index.change(Kept::Durably, |tx| {
            let mut files = tx.open_table(FILES).map_err(failed)?;
            let mut doomed = tx.open_table(DOOMED).map_err(failed)?;
            let mut removed = 0;
            for (name, version) in versions {
                let content = match files.remove((name.value(), *version)).map_err(failed)? {
                    None => continue,
                    Some(row) => file_entry(row.value())?.content,
                };
                doomed.insert(content, ()).map_err(failed)?;
                removed += 1;
            }
            Ok(removed)
        })?;
        let mut readers = inner.readers.lock().unwrap_or_else(PoisonError::into_inner);
        for key in versions {
            readers.remove(key);
        }
        drop(readers);
        inner.changed();
        // They are out of the index for good; if this fails, the next start does it.
        if let Err(error) = files::remove_doomed(&*inner.disk, &inner.index) {
            tracing::warn!(%error, "removed versions still take room");
        }
        Ok(removed)
    }

    /// Makes a folder that is listed even while it is empty.
    ///
    /// # Errors
    /// [`RepoError::BadName`], else what the disk says.
    pub fn make_folder(&self, name: &Name) -> Result<()> {
        check_name(name)?;
        self.inner.index.change(Kept::Durably, |tx| {
            let mut folders = tx.open_table(FOLDERS).map_err(failed)?;
            folders
                .insert(name.value(), now_us() * 1000)
                .map_err(failed)?;
            Ok(())
        })?;
        self.inner.changed();
        Ok(())
    }

    /// Removes an empty folder; false where there is none.
    ///
    /// # Errors
    /// [`RepoError::NotEmpty`], else what the disk says.
    pub fn remove_folder(&self, name: &Name) -> Result<bool> {
        if !self.list(name, None, 1)?.is_empty() {
            return Err(RepoError::NotEmpty(name.clone()));
        }
        let removed = self.inner.index.change(Kept::Durably, |tx| {
            let mut folders = tx.open_table(FOLDERS).map_err(failed)?;
            Ok(folders.remove(name.value()).map_err(failed)?.is_some())
        })?;
        self.inner.changed();
        Ok(removed)
    }
}

/// Files have names of plain components: those of other kinds stand for versions, segments and listings.
fn check_name(name: &Name) -> Result<()> {
    let bad = |cause| {
        Err(RepoError::BadName {
            name: name.clone(),
            cause,
        })
    };
    if name.is_empty() {
        bad("the empty name names no file; add a component")
    } else if !name.components().all(|c| c.as_generic().is_some()) {
        bad("only plain components name a file; leave out version and segment")
    } else if name.wire_len() > 4096 {
        bad("is longer than 4096 bytes; shorten it")
    } else {
        Ok(())
    }
}

fn version_exists(name: &Name, version: u64) -> RepoError {
    RepoError::VersionExists {
        name: name.clone(),
        version,
    }
}
