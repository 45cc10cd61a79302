//! The disk of the operating system: one folder, locked against a second repository.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustix::fs::{FallocateFlags, FlockOperation};

use super::{ALIGNMENT, Disk, DiskFile};

/// The file whose lock says that the folder is in use.
const LOCK: &str = "repo.lock";

/// A folder of the file system.
#[derive(Debug)]
pub struct RealDisk {
    root: PathBuf,
    folder: File,
    /// Locked as long as it is open.
    _lock: File,
}

impl RealDisk {
    /// Opens the folder, making it (for its owner alone) where there is none, and locks it.
    ///
    /// # Errors
    /// `WouldBlock` when another repository has it, else what the system says.
    pub fn open(root: &Path) -> io::Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(root)?;
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(root.join(LOCK))?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self {
            root: root.to_owned(),
            folder: File::open(root)?,
            _lock: lock,
        })
    }

    fn file(&self, options: &mut OpenOptions, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = options
            .read(true)
            .write(true)
            .mode(0o600)
            .open(self.root.join(path))?;
        Ok(Arc::new(RealFile {
            file,
            direct: RwLock::default(),
        }))
    }
}

impl Disk for RealDisk {
    fn make_dir(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(self.root.join(path))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.file(OpenOptions::new().create_new(true), path)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.file(&mut OpenOptions::new(), path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(self.root.join(from), self.root.join(to))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(self.root.join(from), self.root.join(to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(self.root.join(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(self.root.join(path))?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(self.root.join(path))?.sync_all()
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.folder)?)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let found = rustix::fs::fstatvfs(&self.folder)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

#[derive(Debug)]
struct RealFile {
    file: File,
    /// The same file once more, written without the system's cache: a copy there costs more time of the processor than
    /// hashing does. Nothing where it is not to be written so.
    direct: RwLock<Option<File>>,
}

impl RealFile {
    /// Reserves room for these bytes; a signal does not end that.
    fn allocate(&self, flags: FallocateFlags, bytes: Range<u64>) -> rustix::io::Result<()> {
        let len = bytes.end.saturating_sub(bytes.start);
        if len == 0 {
            return Ok(()); // The system takes that for an error.
        }
        rustix::io::retry_on_intr(|| rustix::fs::fallocate(&self.file, flags, bytes.start, len))
    }

    /// Writes the beginning of `bytes` as far as that can go to the device by itself; tells how much that is.
    fn write_direct(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let direct = self.direct.read().unwrap_or_else(PoisonError::into_inner);
        let Some(direct) = &*direct else {
            return Ok(0);
        };
        let whole = bytes.len() / ALIGNMENT * ALIGNMENT;
        let is_aligned = offset.is_multiple_of(ALIGNMENT as u64)
            && bytes.as_ptr().addr().is_multiple_of(ALIGNMENT);
        if !is_aligned || whole == 0 {
            return Ok(0);
        }
        match direct.write_all_at(&bytes[..whole], offset) {
            Ok(()) => Ok(whole),
            // A device may ask for more than we know of.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(0),
            Err(error) => Err(error),
        }
    }
}

impl DiskFile for RealFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let written = self.write_direct(offset, bytes)?;
        self.file
            .write_all_at(&bytes[written..], offset + written as u64)
    }

    fn write_some_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        while written < bytes.len() {
            match self
                .file
                .write_at(&bytes[written..], offset + written as u64)
            {
                Ok(0) => break,
                Ok(n) => written += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if written == 0 => return Err(error),
                // Whoever goes on is told.
                Err(_) => break,
            }
        }
        match written {
            0 if !bytes.is_empty() => Err(io::ErrorKind::WriteZero.into()),
            n => Ok(n),
        }
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.file.set_len(size)
    }

    fn reserve(&self, bytes: Range<u64>) -> io::Result<()> {
        match self.allocate(FallocateFlags::KEEP_SIZE, bytes) {
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            other => Ok(other?),
        }
    }

    fn begin_stream(&self, bytes: Range<u64>) -> io::Result<bool> {
        let end = bytes.end;
        let reserved = match self.allocate(FallocateFlags::empty(), bytes) {
            // A file that grows is written by one at a time, whoever else waits.
            Err(rustix::io::Errno::OPNOTSUPP) => {
                self.file.set_len(end)?;
                false
            }
            other => other.map(|()| true)?,
        };
        let mut direct = self.direct.write().unwrap_or_else(PoisonError::into_inner);
        if direct.is_some() {
            return Ok(reserved);
        }
        let same = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        // Not every file system can.
        *direct = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_DIRECT)
            .open(same)
            .ok();
        Ok(reserved)
    }

    fn end_stream(&self) {
        *self.direct.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn begin_writeback(&self, offset: u64, len: u64) {
        let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else {
            return;
        };
        // SAFETY: the descriptor is open as long as `self`; the call reads no memory of ours. Its result is of no
        // matter: it is a hint, and `sync` reports what went wrong.
        unsafe {
            libc::sync_file_range(
                self.file.as_raw_fd(),
                offset,
                len,
                libc::SYNC_FILE_RANGE_WRITE,
            );
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
