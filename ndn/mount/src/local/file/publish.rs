//! Publishing: what a close, a sync and the last release make of a draft.

use std::sync::Arc;

use fuser::Errno;
use ndn_repo::{Change, FileInfo, FileReader, RepoError, Staged};

use super::read::Published;
use super::{Draft, OpenFile, told};
use crate::local::Access;

/// Versions published that may wait for a sync. One each second takes them, without anybody waiting for it; who closes
/// more than these until then does.
const MAX_UNSYNCED: usize = 16_384;

impl OpenFile {
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

    /// Publishes what was written, if anything was. Where no path leads to it, it stays for those who have it open.
    ///
    /// # Errors
    /// What the repository says; what was written is kept, if no part of it is lost.
    pub fn publish(&mut self) -> Result<(), Errno> {
        if self.gone {
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
        let reader = self.reader_of(&staged);
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
        self.published = Some(Published::new(info.clone(), reader.clone()));
        self.wrote.clear();
        if let Some(newest) = self.newest(&info).map_err(|e| told(&e))? {
            // The same bytes.
            self.published = Some(Published::new(newest, reader));
        }
        self.prune();
        if self.repo.unsynced() >= MAX_UNSYNCED {
            self.repo.sync().map_err(|e| told(&e))?;
        }
        Ok(())
    }

    /// What will read this version, if there are some who may: from before it can be removed.
    fn reader_of(&self, staged: &Staged) -> Option<Arc<FileReader>> {
        if self.readers == 0 {
            return None;
        }
        let reader = staged.reader();
        if let Err(error) = &reader {
            // Whoever reads first tries again.
            tracing::warn!(name = %self.name, %error, "can't open the published file");
        }
        reader.ok()
    }

    /// What was published last is the newest, even where others have published while it was being written: then it is another
    /// version now.
    fn newest(&self, info: &FileInfo) -> Result<Option<FileInfo>, RepoError> {
        let newest = self.repo.find(&self.name, None)?;
        if newest.is_none_or(|n| n.version <= info.version) {
            return Ok(None);
        }
        let change = Change {
            publish: vec![self.repo.link(info, &self.name, None)?],
            remove: vec![(info.name.clone(), info.version)],
            ..Change::default()
        };
        let mut changed = self.repo.apply(change).map_err(|not| not.error)?;
        Ok(changed.published.pop())
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
            let to_remove: Vec<_> = versions.into_iter().map(|v| (v.name, v.version)).collect();
            self.repo.remove(&to_remove)
        });
        if let Err(error) = pruned {
            tracing::warn!(name = %self.name, %error, "can't remove old versions");
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

    /// That no path leads to it is durable: what was synced of it does not come back by the next start.
    pub fn forget(&mut self) {
        let forgotten = match &mut self.draft {
            Some(Draft::Writing(writer)) => writer.forget(),
            Some(Draft::Whole(staged)) => staged.forget(),
            None => Ok(()),
        };
        if let Err(error) = forgotten {
            tracing::warn!(name = %self.name, %error, "removal not durable: the file may come back after a power failure");
        }
    }

    /// A handle is closed for good. The kernel tells so some time after the close: what others write by now waits for them.
    ///
    /// # Errors
    /// What the repository says; what was written is kept.
    pub fn release(&mut self, handle: u64, access: Access) -> Result<(), Errno> {
        self.readers -= usize::from(access.reads);
        self.writers -= usize::from(access.writes);
        if self.closed_by == Some(handle) {
            (self.closed_by, self.shared) = (None, false);
        }
        let nobody_else = access.writes && self.writers == 0;
        if self.wrote.remove(&handle) || nobody_else {
            return self.publish();
        }
        Ok(())
    }
}
