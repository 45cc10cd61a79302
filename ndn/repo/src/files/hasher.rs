//! One pass of hashing over a file's bytes as they stream in: each segment's digest and checksum go to the manifest.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use ring::digest;

use super::manifest::{ENTRY_BYTES, SegmentEntry};
use super::segments::{DIGEST_BYTES, Shape};
use crate::disk::DiskFile;

/// Bytes of entries that are written to the manifest at once. What is not written is hashed again when a transfer goes on
/// after a crash.
const ENTRIES_AT_ONCE: usize = 8 * 1024 / ENTRY_BYTES * ENTRY_BYTES;
/// Blocks that may wait for the hashing thread.
const WAITING_BLOCKS: usize = 4;

/// Cuts bytes into segments and writes down what vouches for each.
pub(crate) struct Hasher {
    shape: Shape,
    manifest: Arc<dyn DiskFile>,
    /// Where the next entries go in the manifest.
    at: u64,
    entries: Vec<u8>,
    /// The segment in hand. A whole one waits too: the last has a packet of its own form.
    carry: Vec<u8>,
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

    /// Goes past a segment whose entry is in the manifest already.
    pub fn skip(&mut self, entry: &SegmentEntry) {
        self.root.update(&entry.digest);
        self.segment += 1;
        self.at += ENTRY_BYTES as u64;
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let whole = self.shape.segment_bytes as usize;
        if !self.carry.is_empty() {
            let (more, rest) = bytes.split_at(bytes.len().min(whole - self.carry.len()));
            self.carry.extend_from_slice(more);
            bytes = rest;
            if bytes.is_empty() {
                return Ok(());
            }
            let carry = std::mem::take(&mut self.carry);
            self.put(&carry, false)?;
            self.carry = carry;
            self.carry.clear();
        }
        while bytes.len() > whole {
            let (segment, rest) = bytes.split_at(whole);
            self.put(segment, false)?;
            bytes = rest;
        }
        self.carry.extend_from_slice(bytes);
        Ok(())
    }

    fn put(&mut self, content: &[u8], is_last: bool) -> io::Result<()> {
        let digest = self.shape.digest(self.segment, is_last, content);
        self.root.update(&digest);
        self.entries
            .extend_from_slice(&SegmentEntry::new(digest, content).encode());
        self.segment += 1;
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
        let carry = std::mem::take(&mut self.carry);
        self.put(&carry, true)?;
        self.flush()?;
        let mut root = [0; DIGEST_BYTES];
        root.copy_from_slice(self.root.finish().as_ref());
        Ok(Hashed { at: self.at, root })
    }
}

/// A hasher on a thread of its own, so that one core hashes while another copies.
pub(crate) struct HashThread {
    blocks: SyncSender<Vec<u8>>,
    used: Receiver<Vec<u8>>,
    thread: JoinHandle<io::Result<Hasher>>,
}

impl HashThread {
    /// Starts it.
    pub fn start(hasher: Hasher) -> io::Result<Self> {
        let (blocks, waiting) = sync_channel(WAITING_BLOCKS);
        let (give_back, used) = channel();
        let thread = std::thread::Builder::new()
            .name(String::from("hasher"))
            .spawn(move || work(hasher, &waiting, &give_back))?;
        Ok(Self {
            blocks,
            used,
            thread,
        })
    }

    /// Hands over a block; false where the thread has ended because it could not write.
    pub fn feed(&self, block: Vec<u8>) -> bool {
        self.blocks.send(block).is_ok()
    }

    /// A block that was hashed and can be filled anew.
    pub fn used_block(&self) -> Option<Vec<u8>> {
        self.used.try_recv().ok()
    }

    /// Waits until all that was handed over is hashed.
    pub fn join(self) -> io::Result<Hasher> {
        drop(self.blocks);
        self.thread
            .join()
            .map_err(|_| io::Error::other("the hashing thread panicked"))?
    }
}

fn work(
    mut hasher: Hasher,
    blocks: &Receiver<Vec<u8>>,
    used: &Sender<Vec<u8>>,
) -> io::Result<Hasher> {
    while let Ok(block) = blocks.recv() {
        hasher.feed(&block)?;
        // The writer may be done and gone; then the block is, too.
        let _ = used.send(block);
    }
    Ok(hasher)
}
