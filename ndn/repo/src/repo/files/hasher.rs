//! One pass of hashing over a file's bytes as they stream in: each segment's digest and checksum go to the manifest.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use ring::digest;

use super::manifest::{ENTRY_BYTES, SegmentEntry};
use super::segments::{DIGEST_BYTES, Shape};
use crate::disk::DiskFile;

/// Bytes of entries that are written to the manifest at once. What is not written is hashed again when a transfer goes on
/// after a crash.
const ENTRIES_AT_ONCE: usize = 8 * 1024 / ENTRY_BYTES * ENTRY_BYTES;

/// Cuts bytes into segments and writes down what vouches for each.
pub(crate) struct Hasher {
    shape: Shape,
    manifest: Arc<dyn DiskFile>,
    /// Where the next entries go in the manifest.
    at: u64,
    entries: Vec<u8>,
    /// The segment in hand. A whole one waits too: the last has a packet of its own form.
    carry: Vec<u8>,
    /// The segment that the carry is of.
    segment: u64,
    root: digest::Context,
}

/// What is left when all bytes are in.
pub(crate) struct Hashed {
    /// Where the manifest's end goes.
    pub at: u64,
    /// SHA-256 of all digests.
    pub root: [u8; DIGEST_BYTES],
}

impl Hasher {
    /// For the entries at `at` of `manifest`.
    pub fn new(shape: Shape, manifest: Arc<dyn DiskFile>, at: u64) -> Self {
        Self {
            shape,
            manifest,
            at,
            entries: Vec::new(),
            carry: Vec::new(),
            segment: 0,
            root: digest::Context::new(&digest::SHA256),
        }
    }

    /// What the packets of this version have in common.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Goes past a segment whose entry is in the manifest already.
    pub fn skip(&mut self, entry: &SegmentEntry) {
        self.root.update(&entry.digest);
        self.segment += 1;
        self.at += ENTRY_BYTES as u64;
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (first, carried, whole) = self.cut(bytes);
        let own = bytes[whole].chunks(self.shape.segment_bytes as usize);
        let carried = Some(&carried[..]).filter(|c| !c.is_empty());
        for (segment, content) in (first..).zip(carried.into_iter().chain(own)) {
            let digest = self.shape.digest(segment, false, content);
            self.enter(&SegmentEntry::new(digest, content))?;
        }
        Ok(())
    }

    /// Cuts the next bytes into segments that [`Hasher::enter`] is to be told of, in order: the number of the first; the
    /// first, where it began before these bytes; where in the bytes the whole ones lie. The rest is carried on.
    pub fn cut(&mut self, bytes: &[u8]) -> (u64, Vec<u8>, Range<usize>) {
        let whole = self.shape.segment_bytes as usize;
        let first = self.segment;
        let (mut carried, mut from) = (Vec::new(), 0);
        if !self.carry.is_empty() {
            from = bytes.len().min(whole - self.carry.len());
            self.carry.extend_from_slice(&bytes[..from]);
            if from == bytes.len() {
                return (first, carried, 0..0);
            }
            carried = std::mem::take(&mut self.carry);
            self.segment += 1;
        }
        let count = (bytes.len() - from).saturating_sub(1) / whole;
        let end = from + count * whole;
        self.segment += count as u64;
        self.carry.extend_from_slice(&bytes[end..]);
        (first, carried, from..end)
    }

    /// Takes the entry of the next segment that was cut.
    pub fn enter(&mut self, entry: &SegmentEntry) -> io::Result<()> {
        self.root.update(&entry.digest);
        self.entries.extend_from_slice(&entry.encode());
        if self.entries.len() >= ENTRIES_AT_ONCE {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.manifest.write_at(self.at, &self.entries)?;
        self.at += self.entries.len() as u64;
        self.entries.clear();
        Ok(())
    }

    /// Writes down what is known of whole segments, so that the work can go on from there.
    pub fn suspend(mut self) -> io::Result<()> {
        self.flush()
    }

    /// What was fed was all.
    pub fn finish(mut self) -> io::Result<Hashed> {
        let digest = self.shape.digest(self.segment, true, &self.carry);
        self.enter(&SegmentEntry::new(digest, &self.carry))?;
        self.flush()?;
        let mut root = [0; DIGEST_BYTES];
        root.copy_from_slice(self.root.finish().as_ref());
        Ok(Hashed { at: self.at, root })
    }
}
