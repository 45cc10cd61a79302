//! Reading: the version that was published, or the draft that is being written.

use std::sync::Arc;

use fuser::Errno;
use ndn_repo::{FileInfo, FileReader, Repo};

use super::{Draft, OpenFile, told};
use crate::error::io_errno;

/// The version that is read where nothing is being written.
pub(super) struct Published {
    pub(super) info: FileInfo,
    /// Opened by the first who reads: of most files that are written here nobody does before they are closed.
    reader: Option<Arc<FileReader>>,
}

impl Published {
    pub(super) fn new(info: FileInfo) -> Self {
        Self { info, reader: None }
    }

    pub(super) fn reader(&mut self, repo: &Repo) -> Result<Arc<FileReader>, Errno> {
        if let Some(reader) = &self.reader {
            return Ok(reader.clone());
        }
        let opened = repo.open_file(&self.info.name, Some(self.info.version));
        let reader = opened.map_err(|e| told(&e))?;
        self.reader = Some(reader.clone());
        Ok(reader)
    }
}

impl OpenFile {
    /// Who has it open can go on reading what is published now, whatever becomes of the version.
    pub fn hold(&mut self) {
        if let Err(error) = self.reader() {
            tracing::warn!(name = %self.name, ?error, "who has it open can't go on reading");
        }
    }

    /// Who opens it anew sees what others have published meanwhile.
    ///
    /// # Errors
    /// What the repository says.
    pub fn refresh(&mut self) -> Result<(), Errno> {
        if self.gone || self.draft.is_some() {
            return Ok(());
        }
        let newest = self.repo.find(&self.name, None).map_err(|e| told(&e))?;
        let Some(newest) = newest else {
            return Ok(());
        };
        (self.mode, self.mtime_ns) = (newest.entry.mode, newest.entry.mtime_ns);
        if self.version().is_none_or(|v| v.version != newest.version) {
            self.rename(newest);
        }
        Ok(())
    }

    /// What reads it where nothing is being written: without a lock. Once it is open it stays so, whatever becomes of the
    /// version.
    ///
    /// # Errors
    /// What the repository says.
    pub fn reader(&mut self) -> Result<Option<Arc<FileReader>>, Errno> {
        self.check()?;
        match (&self.draft, &mut self.published) {
            (None, Some(published)) => published.reader(&self.repo).map(Some),
            _ => Ok(None),
        }
    }

    /// Fills `buffer` from `offset` on, as far as the file goes.
    ///
    /// # Errors
    /// What the repository says.
    pub fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        match &mut self.draft {
            Some(Draft::Writing(writer)) => {
                writer.read_at(offset, buffer).map_err(|e| io_errno(&e))
            }
            Some(Draft::Whole(staged)) => staged.read_at(offset, buffer).map_err(|e| io_errno(&e)),
            None => match self.reader()? {
                Some(reader) => reader.read_at(offset, buffer).map_err(|e| told(&e)),
                None => Ok(0),
            },
        }
    }
}
