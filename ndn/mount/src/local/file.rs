//! A file that is open, or whose bytes wait to be published.
//!
//! ```text
//!               write, truncate                 close
//!   Published ──────────────────▶ Writing ──────────────────▶ Published
//!       │                          ▲    │ close, no room          ▲
//!       │ unlink                   │    ▼                         │ close, sync, a second later
//!       ▼                          └── Whole ─────────────────────┘
//!     gone: readers go on, what is written goes nowhere
//! ```
//! Where a part of what was written is lost, the draft goes, and all who have the file open are told so until the last has
//! closed it or one has cut it to nothing: who goes on would leave zeros in the place of what is lost.
//!
//! A published version never changes. The first write makes a draft: a copy of the newest version, every byte verified, or
//! nothing where the file is cut to nothing first. Bytes that come in order are hashed as they come.

use std::sync::Arc;
use std::time::SystemTime;

use fuser::Errno;
use ndn_packet::Name;
use ndn_repo::{Change, FileInfo, FileReader, FileWriter, PutOptions, Repo, RepoError, Staged};

use crate::error::{errno, io_errno};

/// Bytes that are copied at once into a draft.
const COPY_BYTES: usize = 1 << 20;
/// Versions published that may wait for a sync.
const MAX_UNSYNCED: usize = 1000;

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

/// The version that is read where nothing is being written.
struct Published {
    info: FileInfo,
    /// Opened by the first who reads: of most files that are written here nobody does before they are closed.
    reader: Option<Arc<FileReader>>,
}

impl Published {
    fn new(info: FileInfo) -> Self {
        Self { info, reader: None }
    }

