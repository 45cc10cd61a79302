//! The repository: what its parts share, and the handle by which its users see it.
//!
//! | file | what of it |
//! |---|---|
//! | `objects` | files in and out, found and removed |
//! | `change`, `drafts` | many things changed as one; what a crash has left half done |
//! | `answer`, `listing` | Interests answered |
//! | `browse`, `maintenance` | looking around, and after it |
//! | [`files`] | content as plain files, with manifests |
//! | [`packets`] | packets as they came, in segment logs |

mod answer;
mod browse;
mod change;
mod drafts;
pub(crate) mod files;
mod listing;
mod maintenance;
mod objects;
pub(crate) mod packets;

pub use browse::SearchPage;
pub use change::{Change, Changed, NewAttributes, NotChanged};
pub use listing::{Child, Listing, MAX_LISTING_BYTES, VERSION_ELEMENT, list_component, listed};
pub use maintenance::{Damage, Report, Status};

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ndn_packet::{Name, NameRef, SigningKey};

use crate::disk::{Disk, DiskFile, FailStop, RealDisk};
use crate::error::{At, RepoError, Result};
use crate::ids::random;
use crate::index::{FileEntry, Index, Kept};
use crate::layout::{incoming, remove_both, settled};
use crate::recent::Recent;

use files::{FileReader, ReadFile, Streams};
use listing::Listings;
use packets::PacketStore;

/// Readers kept open.
const OPEN_READERS: usize = 64;

/// How long caches may answer with a metadata packet: versions change while names stay.
pub const METADATA_FRESHNESS: Duration = Duration::from_millis(10);
/// Greatest size of a segment's content in bytes: with its headers it fits into a jumbo packet.
pub const MAX_SEGMENT_BYTES: u32 = 65_000;

/// How a repository is kept. Start from the defaults and change fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoOptions {
    /// Bytes of a segment log, 64 KiB to 4 GiB. More means fewer files and a smaller index, less means that room comes back
    /// sooner.
    pub log_bytes: u64,
    /// Most bytes of a version that gets no file of its own: its content lies in a bundle with others. 0 for none.
    pub small_bytes: u32,
}

impl Default for RepoOptions {
    fn default() -> Self {
        Self {
            log_bytes: 1 << 30,
            small_bytes: 32 << 10,
        }
    }
}

/// An open repository. Clones are the same repository; any number of threads may use it.
#[derive(Clone)]
pub struct Repo {
    pub(crate) inner: Arc<Inner>,
    /// What a crash may do to its changes.
    pub(crate) kept: Kept,
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
        let (inner, found) = Inner::open(disk, key, options)?;
        let repo = Self {
            inner: Arc::new(inner),
            kept: Kept::Durably,
        };
        drafts::publish(&repo, found);
        Ok(repo)
    }
}

/// A content id, its content and its manifest.
pub(crate) type NewFiles = (u64, Arc<dyn DiskFile>, Arc<dyn DiskFile>);

/// What the repository's parts share.
pub(crate) struct Inner {
    pub disk: Arc<dyn Disk>,
    pub index: Arc<Index>,
    pub packets: PacketStore,
    /// Signs metadata: the owner's.
    pub key: Arc<SigningKey>,
    pub readers: Mutex<Recent<(Name, u64), Arc<FileReader>>>,
    pub listings: Mutex<Listings>,
    /// Content ids of interrupted transfers that nobody goes on with yet.
    interrupted: Mutex<HashSet<u64>>,
    pub streams: Streams,
    /// See [`RepoOptions::small_bytes`].
    pub small_bytes: u32,
    /// Segments and packets that were found damaged when asked for.
    pub damaged: AtomicU64,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // What was published lazily may outlive this, and a crash before the next start may undo it.
        if let Err(error) = self.index.read() {
            tracing::debug!(%error, "what was published last is not in the index");
        }
        // Without it the next start reads the logs from the last checkpoint on.
        if let Err(error) = self.packets.close() {
            tracing::warn!(%error, "segment logs not closed; the next start reads them from the last checkpoint");
        }
    }
}

impl Inner {
    /// Opens what is on the disk, and puts in order what a crash has left. Gives the drafts that are to be published, too.
    pub fn open(
        disk: Arc<dyn Disk>,
        key: SigningKey,
        options: &RepoOptions,
    ) -> Result<(Self, Vec<u64>)> {
        // A log that can't be synced is left by itself, see `packets`.
        let for_packets = disk.clone();
        let disk: Arc<dyn Disk> = Arc::new(FailStop::new(disk));
        make_folders(&*disk)?;
        let index = Arc::new(Index::open(&disk)?);
        index.bundles.recover(&*index)?;
        let recovered = files::recover(&*disk, &index)?;
        let packets = packets::recover(for_packets, index.clone(), options.log_bytes)?;
        let inner = Inner {
            disk,
            index,
            packets,
            key: Arc::new(key),
            readers: Mutex::new(Recent::new(OPEN_READERS)),
            listings: Mutex::default(),
            interrupted: Mutex::new(recovered.interrupted),
            streams: Streams::default(),
            small_bytes: options.small_bytes,
            damaged: AtomicU64::new(0),
        };
        Ok((inner, recovered.drafts))
    }

