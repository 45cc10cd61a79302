//! Bytes on their way into the repository: to a plain file, and by the hasher to its manifest.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ndn_packet::Name;

use super::block::{BLOCK_BYTES, Block};
use super::hasher::Hasher;
use super::lane::Lane;
use super::manifest::Facts;
use super::memory::{MemoryFile, ReadFile};
use super::reservation::Reservation;
use super::segments::Shape;
use crate::disk::DiskFile;
use crate::error::{At, RepoError, Result};
use crate::layout::incoming;
use crate::repo::Inner;

/// Most segments of a small version.
const SMALL_SEGMENTS: u64 = 64;

/// How a file is to be kept. Start from the defaults and change fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutOptions {
    /// The version; microseconds since the Unix epoch, and more than any version before, when not given.
    pub version: Option<u64>,
    /// Bytes of content in a segment: 8000 pass everywhere, up to 65000 between Trunkline's own forwarders.
    pub segment_bytes: u32,
    /// How long caches may call a segment fresh.
    pub freshness: Duration,
    /// `st_mode` that listings and metadata tell.
    pub mode: u32,
    /// Time of last change in nanoseconds since the Unix epoch; now, when not given.
    pub mtime_ns: Option<u64>,
    /// Bytes to come, where that is known. Then every segment tells which is the last, and an interrupted transfer can
    /// go on where it stopped.
    pub size: Option<u64>,
    /// Where the size is not known: bytes from which on a file counts as large, and goes to the device without the
    /// system's cache.
    pub stream_from: u64,
}

impl Default for PutOptions {
    fn default() -> Self {
        Self {
            version: None,
            segment_bytes: 8000,
            freshness: Duration::from_secs(10),
            mode: 0o100_644,
            mtime_ns: None,
            size: None,
            stream_from: 8 << 20,
        }
    }
}

/// When a file's digests are made, and whether all that was taken is there.
///
/// ```text
///   AsItComes ── written out of order; a digest, or the end of the manifest, could not be written ──▶ AtTheEnd
///       └── a block on its way to the device could not be written ──▶ Lost
/// ```
pub(super) enum Hashing {
    /// Bytes come in order, and go by the lane.
    AsItComes(Box<Lane>),
    /// The content file has all bytes, and is read once more when the file is finished.
    AtTheEnd,
    /// A part of what was taken is not in the content file: nothing can be published any more.
    Lost,
}

/// A file on its way into the repository; see [`crate::Repo::put`]. Dropped before [`FileWriter::finish`], it leaves
/// nothing, unless [`FileWriter::suspend`] keeps it.
pub struct FileWriter {
    pub(super) repo: Arc<Inner>,
    pub(super) facts: Facts,
    pub(super) said: Option<u64>,
    pub(super) content: Arc<dyn DiskFile>,
    pub(super) manifest: Arc<dyn DiskFile>,
    pub(super) hashing: Hashing,
    pub(super) block: Block,
    /// Bytes in the content file.
    pub(super) at: u64,
    /// Bytes from which on it streams: see [`PutOptions`].
    pub(super) stream_from: u64,
    pub(super) reservation: Reservation,
    /// Whether the content file may be longer than what was written.
    pub(super) longer: bool,
    /// Up to where room was asked for: see [`FileWriter::reserve`].
    pub(super) asked: u64,
    /// Up to where room was reserved for the manifest, if it was tried.
    pub(super) manifest_room: Option<u64>,
    /// Whether its manifest says that it is to be published after a crash.
    pub(super) draft: bool,
    pub(super) keep: bool,
    /// What `content` and `manifest` are as long as they are in memory.
    pub(super) small: Option<Small>,
    /// Reads and checks what is there already, where that is another version's.
    pub(super) verified: Option<ReadAt>,
}

/// Fills a buffer from an offset on.
pub(crate) type ReadAt = Box<dyn Fn(u64, &mut [u8]) -> Result<usize> + Send + Sync>;

/// A version that is small so far, and not on the disk.
pub(super) struct Small {
    pub(super) content: Arc<MemoryFile>,
    pub(super) manifest: Arc<MemoryFile>,
}

/// Content and manifest of a small version that is whole.
#[derive(Debug)]
pub(crate) struct SmallParts {
    pub(crate) content: Bytes,
    pub(crate) manifest: Bytes,
}

