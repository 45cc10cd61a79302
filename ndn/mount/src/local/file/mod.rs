//! A file that is open, or whose bytes wait to be published.
//!
//! ```text
//!               write, truncate                 close
//!   Published ──────────────────▶ Writing ──────────────────▶ Published
//!       │                          ▲    │ close, no room          ▲
//!       │ unlink                   │    ▼                         │ close, sync, a second later
//!       ▼                          └── Whole ─────────────────────┘
//!     gone: who has it open goes on, what is written goes with the last of them
//! ```
//! Where a part of what was written is lost, the draft goes, and all who have the file open are told so until the last has
//! closed it or one has cut it to nothing: who goes on would leave zeros in the place of what is lost.
//!
//! A published version never changes. The first write makes a draft: a copy of the newest version, every byte verified, or
//! nothing where the file is cut to nothing first. Bytes that come in order are hashed as they come.
//!
//! A version can be removed at any time, by others too. Whoever may read a file has it open from the moment on that it is
//! there to be read; for those who only write it is opened before it is removed here.
//!
//! Here is what an open file is and tells of itself; [`read`], [`write`] and [`publish`] are what is done with it.

mod publish;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

use fuser::Errno;
use ndn_packet::Name;
use ndn_repo::{Change, FileInfo, FileWriter, PutOptions, Repo, RepoError, Staged};

use crate::error::errno;
use read::Published;

/// How files are kept.
#[derive(Debug, Clone)]
pub struct Keeping {
    /// As in a repository; name, version, size and times are the file system's.
    pub put: PutOptions,
    /// Versions kept of each file; all, where it is not given.
    pub versions: Option<usize>,
}

/// What is being written.
enum Draft {
    Writing(Box<FileWriter>),
    /// It could not be published yet.
    Whole(Staged),
}

/// A file that is open.
pub struct OpenFile {
    repo: Repo,
    keeping: Arc<Keeping>,
    name: Name,
    published: Option<Published>,
    draft: Option<Draft>,
    /// Why a draft could not be kept: there is none now.
    failed: Option<Errno>,
    mode: u32,
    mtime_ns: u64,
    /// The handle whose closing has published what it wrote.
    closed_by: Option<u64>,
    /// That handle has gone on writing: it belongs to more than one process, and the last of them publishes.
    shared: bool,
    /// Handles that may read.
    readers: usize,
    /// Handles that may write.
    writers: usize,
    /// Handles that have written what is not published yet.
    wrote: BTreeSet<u64>,
    gone: bool,
}

/// Now, in nanoseconds since the Unix epoch.
pub fn now_ns() -> u64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl OpenFile {
    /// A version that is there.
    pub fn open(repo: &Repo, keeping: &Arc<Keeping>, info: FileInfo) -> Self {
        let (mode, mtime_ns) = (info.entry.mode, info.entry.mtime_ns);
        let mut file = Self::empty(repo, keeping, info.name.clone(), mode);
        file.mtime_ns = mtime_ns;
        file.published = Some(Published::new(info, None));
        file
    }

    /// A new file; it is there for others when it is published.
    ///
    /// # Errors
    /// What the repository says.
    pub fn create(
        repo: &Repo,
        keeping: &Arc<Keeping>,
        name: Name,
        mode: u32,
    ) -> Result<Self, Errno> {
        let mut file = Self::empty(repo, keeping, name, mode);
        file.draft = Some(Draft::Writing(file.new_writer()?));
        Ok(file)
    }

    fn empty(repo: &Repo, keeping: &Arc<Keeping>, name: Name, mode: u32) -> Self {
        Self {
            repo: repo.clone(),
            keeping: keeping.clone(),
            name,
            published: None,
            draft: None,
            failed: None,
            mode,
            mtime_ns: now_ns(),
            closed_by: None,
            shared: false,
            readers: 0,
            writers: 0,
            wrote: BTreeSet::new(),
            gone: false,
        }
    }

    fn new_writer(&self) -> Result<Box<FileWriter>, Errno> {
        let options = PutOptions {
            mode: self.mode,
            mtime_ns: Some(self.mtime_ns),
            ..self.keeping.put.clone()
        };
        let writer = self.repo.put(&self.name, &options).map_err(|e| told(&e))?;
        Ok(Box::new(writer))
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        match (&self.draft, &self.published) {
            (Some(Draft::Writing(writer)), _) => writer.position(),
            (Some(Draft::Whole(staged)), _) => staged.size(),
            (None, Some(published)) => published.info.entry.size,
            (None, None) => 0,
        }
    }

    /// `st_mode`, and the time of the last change.
    pub fn attributes(&self) -> (u32, u64) {
        (self.mode, self.mtime_ns)
    }

    /// The version that is read; `None` while it is being written.
    pub fn version(&self) -> Option<&FileInfo> {
        match (&self.draft, &self.published) {
            (None, Some(published)) => Some(&published.info),
            _ => None,
        }
    }

    /// Whether any version of it is there for others.
    pub fn is_published(&self) -> bool {
        self.published.is_some()
    }

    /// Whether something waits to be published.
    pub fn is_dirty(&self) -> bool {
        self.draft.is_some() && !self.gone
    }

    /// Whether no path leads to it any more.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// No path leads to it from now on.
    pub fn unlink(&mut self) {
        self.gone = true;
    }

    /// It has another name from now on. `info` is what its version is there; nothing where that did not go along. Nothing may
    /// be being written.
    pub fn rename(&mut self, name: Name, info: Option<FileInfo>) {
        self.name = name;
        if let (Some(published), Some(info)) = (&mut self.published, info) {
            // The same bytes: who reads them goes on.
            published.info = info;
        }
    }

    /// Sets what listings tell of it.
    ///
    /// # Errors
    /// What the repository says.
    pub fn set_attributes(
        &mut self,
        mode: Option<u32>,
        mtime_ns: Option<u64>,
    ) -> Result<(), Errno> {
        if let Some(mode) = mode {
            self.mode = self.mode & libc::S_IFMT | mode & !libc::S_IFMT;
        }
        self.mtime_ns = mtime_ns.unwrap_or(self.mtime_ns);
        let (mode, mtime_ns) = (self.mode, self.mtime_ns);
        match &mut self.draft {
            None if self.gone => Ok(()),
            None => {
                let Some(Published { info, .. }) = &mut self.published else {
                    return Ok(());
                };
                (info.entry.mode, info.entry.mtime_ns) = (mode, mtime_ns);
                let change = Change {
                    attributes: vec![ndn_repo::NewAttributes {
                        name: info.name.clone(),
                        version: info.version,
                        mode,
                        mtime_ns,
                    }],
                    ..Change::default()
                };
                match self.repo.apply(change) {
                    // The version is removed; who has it open goes on.
                    Err(not) if matches!(not.error, RepoError::NotFound(_)) => Ok(()),
                    other => other.map(drop).map_err(|not| told(&not.error)),
                }
            }
            Some(_) => Ok(()),
        }
    }
}

impl Drop for OpenFile {
    /// What was synced and could not be published is published by the next start.
    fn drop(&mut self) {
        match self.draft.take() {
            _ if self.gone => {}
            Some(Draft::Writing(writer)) => writer.leave(),
            Some(Draft::Whole(staged)) => staged.leave(),
            None => {}
        }
    }
}

/// What the caller is told; the log tells more of what an operator must look after.
pub fn told(error: &RepoError) -> Errno {
    match error {
        RepoError::NotFound(_) | RepoError::BadName { .. } | RepoError::NotEmpty(_) => {}
        _ => tracing::error!(%error, "file system call failed"),
    }
    errno(error)
}
