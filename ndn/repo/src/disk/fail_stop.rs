//! A disk that makes nothing durable any more once it has failed to: after a failed sync the system takes what was
//! written for written, and the next sync of the same file says that all is well (fsync(2), ERRORS).

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{Disk, DiskFile};

/// What went wrong, for those who sync after it.
type Failed = Arc<OnceLock<String>>;

/// A disk that stops syncing at the first failure.
#[derive(Debug)]
pub(crate) struct FailStop {
    disk: Arc<dyn Disk>,
    failed: Failed,
    /// Whether a sync of the whole file system has failed.
    all_failed: Mutex<bool>,
}

impl FailStop {
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        Self {
            disk,
            failed: Failed::default(),
            all_failed: Mutex::default(),
        }
    }

    fn file(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        let failed = self.failed.clone();
        Arc::new(FailStopFile { file, failed })
    }
}

fn check(failed: &Failed) -> io::Result<()> {
    failed.get().map_or(Ok(()), |cause| {
        // What the system holds of the files is not what the disk has: starting the repository again is not enough.
        Err(io::Error::other(format!(
            "what was written before could not be made durable ({cause}); see to the disk, and start this host again: \
             what was said to be durable is there"
        )))
    })
}

fn sync(failed: &Failed, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    check(failed)?;
    sync().inspect_err(|error| {
        if is_loss(error) {
            tracing::error!(%error, "the disk has lost what was written; nothing is made durable any more");
            let _ = failed.set(error.to_string());
        }
    })?;
    // The system may have told another of what was this one's.
    check(failed)
}

/// Whether bytes may be lost, and not just a file not have been opened to be synced.
fn is_loss(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let harmless = [
        Errno::NOENT,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::ACCESS,
        Errno::PERM,
        Errno::INTR,
    ];
    let is = |errno: &Errno| error.raw_os_error() == Some(errno.raw_os_error());
    error.kind() != io::ErrorKind::NotFound && !harmless.iter().any(is)
}

impl Disk for FailStop {
    fn make_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.make_dir(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create(path).map(|file| self.file(file))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(path).map(|file| self.file(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        sync(&self.failed, || self.disk.sync_dir(path))
    }

    /// One at a time, and none after one that failed: the system tells of an error once, and of those of all files there,
    /// whosever they are. Who needs it syncs his own one by one then.
    fn sync_all(&self) -> io::Result<()> {
        let mut all_failed = self
            .all_failed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        check(&self.failed)?;
        if *all_failed {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let synced = self.disk.sync_all();
        if let Err(error) = &synced {
            tracing::warn!(%error, "the file system can't sync all at once; files are synced one by one from now on");
            *all_failed = true;
        }
        synced
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes()
    }
}

#[derive(Debug)]
struct FailStopFile {
    file: Arc<dyn DiskFile>,
    failed: Failed,
}

impl DiskFile for FailStopFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, bytes)
    }

    fn write_some_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_some_at(offset, bytes)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.file.set_size(size)
    }

    fn reserve(&self, bytes: Range<u64>) -> io::Result<()> {
        self.file.reserve(bytes)
    }

    fn begin_stream(&self, bytes: Range<u64>) -> io::Result<bool> {
        self.file.begin_stream(bytes)
    }

    fn end_stream(&self) {
        self.file.end_stream();
    }

    fn begin_writeback(&self, offset: u64, len: u64) {
        self.file.begin_writeback(offset, len);
    }

    fn sync(&self) -> io::Result<()> {
        sync(&self.failed, || self.file.sync())
    }
}
