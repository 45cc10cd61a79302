//! Shared memory under a Unix face: two rings of bytes, one a direction.
//!
//! A Unix socket costs the kernel a buffer and two copies a packet. Two Trunkline processes
//! on one host may agree (see `hello`) to let the bytes of their face run through a pair of
//! rings in one sealed memory file instead; the socket stays as doorbell and as the sign
//! that the peer lives. The rings carry the same stream of frames that the socket would.
//!
//! ```text
//!   page 0   ring 0: head | tail | reader sleeps | writer sleeps   (a cache line pair each)
//!            ring 1: head | tail | reader sleeps | writer sleeps
//!            places of packets lent by the side that writes ring 0, then ring 1 (a byte each, see `lending`)
//!   page 1.. ring 0's bytes, then ring 1's bytes
//! ```
//! The side that connected writes ring 0 and reads ring 1. `head` and `tail` count bytes ever
//! written and read. Whoever is about to sleep says so first and looks once more; whoever
//! moves a counter looks for a sleeper afterwards and then rings the doorbell. The peer is
//! not trusted: its counters are checked against the capacity, the file is sealed against
//! shrinking, and bytes are copied out before anybody parses them.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

use rustix::fs::SealFlags;

use crate::face::io::Side;
use crate::memory::mapping::{self, Access, Mapping};

const CONTROL_BYTES: usize = 4096;
const LINE: usize = 128;
/// A ring is at most this large, whatever a peer offers.
const MAX_RING_BYTES: usize = 64 << 20;
/// Where the places of lent packets begin in the control page, and how many each side has.
const PLACES_AT: usize = 8 * LINE;
pub(crate) const PLACES: usize = 1024;
const SIZE_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);
/// A writer shows the reader what it has copied at least this often.
const PUBLISH_BYTES: usize = 64 * 1024;

/// The peer broke the protocol of the rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer's counters in shared memory are out of bounds")]
pub(crate) struct RingError;

/// One mapped pair of rings, as one side sees it.
pub(crate) struct Rings {
    map: Arc<Mapping>,
    capacity: usize,
    side: Side,
    /// Our own counters, kept where the peer cannot reach them.
    written: u64,
    read: u64,
    /// Where the peer's counters stood when we last looked.
    peer_read: u64,
    peer_written: u64,
}

/// Makes the memory of a pair of rings of `ring_bytes` each (a power of two), sealed.
pub(crate) fn create(ring_bytes: usize) -> io::Result<(OwnedFd, Rings)> {
    let file = mapping::memory_file("trunkline-face", total_bytes(ring_bytes))?;
    rustix::fs::fcntl_add_seals(&file, SIZE_SEALS | SealFlags::SEAL)?;
    let rings = Rings::map(file.as_fd(), ring_bytes, Side::Connector)?;
    Ok((file, rings))
}

