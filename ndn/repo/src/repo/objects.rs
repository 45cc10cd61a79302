//! Files as a repository's users see them: put, published, found, removed.

use std::sync::Arc;

use ndn_packet::Name;

use super::change::Change;
use super::files::{Facts, FileReader, FileWriter, PutOptions, Staged, most_small, partial_upload};
use super::{FileInfo, MAX_SEGMENT_BYTES, Repo};
use crate::error::{At, RepoError, Result};
use crate::ids::now_us;
use crate::index::{FOLDERS, FileEntry, failed};
use crate::layout::{incoming, settled};

impl Repo {
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
        if let Some(writer) = partial_upload(&self.inner, name, options)? {
            return Ok(writer);
        }
        // What may be large, and what is known to be, has files from the start on.
        let most = most_small(&self.inner, options.segment_bytes);
        let is_small = most > 0 && options.size.is_none_or(|size| size <= most);
        let files = match is_small {
            true => None,
            false => Some(self.inner.create_incoming()?),
        };
        let content = match &files {
            Some((content, _, _)) => *content,
            None => self.inner.index.bundles.new_content(),
        };
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
            let repo = self.inner.clone();
            match &files {
                None => FileWriter::small(repo, facts, options),
                Some((_, bytes, manifest)) => {
                    FileWriter::new(repo, facts, options, bytes.clone(), manifest.clone())
                }
            }
        });
        if made.is_err() && files.is_some() {
            self.inner.remove_incoming(content);
        }
        made
    }

    fn new_version(&self, name: &Name, wanted: Option<u64>) -> Result<u64> {
        let found = self.inner.entry(name, wanted)?;
        match wanted {
            Some(version) if found.is_some() => Err(RepoError::version_exists(name, version)),
            Some(version) => Ok(version),
            None => Ok(found.map_or(0, |(v, _)| v.saturating_add(1)).max(now_us())),
        }
    }

    /// Makes files durable and visible, all or none. When this returns, they outlive any crash.
    ///
    /// # Errors
    /// [`RepoError::VersionExists`], else what the disk says; nothing is published then.
    pub fn publish(&self, staged: Vec<Staged>) -> Result<Vec<FileInfo>> {
        if staged.is_empty() {
            return Ok(Vec::new());
        }
        let change = Change {
            publish: staged,
            ..Change::default()
        };
        let changed = self.apply(change).map_err(|not| not.error)?;
        Ok(changed.published)
    }

    /// A file of other name with the same content, without copying it; still to be published. This is how a file gets a
    /// new name: its packets are others, so it is hashed once more. The version is a new one where none is given.
    ///
    /// # Errors
    /// [`RepoError::NotFound`], [`RepoError::Damaged`] or an error of the disk's where the content is not what was put, and
    /// those of [`Repo::put`].
    pub fn link(&self, from: &FileInfo, to: &Name, version: Option<u64>) -> Result<Staged> {
        check_name(to)?;
        let version = self.new_version(to, version)?;
        // What the disk has changed meanwhile is not signed as if it were right.
        let verified = self.open_file(&from.name, Some(from.version))?;
        let index = &self.inner.index;
        if index.bundles.find(&**index, from.entry.content)?.is_some() {
            let mut content = vec![0; usize::try_from(from.entry.size).unwrap_or(0)];
            verified.read_at(0, &mut content)?;
            let facts = Facts {
                name: to.compact(),
                version,
                entry: FileEntry {
                    content: self.inner.index.bundles.new_content(),
                    ..from.entry
                },
            };
            return FileWriter::copied(self.inner.clone(), facts, &content)?.finish();
        }
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
            let writer = FileWriter::linked(self.inner.clone(), facts, bytes, manifest)?;
            let read = move |at, buffer: &mut [u8]| verified.read_at(at, buffer);
            writer.verified_by(Box::new(read)).finish()
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
        let found = self.inner.entry(name, version)?;
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
        let mut versions = self.versions_before(name, None, usize::MAX)?;
        versions.reverse();
        Ok(versions)
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
        let change = Change {
            remove: versions.to_vec(),
            ..Change::default()
        };
        let changed = self.apply(change).map_err(|not| not.error)?;
        Ok(changed.removed)
    }

    /// Makes a folder that is listed even while it is empty.
    ///
    /// # Errors
    /// [`RepoError::BadName`], else what the disk says.
    pub fn make_folder(&self, name: &Name) -> Result<()> {
        check_name(name)?;
        let change = Change {
            make_folders: vec![name.clone()],
            ..Change::default()
        };
        self.apply(change).map(drop).map_err(|not| not.error)
    }

    /// Removes an empty folder; false where there is none.
    ///
    /// # Errors
    /// [`RepoError::NotEmpty`], else what the disk says.
    pub fn remove_folder(&self, name: &Name) -> Result<bool> {
        if !self.list(name, None, 1)?.is_empty() {
            return Err(RepoError::NotEmpty(name.clone()));
        }
        let removed = self.inner.index.change(self.kept, |tx| {
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
