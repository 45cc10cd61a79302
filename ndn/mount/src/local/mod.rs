//! The file system over a repository in this process: what each call does, without the kernel's side of it.
//!
//! Locks are taken in this order: the namespace, moving, a file, then inodes or tables. Reading takes the last alone. Who
//! moves files holds several of them; nobody else does.

mod entries;
mod file;
mod folder;
mod fuse;
mod open;
mod rename;
mod xattr;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use fuser::{Errno, FileAttr};
use ndn_packet::Name;
use ndn_repo::{Change, FileInfo, Repo};

use crate::attr::{self, Owner, read_only};
use crate::handles::{Handles, lock};
use crate::names;
use crate::nodes::{Kind, Nodes};

use entries::new_word;
use open::{Access, Handle, Opened, Shared};

pub use file::{Keeping, OpenFile, now_ns, told};
pub use folder::Folder;
pub use fuse::LocalFs;

/// The file system.
pub struct Local {
    repo: Repo,
    keeping: Arc<Keeping>,
    /// The folder that is mounted.
    root: Name,
    /// Where the repository lies.
    pub store: PathBuf,
    pub owner: Owner,
    nodes: Mutex<Nodes>,
    /// Files that are open or not yet published, by inode.
    files: Mutex<HashMap<u64, Shared>>,
    handles: Handles<Handle>,
    /// Held by who changes which names there are.
    namespace: Mutex<()>,
    /// Held while files are moved or removed, and shared by who opens one that is not open: it would have the name of before.
    moving: RwLock<()>,
    /// Something was changed since the last sync.
    changed: AtomicBool,
}

impl Local {
    /// Of what is at and under `root`. The repository's changes are made durable by [`Local::sync`].
    pub fn new(repo: &Repo, root: Name, store: PathBuf, owner: Owner, keeping: Keeping) -> Self {
        Self {
            repo: repo.lazy(),
            keeping: Arc::new(keeping),
            nodes: Mutex::new(Nodes::new(root.clone())),
            root,
            store,
            owner,
            files: Mutex::default(),
            handles: Handles::new(),
            namespace: Mutex::default(),
            moving: RwLock::default(),
            changed: AtomicBool::new(false),
        }
    }

    fn name(&self, number: u64) -> Result<Name, Errno> {
        lock(&self.nodes).name(number).ok_or(Errno::ENOENT)
    }

    fn open_file(&self, number: u64) -> Option<Shared> {
        lock(&self.files).get(&number).cloned()
    }

    fn touch(&self) {
        self.changed.store(true, Ordering::Release);
    }

    fn apply(&self, change: Change) -> Result<Vec<FileInfo>, Errno> {
        self.touch();
        let changed = self.repo.apply(change).map_err(|not| told(&not.error))?;
        Ok(changed.published)
    }

    /// Makes all durable that was closed, renamed or removed. What could not be published when it was closed is tried again.
    ///
    /// # Errors
    /// What the disk says.
    pub fn sync(&self) -> Result<(), Errno> {
        let (published, synced) = self.publish_and_sync();
        published.and(synced)
    }

    /// As [`Local::sync`]: whether all that waited could be published, and whether what is published is durable.
    fn publish_and_sync(&self) -> (Result<(), Errno>, Result<(), Errno>) {
        if !self.changed.swap(false, Ordering::AcqRel) {
            return (Ok(()), Ok(()));
        }
        let waiting: Vec<(u64, Shared)> = lock(&self.files)
            .iter()
            .filter(|(_, opened)| opened.users.load(Ordering::Acquire) == 0)
            .map(|(number, opened)| {
                opened.users.fetch_add(1, Ordering::AcqRel);
                (*number, opened.clone())
            })
            .collect();
        let mut published = Ok(());
        for (number, opened) in waiting {
            published = published.and(lock(&opened.file).publish());
            self.let_go(number, &opened);
        }
        let gone = self.gone_files();
        let synced = self.repo.sync().map_err(|e| told(&e));
        if synced.is_ok() {
            gone.iter().for_each(|gone| lock(&gone.file).forget());
        }
        if published.is_err() || synced.is_err() {
            self.touch();
        }
        (published, synced)
    }

    /// Files that are open and have no name any more.
    fn gone_files(&self) -> Vec<Shared> {
        let mut open: Vec<Shared> = lock(&self.files).values().cloned().collect();
        open.retain(|opened| match opened.file.try_lock() {
            Ok(file) => file.is_gone(),
            // Somebody is busy with it: the next sync looks again.
            Err(_) => {
                self.touch();
                false
            }
        });
        open
    }

