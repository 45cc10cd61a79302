//! Reading: the version that was published, or the draft that is being written.

use std::sync::Arc;

use fuser::Errno;
use ndn_repo::{FileInfo, FileReader, Repo, RepoError};

use super::{Draft, OpenFile, told};
use crate::error::io_errno;
use crate::local::Access;

/// The version that is read where nothing is being written.
pub(super) struct Published {
    pub(super) info: FileInfo,
    /// What reads it; another version's where that has the same bytes. There from the start on where somebody may read, else
    /// opened when it is needed: of most files that are written here nobody reads before they are closed.
    reader: Option<Arc<FileReader>>,
}

impl Published {
    pub(super) fn new(info: FileInfo, reader: Option<Arc<FileReader>>) -> Self {
        Self { info, reader }
    }

    fn reader(&mut self, repo: &Repo) -> Result<Arc<FileReader>, RepoError> {
        if let Some(reader) = &self.reader {
            return Ok(reader.clone());
        }
        let reader = repo.open_file(&self.info.name, Some(self.info.version))?;
        self.reader = Some(reader.clone());
        Ok(reader)
    }
}

impl OpenFile {
    /// A handle is there from now on. Called before anything is published.
    pub fn add_user(&mut self, access: Access) {
        self.readers += usize::from(access.reads);
        self.writers += usize::from(access.writes);
    }

    /// Who has it open can go on with what is published now, whatever becomes of the version.
    pub fn hold(&mut self) {
        if let Some(published) = &mut self.published
            && let Err(error) = published.reader(&self.repo)
        {
            tracing::warn!(name = %self.name, %error, "open file can't be read any more");
        }
    }

    /// It can be read from now on, whatever becomes of the version. Where that went in this moment and another is there, that
    /// is what is open.
    ///
    /// # Errors
    /// What the repository says.
    pub fn make_ready(&mut self) -> Result<(), Errno> {
        loop {
            let before = self.version().map(|info| info.version);
            let ready = self.reader().map(drop);
            if !matches!(&ready, Err(error) if error.code() == libc::ENOENT) {
                return ready;
            }
            self.refresh()?;
            if self.version().map(|info| info.version) == before {
                return ready;
            }
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
        if self.version().is_some_and(|v| v.version == newest.version) {
            return Ok(());
        }
        let mut published = Published::new(newest, None);
        if self.readers > 0
            && let Err(RepoError::NotFound(_)) = published.reader(&self.repo)
        {
            // It is gone already: those who have the one before must not lose that.
            return Ok(());
        }
        self.published = Some(published);
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
            (None, Some(published)) => published.reader(&self.repo).map(Some).map_err(|e| told(&e)),
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
