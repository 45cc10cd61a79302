//! A file that is written here and there before it is published, as a file system's files are.
//!
//! As long as bytes come in order they are hashed as they come. The first write elsewhere ends that: then the file is
//! hashed once more, from its start, when it is finished.

use std::io::{self, Write};

use super::block::{BLOCK_BYTES, Block};
use super::hasher::{Hashed, Hasher};
use super::lane::Lane;
use super::writer::{FileWriter, Hashing, shape, told};

impl FileWriter {
    /// Writes `bytes` at `offset`; a gap before them is zeros.
    ///
    /// # Errors
    /// What the disk says; a part of them may be written then.
    pub fn write_at(&mut self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let n = self.write_some_at(offset, bytes)?;
            (offset, bytes) = (offset + n as u64, &bytes[n..]);
        }
        Ok(())
    }

    /// As [`FileWriter::write_at`], but of the first bytes as many as find room; tells how many those are.
    ///
    /// # Errors
    /// What the disk says, where that is none: then the file is what it was, or [`FileWriter::is_lost`].
    pub fn write_some_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        if offset == self.position() && !self.is_rewritten() {
            return self.append_some(bytes);
        }
        self.rewrite()?;
        self.check_room(offset + bytes.len() as u64)?;
        self.make_place(offset + bytes.len() as u64)?;
        if offset > self.at {
            // Nothing but zeros comes between.
            self.trim()?;
        }
        let written = self.content.write_some_at(offset, bytes);
        self.longer |= written.is_err(); // A part of it may be there.
        let n = written?;
        self.at = self.at.max(offset + n as u64);
        Ok(n)
    }

    fn append_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        while taken < bytes.len() {
            match self.write(&bytes[taken..]) {
                Ok(n) => taken += n,
                // Whoever goes on is told.
                Err(_) if taken > 0 && !self.is_lost() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }

    /// Cuts the file, or lengthens it with zeros.
    ///
    /// # Errors
    /// What the disk says.
    pub fn set_size(&mut self, size: u64) -> io::Result<()> {
        if size == self.position() {
            return Ok(());
        }
        self.rewrite()?;
        self.make_place(size)?;
        if size > self.at {
            // Nothing but zeros comes between.
            self.trim()?;
            self.content.set_size(size)?;
        } else {
            self.content.set_size(size)?;
            // What was reserved beyond went with it.
            (self.longer, self.asked) = (false, 0);
        }
        self.at = size;
        Ok(())
    }

    /// Fills `buffer` from `offset` on with what was written, as far as that goes, and tells how many bytes those are.
    ///
    /// # Errors
    /// What the disk says.
    pub fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.write_all_taken()?;
        let n = self.at.saturating_sub(offset).min(buffer.len() as u64) as usize;
        self.content.read_at(offset, &mut buffer[..n])?;
        Ok(n)
    }

    /// From here on the file is not hashed as it comes.
    fn rewrite(&mut self) -> io::Result<()> {
        // Nothing else writes the block in hand at its place.
        self.write_all_taken()?;
        if !self.is_rewritten() {
            self.end_stream()?;
            self.hashing = Hashing::AtTheEnd;
        }
        Ok(())
    }

    /// Hashes the whole file, whose size is known now.
    pub(super) fn hash_again(&mut self) -> io::Result<Hashed> {
        self.facts.entry.size = self.at;
        self.facts.entry.final_in_all = true;
        let head = self.facts.encode();
        if self.draft {
            // Its head must never be away: it alone tells whose content this is. What it does not tell, the index does.
            self.manifest.set_size(head.len() as u64)?;
        } else {
            self.manifest.set_size(0)?;
            self.manifest.write_at(0, &head)?;
        }
        if let Some(room) = self.manifest_room {
            // That went with the rest.
            self.manifest_room = Some(0);
            self.reserve_manifest(room)?;
        }
        let hasher = Hasher::new(shape(&self.facts), self.manifest.clone(), head.len() as u64);
        let (mut at, mut lane, mut block) = (0, Lane::new(hasher), Block::default());
        while at < self.at {
            let left = usize::try_from(self.at - at).unwrap_or(usize::MAX);
            let n = left.min(BLOCK_BYTES);
            match &self.verified {
                Some(read) => read(at, block.space(n)).map(drop).map_err(told)?,
                None => self.content.read_at(at, block.space(n))?,
            }
            block.grow(n);
            block = lane.feed(block)?;
            at += n as u64;
        }
        lane.finish()
    }
}