    /// The reader of a version, the newest if none is named.
    pub fn reader(&self, name: &Name, version: Option<u64>) -> Result<Option<Arc<FileReader>>> {
        if let Some(version) = version {
            let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(reader) = readers.get(|(n, v)| *v == version && n == name) {
                return Ok(Some(reader.clone()));
            }
        }
        let Some((found, entry)) = self.entry(name, version)? else {
            return Ok(None);
        };
        if version.is_none() {
            // It may be open already.
            return self.reader(name, Some(found));
        }
        let name = name.compact();
        let opened = self
            .open_content(&name, entry.content)
            .and_then(|files| FileReader::new(&name, found, entry, files.0, files.1));
        let reader = match opened {
            // It was removed in this moment.
            Err(RepoError::Damaged { .. }) if self.entry(&name, version)?.is_none() => {
                return Ok(None);
            }
            opened => Arc::new(opened?),
        };
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.insert((name, found), reader.clone());
        Ok(Some(reader))
    }

    /// The version, the newest if none is named, and what the index knows of it.
    pub fn entry(&self, name: &Name, version: Option<u64>) -> Result<Option<(u64, FileEntry)>> {
        self.index.entry(name, version)
    }

    /// The reader of version `version` of `versioned`'s parent. A reader that is open costs no name of its own.
    pub fn reader_of(
        &self,
        versioned: NameRef<'_>,
        version: u64,
    ) -> Result<Option<Arc<FileReader>>> {
        let name = versioned.parent();
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reader) = readers.get(|(n, v)| *v == version && *n == name) {
            return Ok(Some(reader.clone()));
        }
        drop(readers);
        self.reader(&name.to_name(), Some(version))
    }

    fn open_content(
        &self,
        name: &Name,
        content: u64,
    ) -> Result<(
        Arc<dyn crate::disk::DiskFile>,
        Arc<dyn crate::disk::DiskFile>,
    )> {
        if let Some((content, manifest)) = self.index.bundles.find(&*self.index, content)? {
            return Ok((Arc::new(ReadFile(content)), Arc::new(ReadFile(manifest))));
        }
        let open = |settled: &Path, incoming: &Path| match self.disk.open(settled) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Not moved yet; and if it is moved in this moment, it is there now.
                self.disk
                    .open(incoming)
                    .or_else(|_| self.disk.open(settled))
                    .map_err(|_| RepoError::Damaged {
                        name: name.clone(),
                        cause: format!("{} is gone", settled.display()),
                    })
            }
            other => other.at(settled),
        };
        let (settled, incoming) = (settled(content), incoming(content));
        Ok((
            open(&settled.0, &incoming.0)?,
            open(&settled.1, &incoming.1)?,
        ))
    }

    /// A new content id, and its files.
    pub fn create_incoming(&self) -> Result<NewFiles> {
        let content = random();
        let paths = incoming(content);
        let files = self
            .disk
            .create(&paths.0)
            .at(&paths.0)
            .and_then(|bytes| Ok((content, bytes, self.disk.create(&paths.1).at(&paths.1)?)));
        if files.is_err() {
            self.remove_incoming(content);
        }
        files
    }

    /// Interrupted transfers.
    pub fn interrupted(&self) -> Vec<u64> {
        let interrupted = self
            .interrupted
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        interrupted.iter().copied().collect()
    }

    /// Claims an interrupted transfer; false where another has it.
    pub fn take(&self, content: u64) -> bool {
        self.interrupted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&content)
    }

    /// A transfer is interrupted: whoever puts the same again may go on with it.
    pub fn interrupt(&self, content: u64) {
        self.interrupted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(content);
    }

    /// Removes a file that is not to be published.
    pub fn remove_incoming(&self, content: u64) {
        remove_both(&*self.disk, &incoming(content));
    }

    /// Listings are no longer what they were.
    pub fn changed(&self) {
        self.listings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .changed();
    }
}

fn make_folders(disk: &dyn Disk) -> Result<()> {
    let root = Path::new("");
    // The last to be made; repositories of an older layout have all but the bundles' folder.
    if disk.list(Path::new("bundles")).is_ok() {
        return Ok(());
    }
    for shard in 0..=u8::MAX {
        let folder = Path::new("files").join(format!("{shard:02x}"));
        disk.make_dir(&folder).at(&folder)?;
    }
    for folder in ["incoming", "packets", "bundles"] {
        let folder = Path::new(folder);
        disk.make_dir(folder).at(folder)?;
    }
    disk.sync_dir(Path::new("files")).at(Path::new("files"))?;
    disk.sync_dir(root).at(Path::new("."))
}
