//! Memory that packets lie in so that processes of this host can read them where they are.
//!
//! A packet that goes to a local peer by a ring of shared memory is copied into the ring, and out of it. Where the packet
//! lies in memory that the peer sees anyhow, a few bytes that say where are enough (see `transport::lending`). So a
//! forwarder reads its sockets into such memory, and an application makes its packets in it.
//!
//! The memory is a file that its maker alone can write to: it is mapped, then sealed against every later writer. It does not
//! shrink again; pages that were never used take nothing.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ndn_packet::{MAX_JUMBO_PACKET, MAX_STREAM_PACKET};
use rustix::fs::SealFlags;

use super::mapping::{self, Access, Mapping};

/// Bytes of a piece for many packets, what a stream is read into.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;
/// Bytes of a piece for one packet of the size that datagrams have at most, and a little for whoever makes it.
pub(crate) const PACKET_BYTES: usize = MAX_JUMBO_PACKET + 3 * 1024;
/// Bytes of a piece for one packet of any size, and a little for whoever makes it.
pub(crate) const LARGE_BYTES: usize = MAX_STREAM_PACKET + 4 * 1024;

/// How the file of such memory is sealed.
pub(crate) const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::FUTURE_WRITE);

/// The sizes of pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Chunk,
    Packet,
    Large,
}

impl Size {
    /// The piece for one packet of so many bytes.
    pub const fn for_packet(bytes: usize) -> Self {
        if bytes <= PACKET_BYTES {
            Size::Packet
        } else {
            Size::Large
        }
    }

    /// Bytes of a piece.
    pub const fn bytes(self) -> usize {
        match self {
            Size::Chunk => CHUNK_BYTES,
            Size::Packet => PACKET_BYTES,
            Size::Large => LARGE_BYTES,
        }
    }
}

/// Memory of packets.
pub(crate) struct PacketMemory {
    file: OwnedFd,
    map: Mapping,
    chunks: Region,
    packets: Region,
    large: Region,
    /// Bytes of pieces that have been in use: their pages stay.
    touched: AtomicUsize,
    most_touched: usize,
}

/// How much of such memory there is, in bytes of each size; none is taken before it is used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sizes {
    pub chunks: usize,
    pub packets: usize,
    pub large: usize,
    /// Most bytes of pieces of all sizes that are ever used.
    pub most: usize,
}

/// Equal pieces in a row.
struct Region {
    size: Size,
    start: usize,
    count: u32,
    free: Mutex<Free>,
}

#[derive(Default)]
struct Free {
    /// Pieces before this one have been in use.
    fresh: u32,
    /// Those that are free again; the last one freed is the first to be taken, its bytes are still in caches.
    again: Vec<u32>,
}

impl PacketMemory {
    /// Memory of so many bytes in pieces of each size, about.
    ///
    /// # Errors
    /// Where the system gives no such memory: before Linux 5.1 it can't be sealed so.
    pub fn new(sizes: Sizes) -> io::Result<Arc<Self>> {
        let region = |size: Size, start, bytes: usize| Region {
            size,
            start,
            count: u32::try_from(bytes / size.bytes()).unwrap_or(u32::MAX),
            free: Mutex::default(),
        };
        let chunks = region(Size::Chunk, 0, sizes.chunks);
        let packets = region(Size::Packet, chunks.end(), sizes.packets);
        let large = region(Size::Large, packets.end(), sizes.large);
        let bytes = large.end().next_multiple_of(4096).max(4096);
        let file = mapping::memory_file("trunkline-packets", bytes)?;
        let map = Mapping::new(file.as_fd(), bytes, Access::ReadWrite)?;
        rustix::fs::fcntl_add_seals(&file, SEALS | SealFlags::SEAL)?;
        Ok(Arc::new(Self {
            file,
            map,
            chunks,
            packets,
            large,
            touched: AtomicUsize::new(0),
            most_touched: sizes.most,
        }))
    }

    /// The file, for a peer.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.map.len()
    }

    /// Where in the memory these bytes lie; `None` where they are elsewhere.
    pub fn offset_of(&self, bytes: &[u8]) -> Option<usize> {
        let start = self.map.at(0).as_ptr() as usize;
        let offset = (bytes.as_ptr() as usize).checked_sub(start)?;
        (offset < self.bytes()).then_some(offset)
    }

    /// A piece that nobody uses; `None` where all are used.
    pub fn take(self: &Arc<Self>, size: Size) -> Option<Piece> {
        let region = self.region(size);
        let mut free = region.lock();
        let index = match free.again.pop() {
            Some(index) => index,
            None if free.fresh < region.count && self.may_touch(size.bytes()) => {
                free.fresh += 1;
                free.fresh - 1
            }
            None => return None,
        };
        drop(free);
        Some(Piece {
            memory: self.clone(),
            size,
            index,
        })
    }

    /// Whether the pages of so many bytes more may be used; they are not given back.
    fn may_touch(&self, bytes: usize) -> bool {
        let more = |touched: usize| Some(touched + bytes).filter(|sum| *sum <= self.most_touched);
        let (relaxed, touched) = (Ordering::Relaxed, &self.touched);
        touched.fetch_update(relaxed, relaxed, more).is_ok()
    }

    fn region(&self, size: Size) -> &Region {
        match size {
            Size::Chunk => &self.chunks,
            Size::Packet => &self.packets,
            Size::Large => &self.large,
        }
    }
}