/// A file that is whole and not yet published: [`crate::Repo::publish`] makes it durable and visible. Dropped instead, it
/// leaves nothing. It keeps no file open, so that any number of them can wait.
pub struct Staged {
    pub(super) repo: Arc<Inner>,
    pub(crate) facts: Facts,
    pub(crate) published: bool,
    /// See [`FileWriter::keep`].
    pub(super) draft: bool,
    /// What it is, where it is not on the disk.
    pub(crate) small: Option<SmallParts>,
}

impl FileWriter {
    /// Of a new version that is small so far.
    pub(crate) fn small(repo: Arc<Inner>, facts: Facts, options: &PutOptions) -> Result<Self> {
        let small = Small {
            content: Arc::default(),
            manifest: Arc::default(),
        };
        let (content, manifest) = (small.content.clone(), small.manifest.clone());
        let mut new = Self::new(repo, facts, options, content, manifest)?;
        new.small = Some(small);
        Ok(new)
    }

    /// Of new files on disk.
    pub(crate) fn new(
        repo: Arc<Inner>,
        facts: Facts,
        options: &PutOptions,
        content: Arc<dyn DiskFile>,
        manifest: Arc<dyn DiskFile>,
    ) -> Result<Self> {
        let head = facts.encode();
        let paths = incoming(facts.entry.content);
        manifest.write_at(0, &head).at(&paths.1)?;
        let hasher = Hasher::new(shape(&facts), manifest.clone(), head.len() as u64);
        let said = options.size;
        let streamed = said.filter(|size| *size > BLOCK_BYTES as u64);
        let lane = match streamed {
            Some(size) => {
                content.begin_stream(0..size).at(&paths.0)?;
                Lane::writing(hasher, content.clone())
            }
            None => Lane::new(hasher),
        };
        let mut new = Self::continued(repo, facts, said, content, manifest, lane, 0);
        new.longer = streamed.is_some();
        new.stream_from = options.stream_from;
        Ok(new)
    }

    /// Of files of which `at` bytes, whole segments, are there already.
    pub(crate) fn continued(
        repo: Arc<Inner>,
        facts: Facts,
        said: Option<u64>,
        content: Arc<dyn DiskFile>,
        manifest: Arc<dyn DiskFile>,
        lane: Lane,
        at: u64,
    ) -> Self {
        Self {
            repo,
            facts,
            said,
            content,
            manifest,
            hashing: Hashing::AsItComes(Box::new(lane)),
            block: Block::default(),
            at,
            stream_from: PutOptions::default().stream_from,
            reservation: Reservation::AsItComes,
            // It may have been reserved up to its end.
            longer: true,
            asked: 0,
            manifest_room: None,
            draft: false,
            keep: false,
            small: None,
            verified: None,
        }
    }

    /// Of content that is there already, as a whole.
    pub(crate) fn linked(
        repo: Arc<Inner>,
        facts: Facts,
        content: Arc<dyn DiskFile>,
        manifest: Arc<dyn DiskFile>,
    ) -> Result<Self> {
        let at = content.size().at(&incoming(facts.entry.content).0)?;
        Ok(Self {
            repo,
            facts,
            said: None,
            content,
            manifest,
            hashing: Hashing::AtTheEnd,
            block: Block::default(),
            at,
            stream_from: u64::MAX,
            reservation: Reservation::Never,
            longer: false,
            asked: 0,
            manifest_room: None,
            draft: false,
            keep: false,
            small: None,
            verified: None,
        })
    }

    /// Hashes what `read` fills buffers with from an offset on, which are the same bytes, checked.
    pub(crate) fn verified_by(mut self, read: ReadAt) -> Self {
        self.verified = Some(read);
        self
    }

    /// As [`FileWriter::linked`], of content in memory.
    pub(crate) fn copied(repo: Arc<Inner>, facts: Facts, content: &[u8]) -> Result<Self> {
        let small = Small {
            content: Arc::default(),
            manifest: Arc::default(),
        };
        let path = incoming(facts.entry.content).0;
        small.content.write_at(0, content).at(&path)?;
        let (bytes, manifest) = (small.content.clone(), small.manifest.clone());
        let mut new = Self::linked(repo, facts, bytes, manifest)?;
        new.small = Some(small);
        Ok(new)
    }