/// Maps what a connecting peer made.
///
/// # Errors
/// Where the file is not sealed against shrinking, or of another size than `ring_bytes` says.
pub(crate) fn open(file: impl AsFd, ring_bytes: usize) -> io::Result<Rings> {
    if !ring_bytes.is_power_of_two() || !(CONTROL_BYTES..=MAX_RING_BYTES).contains(&ring_bytes) {
        let what = "the size of the rings is out of range";
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    mapping::check_sealed(&file, SIZE_SEALS, total_bytes(ring_bytes) as u64)?;
    Rings::map(file.as_fd(), ring_bytes, Side::Listener)
}

fn total_bytes(ring_bytes: usize) -> usize {
    CONTROL_BYTES + 2 * ring_bytes
}

#[derive(Clone, Copy)]
enum Word {
    Head = 0,
    Tail = 1,
    ReaderSleeps = 2,
    WriterSleeps = 3,
}

impl Rings {
    fn map(file: BorrowedFd<'_>, capacity: usize, side: Side) -> io::Result<Self> {
        let map = Mapping::new(file, total_bytes(capacity), Access::ReadWrite)?;
        Ok(Self::of(map, capacity, side))
    }

    fn of(map: Mapping, capacity: usize, side: Side) -> Self {
        Self {
            map: Arc::new(map),
            capacity,
            side,
            written: 0,
            read: 0,
            peer_read: 0,
            peer_written: 0,
        }
    }

    fn out_ring(&self) -> usize {
        usize::from(self.side == Side::Listener)
    }

    fn in_ring(&self) -> usize {
        1 - self.out_ring()
    }

    /// The places of packets that this side lends.
    pub fn own_places(&self) -> Places {
        Places(self.map.clone(), self.out_ring())
    }

    /// The places of packets that the peer lends.
    pub fn peer_places(&self) -> Places {
        Places(self.map.clone(), self.in_ring())
    }

    fn room(&mut self) -> Result<usize, RingError> {
        let used = |written: u64, read: u64| written.wrapping_sub(read);
        if used(self.written, self.peer_read) as usize >= self.capacity / 2 {
            self.peer_read = self
                .map
                .counter(self.out_ring(), Word::Tail)
                .load(Ordering::Acquire);
        }
        let used = used(self.written, self.peer_read);
        if used > self.capacity as u64 {
            return Err(RingError);
        }
        Ok(self.capacity - used as usize)
    }

    /// Bytes written that the peer has not read, as its counter says.
    pub fn unread(&self) -> usize {
        let tail = self.map.counter(self.out_ring(), Word::Tail);
        let unread = self.written.wrapping_sub(tail.load(Ordering::Relaxed));
        usize::try_from(unread).map_or(0, |bytes| bytes.min(self.capacity))
    }

    fn available(&mut self) -> Result<usize, RingError> {
        let head = self.map.counter(self.in_ring(), Word::Head);
        self.peer_written = head.load(Ordering::Acquire);
        let available = self.peer_written.wrapping_sub(self.read);
        if available > self.capacity as u64 {
            return Err(RingError);
        }
        Ok(available as usize)
    }

    /// Copies as much of `pieces` into the ring as there is room for; returns the bytes taken.
    pub fn write(&mut self, pieces: &[IoSlice<'_>]) -> Result<usize, RingError> {
        let mut room = self.room()?;
        let (mut taken, mut unpublished) = (0, 0);
        for piece in pieces {
            let n = piece.len().min(room);
            let at = self.written as usize & (self.capacity - 1);
            self.map
                .copy_in(self.out_ring(), self.capacity, at, &piece[..n]);
            self.written = self.written.wrapping_add(n as u64);
            room -= n;
            taken += n;
            unpublished += n;
            if unpublished >= PUBLISH_BYTES {
                self.publish();
                unpublished = 0;
            }
            if n < piece.len() {
                break;
            }
        }
        if unpublished > 0 {
            self.publish();
        }
        Ok(taken)
    }

    fn publish(&self) {
        self.map
            .counter(self.out_ring(), Word::Head)
            .store(self.written, Ordering::Release);
    }

    /// Copies what has come into `buf`; returns the bytes, 0 where none are there.
    pub fn read(&mut self, buf: &mut [u8]) -> Result<usize, RingError> {
        let n = self.available()?.min(buf.len());
        if n > 0 {
            let at = self.read as usize & (self.capacity - 1);
            self.map
                .copy_out(self.in_ring(), self.capacity, at, &mut buf[..n]);
            self.read = self.read.wrapping_add(n as u64);
            self.map
                .counter(self.in_ring(), Word::Tail)
                .store(self.read, Ordering::Release);
        }
        Ok(n)
    }

    /// After writing: whether the peer sleeps for want of bytes and must be woken.
    pub fn must_wake_reader(&self) -> bool {
        self.take_sleeper(self.out_ring(), Word::ReaderSleeps)
    }

    /// After reading: whether the peer sleeps for want of room and must be woken. It is left
    /// asleep until a quarter of the ring is free, so that it wakes for more than a packet.
    pub fn must_wake_writer(&mut self) -> bool {
        let free_enough = self.available().is_ok_and(|n| n <= self.capacity / 4 * 3);
        free_enough && self.take_sleeper(self.in_ring(), Word::WriterSleeps)
    }

    fn take_sleeper(&self, ring: usize, word: Word) -> bool {
        // Orders our counter's store before the look at the sleeper's flag; the sleeper does
        // the reverse, so one of the two sees the other.
        fence(Ordering::SeqCst);
        let flag = self.map.flag(ring, word);
        flag.load(Ordering::Relaxed) != 0 && flag.swap(0, Ordering::AcqRel) != 0
    }

    /// Before sleeping: asks to be woken for bytes. False where some are already there.
    pub fn sleep_for_bytes(&mut self) -> Result<bool, RingError> {
        let flag = self.map.flag(self.in_ring(), Word::ReaderSleeps);
        flag.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.available()? == 0 {
            return Ok(true);
        }
        self.map
            .flag(self.in_ring(), Word::ReaderSleeps)
            .store(0, Ordering::Relaxed);
        Ok(false)
    }

    /// Before sleeping on a full ring: asks to be woken for room. False where there is some.
    pub fn sleep_for_room(&mut self) -> Result<bool, RingError> {
        self.map
            .flag(self.out_ring(), Word::WriterSleeps)
            .store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.room()? < self.capacity / 4 {
            return Ok(true);
        }
        self.map
            .flag(self.out_ring(), Word::WriterSleeps)
            .store(0, Ordering::Relaxed);
        Ok(false)
    }
}

#[cfg(any(test, fuzzing))]
impl Rings {
    /// What a peer can do at any time: sets the head of a ring, or else its tail, to so much beyond what it should be.
    pub(crate) fn lie(&self, ring: usize, head: bool, beyond: u64) {
        let word = if head { Word::Head } else { Word::Tail };
        let counter = self.map.counter(ring, word);
        let told = counter.load(Ordering::Relaxed);
        counter.store(told.wrapping_add(beyond), Ordering::Release);
    }
}

/// A byte for each packet that one side has lent to the other, kept in the control page.
pub(crate) struct Places(Arc<Mapping>, usize);

impl Places {
    /// The byte of a place below [`PLACES`].
    pub fn state(&self, place: usize) -> &AtomicU8 {
        assert!(place < PLACES, "a place that is not there");
        let at = self.0.at(PLACES_AT + self.1 * PLACES + place);
        // SAFETY: within the control page, and both sides touch it by atomic operations alone.
        unsafe { at.cast::<AtomicU8>().as_ref() }
    }
}

impl Mapping {
    fn counter(&self, ring: usize, word: Word) -> &AtomicU64 {
        // SAFETY: the offset lies in the control page, is aligned to a cache line pair, and
        // both sides touch it by atomic operations alone.
        unsafe {
            self.at((ring * 4 + word as usize) * LINE)
                .cast::<AtomicU64>()
                .as_ref()
        }
    }

    fn flag(&self, ring: usize, word: Word) -> &AtomicU32 {
        // SAFETY: as in `counter`.
        unsafe {
            self.at((ring * 4 + word as usize) * LINE)
                .cast::<AtomicU32>()
                .as_ref()
        }
    }

    fn ring(&self, ring: usize, capacity: usize) -> NonNull<u8> {
        self.at(CONTROL_BYTES + ring * capacity)
    }

    /// `at < capacity` and `from.len() <= capacity`: the caller masks and bounds them.
    fn copy_in(&self, ring: usize, capacity: usize, at: usize, from: &[u8]) {
        debug_assert!(at < capacity && from.len() <= capacity);
        let (first, second) = from.split_at(from.len().min(capacity - at));
        let ring = self.ring(ring, capacity);
        // SAFETY: `first` ends at the ring's end at the latest and `second` starts at its
        // beginning; our own memory does not overlap the mapping.
        unsafe {
            ring.add(at)
                .copy_from_nonoverlapping(NonNull::from(first).cast(), first.len());
            ring.copy_from_nonoverlapping(NonNull::from(second).cast(), second.len());
        }
    }

    /// `at < capacity` and `to.len() <= capacity`: the caller masks and bounds them.
    fn copy_out(&self, ring: usize, capacity: usize, at: usize, to: &mut [u8]) {
        debug_assert!(at < capacity && to.len() <= capacity);
        let split = to.len().min(capacity - at);
        let (first, second) = to.split_at_mut(split);
        let ring = self.ring(ring, capacity);
        // SAFETY: as in `copy_in`. A peer that writes there meanwhile can only garble bytes
        // that are still unread and unparsed; what counts is the private copy made here.
        unsafe {
            ring.add(at)
                .copy_to_nonoverlapping(NonNull::from(&mut *first).cast(), first.len());
            ring.copy_to_nonoverlapping(NonNull::from(&mut *second).cast(), second.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(test, miri))]
    fn pair(bytes: usize) -> (Rings, Rings) {
        let heap = mapping::heap::Heap::new(total_bytes(bytes));
        let side = |side| Rings::of(heap.mapping(), bytes, side);
        (side(Side::Connector), side(Side::Listener))
    }

    #[cfg(not(all(test, miri)))]
    fn pair(bytes: usize) -> (Rings, Rings) {
        let (file, connector) = create(bytes).unwrap();
        let listener = open(&file, bytes).unwrap();
        (connector, listener)
    }

    #[test]
    fn bytes_cross_in_order_and_wrap() {
        let (mut a, mut b) = pair(4096);
        let sent: Vec<u8> = (0..40_000u32).map(|i| (i % 251) as u8).collect();
        let (mut at, mut got) = (0, Vec::new());
        let mut buf = [0; 1000];
        while got.len() < sent.len() {
            let end = (at + 1300).min(sent.len());
            at += a.write(&[IoSlice::new(&sent[at..end])]).unwrap();
            let n = b.read(&mut buf).unwrap();
            got.extend_from_slice(&buf[..n]);
        }
        assert_eq!(got, sent);
        assert_eq!(
            b.write(&[IoSlice::new(b"back"), IoSlice::new(b"wards")])
                .unwrap(),
            9
        );
        let n = a.read(&mut buf).unwrap();
        assert_eq!(&buf[..n], b"backwards");
    }

    /// Two threads that sleep whenever they may and are woken by each other alone: no byte is read before it was written, and
    /// no wake is lost.
    #[test]
    fn two_sides_that_sleep_lose_no_byte_and_no_wake() {
        const BYTES: usize = if cfg!(miri) { 12_000 } else { 4_000_000 };
        let (mut near, mut far) = pair(4096);
        let writer = std::thread::current();
        let (hand, handed) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 700];
            let mut read = 0;
            hand.send(()).unwrap();
            while read < BYTES {
                let count = far.read(&mut buffer).unwrap();
                for (at, byte) in buffer[..count].iter().enumerate() {
                    assert_eq!(*byte, (read + at) as u8);
                }
                read += count;
                if far.must_wake_writer() {
                    writer.unpark();
                }
                if count == 0 && far.sleep_for_bytes().unwrap() {
                    std::thread::park();
                }
            }
        });
        handed.recv().unwrap();
        let mut written = 0;
        while written < BYTES {
            let piece: Vec<u8> = (written..BYTES.min(written + 900))
                .map(|at| at as u8)
                .collect();
            let taken = near.write(&[IoSlice::new(&piece)]).unwrap();
            written += taken;
            if near.must_wake_reader() {
                reader.thread().unpark();
            }
            if taken == 0 && near.sleep_for_room().unwrap() {
                std::thread::park();
            }
        }
        reader.join().unwrap();
    }

    #[test]
    fn a_sleeper_is_woken_once() {
        let (mut a, mut b) = pair(4096);
        assert!(!a.must_wake_reader());
        assert!(b.sleep_for_bytes().unwrap());
        a.write(&[IoSlice::new(&[1; 4096])]).unwrap();
        assert!(a.must_wake_reader() && !a.must_wake_reader());
        assert!(!b.sleep_for_bytes().unwrap());
        assert_eq!(a.write(&[IoSlice::new(&[1])]).unwrap(), 0);
        assert!(a.sleep_for_room().unwrap());
        let mut buf = [0; 1024];
        b.read(&mut buf[..100]).unwrap();
        assert!(!b.must_wake_writer(), "too little room to wake for");
        b.read(&mut buf).unwrap();
        assert!(b.must_wake_writer());
        assert!(!a.sleep_for_room().unwrap());
    }

    #[test]
    fn a_lying_peer_is_found_out() {
        let (a, mut b) = pair(4096);
        a.lie(0, true, 5000);
        assert_eq!(b.read(&mut [0; 10]), Err(RingError));
        b.written = 4000;
        a.lie(1, false, 4001);
        assert_eq!(b.write(&[IoSlice::new(&[0])]), Err(RingError));
    }

    #[test]
    #[cfg(not(all(test, miri)))]
    fn unsealed_or_missized_memory_is_refused() {
        let plain = mapping::memory_file("t", total_bytes(4096)).unwrap();
        assert!(open(&plain, 4096).is_err());
        let (file, _rings) = create(8192).unwrap();
        assert!(open(&file, 4096).is_err());
        assert!(open(&file, 5000).is_err());
        assert!(open(&file, 8192).is_ok());
    }
}
