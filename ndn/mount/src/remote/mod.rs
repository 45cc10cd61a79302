//! The file system over a repository elsewhere: read only, everything by name, nothing unverified.
//!
//! A version never changes. So each inode of a file stands for one version: where a newer one is published, the next look-up
//! finds another inode, and those who have the old one open go on with it.

mod caller;
mod file;
mod fuse;
mod listing;
mod listing_memory;
mod network;
mod network_loop;
mod queries;
mod read_ahead;
mod shared_answers;
mod version_metadata;
mod xattr;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fuser::{Errno, FileAttr};
use ndn_endpoint::VerifyPolicy;
use ndn_io::{FaceUri, LinkOptions};
use ndn_packet::Name;
use ndn_repo::Cache;

use crate::attr::{self, Owner, read_only};
use crate::error::MountError;
use crate::handles::{Handles, lock};
use crate::names;
use crate::nodes::{Kind, Nodes};
pub(crate) use crate::remote_error::RemoteError;

use caller::Caller;
use file::{RemoteFile, Segments};
use listing::{Listed, Listing};
use listing_memory::ListingMemory;
use network::Network;
use read_ahead::ReadAhead;
use shared_answers::SharedAnswers;
use version_metadata::VersionMetadata;

pub use fuse::RemoteFs;

/// Bytes of listings that are remembered, beside the segments: the greatest fits in.
const LISTING_BYTES: usize = listing::MOST_BYTES + (1 << 20);
/// Bytes of listings in all: on their way, remembered, and those of folders that are being listed.
const ALL_LISTINGS_BYTES: usize = 128 << 20;
/// Bytes of attributes that are remembered.
const NEWEST_BYTES: usize = 4 << 20;
/// Bytes of versions' numbers that are remembered.
const VERSIONS_BYTES: usize = 1 << 20;
/// Bytes that a file's state takes, about.
const FILE_BYTES: usize = 768;
/// Most bytes fetched ahead of a reader.
const MOST_AHEAD: u64 = 8 << 20;
/// Bytes of the state of files that were opened lately, with their names: some 64 manifests are kept.
const FILES_BYTES: usize = 64 << 10;
/// Files of a folder whose attributes are asked for at once.
const AT_ONCE: usize = 64;

/// How a repository elsewhere is mounted. Start from [`RemoteOptions::new`] and change fields.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// The name that is mounted: a folder of a repository.
    pub prefix: Name,
    /// The forwarder.
    pub face: FaceUri,
    /// Settings of the face to it.
    pub link: LinkOptions,
    /// What is believed, as `trunkline get` has it. Default: digests.
    pub verify: VerifyPolicy,
    /// How long nothing may come before a call fails. Default 15 s.
    pub timeout: Duration,
    /// Most bytes of verified segments that are kept. Default 64 MiB.
    pub cache_bytes: usize,
    /// How long names and listings are believed. Default 1 s.
    pub remember: Duration,
    /// Other users may use it, as modes say.
    pub allow_other: bool,
}

impl RemoteOptions {
    /// The defaults, for what is under `prefix`.
    pub fn new(prefix: Name, face: FaceUri) -> Self {
        Self {
            prefix,
            face,
            link: LinkOptions::default(),
            verify: VerifyPolicy::default(),
            timeout: Duration::from_secs(15),
            cache_bytes: 64 << 20,
            remember: Duration::from_secs(1),
            allow_other: false,
        }
    }
}

/// A handle.
#[derive(Clone)]
enum Handle {
    /// A version, and how its reader gets on.
    File(Arc<RemoteFile>, Arc<Mutex<ReadAhead>>),
    /// A folder, as it was when its listing began.
    Folder(u64, Name, Arc<Listing>),
}

/// One thing in a folder, with what it is.
struct Shown<'a> {
    entry: Listed<'a>,
    /// `None` where it is a folder.
    file: Option<Result<Arc<VersionMetadata>, RemoteError>>,
}

/// The file system.
pub struct Remote {
    options: RemoteOptions,
    owner: Owner,
    network: Arc<Network>,
    segments: Arc<Segments>,
    listings: SharedAnswers<Arc<Listing>>,
    /// Of listings, remembered or not.
    listing_memory: ListingMemory,
    versions: SharedAnswers<Arc<[u64]>>,
    /// The newest versions of files.
    newest: SharedAnswers<Arc<VersionMetadata>>,
    /// Versions that are open or were lately.
    files: SharedAnswers<Arc<RemoteFile>>,
    next_file: AtomicU64,
    nodes: Mutex<Nodes>,
    /// The versions that inodes stand for, as long as the kernel knows them.
    inodes: Mutex<HashMap<u64, Arc<VersionMetadata>>>,
    handles: Handles<Handle>,
}