    /// Most bytes of a version that is small: it has few segments, too.
    fn small_bytes(&self) -> u64 {
        most_small(&self.repo, self.facts.entry.segment_bytes)
    }

    /// Sees to it that `len` bytes have their place: where that is too many for memory, on the disk.
    pub(super) fn make_place(&mut self, len: u64) -> io::Result<()> {
        match self.small.is_some() && len > self.small_bytes() {
            true => self.leave_memory(),
            false => Ok(()),
        }
    }

    /// From here on the version has files of its own. Where that fails, it is what it was.
    pub(super) fn leave_memory(&mut self) -> io::Result<()> {
        let Some(small) = &self.small else {
            return Ok(());
        };
        let (id, content, manifest) = self.repo.create_incoming().map_err(told)?;
        let mut facts = self.facts.clone();
        facts.entry.content = id;
        // As long as what it begins with now. A version that is hashed when it is finished gets it then.
        let head = match small.manifest.size()? {
            0 => Vec::new(),
            _ => facts.encode(),
        };
        let copied = small
            .manifest
            .write_at(0, &head)
            .and_then(|()| small.manifest.copy_to(&*manifest))
            .and_then(|()| small.content.copy_to(&*content));
        if let Err(error) = copied {
            self.repo.remove_incoming(id);
            return Err(error);
        }
        // Its hasher has them, too.
        small.content.become_file(content.clone());
        small.manifest.become_file(manifest.clone());
        (self.content, self.manifest, self.facts) = (content, manifest, facts);
        self.small = None;
        Ok(())
    }

    /// Name and version that the file will have.
    pub fn versioned(&self) -> Name {
        self.facts.name.append_version(self.facts.version)
    }

    /// Bytes taken so far; not 0 at the start where an interrupted transfer goes on.
    pub fn position(&self) -> u64 {
        self.at + self.block.len() as u64
    }

    /// Copies all that `source` has from here on, and calls `progress` with the bytes there are now.
    ///
    /// # Errors
    /// Those of the source and of the disk.
    pub fn copy_from(
        &mut self,
        source: &mut dyn Read,
        progress: &mut dyn FnMut(u64),
    ) -> io::Result<()> {
        loop {
            if self.block.is_full() {
                // There was no room for it before.
                self.write_block()?;
            }
            self.begin_block();
            let space = self.expected();
            match source.read(self.block.space(space)) {
                Ok(0) => return Ok(()),
                Ok(n) => self.block.grow(n),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.block.is_full() {
                self.write_block()?;
                progress(self.at);
            }
        }
    }

    /// How many bytes may come next, and one for the end to be seen: a small file takes no whole block of memory.
    fn expected(&self) -> usize {
        let left = self.said.and_then(|s| s.checked_sub(self.position()));
        left.map_or(BLOCK_BYTES, |n| {
            usize::try_from(n).map_or(BLOCK_BYTES, |n| n.saturating_add(1).min(BLOCK_BYTES))
        })
    }

    pub(super) fn is_rewritten(&self) -> bool {
        matches!(self.hashing, Hashing::AtTheEnd)
    }

    pub(super) fn is_of_unknown_size(&self) -> bool {
        self.said.is_none()
    }

    pub(super) fn write_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        if self.is_lost() {
            return Err(lost());
        }
        // What is not taken is not given up: there may be room another time.
        self.make_place(self.position())?;
        self.make_room()?;
        let written = self.block.len() as u64;
        let is_streamed = matches!(&self.hashing, Hashing::AsItComes(lane) if lane.writes());
        if !is_streamed {
            let entered = self.content.write_at(self.at, self.block.bytes());
            self.longer |= entered.is_err(); // A part of it may be there.
            entered?;
            // The device works while the next is copied and hashed; of a small file the sync comes at once.
            if self.block.is_full() {
                self.content.begin_writeback(self.at, written);
            }
        }
        let block = std::mem::take(&mut self.block);
        self.at += written;
        match &mut self.hashing {
            Hashing::AsItComes(lane) => match lane.feed(block) {
                Ok(block) => {
                    self.block = block;
                    Ok(())
                }
                Err(error) if is_streamed => {
                    self.give_up();
                    Err(error)
                }
                Err(error) => {
                    // The content is there: it is hashed when the file is finished, and what is wrong with the manifest is
                    // told then.
                    tracing::debug!(%error, "a file is hashed when it is finished");
                    self.hashing = Hashing::AtTheEnd;
                    Ok(())
                }
            },
            Hashing::AtTheEnd | Hashing::Lost => Ok(()),
        }
    }