    fn reader(&mut self, repo: &Repo) -> Result<Arc<FileReader>, Errno> {
        if let Some(reader) = &self.reader {
            return Ok(reader.clone());
        }
        let opened = repo.open_file(&self.info.name, Some(self.info.version));
        let reader = opened.map_err(|e| told(&e))?;
        self.reader = Some(reader.clone());
        Ok(reader)
    }
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
        file.published = Some(Published::new(info));
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
        file.draft = Some(file.new_draft()?);
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
            gone: false,
        }
    }

    fn new_draft(&self) -> Result<Draft, Errno> {
        let options = PutOptions {
            mode: self.mode,
            mtime_ns: Some(self.mtime_ns),
            ..self.keeping.put.clone()
        };
        let writer = self.repo.put(&self.name, &options).map_err(|e| told(&e))?;
        Ok(Draft::Writing(Box::new(writer)))
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

    /// Who has it open can go on reading what is published now, whatever becomes of the version.
    pub fn hold(&mut self) {
        if let Err(error) = self.reader() {
            tracing::warn!(name = %self.name, ?error, "who has it open can't go on reading");
        }
    }

    /// No path leads to it from now on.
    pub fn unlink(&mut self) {
        self.gone = true;
    }

    /// It has another name from now on, and `info` is published under it. Nothing may be being written.
    pub fn rename(&mut self, info: FileInfo) {
        self.name = info.name.clone();
        self.published = Some(Published::new(info));
    }

    /// An error where what was written last is lost.
    fn check(&self) -> Result<(), Errno> {
        self.failed.map_or(Ok(()), Err)
    }

    /// Whether what was written last is lost.
    pub fn is_lost(&self) -> bool {
        self.failed.is_some()
            || matches!(&self.draft, Some(Draft::Writing(writer)) if writer.is_lost())
    }

    /// A draft that failed stays for another time. One of which a part is lost goes.
    fn failed(&mut self, writer: Box<FileWriter>, error: &RepoError) -> Errno {
        let error = told(error);
        if writer.is_lost() {
            tracing::error!(name = %self.name, "what was written last is lost");
            self.failed = Some(error);
        } else {
            self.draft = Some(Draft::Writing(writer));
        }
        error
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

    /// Writes at `offset`, by handle `handle`; a gap before it is zeros.
    ///
    /// # Errors
    /// What the repository says.
    pub fn write(&mut self, handle: u64, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        self.check()?;
        if self.draft.is_none() && self.closed_by == Some(handle) {
            self.shared = true;
        }
        let size = self.size();
        let writer = self.writing(size, offset == size)?;
        writer.write_at(offset, bytes).map_err(|e| io_errno(&e))?;
        self.mtime_ns = now_ns();
        Ok(())
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
            (self.draft, self.failed) = (Some(self.new_draft()?), None);
        } else {
            cut?;
        }
        self.mtime_ns = now_ns();
        Ok(())
    }

    /// Reserves room up to `size`.
    ///
    /// # Errors
    /// What the repository says.
    pub fn reserve(&mut self, size: u64) -> Result<(), Errno> {
        self.check()?;
        let now = self.size();
        let writer = self.writing(now, true)?;
        writer.reserve(size).map_err(|e| io_errno(&e))
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
                self.repo
                    .apply(change)
                    .map(drop)
                    .map_err(|not| told(&not.error))
            }
            Some(_) => Ok(()),
        }
    }

    /// The draft, with the first `keep` bytes of what was there before. `appends` tells that more is to follow in order.
    fn writing(&mut self, keep: u64, appends: bool) -> Result<&mut FileWriter, Errno> {
        if matches!(self.draft, Some(Draft::Whole(_))) {
            self.publish()?;
        }
        if self.draft.is_none() {
            let mut draft = self.new_draft()?;
            if let (Some(published), Draft::Writing(writer)) = (&mut self.published, &mut draft) {
                let keep = keep.min(published.info.entry.size);
                if keep > 0 {
                    copy(&*published.reader(&self.repo)?, writer, keep, appends)?;
                }
            }
            self.draft = Some(draft);
        }
        match &mut self.draft {
            Some(Draft::Writing(writer)) => Ok(writer),
            _ => Err(Errno::EIO),
        }
    }

    /// A handle that may write is closed by one of those who have it.
    ///
    /// # Errors
    /// What the repository says; what was written is kept, and published when that is possible.
    pub fn close(&mut self, handle: u64) -> Result<(), Errno> {
        if self.gone {
            return Ok(());
        }
        self.check()?;
        if self.draft.is_none() {
            return Ok(());
        }
        if self.shared {
            return self.prepare();
        }
        self.publish()?;
        self.closed_by = Some(handle);
        Ok(())
    }

    /// What can go wrong with what was written shows now.
    fn prepare(&mut self) -> Result<(), Errno> {
        match self.draft.take() {
            Some(Draft::Writing(mut writer)) => {
                if let Err(error) = writer.prepare() {
                    return Err(self.failed(writer, &error));
                }
                self.draft = Some(Draft::Writing(writer));
            }
            draft => self.draft = draft,
        }
        Ok(())
    }

    /// Publishes what was written, if anything was.
    ///
    /// # Errors
    /// What the repository says; what was written is kept, if no part of it is lost.
    pub fn publish(&mut self) -> Result<(), Errno> {
        if self.gone {
            self.draft = None;
            return Ok(());
        }
        let staged = match self.draft.take() {
            None => return Ok(()),
            Some(Draft::Whole(staged)) => staged,
            Some(Draft::Writing(mut writer)) => {
                writer.set_attributes(self.mode, self.mtime_ns);
                match writer.prepare().and_then(|()| writer.try_finish()) {
                    Ok(staged) => staged,
                    Err(error) => return Err(self.failed(writer, &error)),
                }
            }
        };
        let change = Change {
            publish: vec![staged],
            ..Change::default()
        };
        let info = match self.repo.apply(change) {
            Ok(mut changed) => changed.published.remove(0),
            Err(mut not) => {
                self.draft = not.publish.pop().map(Draft::Whole);
                return Err(told(&not.error));
            }
        };
        let info = self.newest(info).map_err(|e| told(&e))?;
        self.rename(info);
        self.prune();
        if self.repo.unsynced() >= MAX_UNSYNCED {
            self.repo.sync().map_err(|e| told(&e))?;
        }
        Ok(())
    }

    /// What was published last is the newest, even where others have published while it was being written.
    fn newest(&self, info: FileInfo) -> Result<FileInfo, RepoError> {
        let newest = self.repo.find(&self.name, None)?;
        if newest.is_none_or(|n| n.version <= info.version) {
            return Ok(info);
        }
        let change = Change {
            publish: vec![self.repo.link(&info, &self.name, None)?],
            remove: vec![(info.name, info.version)],
            ..Change::default()
        };
        let mut changed = self.repo.apply(change).map_err(|not| not.error)?;
        Ok(changed.published.remove(0))
    }

    /// Removes versions that are too many.
    fn prune(&self) {
        let Some(keep) = self.keeping.versions else {
            return;
        };
        let pruned = self.repo.versions(&self.name).and_then(|mut versions| {
            versions.truncate(versions.len().saturating_sub(keep));
            if versions.is_empty() {
                return Ok(0);
            }
            let doomed: Vec<_> = versions.into_iter().map(|v| (v.name, v.version)).collect();
            self.repo.remove(&doomed)
        });
        if let Err(error) = pruned {
            tracing::warn!(name = %self.name, %error, "versions are not pruned");
        }
    }

    /// What was written until now outlives a crash.
    ///
    /// # Errors
    /// What the repository says.
    pub fn keep(&mut self) -> Result<(), Errno> {
        if self.gone {
            return Ok(());
        }
        self.check()?;
        match &mut self.draft {
            Some(Draft::Writing(writer)) => writer.keep().map_err(|e| told(&e)),
            _ => self.publish(),
        }
    }

    /// A handle is closed for good.
    pub fn release(&mut self, handle: u64) {
        if self.closed_by == Some(handle) {
            (self.closed_by, self.shared) = (None, false);
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

/// Copies the first `len` bytes of a version into a draft, every one verified. Where more is to follow in order they are
/// hashed on the way; else holes stay holes.
fn copy(
    reader: &FileReader,
    writer: &mut FileWriter,
    len: u64,
    appends: bool,
) -> Result<(), Errno> {
    if !appends {
        writer.set_size(len).map_err(|e| io_errno(&e))?;
    }
    let mut block = vec![0; COPY_BYTES.min(usize::try_from(len).unwrap_or(COPY_BYTES))];
    let mut at = 0;
    while at < len {
        let wanted = block
            .len()
            .min(usize::try_from(len - at).unwrap_or(usize::MAX));
        let n = reader
            .read_at(at, &mut block[..wanted])
            .map_err(|e| told(&e))?;
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

/// What the caller is told; the log tells more of what an operator must look after.
pub fn told(error: &RepoError) -> Errno {
    match error {
        RepoError::NotFound(_) | RepoError::BadName { .. } | RepoError::NotEmpty(_) => {}
        _ => tracing::error!(%error, "a call fails"),
    }
    errno(error)
}
