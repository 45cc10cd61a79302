//! A file in memory, for the fuzz targets: what a disk gives back.

use std::io;
use std::ops::Range;

use super::DiskFile;

/// A file in memory, to be read.
#[derive(Debug)]
pub(crate) struct OneFile(pub Vec<u8>);

impl DiskFile for OneFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let part = usize::try_from(offset)
            .ok()
            .and_then(|from| self.0.get(from..from.checked_add(buffer.len())?))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(part);
        Ok(())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn set_size(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn reserve(&self, _: Range<u64>) -> io::Result<()> {
        Ok(())
    }

    fn begin_stream(&self, _: Range<u64>) -> io::Result<bool> {
        Ok(false)
    }

    fn end_stream(&self) {}

    fn begin_writeback(&self, _: u64, _: u64) {}

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
