//! The repository as the server sees it: files that verify, and what is remembered of them.

use std::sync::Arc;

use ndn_packet::Name;
use ndn_repo::{FileReader, Repo, RepoError};

use crate::chain::{Chain, Distrust};
use crate::downloads::Downloads;

/// Who answers for files.
pub struct Shelf {
    /// The repository.
    pub repo: Repo,
    /// Whom it trusts.
    pub chain: Chain,
    /// Downloads of late.
    pub downloads: Downloads,
}

impl Shelf {
    /// Opens a version that verifies up to its manifest.
    ///
    /// # Errors
    /// It does not, is not there or can't be read.
    pub fn open(&self, name: &Name, version: Option<u64>) -> Result<Arc<FileReader>, Distrust> {
        let checked = self
            .repo
            .open_file(name, version)
            .map_err(Distrust::from)
            .and_then(|reader| self.chain.check(&reader).map(|_| reader));
        if let Err(error) = &checked {
            self.note(name, error);
        }
        checked
    }

    /// Counts and tells what is not served.
    pub fn note(&self, name: &Name, error: &Distrust) {
        match error {
            Distrust::Repo(RepoError::NotFound(_)) => return,
            Distrust::Repo(RepoError::Damaged { .. }) => self.repo.count_damaged(),
            _ => {}
        }
        tracing::error!(%name, %error, "file not served by HTTP");
    }
}
