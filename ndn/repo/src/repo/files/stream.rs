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
//! file on the disk is longer than what was written only as long as a crash would remove it: what could not be cut is cut
//! before the next sync.

use std::io;
use std::sync::Arc;

use super::block::BLOCK_BYTES;
use super::reservation::Reservation;
use super::writer::{FileWriter, Hashing};

/// Room reserved ahead: as much as there is of the file already, within these bounds. Each time the blocks on their way are
/// waited for.
const AHEAD_BYTES: std::ops::RangeInclusive<u64> = 32 << 20..=512 << 20;
/// A file reserves ahead at most this part of the free room; on a disk that is nearly full less than the bounds, and in the end
/// a block at a time.
const SHARE: u64 = 16;
impl FileWriter {
    /// Sees to it that the block in hand finds room.
    pub(super) fn make_room(&mut self) -> io::Result<()> {
        let end = self.position();
        match self.reservation {
            Reservation::Reserved { to, .. } if end <= to => return Ok(()),
            _ => self.check_room(end)?,
        }
        if matches!(self.reservation, Reservation::Reserved { .. }) {
            return self.go_on(end);
        }
        if self.is_long()
            && let Some(permit) = self.repo.streams.permit()
        {
            return self.begin_stream(end, permit);
        }
        Ok(())
    }

    /// An error where the disk is full, but for bytes up to `end` whose room was asked for.
    pub(super) fn check_room(&self, end: u64) -> io::Result<()> {
        match end <= self.asked {
            true => Ok(()),
            false => self.repo.index.ballast.check_room(),
        }
    }

    /// Whether it is worth it.
    fn is_long(&self) -> bool {
        matches!(self.reservation, Reservation::AsItComes)
            && self.is_of_unknown_size()
            && !self.draft
            && matches!(self.hashing, Hashing::AsItComes(_))
            && self.block.is_full()
            && self.position() > self.stream_from
    }

    fn begin_stream(&mut self, end: u64, permit: Arc<()>) -> io::Result<()> {
        let reserved = self.reserve_ahead(end);
        if let Ok(Some(to)) = reserved {
            let (content, at) = (self.content.clone(), self.at);
            let streams = match &mut self.hashing {
                Hashing::AsItComes(lane) => lane.write_from(content, at),
                Hashing::AtTheEnd | Hashing::Lost => Ok(false),
            };
            match streams {
                Ok(true) => {
                    self.reservation = Reservation::Reserved {
                        to,
                        _permit: permit,
                    };
                    return Ok(());
                }
                Ok(false) => {}
                // The content is there: it is hashed when the file is finished.
                Err(_) => self.hashing = Hashing::AtTheEnd,
            }
        }
        self.content.end_stream();
        // A part of it may have been reserved. What is not cut now is cut before the next sync.
        let _ = self.trim();
        match reserved {
            Err(error) if is_full(&error) => Err(error),
            _ => {
                self.reservation = Reservation::Never;
                Ok(())
            }
        }
    }

    /// Reserves more.
    fn go_on(&mut self, end: u64) -> io::Result<()> {
        match self.reserve_ahead(end) {
            Ok(Some(now)) => {
                if let Reservation::Reserved { to, .. } = &mut self.reservation {
                    *to = now;
                }
                Ok(())
            }
            Err(error) if is_full(&error) => Err(error),
            // It could before; what can't be written is told by whoever writes it.
            Ok(None) | Err(_) => self.leave_stream(),
        }
    }

    /// Reserves room up to `end` at least, that of the manifest first; tells up to where, or nothing where the file system
    /// can't.
    fn reserve_ahead(&mut self, end: u64) -> io::Result<Option<u64>> {
        let from = match self.reservation {
            Reservation::Reserved { to, .. } => to,
            _ => self.at,
        };
        let free = self.repo.disk.free_bytes().unwrap_or(0);
        let mut wanted = end.clamp(*AHEAD_BYTES.start(), *AHEAD_BYTES.end());
        while wanted >= BLOCK_BYTES as u64 {
            let ahead = end + wanted;
            if wanted + self.manifest_bytes(ahead) <= free / SHARE {
                match self.reserve_to(from, ahead) {
                    // Who may not have so much may have less. What of it was reserved is for others, too: where it is not
                    // given back now, it is when the stream ends.
                    Err(error) if is_full(&error) => drop(self.content.set_size(from)),
                    other => return other,
                }
            }
            wanted /= 2;
        }
        self.reserve_to(from, end)
    }

    fn reserve_to(&mut self, from: u64, to: u64) -> io::Result<Option<u64>> {
        self.reserve_manifest(self.manifest_bytes(to))?;
        self.longer = true;
        Ok(self.content.begin_stream(from..to)?.then_some(to))
    }

    /// Before a block is filled: where it is to go to the device by itself, it lies and ends where the device wants it.
    pub(super) fn begin_block(&mut self) {
        if matches!(self.reservation, Reservation::Reserved { .. }) {
            self.block.align(self.at);
        }
    }

    /// From here on bytes go by the system's cache again, and the file on the disk is as long as what was written.
    pub(super) fn end_stream(&mut self) -> io::Result<()> {
        self.write_all_taken()?;
        self.leave_stream()
    }

    /// As [`FileWriter::end_stream`]; the block in hand stays.
    fn leave_stream(&mut self) -> io::Result<()> {
        self.enter_all()?;
        if let Hashing::AsItComes(lane) = &mut self.hashing {
            lane.write_no_more();
        }
        self.content.end_stream();
        self.reservation = Reservation::Never;
        self.trim()
    }

    /// The file on the disk ends where what was written does. Where that fails it is to be tried again.
    pub(super) fn trim(&mut self) -> io::Result<()> {
        if self.longer {
            self.content.set_size(self.at)?;
            self.longer = false;
            if self.asked > self.at {
                // That went with the rest. If another has taken it meanwhile, the write that needs it tells.
                let _ = self.content.reserve(self.at..self.asked);
            }
        }
        Ok(())
    }

    /// A part of what was taken is lost, so that it can't be published any more: it takes no room from others.
    pub(super) fn give_up(&mut self) {
        self.hashing = Hashing::Lost;
        (self.reservation, self.asked) = (Reservation::Never, 0);
        // If that fails, it goes with the file.
        let _ = self.trim();
    }
}

/// Whether it may go on once there is room.
fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}
