//! Packets lent: the peer is told where a packet lies in memory that it sees, and says when it needs it no more.
//!
//! ```text
//!   lender                                            borrower
//!   packet in its memory, place p := lent
//!     -- ring: a few bytes (p, where, how long) -->   p := taken
//!                                                     copies the bytes, or uses them where they lie
//!   lets the packet go, p is free                <--  p := free
//! ```
//! A place is a byte in the control page of the rings, which both sides write. Neither trusts the other: a peer that frees a
//! place too early reads whatever comes to lie there, one that never does holds on to [`PLACES`] packets, which are counted
//! as received and kept like others; where and how long are checked against the memory's size.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ndn_packet::MAX_STREAM_PACKET;
use ndn_packet::lp::Lent;

use crate::face::chunk::ChunkPool;
use crate::face::io::{Borrow, Borrowed};
use crate::memory::mapping::{self, Access, Mapping};
use crate::memory::packets::{PacketMemory, SEALS};
use crate::transport::fd_passing::Passed;
use crate::transport::shm::{PLACES, Places};

/// Smaller packets are cheaper to copy, and a piece of the borrower's memory is one for a jumbo packet at least.
const LEAST: usize = 32 << 10;

/// States of a place.
const FREE: u8 = 0;
const LENT: u8 = 1;
const TAKEN: u8 = 2;

/// What one side has lent.
pub(crate) struct Lender {
    memory: Arc<PacketMemory>,
    places: Places,
    lent: Box<[Option<Bytes>]>,
    free: Vec<u16>,
    /// Places that were not free when they were last looked at.
    out: Vec<u16>,
    /// Those that the peer has not come to yet, in their order, and how long each packet is.
    untaken: VecDeque<(u16, usize)>,
    untaken_bytes: usize,
}

impl Lender {
    /// Lends packets that lie in `memory`.
    pub fn new(memory: Arc<PacketMemory>, places: Places) -> Self {
        Self {
            memory,
            places,
            lent: std::iter::repeat_with(|| None).take(PLACES).collect(),
            free: (0..PLACES as u16).rev().collect(),
            out: Vec::new(),
            untaken: VecDeque::new(),
            untaken_bytes: 0,
        }
    }

    /// Lends a packet; `None` where it is too small for that, lies elsewhere, or too many are lent.
    pub fn lend(&mut self, packet: &Bytes) -> Option<Lent> {
        if packet.len() < LEAST {
            return None;
        }
        let offset = self.memory.offset_of(packet)?;
        if self.free.is_empty() {
            self.take_back();
        }
        let place = self.free.pop()?;
        self.lent[usize::from(place)] = Some(packet.clone());
        self.out.push(place);
        if self.untaken.len() == PLACES {
            // A peer that never comes to the first may have come to all others.
            self.forget_first_untaken();
        }
        self.untaken.push_back((place, packet.len()));
        self.untaken_bytes += packet.len();
        self.places
            .state(place.into())
            .store(LENT, Ordering::Release);
        Some(Lent {
            place,
            len: packet.len() as u32,
            offset: offset as u64,
        })
    }

    /// Lets go of what the peer needs no more.
    pub fn take_back(&mut self) {
        if self.out.is_empty() {
            return;
        }
        self.untaken();
        let Self {
            places,
            lent,
            free,
            out,
            ..
        } = self;
        out.retain(|&place| {
            let is_out = places.state(place.into()).load(Ordering::Acquire) != FREE;
            if !is_out {
                lent[usize::from(place)] = None;
                free.push(place);
            }
            is_out
        });
    }

    /// Bytes that the peer has not come to yet.
    pub fn untaken(&mut self) -> usize {
        while let Some(&(place, _)) = self.untaken.front()
            && self.places.state(place.into()).load(Ordering::Relaxed) != LENT
        {
            self.forget_first_untaken();
        }
        self.untaken_bytes
    }

    fn forget_first_untaken(&mut self) {
        if let Some((_, len)) = self.untaken.pop_front() {
            self.untaken_bytes -= len;
        }
    }
}

impl Drop for Lender {
    /// The face has gone, and its peer may be reading what it was lent: that is let go a little later.
    fn drop(&mut self) {
        self.take_back();
        let left = std::mem::take(&mut self.lent);
        linger(left.into_iter().flatten().collect());
    }
}

/// A peer parses a packet as soon as it comes to it; what it has kept since, it checks in a copy.
const LINGER: Duration = Duration::from_secs(5);
/// Packets that linger at once, at most.
const MOST_LINGERING: usize = 4 * PLACES;
/// Packets that linger.
static LINGERING: AtomicUsize = AtomicUsize::new(0);

fn linger(packets: Vec<Bytes>) {
    let count = packets.len();
    if count == 0 {
        return;
    }
    let Some(keeper) = keeper() else {
        return;
    };
    let others = LINGERING.fetch_add(count, Ordering::Relaxed);
    let may_linger = others + count <= MOST_LINGERING;
    if !may_linger || keeper.send((Instant::now() + LINGER, packets)).is_err() {
        LINGERING.fetch_sub(count, Ordering::Relaxed);
    }
}

