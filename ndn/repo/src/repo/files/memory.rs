//! Files that are held in memory: those of a version that is small, until it is published; and those that a reader has of one.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;

use crate::disk::DiskFile;

/// A file in memory, until it becomes one of the disk.
#[derive(Debug, Default)]
pub(super) struct MemoryFile {
    bytes: Mutex<Vec<u8>>,
    /// Where it is, once it is on the disk.
    disk: OnceLock<Arc<dyn DiskFile>>,
}

impl MemoryFile {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what there is to a file.
    pub fn copy_to(&self, file: &dyn DiskFile) -> io::Result<()> {
        file.write_at(0, &self.bytes())
    }

    /// From here on it is this file, to which it was copied.
    pub fn become_file(&self, file: Arc<dyn DiskFile>) {
        if self.disk.set(file).is_ok() {
            *self.bytes() = Vec::new();
        }
    }

    /// What there is; nothing is left.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.bytes())
    }

    /// The bytes as far as they go, `None` once it is on the disk.
    fn in_memory<T>(&self, then: impl FnOnce(&mut Vec<u8>) -> T) -> Result<T, &dyn DiskFile> {
        match self.disk.get() {
            Some(disk) => Err(&**disk),
            None => Ok(then(&mut self.bytes())),
        }
    }
}

impl DiskFile for MemoryFile {
    fn size(&self) -> io::Result<u64> {
        match self.in_memory(|bytes| bytes.len() as u64) {
            Ok(size) => Ok(size),
            Err(disk) => disk.size(),
        }
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match self.in_memory(|bytes| read(bytes, offset, buffer)) {
            Ok(read) => read,
            Err(disk) => disk.read_at(offset, buffer),
        }
    }

    fn write_at(&self, offset: u64, new: &[u8]) -> io::Result<()> {
        let written = self.in_memory(|bytes| {
            let at = usize::try_from(offset).unwrap_or(usize::MAX);
            if bytes.len() == at {
                bytes.extend_from_slice(new);
                return;
            }
            let end = at.saturating_add(new.len());
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[at..end].copy_from_slice(new);
        });
        written.or_else(|disk| disk.write_at(offset, new))
    }

    fn write_some_at(&self, offset: u64, new: &[u8]) -> io::Result<usize> {
        match self.disk.get() {
            Some(disk) => disk.write_some_at(offset, new),
            None => self.write_at(offset, new).map(|()| new.len()),
        }
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        let cut =
            |bytes: &mut Vec<u8>| bytes.resize(usize::try_from(size).unwrap_or(usize::MAX), 0);
        self.in_memory(cut).or_else(|disk| disk.set_size(size))
    }

    fn reserve(&self, bytes: Range<u64>) -> io::Result<()> {
        self.in_memory(|_| ()).or_else(|disk| disk.reserve(bytes))
    }

    fn begin_stream(&self, bytes: Range<u64>) -> io::Result<bool> {
        match self.in_memory(|_| false) {
            Ok(reserved) => Ok(reserved),
            Err(disk) => disk.begin_stream(bytes),
        }
    }

    fn end_stream(&self) {
        if let Some(disk) = self.disk.get() {
            disk.end_stream();
        }
    }

    fn begin_writeback(&self, offset: u64, len: u64) {
        if let Some(disk) = self.disk.get() {
            disk.begin_writeback(offset, len);
        }
    }

    fn sync(&self) -> io::Result<()> {
        match self.disk.get() {
            Some(disk) => disk.sync(),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

fn read(bytes: &[u8], offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    let at = usize::try_from(offset).unwrap_or(usize::MAX);
    let found = bytes.get(at..).and_then(|rest| rest.get(..buffer.len()));
    buffer.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
    Ok(())
}

/// A part of a bundle as it was read, as a file that is only read.
#[derive(Debug)]
pub(crate) struct ReadFile(pub Bytes);

impl DiskFile for ReadFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        read(&self.0, offset, buffer)
    }

    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn set_size(&self, _size: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn reserve(&self, _bytes: Range<u64>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn begin_stream(&self, _bytes: Range<u64>) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn end_stream(&self) {}

    fn begin_writeback(&self, _offset: u64, _len: u64) {}

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