    /// Publishes all that is open, whoever still has it, and makes it durable.
    ///
    /// # Errors
    /// What the disk says of any of them.
    pub fn close_all(&self) -> Result<(), Errno> {
        let open: Vec<Shared> = lock(&self.files).values().cloned().collect();
        let mut result = Ok(());
        for file in open {
            result = result.and(lock(&file.file).publish());
        }
        self.sync_now().and(result)
    }

    fn attr_of(&self, number: u64, file: &OpenFile) -> FileAttr {
        let (mode, mtime_ns) = file.attributes();
        attr::file(number, self.owner, file.size(), mode, mtime_ns)
    }

    fn attr_of_version(&self, number: u64, info: &FileInfo) -> FileAttr {
        let entry = &info.entry;
        attr::file(number, self.owner, entry.size, entry.mode, entry.mtime_ns)
    }

    /// What `word` in `parent` is; the kernel knows it from now on.
    ///
    /// # Errors
    /// `ENOENT`, or what the repository says.
    pub fn look_up(&self, parent: u64, word: &OsStr) -> Result<FileAttr, Errno> {
        let word = word.as_bytes();
        if word.len() > names::MAX_WORD {
            return Err(Errno::ENAMETOOLONG);
        }
        let known = lock(&self.nodes).find(parent, word);
        if let Some(shared) = known.and_then(|number| self.open_file(number)) {
            let file = lock(&shared.file);
            if !file.is_gone() {
                let number = lock(&self.nodes).look_up(parent, word, Kind::File);
                return Ok(self.attr_of(number, &file));
            }
        }
        let folder = self.name(parent)?;
        let name = names::below(&folder, word);
        let numbered = |kind| lock(&self.nodes).look_up(parent, word, kind);
        if let Some(made) = self.repo.folder(&name).map_err(|e| told(&e))? {
            return Ok(attr::folder(numbered(Kind::Folder), self.owner, made));
        }
        if let Some(info) = self.repo.find(&name, None).map_err(|e| told(&e))? {
            return Ok(self.attr_of_version(numbered(Kind::File), &info));
        }
        if let Some((file, version)) = names::version_of(word) {
            let name = names::below(&folder, file);
            let found = self.repo.find(&name, Some(version)).map_err(|e| told(&e))?;
            if let Some(info) = found {
                let attr = self.attr_of_version(numbered(Kind::Version(version)), &info);
                return Ok(read_only(attr));
            }
        }
        Err(Errno::ENOENT)
    }

    /// The kernel has forgotten an inode so many times.
    pub fn forget(&self, number: u64, times: u64) {
        lock(&self.nodes).forget(number, times);
    }

    fn kind(&self, number: u64) -> Result<Kind, Errno> {
        lock(&self.nodes).kind(number).ok_or(Errno::ENOENT)
    }

    /// What `stat` tells of an inode.
    ///
    /// # Errors
    /// `ENOENT`, or what the repository says.
    pub fn attr(&self, number: u64) -> Result<FileAttr, Errno> {
        if let Some(file) = self.open_file(number) {
            return Ok(self.attr_of(number, &lock(&file.file)));
        }
        let kind = self.kind(number)?;
        let name = self.name(number)?;
        let version = match kind {
            Kind::Folder => {
                let made = match name == self.root {
                    true => Some(0),
                    false => self.repo.folder(&name).map_err(|e| told(&e))?,
                };
                let made = made.ok_or(Errno::ENOENT)?;
                return Ok(attr::folder(number, self.owner, made));
            }
            Kind::File => None,
            Kind::Version(version) | Kind::Newest(version) => Some(version),
        };
        let found = self.repo.find(&name, version).map_err(|e| told(&e))?;
        let attr = self.attr_of_version(number, &found.ok_or(Errno::ENOENT)?);
        Ok(match version {
            Some(_) => read_only(attr),
            None => attr,
        })
    }

    /// All that was closed, renamed or removed is to outlive a crash.
    ///
    /// # Errors
    /// What the disk says.
    pub fn sync_now(&self) -> Result<(), Errno> {
        // Another sync in this moment may have looked before.
        self.touch();
        self.sync()
    }

    /// As [`Local::sync_now`], for a caller to whom it is no failure that some other file can't be published.
    ///
    /// # Errors
    /// What the disk says.
    fn sync_published(&self) -> Result<(), Errno> {
        self.touch();
        let (published, synced) = self.publish_and_sync();
        if let Err(error) = published {
            tracing::warn!(
                ?error,
                "another file than the one that is synced can't be published"
            );
        }
        synced
    }
}
