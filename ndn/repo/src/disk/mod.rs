//! What the repository asks of a disk, and no more: so few verbs that a test can stand in for the disk and lose, at any
//! moment, whatever was written and not yet synced.

mod fail_stop;
#[cfg(fuzzing)]
mod one_file;
mod real;

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub(crate) use fail_stop::FailStop;
#[cfg(fuzzing)]
pub(crate) use one_file::OneFile;
pub use real::RealDisk;

/// What devices ask of memory and places that they are written from and to by themselves, in bytes.
pub const ALIGNMENT: usize = 4096;

/// A directory that the repository has for itself. Paths are relative to it.
///
/// Nothing is durable before it is synced: a file's bytes by [`DiskFile::sync`], its name by [`Disk::sync_dir`] of the
/// folder, either by [`Disk::sync_all`].
pub trait Disk: Send + Sync + Debug {
    /// Makes a folder and those above it; one that is there is fine.
    ///
    /// # Errors
    /// What the system says.
    fn make_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes a new file to read and write.
    ///
    /// # Errors
    /// `AlreadyExists` when there is one, else what the system says.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file to read and write.
    ///
    /// # Errors
    /// `NotFound` when there is none, else what the system says.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file another name, in the place of whatever had it.
    ///
    /// # Errors
    /// What the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name, so that each can be removed without the other.
    ///
    /// # Errors
    /// What the system says.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// `NotFound` when there is none, else what the system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// The names in a folder, in any order.
    ///
    /// # Errors
    /// What the system says.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Makes a folder's names durable.
    ///
    /// # Errors
    /// What the system says.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes everything durable that was written before the call: cheaper than many files one by one.
    ///
    /// # Errors
    /// What the system says.
    fn sync_all(&self) -> io::Result<()>;

    /// Bytes that can still be written.
    ///
    /// # Errors
    /// What the system says.
    fn free_bytes(&self) -> io::Result<u64>;
}

/// A file of a [`Disk`], read and written at positions.
pub trait DiskFile: Send + Sync + Debug {
    /// The size in bytes.
    ///
    /// # Errors
    /// What the system says.
    fn size(&self) -> io::Result<u64>;

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file ends before, else what the system says.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`; the file grows as needed.
    ///
    /// # Errors
    /// What the system says.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Writes the beginning of `bytes` at `offset`, as far as there is room, and tells how many bytes those are.
    ///
    /// # Errors
    /// What the system says, where it takes none of them.
    fn write_some_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.write_at(offset, bytes).map(|()| bytes.len())
    }

    /// Cuts the file, or lengthens it with zeros.
    ///
    /// # Errors
    /// What the system says.
    fn set_size(&self, size: u64) -> io::Result<()>;

    /// Reserves room for these bytes without changing the file's size, so that a full disk shows now and not later. Room beyond
    /// the file's size goes when the file is cut.
    ///
    /// # Errors
    /// `StorageFull`, or what else the system says; a part of it may be reserved then. A file system that can't reserve is no
    /// error.
    fn reserve(&self, bytes: Range<u64>) -> io::Result<()>;

    /// Reserves room for these bytes and lets the file end where they do, for content that is written once, in large blocks:
    /// those that lie at multiples of [`ALIGNMENT`] in memory and in the file may go to the device without the system's cache.
    /// May be called again for what follows. Tells whether the room is reserved: not every file system can, and a full disk
    /// shows later there.
    ///
    /// # Errors
    /// `StorageFull`, or what else the system says; the file may be longer then.
    fn begin_stream(&self, bytes: Range<u64>) -> io::Result<bool>;

    /// From here on all bytes go by the system's cache again, until [`DiskFile::begin_stream`]. The size stays.
    fn end_stream(&self);

    /// Has the system begin to write these bytes to the device. A hint: nothing is durable by it.
    fn begin_writeback(&self, offset: u64, len: u64);

    /// Makes the file's bytes and size durable.
    ///
    /// # Errors
    /// What the system says.
    fn sync(&self) -> io::Result<()>;
}
