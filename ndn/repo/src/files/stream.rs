//! A large file whose size nobody knows, as a mount's: from some length on its blocks go to the device by themselves, as
//! those of a file whose size is known go from the start.
//!
//! ```text
//!   content file   ███████████████████▓▓▓▓░░░░░░░░░░░░
//!                  written            │   │          └ reserved: its size on the disk until the end, or the next sync
//!                                     │   └ given to the threads that hash and write
//!                                     └ the first bytes went by the system's cache
//! ```
//! Room is reserved before a block is given up, so that a full disk is told to whoever writes, who may go on another time. The
//! file on the disk is longer than what was written only as long as a crash would remove it.

use std::io;
use std::sync::Arc;

use super::writer::FileWriter;

/// Room reserved ahead: as much as there is of the file already, within these bounds. Each time the blocks on their way are
/// waited for.
const AHEAD_BYTES: std::ops::RangeInclusive<u64> = 32 << 20..=512 << 20;
/// A file reserves ahead at most this part of the free room; on a disk that is nearly full, a block at a time.
const SHARE: u64 = 16;
/// Files that may be written so at once: each has threads and blocks of its own.
const MOST_AT_ONCE: usize = 4;

/// The room of a file whose size nobody knows.
#[derive(Debug)]
pub(super) enum Room {
    /// Found by the file system as the bytes come.
    AsItComes,
    /// Reserved up to here, by one of those that may stream.
    Reserved(u64, Arc<()>),
    /// It can't be reserved, or must not be.
    Never,
}

/// Counts those that stream.
#[derive(Debug, Default)]
pub(crate) struct Streams(Arc<()>);

impl Streams {
    /// To be kept as long as it streams; nothing where too many do.
    fn permit(&self) -> Option<Arc<()>> {
        let one = self.0.clone();
        (Arc::strong_count(&self.0) <= MOST_AT_ONCE + 1).then_some(one)
    }
}

impl FileWriter {
    /// Sees to it that the block in hand finds room.
    pub(super) fn make_room(&mut self) -> io::Result<()> {
        let end = self.position();
        match self.room {
            Room::Reserved(to, _) if end <= to => return Ok(()),
            _ => self.repo.index.ballast.check_room()?,
        }
        match std::mem::replace(&mut self.room, Room::AsItComes) {
            Room::Reserved(to, permit) => {
                let reserved = self.reserve_ahead(end);
                let now = reserved.as_ref().ok().copied().flatten();
                self.room = Room::Reserved(now.unwrap_or(to), permit);
                match reserved? {
                    Some(_) => Ok(()),
                    // It could before.
                    None => Err(io::ErrorKind::StorageFull.into()),
                }
            }
            Room::AsItComes if self.is_long() => self.begin_stream(end),
            room => {
                self.room = room;
                Ok(())
            }
        }
    }

    /// Whether it is worth it.
    fn is_long(&self) -> bool {
        self.is_of_unknown_size()
            && !self.draft
            && self.lane.is_some()
            && self.block.is_full()
            && self.position() > self.stream_from
    }

    fn begin_stream(&mut self, end: u64) -> io::Result<()> {
        let Some(permit) = self.repo.streams.permit() else {
            return Ok(());
        };
        match self.reserve_ahead(end) {
            Ok(Some(to)) => {
                let (content, at) = (self.content.clone(), self.at);
                if let Some(lane) = &mut self.lane
                    && lane.write_from(content, at).is_err()
                {
                    // The content is there: it is hashed when the file is finished.
                    (self.lane, self.rewritten) = (None, true);
                    return self.content.set_size(at);
                }
                self.room = Room::Reserved(to, permit);
                Ok(())
            }
            Ok(None) => {
                self.room = Room::Never;
                self.content.set_size(self.at)
            }
            Err(error) => {
                // A part of it may have been reserved.
                self.content.set_size(self.at)?;
                Err(error)
            }
        }
    }

    /// Reserves room up to `end` at least, that of the manifest first; tells up to where, or nothing where the file system
    /// can't.
    fn reserve_ahead(&self, end: u64) -> io::Result<Option<u64>> {
        let free = self.repo.disk.free_bytes().unwrap_or(0);
        let wanted = end.clamp(*AHEAD_BYTES.start(), *AHEAD_BYTES.end());
        let ahead = end + wanted;
        if wanted + self.manifest_bytes(ahead) <= free / SHARE {
            // Who may not have so much may have less.
            if let Ok(reserved) = self.reserve_to(ahead) {
                return Ok(reserved);
            }
        }
        self.reserve_to(end)
    }

    fn reserve_to(&self, to: u64) -> io::Result<Option<u64>> {
        self.manifest.reserve(self.manifest_bytes(to))?;
        Ok(self.content.begin_stream(to)?.then_some(to))
    }

    /// Before a block is filled: where it is to go to the device by itself, it lies and ends where the device wants it.
    pub(super) fn begin_block(&mut self) {
        if matches!(self.room, Room::Reserved(..)) {
            self.block.align(self.at);
        }
    }

    /// From here on bytes go by the system's cache again, and the file on the disk is as long as what was written.
    pub(super) fn end_stream(&mut self) -> io::Result<()> {
        self.write_all_taken()?;
        if let Room::Reserved(..) = std::mem::replace(&mut self.room, Room::Never) {
            if let Some(lane) = &mut self.lane {
                lane.write_no_more();
            }
            self.content.set_size(self.at)?;
        }
        Ok(())
    }

    /// The file on the disk ends where what was written does.
    pub(super) fn trim(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.room, Room::Never) {
            Room::Reserved(..) => self.content.set_size(self.at),
            _ => Ok(()),
        }
    }
}
