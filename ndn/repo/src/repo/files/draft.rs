//! A file that is being written and must outlive a crash before it is published: what `fsync` is to a file system.
//!
//! Its manifest's beginning says so from then on. A start that finds it in `incoming`, and not in the index, publishes what
//! is in its content file.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::manifest::{ENTRY_BYTES, Facts};
use super::writer::{FileWriter, Staged};
use crate::disk::DiskFile;
use crate::error::{At, RepoError, Result};
use crate::layout::incoming;
use crate::repo::Inner;

/// Room for the end of a manifest: a digest and a signed packet.
const END_BYTES: u64 = 4096;
/// Room that is not reserved: what is kept back on a full disk is far more.
const SMALL_BYTES: u64 = 64 << 10;

/// The beginning of a manifest that no start goes on with.
fn forget(facts: &Facts, manifest: &dyn DiskFile) -> Result<()> {
    let mut facts = facts.clone();
    (facts.entry.size, facts.entry.final_in_all) = (0, false);
    let path = incoming(facts.entry.content).1;
    manifest.write_at(0, &facts.encode()).at(&path)?;
    manifest.sync().at(&path)
}

impl Staged {
    /// As [`FileWriter::forget`]. It is not to be published then.
    ///
    /// # Errors
    /// As there.
    pub fn forget(&mut self) -> Result<()> {
        if self.draft {
            let path = incoming(self.facts.entry.content).1;
            forget(&self.facts, &*self.repo.disk.open(&path).at(&path)?)?;
            self.draft = false;
        }
        Ok(())
    }
}

impl FileWriter {
    /// What was written until now outlives a crash: the next start publishes the file as it finds it. May be called again
    /// after more was written.
    ///
    /// # Errors
    /// [`RepoError::Setting`] for a file whose size was told before, else what the disk says.
    pub fn keep(&mut self) -> Result<()> {
        if self.facts.entry.final_in_all {
            return Err(RepoError::Setting(format!(
                "{}: is an interrupted transfer after a crash; put it without its size to keep it",
                self.facts.name
            )));
        }
        self.leave_memory()
            .at(&incoming(self.facts.entry.content).0)?;
        let paths = incoming(self.facts.entry.content);
        // The next start takes the file to be as long as it is.
        self.end_stream().at(&paths.0)?;
        self.content.sync().at(&paths.0)?;
        if !self.draft {
            self.manifest
                .write_at(0, &self.facts.encode_draft())
                .at(&paths.1)?;
            self.manifest.sync().at(&paths.1)?;
            let folder = Path::new("incoming");
            self.repo.disk.sync_dir(folder).at(folder)?;
            self.draft = true;
        }
        Ok(())
    }

    /// Waits until what was taken is in the content file, and reserves the room that [`FileWriter::finish`] needs, so that a
    /// full disk shows before what was written is at stake.
    ///
    /// # Errors
    /// The disk is full, or what else it says, of what was written before, too.
    pub fn prepare(&mut self) -> Result<()> {
        let paths = incoming(self.facts.entry.content);
        self.write_all_taken().at(&paths.0)?;
        let wanted = self.manifest_bytes(self.at);
        if self.small.is_some() {
            return self.repo.index.ballast.check_room().at(&paths.1);
        }
        if wanted <= SMALL_BYTES && !self.is_rewritten() {
            // There is room for many of them, or nobody gets any. Who was refused once, by a quota perhaps, is rewritten.
            return self.repo.index.ballast.check_room().at(&paths.1);
        }
        self.reserve_manifest(wanted).at(&paths.1)
    }

    pub(super) fn reserve_manifest(&mut self, size: u64) -> io::Result<()> {
        let room = self.manifest_room.get_or_insert(0);
        if size > *room {
            self.manifest.reserve(*room..size)?;
            *room = size;
        }
        Ok(())
    }

    /// Nobody goes on with it now. What [`FileWriter::keep`] was told of stays for the next start, which publishes it; anything
    /// else is removed.
    pub fn leave(mut self) {
        self.keep |= self.draft;
    }

    /// The next start is not to publish what [`FileWriter::keep`] was told of: nobody wants it any more.
    ///
    /// # Errors
    /// What the disk says; the next start may publish it then.
    pub fn forget(&mut self) -> Result<()> {
        if self.draft {
            forget(&self.facts, &*self.manifest)?;
            self.draft = false;
        }
        Ok(())
    }

    /// Most bytes of the manifest of so many bytes of content.
    pub(super) fn manifest_bytes(&self, content: u64) -> u64 {
        let segments = content.div_ceil(u64::from(self.facts.entry.segment_bytes));
        let head = self.facts.encode().len() as u64;
        head + segments.max(1) * ENTRY_BYTES as u64 + END_BYTES
    }

    /// Reserves room for these bytes, so that a full disk shows now and not when they are written. Those beyond the end of the
    /// file lose it when the file is cut, and when it is whole.
    ///
    /// # Errors
    /// The disk is full, or what else it says.
    pub fn reserve(&mut self, bytes: Range<u64>) -> io::Result<()> {
        // What was taken before has room, too. What is reserved ahead of a stream is given back by a cut, and this would go
        // with it.
        self.end_stream()?;
        self.leave_memory()?;
        let end = bytes.end;
        let reserved = self.content.reserve(bytes);
        if reserved.is_ok() {
            self.asked = self.asked.max(end);
        } else {
            // A part of it may have been.
            self.longer = true;
            let _ = self.trim();
        }
        reserved
    }

    /// What listings will tell of it, where that is not what [`crate::PutOptions`] said.
    pub fn set_attributes(&mut self, mode: u32, mtime_ns: u64) {
        (self.facts.entry.mode, self.facts.entry.mtime_ns) = (mode, mtime_ns);
    }

    /// The version that it will be.
    pub fn version(&self) -> u64 {
        self.facts.version
    }

    /// Of a draft that a crash has left.
    pub(crate) fn draft(
        repo: Arc<Inner>,
        facts: Facts,
        content: Arc<dyn DiskFile>,
        manifest: Arc<dyn DiskFile>,
    ) -> Result<Self> {
        let paths = incoming(facts.entry.content);
        let head = facts.encode_draft();
        let mut writer = Self::linked(repo, facts, content, manifest)?;
        // Whatever happens to it, it stays until it is published.
        (writer.draft, writer.keep) = (true, true);
        // Its version may be another now.
        writer.manifest.write_at(0, &head).at(&paths.1)?;
        Ok(writer)
    }
}
