//! What is open: opened, read, written, changed, closed.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fuser::{Errno, FileAttr};
use ndn_repo::FileReader;

use super::{Folder, Local, OpenFile, lock, told};
use crate::nodes::Kind;

/// An open file of this file system, with those who have it open.
pub struct Opened {
    /// Handles, and calls that need it for a moment. Grows under the table's lock alone.
    pub(super) users: AtomicU32,
    pub(super) file: Mutex<OpenFile>,
}

/// An open file of this file system.
pub type Shared = Arc<Opened>;

/// What a handle of a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// It may read.
    pub reads: bool,
    /// It may write.
    pub writes: bool,
}

/// A handle.
#[derive(Clone)]
pub enum Handle {
    /// A file.
    File(u64, Shared, Access),
    /// One version.
    Version(Arc<FileReader>),
    /// A folder that is being listed.
    Folder(Arc<Mutex<Folder>>),
}

impl Opened {
    /// A file that so many have open.
    pub(super) fn new(file: OpenFile, users: u32) -> Shared {
        Arc::new(Self {
            users: AtomicU32::new(users),
            file: Mutex::new(file),
        })
    }
}

impl Local {
    /// The open file behind an inode, with one user more; opened here if nobody has it open. Versions are not files that
    /// can be written.
    fn file(&self, number: u64) -> Result<Shared, Errno> {
        match self.kind(number)? {
            Kind::File => {}
            Kind::Folder => return Err(Errno::EISDIR),
            Kind::Version(_) | Kind::Newest(_) => return Err(Errno::EROFS),
        }
        if let Some(opened) = self.borrow(number) {
            if let Err(error) = lock(&opened.file).refresh() {
                self.let_go(number, &opened);
                return Err(error);
            }
            return Ok(opened);
        }
        let _stays = self.moving.read().unwrap_or_else(PoisonError::into_inner);
        let name = self.name(number)?;
        let info = self.repo.find(&name, None).map_err(|e| told(&e))?;
        // The kernel looks again for what was there a moment ago, and makes a new file where it may.
        let info = info.ok_or(Errno::ESTALE)?;
        let file = OpenFile::open(&self.repo, &self.keeping, info);
        let mut files = lock(&self.files);
        let opened = files.entry(number).or_insert_with(|| Opened::new(file, 0));
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

    /// One user less. A file that is neither open nor waiting is forgotten.
    pub(super) fn let_go(&self, number: u64, opened: &Shared) {
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

    /// Opens a file or a version. Tells the handle, and whether what the kernel has of its bytes is still right.
    ///
    /// # Errors
    /// What the repository says; a version can't be written.
    pub fn open(&self, number: u64, access: Access, cut: bool) -> Result<(u64, bool), Errno> {
        if let Kind::Version(version) = self.kind(number)? {
            if access.writes {
                return Err(Errno::EROFS);
            }
            let name = self.name(number)?;
            let reader = self.repo.open_file(&name, Some(version));
            let handle = Handle::Version(reader.map_err(|e| told(&e))?);
            return Ok((self.handles.add(handle), true));
        }
        let shared = self.file(number)?;
        let mut file = lock(&shared.file);
        let ready = match cut {
            true => {
                self.touch();
                file.set_size(0)
            }
            false => file.make_ready(),
        };
        if let Err(error) = ready {
            drop(file);
            self.let_go(number, &shared);
            return Err(error);
        }
        file.add_user(access);
        let version = file.version().map(|info| info.version);
        drop(file);
        let same = lock(&self.nodes).has_read(number, version);
        Ok((self.handles.add(Handle::File(number, shared, access)), same))
    }

    /// Fills `buffer` from `offset` on, as far as the file goes.
    ///
    /// # Errors
    /// What the repository says; `EIO` where the disk has changed what was put.
    pub fn read(&self, handle: u64, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let reader = match self.handles.get(handle)? {
            Handle::Version(reader) => reader,
            Handle::Folder(_) => return Err(Errno::EISDIR),
            Handle::File(_, shared, _) => {
                let mut file = lock(&shared.file);
                match file.reader()? {
                    Some(reader) => reader,
                    None => return file.read(offset, buffer),
                }
            }
        };
        reader.read_at(offset, buffer).map_err(|e| told(&e))
    }

    fn writable(&self, handle: u64) -> Result<Shared, Errno> {
        match self.handles.get(handle)? {
            Handle::File(_, shared, access) if access.writes => Ok(shared),
            _ => Err(Errno::EBADF),
        }
    }

    /// Writes at `offset`; tells how many of `bytes`, from the first on, found room.
    ///
    /// # Errors
    /// What the repository says, where none did.
    pub fn write(&self, handle: u64, offset: u64, bytes: &[u8]) -> Result<usize, Errno> {
        let shared = self.writable(handle)?;
        self.touch();
        lock(&shared.file).write(handle, offset, bytes)
    }

    /// Writes at the end, wherever the kernel believes that to be: others may have published a longer version.
    ///
    /// # Errors
    /// As [`Local::write`].
    pub fn append(&self, handle: u64, bytes: &[u8]) -> Result<usize, Errno> {
        let shared = self.writable(handle)?;
        self.touch();
        let mut file = lock(&shared.file);
        let end = file.size();
        file.write(handle, end, bytes)
    }

    /// Reserves room for these bytes, and lengthens the file where that is asked for.
    ///
    /// # Errors
    /// What the repository says.
    pub fn allocate(&self, handle: u64, bytes: Range<u64>, lengthen: bool) -> Result<(), Errno> {
        let shared = self.writable(handle)?;
        self.touch();
        lock(&shared.file).reserve(bytes, lengthen)
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
            let n = file.write(handle, at, &ZEROS[..usize::try_from(n).unwrap_or(0)])?;
            at += n as u64;
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
                && (size != file.size() || file.is_lost())
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
        match self.handles.get(handle)? {
            Handle::File(_, shared, access) if access.writes => {
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
        if let Handle::File(_, shared, _) = self.handles.get(handle)? {
            lock(&shared.file).keep()?;
        }
        self.sync_published()
    }

    /// Nobody has a handle any more.
    pub fn release(&self, handle: u64) {
        let Some(Handle::File(number, shared, access)) = self.handles.remove(handle) else {
            return;
        };
        let mut file = lock(&shared.file);
        if let Err(error) = file.release(handle, access) {
            tracing::error!(
                ?error,
                "can't publish a written file; it is kept to be tried again"
            );
        }
        drop(file);
        self.let_go(number, &shared);
    }
}
