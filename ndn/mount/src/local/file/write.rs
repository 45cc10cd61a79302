//! Writing: the draft, what it begins with, and what becomes of it when a part is lost.

use std::ops::Range;

use fuser::Errno;
use ndn_repo::{FileWriter, RepoError};

use super::{Draft, OpenFile, now_ns, told};
use crate::error::io_errno;

/// Bytes that are copied at once into a draft.
const COPY_BYTES: usize = 1 << 20;

impl OpenFile {
    /// Writes at `offset`, by handle `handle`; a gap before it is zeros. Tells how many of `bytes`, from the first on, found
    /// room.
    ///
    /// # Errors
    /// What the repository says, where none did.
    pub fn write(&mut self, handle: u64, offset: u64, bytes: &[u8]) -> Result<usize, Errno> {
        self.check()?;
        if self.draft.is_none() && self.closed_by == Some(handle) {
            self.shared = true;
        }
        let size = self.size();
        let writer = self.writing(size, offset == size)?;
        let written = writer.write_some_at(offset, bytes);
        let written = written.map_err(|e| io_errno(&e))?;
        self.wrote.insert(handle);
        self.mtime_ns = now_ns();
        Ok(written)
    }

    /// Cuts the file, or lengthens it with zeros.
    ///
    /// # Errors
    /// What the repository says.
    pub fn set_size(&mut self, size: u64) -> Result<(), Errno> {
        if size == self.size() && self.draft.is_some() {
            return Ok(());
        }
        let cut = self.check().and_then(|()| {
            let writer = self.writing(size, false)?;
            writer.set_size(size).map_err(|e| io_errno(&e))
        });
        if size == 0 && self.is_lost() {
            // Nothing of it is wanted any more.
            (self.draft, self.failed) = (Some(Draft::Writing(self.new_writer()?)), None);
        } else {
            cut?;
        }
        self.mtime_ns = now_ns();
        Ok(())
    }

    /// Reserves room for these bytes, and lengthens the file up to their end where that is asked for.
    ///
    /// # Errors
    /// What the repository says.
    pub fn reserve(&mut self, bytes: Range<u64>, lengthen: bool) -> Result<(), Errno> {
        self.check()?;
        let (now, end) = (self.size(), bytes.end);
        let lengthen = lengthen && end > now;
        let writer = self.writing(now, !lengthen)?;
        writer.reserve(bytes).map_err(|e| io_errno(&e))?;
        match lengthen {
            true => self.set_size(end),
            false => Ok(()),
        }
    }

    /// The draft, with the first `keep` bytes of what was there before. `appends` tells that more is to follow in order.
    fn writing(&mut self, keep: u64, appends: bool) -> Result<&mut FileWriter, Errno> {
        if matches!(self.draft, Some(Draft::Whole(_))) {
            self.publish()?;
        }
        if !matches!(self.draft, Some(Draft::Writing(_))) {
            let keep = keep.min(self.size());
            let mut writer = self.new_writer()?;
            if keep > 0 {
                self.copy(&mut writer, keep, appends)?;
            }
            self.draft = Some(Draft::Writing(writer));
        }
        match &mut self.draft {
            Some(Draft::Writing(writer)) => Ok(writer),
            _ => Err(Errno::EIO),
        }
    }

    /// An error where what was written last is lost.
    pub(super) fn check(&self) -> Result<(), Errno> {
        self.failed.map_or(Ok(()), Err)
    }

    /// Whether what was written last is lost.
    pub fn is_lost(&self) -> bool {
        self.failed.is_some()
            || matches!(&self.draft, Some(Draft::Writing(writer)) if writer.is_lost())
    }

    /// A draft that failed stays for another time. One of which a part is lost goes.
    pub(super) fn failed(&mut self, writer: Box<FileWriter>, error: &RepoError) -> Errno {
        let error = told(error);
        if writer.is_lost() {
            tracing::error!(name = %self.name, "the bytes written last are lost");
            self.failed = Some(error);
        } else {
            self.draft = Some(Draft::Writing(writer));
        }
        error
    }

    /// Copies the first `len` bytes that are there into a draft, every one of a version verified. Where more is to follow in
    /// order they are hashed on the way; else holes stay holes.
    fn copy(&mut self, writer: &mut FileWriter, len: u64, appends: bool) -> Result<(), Errno> {
        if !appends {
            writer.set_size(len).map_err(|e| io_errno(&e))?;
        }
        let mut block = vec![0; COPY_BYTES.min(usize::try_from(len).unwrap_or(COPY_BYTES))];
        let mut at = 0;
        while at < len {
            let wanted = block
                .len()
                .min(usize::try_from(len - at).unwrap_or(usize::MAX));
            let n = self.read(at, &mut block[..wanted])?;
            if n == 0 {
                return Err(Errno::EIO);
            }
            if appends || block[..n].iter().any(|b| *b != 0) {
                writer.write_at(at, &block[..n]).map_err(|e| io_errno(&e))?;
            }
            at += n as u64;
        }
        Ok(())
    }
}