impl Remote {
    /// Connects, and looks whether there is anything.
    ///
    /// # Errors
    /// No forwarder, or no such folder.
    pub fn open(options: RemoteOptions, owner: Owner) -> Result<Self, MountError> {
        let network = Arc::new(Network::open(&options.face, &options.link)?);
        let believed = options.remember;
        let remote = Self {
            owner,
            network,
            segments: Arc::new(Mutex::new(Cache::new(options.cache_bytes))),
            listings: SharedAnswers::new(LISTING_BYTES, believed),
            listing_memory: ListingMemory::new(ALL_LISTINGS_BYTES),
            versions: SharedAnswers::new(VERSIONS_BYTES, believed),
            newest: SharedAnswers::new(NEWEST_BYTES, believed),
            files: SharedAnswers::for_good(FILES_BYTES),
            next_file: AtomicU64::new(0),
            nodes: Mutex::new(Nodes::new(options.prefix.clone())),
            inodes: Mutex::default(),
            handles: Handles::new(),
            options,
        };
        let prefix = &remote.options.prefix;
        let found = remote.listing(prefix);
        found.map_err(|error| MountError::Remote {
            prefix: prefix.clone(),
            error,
        })?;
        Ok(remote)
    }

    /// Lets all calls that wait fail, from now on.
    pub fn stop(&self) {
        self.network.stop();
    }

    fn attr_of(&self, number: u64, version: &VersionMetadata) -> FileAttr {
        let attr = attr::file(
            number,
            self.owner,
            version.size,
            version.mode,
            version.mtime_ns,
        );
        read_only(attr)
    }

    fn folder_attr(&self, number: u64) -> FileAttr {
        read_only(attr::folder(number, self.owner, 0))
    }

    fn name(&self, number: u64) -> Result<Name, Errno> {
        lock(&self.nodes).name(number).ok_or(Errno::ENOENT)
    }

    fn kind(&self, number: u64) -> Result<Kind, Errno> {
        lock(&self.nodes).kind(number).ok_or(Errno::ENOENT)
    }

    /// What `word` in `parent` is; the kernel knows it from now on.
    ///
    /// # Errors
    /// `ENOENT`, or why it is not known.
    fn look_up(&self, parent: u64, word: &OsStr) -> Result<FileAttr, Errno> {
        let word = word.as_bytes();
        if word.len() > names::MAX_WORD {
            return Err(Errno::ENAMETOOLONG);
        }
        let folder = self.name(parent)?;
        let listing = self.listing(&folder).map_err(|e| e.errno())?;
        match listing.find(word) {
            Some(found) if found.is_folder => {
                let number = lock(&self.nodes).look_up(parent, word, Kind::Folder);
                return Ok(self.folder_attr(number));
            }
            Some(_) => {
                let version = self.newest_of(&names::below(&folder, word));
                let version = version.map_err(|e| e.errno())?;
                return Ok(self.number(parent, word, Kind::Newest(version.version), &version));
            }
            None => {}
        }
        let (file, version) = names::version_of(word).ok_or(Errno::ENOENT)?;
        if !listing.find(file).is_some_and(|found| found.is_file) {
            return Err(Errno::ENOENT);
        }
        let name = names::below(&folder, file);
        let versions = self.versions(&name).map_err(|e| e.errno())?;
        if !versions.contains(&version) {
            return Err(Errno::ENOENT);
        }
        let found = self.version(&name, version).map_err(|e| e.errno())?;
        Ok(self.number(parent, word, Kind::Version(version), &found))
    }

    /// The inode of a version, which the kernel knows from now on.
    fn number(
        &self,
        parent: u64,
        word: &[u8],
        kind: Kind,
        version: &Arc<VersionMetadata>,
    ) -> FileAttr {
        let mut nodes = lock(&self.nodes);
        let number = nodes.look_up(parent, word, kind);
        lock(&self.inodes).insert(number, version.clone());
        self.attr_of(number, version)
    }

    /// The version that an inode stands for.
    fn version_of(&self, number: u64) -> Result<Arc<VersionMetadata>, Errno> {
        match self.kind(number)? {
            Kind::Folder => Err(Errno::EISDIR),
            _ => lock(&self.inodes)
                .get(&number)
                .cloned()
                .ok_or(Errno::ENOENT),
        }
    }

    /// What `stat` tells of an inode.
    ///
    /// # Errors
    /// `ENOENT`, or why it is not known.
    fn attr(&self, number: u64) -> Result<FileAttr, Errno> {
        match self.kind(number)? {
            Kind::Folder => Ok(self.folder_attr(number)),
            _ => Ok(self.attr_of(number, &*self.version_of(number)?)),
        }
    }