impl fmt::Debug for PacketMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes();
        f.debug_struct("PacketMemory")
            .field("bytes", &bytes)
            .finish()
    }
}

impl Region {
    fn end(&self) -> usize {
        self.start + self.count as usize * self.size.bytes()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A piece of the memory, of one owner.
pub(crate) struct Piece {
    memory: Arc<PacketMemory>,
    size: Size,
    index: u32,
}

impl Piece {
    fn start(&self) -> usize {
        self.memory.region(self.size).start + self.index as usize * self.size.bytes()
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        let start = self.memory.map.at(self.start()).as_ptr();
        // SAFETY: a piece lies within the mapping, which `memory` keeps; no two have the same bytes, other processes can't
        // write to them, and here that takes `&mut self`.
        unsafe { std::slice::from_raw_parts(start, self.size.bytes()) }
    }
}

impl AsMut<[u8]> for Piece {
    fn as_mut(&mut self) -> &mut [u8] {
        let start = self.memory.map.at(self.start()).as_ptr();
        // SAFETY: as above. A process that reads meanwhile what it was not lent, or no more, sees whatever it sees.
        unsafe { std::slice::from_raw_parts_mut(start, self.size.bytes()) }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut free = self.memory.region(self.size).lock();
        free.again.push(self.index);
    }
}

/// Where an application makes packets that its forwarder may read where they are; see
/// [`crate::NodeConfig::made_packets_bytes`].
#[derive(Debug, Clone)]
pub struct PacketBuffers(pub(crate) Arc<PacketMemory>);

impl PacketBuffers {
    /// Memory for one packet of up to so many bytes; what an earlier packet has left is in it. `None` where so many
    /// packets are kept that there is none, and for packets above [`ndn_packet::MAX_STREAM_PACKET`].
    pub fn take(&self, bytes: usize) -> Option<PacketBuffer> {
        let size = Size::for_packet(bytes);
        (bytes <= size.bytes())
            .then(|| self.0.take(size))?
            .map(PacketBuffer)
    }
}

/// Memory for one packet.
pub struct PacketBuffer(Piece);

impl fmt::Debug for PacketBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PacketBuffer")
    }
}

impl AsRef<[u8]> for PacketBuffer {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl AsMut<[u8]> for PacketBuffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self.0.as_mut()
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_of_one_owner_and_come_again() {
        let memory = PacketMemory::new(Sizes {
            chunks: 3 * CHUNK_BYTES,
            packets: 2 * PACKET_BYTES + 5,
            large: LARGE_BYTES,
            most: usize::MAX,
        })
        .unwrap();
        let mut chunks: Vec<_> = (0..3).map(|_| memory.take(Size::Chunk).unwrap()).collect();
        let mut packets: Vec<_> = (0..2).map(|_| memory.take(Size::Packet).unwrap()).collect();
        assert!(memory.take(Size::Chunk).is_none() && memory.take(Size::Packet).is_none());
        packets.push(memory.take(Size::Large).unwrap());
        assert!(memory.take(Size::Large).is_none());
        for (i, piece) in chunks.iter_mut().chain(&mut packets).enumerate() {
            piece.as_mut().fill(i as u8);
        }
        for (i, piece) in chunks.iter().chain(&packets).enumerate() {
            assert!(piece.as_ref().iter().all(|byte| *byte == i as u8));
        }
        let at = memory.offset_of(&chunks[1].as_ref()[7..]);
        assert_eq!(at, Some(CHUNK_BYTES + 7));
        assert_eq!(memory.offset_of(&[0; 8]), None);
        drop(chunks.remove(1));
        assert_eq!(memory.take(Size::Chunk).unwrap().start(), CHUNK_BYTES);
    }

    #[test]
    fn pages_of_all_sizes_together_are_bounded() {
        let memory = PacketMemory::new(Sizes {
            chunks: 0,
            packets: 10 * PACKET_BYTES,
            large: 10 * LARGE_BYTES,
            most: 2 * LARGE_BYTES,
        })
        .unwrap();
        let small: Vec<_> = (0..10).filter_map(|_| memory.take(Size::Packet)).collect();
        assert_eq!(small.len(), 10);
        let large: Vec<_> = (0..3).filter_map(|_| memory.take(Size::Large)).collect();
        assert_eq!(large.len(), 1);
        drop(large);
        assert!(memory.take(Size::Large).is_some(), "its pages are there");
    }

    #[test]
    fn nobody_else_writes_to_it() {
        let memory = PacketMemory::new(Sizes {
            chunks: CHUNK_BYTES,
            most: CHUNK_BYTES,
            ..Sizes::default()
        })
        .unwrap();
        let file = memory.file().try_clone_to_owned().unwrap();
        mapping::check_sealed(&file, SEALS, memory.bytes() as u64).unwrap();
        assert!(mapping::check_sealed(&file, SEALS, 1 + memory.bytes() as u64).is_err());
        assert!(Mapping::new(file.as_fd(), memory.bytes(), Access::ReadWrite).is_err());
        assert!(rustix::io::pwrite(&file, b"other", 0).is_err());
        assert!(rustix::fs::ftruncate(&file, 0).is_err());
        Mapping::new(file.as_fd(), memory.bytes(), Access::Read).unwrap();
    }
}