/// Packets of a face that has gone, and until when they are kept.
type Left = (Instant, Vec<Bytes>);

/// The thread that lets them go. It ends with the process.
fn keeper() -> Option<&'static Sender<Left>> {
    static KEEPER: OnceLock<Option<Sender<Left>>> = OnceLock::new();
    KEEPER
        .get_or_init(|| {
            let (sender, left): (_, Receiver<Left>) = channel();
            std::thread::Builder::new()
                .name("ndn-lender".to_owned())
                .spawn(move || {
                    for (until, packets) in left {
                        std::thread::sleep(until.saturating_duration_since(Instant::now()));
                        LINGERING.fetch_sub(packets.len(), Ordering::Relaxed);
                    }
                })
                .map(|_| sender)
                .ok()
        })
        .as_ref()
}

/// What one side borrows from.
pub(crate) struct Borrower {
    places: Arc<Places>,
    bytes: u64,
    source: Source,
}

/// How borrowed bytes are read.
enum Source {
    /// By the system: pages of the peer's that were never written to take no memory then, and none counts as this
    /// process's.
    File(Passed),
    /// Used where they lie.
    Kept(Arc<Mapping>),
}

impl Borrower {
    /// Borrows from the memory in `file`, `bytes` long.
    ///
    /// # Errors
    /// It is no memory that only its maker writes to, or of another size.
    pub fn new(file: Passed, bytes: u64, way: Borrow, places: Places) -> io::Result<Self> {
        mapping::check_sealed(&file, SEALS, bytes)?;
        let source = match way {
            Borrow::Copy => Source::File(file),
            Borrow::Keep => {
                let len = usize::try_from(bytes).map_err(io::Error::other)?;
                let map = Mapping::new(file.as_fd(), len, Access::Read)?;
                Source::Kept(Arc::new(map))
            }
        };
        Ok(Self {
            places: Arc::new(places),
            bytes,
            source,
        })
    }

    /// Takes what was lent, copied into a chunk of `pool` or used where it lies.
    ///
    /// # Errors
    /// The peer has told of a packet that can't be.
    pub fn take(&self, lent: Lent, pool: &ChunkPool) -> io::Result<Borrowed> {
        let (place, len) = (usize::from(lent.place), lent.len as usize);
        let end = lent.offset.checked_add(lent.len.into());
        let is_inside = end.is_some_and(|end| end <= self.bytes);
        if place >= PLACES || !is_inside || !(LEAST..=MAX_STREAM_PACKET).contains(&len) {
            return Err(malformed());
        }
        let state = self.places.state(place);
        match &self.source {
            Source::File(file) => {
                let packet = copy(file, lent.offset, len, pool)?;
                state.store(FREE, Ordering::Release);
                Ok(Borrowed::Copied(packet))
            }
            Source::Kept(map) => {
                state.store(TAKEN, Ordering::Release);
                Ok(Borrowed::InPlace(Bytes::from_owner(InPlace {
                    map: map.clone(),
                    offset: lent.offset as usize,
                    len,
                    places: self.places.clone(),
                    place,
                })))
            }
        }
    }
}

fn malformed() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the peer lends a packet that is none",
    )
}

/// A packet of `len` bytes, in a chunk of `pool` unless that runs short.
fn copy(file: &Passed, offset: u64, len: usize, pool: &ChunkPool) -> io::Result<Bytes> {
    if pool.is_stretched() {
        let mut packet = vec![0; len];
        read(file, &mut packet, offset)?;
        return Ok(packet.into());
    }
    let mut chunk = pool.take_for(len);
    let to = chunk.as_mut().get_mut(..len).ok_or_else(malformed)?;
    read(file, to, offset)?;
    Ok(chunk.freeze(len))
}

fn read(file: &Passed, mut to: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !to.is_empty() {
        match rustix::io::pread(file, &mut *to, offset) {
            Ok(0) => return Err(malformed()),
            Ok(n) => {
                to = &mut to[n..];
                offset += n as u64;
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A packet that is used where the lender has it.
struct InPlace {
    map: Arc<Mapping>,
    offset: usize,
    len: usize,
    places: Arc<Places>,
    place: usize,
}

impl AsRef<[u8]> for InPlace {
    fn as_ref(&self) -> &[u8] {
        let start = self.map.at(self.offset).as_ptr();
        // SAFETY: the range was checked against the mapping, which `map` keeps. The lender alone can write to it, and does
        // not before the place is free. One that does so all the same changes what it has sent, which nobody relies on:
        // whoever keeps borrowed packets copies their content out before it is checked (`LinkOptions::keep_lent`).
        unsafe { std::slice::from_raw_parts(start, self.len) }
    }
}

impl Drop for InPlace {
    fn drop(&mut self) {
        // Else all of the lender's memory would soon count as this process's, too.
        self.map.forget(self.offset, self.len);
        self.places.state(self.place).store(FREE, Ordering::Release);
    }
}

#[cfg(all(test, not(miri)))]
#[path = "lending_tests.rs"]
mod tests;