    /// The version behind an inode, to be read.
    fn file(&self, number: u64) -> Result<Arc<RemoteFile>, Errno> {
        let version = self.version_of(number)?;
        let name = version.metadata.name.clone();
        let file = self.files.get(&name, || {
            let source = self.source(&version)?;
            let id = self.next_file.fetch_add(1, Ordering::Relaxed);
            Ok((RemoteFile::new(id, version, source), FILE_BYTES))
        });
        file.map_err(|e| e.errno())
    }

    fn most_ahead(&self) -> u64 {
        MOST_AHEAD.min(self.options.cache_bytes as u64 / 4)
    }

    /// Opens a version for reading.
    ///
    /// # Errors
    /// Why it can't be verified.
    fn open_file(&self, number: u64) -> Result<u64, Errno> {
        let file = self.file(number)?;
        file.open();
        let ahead = ReadAhead::new(self.most_ahead());
        Ok(self
            .handles
            .add(Handle::File(file, Arc::new(Mutex::new(ahead)))))
    }

    /// Begins to list a folder.
    ///
    /// # Errors
    /// Why it is not known.
    fn open_folder(&self, number: u64) -> Result<u64, Errno> {
        if self.kind(number)? != Kind::Folder {
            return Err(Errno::ENOTDIR);
        }
        let name = self.name(number)?;
        let listing = self.listing(&name).map_err(|e| e.errno())?;
        Ok(self.handles.add(Handle::Folder(number, name, listing)))
    }

    /// Nobody has a handle any more.
    fn release(&self, handle: u64) {
        if let Some(Handle::File(file, _)) = self.handles.remove(handle) {
            file.close();
        }
    }

    /// Fills `buffer` from `offset` on, as far as the file goes, for as long as `caller` is there.
    ///
    /// # Errors
    /// `ETIMEDOUT` or `EHOSTUNREACH` where nobody answers, `EIO` where what comes is not what was signed.
    fn read(
        &self,
        handle: u64,
        offset: u64,
        buffer: &mut [u8],
        caller: Caller,
    ) -> Result<usize, Errno> {
        match self.handles.get(handle)? {
            Handle::File(file, ahead) => {
                let read = file.read(&ahead, offset, buffer, caller);
                read.map_err(|e| e.errno())
            }
            Handle::Folder(..) => Err(Errno::EISDIR),
        }
    }

    /// Where a symbolic link leads.
    ///
    /// # Errors
    /// `EINVAL`, or why it is not known.
    fn read_link(&self, number: u64, caller: Caller) -> Result<Vec<u8>, Errno> {
        let file = self.file(number)?;
        let most = u64::try_from(libc::PATH_MAX).unwrap_or(0);
        if file.version.mode & libc::S_IFMT != libc::S_IFLNK || file.version.size > most {
            return Err(Errno::EINVAL);
        }
        let mut target = vec![0; usize::try_from(file.version.size).unwrap_or(0)];
        file.open();
        let read = file.read(&Mutex::new(ReadAhead::new(0)), 0, &mut target, caller);
        file.close();
        read.map(|_| target).map_err(|e| e.errno())
    }

    /// Shows what is in a folder from place `offset` on to `show`, with the place after each, until that says that there is
    /// no more room.
    ///
    /// # Errors
    /// Nobody answers.
    fn list(
        &self,
        handle: u64,
        offset: u64,
        show: &mut dyn FnMut(u64, u64, &Shown<'_>) -> bool,
    ) -> Result<(), Errno> {
        let Handle::Folder(number, name, listing) = self.handles.get(handle)? else {
            return Err(Errno::ENOTDIR);
        };
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let mut rest = listing.from(from).peekable();
        let mut place = offset;
        while rest.peek().is_some() {
            let batch: Vec<Listed<'_>> = rest.by_ref().take(AT_ONCE).collect();
            let files = batch.iter().filter(|entry| !entry.is_folder);
            let names: Vec<Name> = files
                .map(|entry| names::below(&name, entry.word.as_bytes()))
                .collect();
            let versions = self.newest(&names);
            // A file of which nobody tells is shown all the same; but where nobody tells of any, nobody is there.
            if let Some(Err(error)) = versions.first()
                && versions
                    .iter()
                    .all(|version| version.as_ref().is_err_and(RemoteError::is_silence))
            {
                return Err(error.errno());
            }
            let mut versions = versions.into_iter();
            for entry in batch {
                place += 1;
                let file = match entry.is_folder {
                    true => None,
                    false => versions.next(),
                };
                if !show(number, place, &Shown { entry, file }) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The kernel has forgotten an inode so many times.
    fn forget(&self, number: u64, times: u64) {
        let mut nodes = lock(&self.nodes);
        if nodes.forget(number, times) {
            lock(&self.inodes).remove(&number);
        }
    }
}
