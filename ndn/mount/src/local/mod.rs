//! The file system over a repository in this process: what each call does, without the kernel's side of it.
//!
//! Locks are taken in this order: the namespace, a file, then inodes or tables. Reading takes the last alone.

mod file;
mod folder;
mod rename;
mod xattr;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fuser::{Errno, FileAttr};
use ndn_packet::Name;
use ndn_repo::{Change, FileInfo, FileReader, Repo};

use crate::attr::{self, Owner};
use crate::names::{self, BadWord};
use crate::nodes::{Kind, Nodes};

pub use file::{Keeping, OpenFile, now_ns, told};
pub use folder::Folder;
pub use xattr::PREFIX;

/// An open file of this file system, with those who have it open.
pub struct Opened {
    /// Handles, and calls that need it for a moment. Grows under the table's lock alone.
    users: AtomicU32,
    file: Mutex<OpenFile>,
}

/// An open file of this file system.
pub type Shared = Arc<Opened>;

/// A handle.
#[derive(Clone)]
pub enum Handle {
    /// A file, and whether it is open for writing.
    File(u64, Shared, bool),
    /// One version.
    Version(Arc<FileReader>),
    /// A folder that is being listed.
    Folder(Arc<Mutex<Folder>>),
}

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
    handles: Mutex<HashMap<u64, Handle>>,
    next_handle: Mutex<u64>,
    /// Held by who changes which names there are.
    namespace: Mutex<()>,
    /// Something was changed since the last sync.
    changed: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
            handles: Mutex::default(),
            next_handle: Mutex::new(1),
            namespace: Mutex::default(),
            changed: AtomicBool::new(false),
        }
    }

    fn name(&self, number: u64) -> Result<Name, Errno> {
        lock(&self.nodes).name(number).ok_or(Errno::ENOENT)
    }

    fn open_file(&self, number: u64) -> Option<Shared> {
        lock(&self.files).get(&number).cloned()
    }

    fn add_handle(&self, handle: Handle) -> u64 {
        let mut next = lock(&self.next_handle);
        let number = *next;
        *next += 1;
        lock(&self.handles).insert(number, handle);
        number
    }

    /// What a handle's number stands for.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn handle(&self, number: u64) -> Result<Handle, Errno> {
        lock(&self.handles)
            .get(&number)
            .cloned()
            .ok_or(Errno::EBADF)
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
        if !self.changed.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let waiting: Vec<(u64, Shared)> = lock(&self.files)
            .iter()
            .filter(|(_, opened)| opened.users.load(Ordering::Acquire) == 0)
            .map(|(number, opened)| {
                opened.users.fetch_add(1, Ordering::AcqRel);
                (*number, opened.clone())
            })
            .collect();
        let mut result = Ok(());
        for (number, opened) in waiting {
            result = result.and(lock(&opened.file).publish());
            self.let_go(number, &opened);
        }
        result = result.and(self.repo.sync().map_err(|e| told(&e)));
        if result.is_err() {
            self.touch();
        }
        result
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

    /// One user less. A file that is neither open nor waiting is forgotten.
    fn let_go(&self, number: u64, opened: &Shared) {
        let mut files = lock(&self.files);
        if opened.users.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let waits = match opened.file.try_lock() {
            Ok(file) => file.is_dirty(),
            // Somebody looks at it; the next to let go, or to sync, looks again.
            Err(_) => true,
        };
        let is_it = files
            .get(&number)
            .is_some_and(|known| Arc::ptr_eq(known, opened));
        if is_it && !waits {
            files.remove(&number);
        } else if is_it {
            self.touch();
        }
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
            Kind::Version(version) => Some(version),
        };
        let found = self.repo.find(&name, version).map_err(|e| told(&e))?;
        let attr = self.attr_of_version(number, &found.ok_or(Errno::ENOENT)?);
        Ok(match version {
            Some(_) => read_only(attr),
            None => attr,
        })
    }

    /// The open file behind an inode, with one user more; opened here if nobody has it open. Versions are not files that
    /// can be written.
    fn file(&self, number: u64) -> Result<Shared, Errno> {
        match self.kind(number)? {
            Kind::File => {}
            Kind::Folder => return Err(Errno::EISDIR),
            Kind::Version(_) => return Err(Errno::EROFS),
        }
        if let Some(opened) = self.borrow(number) {
            if let Err(error) = lock(&opened.file).refresh() {
                self.let_go(number, &opened);
                return Err(error);
            }
            return Ok(opened);
        }
        let name = self.name(number)?;
        let info = self.repo.find(&name, None).map_err(|e| told(&e))?;
        let file = OpenFile::open(&self.repo, &self.keeping, info.ok_or(Errno::ENOENT)?)?;
        let mut files = lock(&self.files);
        let opened = files.entry(number).or_insert_with(|| {
            Arc::new(Opened {
                users: AtomicU32::new(0),
                file: Mutex::new(file),
            })
        });
        opened.users.fetch_add(1, Ordering::AcqRel);
        Ok(opened.clone())
    }

    /// The open file behind an inode, with one user more.
    fn borrow(&self, number: u64) -> Option<Shared> {
        let files = lock(&self.files);
        let opened = files.get(&number)?;
        opened.users.fetch_add(1, Ordering::AcqRel);
        Some(opened.clone())
    }

    /// Opens a file or a version. Tells the handle, and whether what the kernel has of its bytes is still right.
    ///
    /// # Errors
    /// What the repository says; a version can't be written.
    pub fn open(&self, number: u64, writes: bool, cut: bool) -> Result<(u64, bool), Errno> {
        if let Kind::Version(version) = self.kind(number)? {
            if writes {
                return Err(Errno::EROFS);
            }
            let name = self.name(number)?;
            let reader = self.repo.open_file(&name, Some(version));
            let handle = Handle::Version(reader.map_err(|e| told(&e))?);
            return Ok((self.add_handle(handle), true));
        }
        let shared = self.file(number)?;
        let mut file = lock(&shared.file);
        if cut {
            self.touch();
            if let Err(error) = file.set_size(0) {
                drop(file);
                self.let_go(number, &shared);
                return Err(error);
            }
        }
        let version = file.version().map(|info| info.version);
        drop(file);
        let same = lock(&self.nodes).has_read(number, version);
        Ok((self.add_handle(Handle::File(number, shared, writes)), same))
    }

    /// Makes a new file and opens it for writing.
    ///
    /// # Errors
    /// `EEXIST`, a word that is none, or what the repository says.
    pub fn create(&self, parent: u64, word: &OsStr, mode: u32) -> Result<(FileAttr, u64), Errno> {
        let _one = lock(&self.namespace);
        let word = new_word(word)?;
        let name = names::below(&self.name(parent)?, word);
        self.must_be_free(parent, word, &name)?;
        let mode = mode & 0o7777 | libc::S_IFREG;
        let file = OpenFile::create(&self.repo, &self.keeping, name, mode)?;
        self.touch();
        let number = lock(&self.nodes).look_up(parent, word, Kind::File);
        let attr = self.attr_of(number, &file);
        let shared = Arc::new(Opened {
            users: AtomicU32::new(1),
            file: Mutex::new(file),
        });
        lock(&self.files).insert(number, shared.clone());
        Ok((attr, self.add_handle(Handle::File(number, shared, true))))
    }

    /// Makes a file that is `content` at once.
    fn create_whole(
        &self,
        parent: u64,
        word: &OsStr,
        mode: u32,
        content: &[u8],
    ) -> Result<FileAttr, Errno> {
        let _one = lock(&self.namespace);
        let word = new_word(word)?;
        let name = names::below(&self.name(parent)?, word);
        self.must_be_free(parent, word, &name)?;
        let mut file = OpenFile::create(&self.repo, &self.keeping, name, mode)?;
        file.write(0, 0, content)?;
        file.publish()?;
        self.touch();
        let number = lock(&self.nodes).look_up(parent, word, Kind::File);
        Ok(self.attr_of(number, &file))
    }

    /// Makes an empty file without opening it.
    ///
    /// # Errors
    /// As [`Local::create`].
    pub fn make_file(&self, parent: u64, word: &OsStr, mode: u32) -> Result<FileAttr, Errno> {
        match mode & libc::S_IFMT {
            0 | libc::S_IFREG => {
                self.create_whole(parent, word, mode & 0o7777 | libc::S_IFREG, &[])
            }
            _ => Err(Errno::EPERM),
        }
    }

    /// Makes a symbolic link: a file whose mode says so, and whose content is where it leads.
    ///
    /// # Errors
    /// As [`Local::create`].
    pub fn symlink(&self, parent: u64, word: &OsStr, target: &OsStr) -> Result<FileAttr, Errno> {
        self.create_whole(parent, word, libc::S_IFLNK | 0o777, target.as_bytes())
    }

    /// Where a symbolic link leads.
    ///
    /// # Errors
    /// `EINVAL`, or what the repository says.
    pub fn read_link(&self, number: u64) -> Result<Vec<u8>, Errno> {
        let name = self.name(number)?;
        let reader = self.repo.open_file(&name, None).map_err(|e| told(&e))?;
        let most = usize::try_from(libc::PATH_MAX).unwrap_or(0);
        let size = usize::try_from(reader.size()).unwrap_or(usize::MAX);
        if reader.entry().mode & libc::S_IFMT != libc::S_IFLNK || size > most {
            return Err(Errno::EINVAL);
        }
        let mut target = vec![0; size];
        reader.read_at(0, &mut target).map_err(|e| told(&e))?;
        Ok(target)
    }

    fn must_be_free(&self, parent: u64, word: &[u8], name: &Name) -> Result<(), Errno> {
        let open = lock(&self.nodes)
            .find(parent, word)
            .and_then(|number| self.open_file(number));
        let taken = open.is_some_and(|opened| !lock(&opened.file).is_gone())
            || self.repo.folder(name).map_err(|e| told(&e))?.is_some()
            || self.repo.find(name, None).map_err(|e| told(&e))?.is_some();
        if taken { Err(Errno::EEXIST) } else { Ok(()) }
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// As [`Local::create`].
    pub fn make_folder(&self, parent: u64, word: &OsStr) -> Result<FileAttr, Errno> {
        let _one = lock(&self.namespace);
        let word = new_word(word)?;
        let name = names::below(&self.name(parent)?, word);
        self.must_be_free(parent, word, &name)?;
        self.apply(Change {
            make_folders: vec![name],
            ..Change::default()
        })?;
        let number = lock(&self.nodes).look_up(parent, word, Kind::Folder);
        Ok(attr::folder(number, self.owner, now_ns()))
    }

    /// Removes a file, all its versions.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`, or what the repository says. A version alone is removed by its own word.
    pub fn unlink(&self, parent: u64, word: &OsStr) -> Result<(), Errno> {
        let _one = lock(&self.namespace);
        let word = word.as_bytes();
        let folder = self.name(parent)?;
        let name = names::below(&folder, word);
        if self.repo.folder(&name).map_err(|e| told(&e))?.is_some() {
            return Err(Errno::EISDIR);
        }
        let number = lock(&self.nodes).find(parent, word);
        let open = number.and_then(|number| self.open_file(number));
        let mut remove = self.versions(&name)?;
        if remove.is_empty() && open.is_none() {
            let (file, version) = names::version_of(word).ok_or(Errno::ENOENT)?;
            let name = names::below(&folder, file);
            let found = self.repo.find(&name, Some(version)).map_err(|e| told(&e))?;
            remove = vec![(found.ok_or(Errno::ENOENT)?.name, version)];
        }
        self.apply(Change {
            remove,
            make_folders: self.kept(&folder),
            ..Change::default()
        })?;
        self.vanish(number, open);
        Ok(())
    }

    /// No path leads any more to a file that is open, or to an inode.
    fn vanish(&self, number: Option<u64>, open: Option<Shared>) {
        if let Some(opened) = open {
            lock(&opened.file).unlink();
        }
        if let Some(number) = number {
            lock(&self.nodes).unlink(number);
        }
    }

    fn versions(&self, name: &Name) -> Result<Vec<(Name, u64)>, Errno> {
        let versions = self.repo.versions(name).map_err(|e| told(&e))?;
        Ok(versions.into_iter().map(|v| (v.name, v.version)).collect())
    }

    /// A folder stays when the last file in it goes.
    fn kept(&self, folder: &Name) -> Vec<Name> {
        match *folder == self.root {
            true => Vec::new(),
            false => vec![folder.clone()],
        }
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `ENOTEMPTY`, or what the repository says.
    pub fn remove_folder(&self, parent: u64, word: &OsStr) -> Result<(), Errno> {
        let _one = lock(&self.namespace);
        let folder = self.name(parent)?;
        let name = names::below(&folder, word.as_bytes());
        if self.repo.folder(&name).map_err(|e| told(&e))?.is_none() {
            let found = self.repo.find(&name, None).map_err(|e| told(&e))?;
            return Err(found.map_or(Errno::ENOENT, |_| Errno::ENOTDIR));
        }
        let number = lock(&self.nodes).find(parent, word.as_bytes());
        self.must_be_empty(&name, number)?;
        self.apply(Change {
            remove_folders: vec![name],
            make_folders: self.kept(&folder),
            ..Change::default()
        })?;
        self.vanish(number, None);
        Ok(())
    }

    fn must_be_empty(&self, folder: &Name, number: Option<u64>) -> Result<(), Errno> {
        let listed = self.repo.list(folder, None, 1).map_err(|e| told(&e))?;
        let new = number.is_some_and(|number| !self.new_files(number).is_empty());
        match listed.is_empty() && !new {
            true => Ok(()),
            false => Err(Errno::ENOTEMPTY),
        }
    }

    /// Words of files in a folder that nobody else can see yet, with their inodes.
    fn new_files(&self, folder: u64) -> Vec<(u64, Arc<[u8]>)> {
        let open: Vec<(u64, Shared)> = lock(&self.files)
            .iter()
            .map(|(number, file)| (*number, file.clone()))
            .collect();
        open.into_iter()
            .filter(|(_, file)| {
                let file = lock(&file.file);
                !file.is_published() && !file.is_gone()
            })
            .filter_map(|(number, _)| {
                let word = lock(&self.nodes).word_in(number, folder)?;
                Some((number, word))
            })
            .collect()
    }

    /// Fills `buffer` from `offset` on, as far as the file goes.
    ///
    /// # Errors
    /// What the repository says; `EIO` where the disk has changed what was put.
    pub fn read(&self, handle: u64, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let reader = match self.handle(handle)? {
            Handle::Version(reader) => reader,
            Handle::Folder(_) => return Err(Errno::EISDIR),
            Handle::File(_, shared, _) => {
                let mut file = lock(&shared.file);
                match file.reader() {
                    Some(reader) => reader,
                    None => return file.read(offset, buffer),
                }
            }
        };
        reader.read_at(offset, buffer).map_err(|e| told(&e))
    }

    fn writable(&self, handle: u64) -> Result<Shared, Errno> {
        match self.handle(handle)? {
            Handle::File(_, shared, true) => Ok(shared),
            _ => Err(Errno::EBADF),
        }
    }

    /// Writes at `offset`.
    ///
    /// # Errors
    /// What the repository says.
    pub fn write(&self, handle: u64, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        let shared = self.writable(handle)?;
        self.touch();
        lock(&shared.file).write(handle, offset, bytes)
    }

    /// Reserves room, and lengthens the file where that is asked for.
    ///
    /// # Errors
    /// What the repository says.
    pub fn allocate(&self, handle: u64, end: u64, lengthen: bool) -> Result<(), Errno> {
        let shared = self.writable(handle)?;
        self.touch();
        let mut file = lock(&shared.file);
        file.reserve(end)?;
        if lengthen && end > file.size() {
            file.set_size(end)?;
        }
        Ok(())
    }

    /// Writes zeros over a range, as far as the file goes, or further.
    ///
    /// # Errors
    /// What the repository says.
    pub fn zero(&self, handle: u64, offset: u64, len: u64, lengthen: bool) -> Result<(), Errno> {
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        let shared = self.writable(handle)?;
        self.touch();
        let mut file = lock(&shared.file);
        let end = offset.saturating_add(len);
        let inside = end.min(file.size());
        let mut at = offset;
        while at < inside {
            let n = (inside - at).min(ZEROS.len() as u64);
            file.write(handle, at, &ZEROS[..usize::try_from(n).unwrap_or(0)])?;
            at += n;
        }
        if lengthen && end > file.size() {
            file.set_size(end)?;
        }
        Ok(())
    }

    /// Changes size, mode and time of last change.
    ///
    /// # Errors
    /// What the repository says; nothing of a version can be changed.
    pub fn set_attr(
        &self,
        number: u64,
        size: Option<u64>,
        mode: Option<u32>,
        mtime_ns: Option<u64>,
    ) -> Result<FileAttr, Errno> {
        if self.kind(number)? == Kind::Folder {
            // They have the mode and the time that they have.
            return self.attr(number);
        }
        let shared = match self.borrow(number) {
            Some(opened) => opened,
            None => self.file(number)?,
        };
        self.touch();
        let mut file = lock(&shared.file);
        let result = (|| {
            if let Some(size) = size
                && size != file.size()
            {
                file.set_size(size)?;
            }
            file.set_attributes(mode, mtime_ns)?;
            if shared.users.load(Ordering::Acquire) == 1 {
                file.publish()?;
            }
            Ok(self.attr_of(number, &file))
        })();
        drop(file);
        self.let_go(number, &shared);
        result
    }

    /// One of those who have a handle has closed it.
    ///
    /// # Errors
    /// What the repository says; what was written is kept.
    pub fn close(&self, handle: u64) -> Result<(), Errno> {
        match self.handle(handle)? {
            Handle::File(_, shared, true) => {
                self.touch();
                lock(&shared.file).close(handle)
            }
            _ => Ok(()),
        }
    }

    /// What was written is to outlive a crash.
    ///
    /// # Errors
    /// What the disk says.
    pub fn sync_file(&self, handle: u64) -> Result<(), Errno> {
        if let Handle::File(_, shared, _) = self.handle(handle)? {
            lock(&shared.file).keep()?;
        }
        self.sync_now()
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

    /// Nobody has a handle any more.
    pub fn release(&self, handle: u64) {
        let Some(Handle::File(number, shared, writes)) = lock(&self.handles).remove(&handle) else {
            return;
        };
        let mut file = lock(&shared.file);
        if writes && let Err(error) = file.publish() {
            tracing::error!(?error, "what was written waits to be published");
        }
        file.release(handle);
        drop(file);
        self.let_go(number, &shared);
    }
}

fn read_only(attr: FileAttr) -> FileAttr {
    FileAttr {
        perm: attr.perm & !0o222,
        ..attr
    }
}

fn new_word(word: &OsStr) -> Result<&[u8], Errno> {
    names::new_word(word).map_err(|bad| match bad {
        BadWord::TooLong => Errno::ENAMETOOLONG,
        BadWord::Version => Errno::EINVAL,
    })
}