    /// Whether a part of what was taken could not be written, so that nothing can be published any more.
    pub fn is_lost(&self) -> bool {
        matches!(self.hashing, Hashing::Lost)
    }

    /// Waits until what was taken is in the content file.
    pub(super) fn write_all_taken(&mut self) -> io::Result<()> {
        self.write_block()?;
        self.enter_all()
    }

    /// As [`FileWriter::write_all_taken`], but for the block in hand.
    pub(super) fn enter_all(&mut self) -> io::Result<()> {
        let entered = match &mut self.hashing {
            Hashing::AsItComes(lane) if lane.writes() => lane.enter_all(),
            Hashing::Lost => Err(lost()),
            Hashing::AsItComes(_) | Hashing::AtTheEnd => Ok(()),
        };
        if entered.is_err() {
            self.give_up();
        }
        entered
    }

    /// Keeps what has come, so that the transfer can go on another time: see [`crate::Repo::put`]. Where its size was not told
    /// it can't, and nothing is kept.
    ///
    /// # Errors
    /// What the disk says; what came before is kept.
    pub fn suspend(mut self) -> Result<()> {
        if self.is_of_unknown_size() {
            return Ok(());
        }
        self.leave_memory()
            .at(&incoming(self.facts.entry.content).0)?;
        let paths = incoming(self.facts.entry.content);
        let written = self.write_block().at(&paths.0);
        let entered = match std::mem::replace(&mut self.hashing, Hashing::AtTheEnd) {
            Hashing::AsItComes(lane) => lane.suspend().at(&paths.1),
            Hashing::AtTheEnd | Hashing::Lost => Ok(()),
        };
        // Whoever goes on with it finds out how much of it is good.
        self.keep = true;
        self.repo.interrupt(self.facts.entry.content);
        written.and(entered)
    }
}

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.block.is_full() {
            // There was no room for it before.
            self.write_block()?;
        }
        self.begin_block();
        let n = self.block.take(bytes);
        if self.block.is_full()
            && let Err(error) = self.write_block()
        {
            // Of who is refused nothing is taken.
            self.block.give_back(n);
            return Err(error);
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if !self.keep && self.small.is_none() {
            self.repo.remove_incoming(self.facts.entry.content);
        }
    }
}

impl Staged {
    /// Name and version that the file will have.
    pub fn versioned(&self) -> Name {
        self.facts.name.append_version(self.facts.version)
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.facts.entry.size
    }

    /// Leaves it for the next start, as [`FileWriter::leave`] does.
    pub fn leave(mut self) {
        self.published |= self.draft;
    }

    /// What the index will know of it.
    pub fn entry(&self) -> &crate::index::FileEntry {
        &self.facts.entry
    }

    /// Fills `buffer` from `offset` on, as far as the file goes, and tells how many bytes those are.
    ///
    /// # Errors
    /// What the disk says.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.size().saturating_sub(offset).min(buffer.len() as u64) as usize;
        if let Some(small) = &self.small {
            let content = ReadFile(small.content.clone());
            content.read_at(offset, &mut buffer[..n])?;
            return Ok(n);
        }
        let path = incoming(self.facts.entry.content).0;
        let content = self.repo.disk.open(&path)?;
        content.read_at(offset, &mut buffer[..n])?;
        Ok(n)
    }
}

impl std::fmt::Debug for Staged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Staged")
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.published && self.small.is_none() {
            self.repo.remove_incoming(self.facts.entry.content);
        }
    }
}

pub(crate) fn shape(facts: &Facts) -> Shape {
    Shape::of(facts.name.append_version(facts.version), &facts.entry)
}

/// Most bytes of a small version, where a segment has so many.
pub(crate) fn most_small(repo: &Inner, segment_bytes: u32) -> u64 {
    let most = u64::from(repo.small_bytes);
    most.min(u64::from(segment_bytes) * SMALL_SEGMENTS)
}

pub(super) fn told(error: RepoError) -> io::Error {
    match error {
        RepoError::Io { error, .. } => error,
        other => io::Error::other(other),
    }
}

/// What was taken before could not be written, which was told then.
fn lost() -> io::Error {
    io::Error::other("a part of the file could not be written")
}
