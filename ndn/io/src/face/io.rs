//! What a face asks of whatever carries its bytes. Each kind of transport implements one of the
//! two: a [`StreamIo`] for bytes in order, a [`DatagramIo`] for packets that may be lost.
//!
//! Both move bytes in batches, so that the call through the trait costs nothing that shows, and
//! neither waits: readiness comes by events, edge-triggered.

use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ndn_packet::lp::Lent;

use crate::config::Lend;
use crate::face::chunk::{ChunkPool, SmallFrames};
use crate::face::datagram_buffers::DatagramBuffers;
use crate::face::queue::SendQueue;
use crate::memory::packets::PacketMemory;

/// Which end of a connection one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The side that connected; of shared memory, the one that made it.
    Connector,
    /// The side that listened.
    Listener,
}

/// One stream connection, or an attempt at one.
pub(crate) trait StreamIo: Send {
    /// What the loop waits for events on.
    fn fd(&self) -> RawFd;

    /// Goes on with a connection that was begun. Whether it has come about: `None` while it is under way.
    fn connected(&mut self) -> Option<io::Result<()>>;

    /// Names that the peer has proven to have, by its certificate.
    fn peer_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Bytes of memory that it may take beside what every face does.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// The face URI of this end.
    fn local_uri(&self) -> String;

    /// Differentiated services code point of what is sent, where there is an IP header for it.
    fn dscp(&self) -> Option<u8> {
        None
    }

    /// What the poll said.
    fn on_event(&mut self, event: &mio::event::Event);

    /// Reads what there is; 0 where nothing is.
    ///
    /// # Errors
    /// The connection has ended.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize>;

    /// What the reads since the last call have cost beside the bytes they gave, in bytes that could be read meanwhile:
    /// where it is much, the turn ends sooner.
    fn take_read_cost(&mut self) -> usize {
        0
    }

    /// All that has come was read, and of what comes so many bytes at least are needed before anything can be done with
    /// them: events may wait for that.
    ///
    /// # Errors
    /// Events would not tell of what comes.
    fn expect(&mut self, bytes: usize) -> io::Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// Writes as much of the queue as goes without waiting.
    ///
    /// # Errors
    /// The connection has ended.
    fn flush(&mut self, queue: &mut SendQueue) -> io::Result<()>;

    /// Bytes that it has taken from the queue and not given to the system yet.
    fn unwritten(&self) -> usize {
        0
    }

    /// Bytes that wait for the peer in all where `queued` wait to be written; exact where that is
    /// more than `threshold`.
    fn waiting(&mut self, now: Duration, queued: usize, threshold: usize) -> usize;

    /// Shared memory, on connections that could have it.
    fn memory(&mut self) -> Option<&mut dyn SharedMemory> {
        None
    }

    /// How far its bytes go through shared memory.
    fn memory_use(&self) -> MemoryUse {
        MemoryUse::default()
    }

    /// Lends a packet to the peer, which is to be told where it lies; `None` where it has to be sent.
    fn lend(&mut self, packet: &Bytes) -> Option<Lent> {
        let _ = packet;
        None
    }

    /// Takes what the peer has lent, into a chunk of `pool` where it is copied.
    ///
    /// # Errors
    /// The peer has told of a packet that can't be.
    fn take_lent(&mut self, lent: Lent, pool: &ChunkPool) -> io::Result<Borrowed> {
        let _ = (lent, pool);
        let what = "the peer lends packets on a face without shared memory";
        Err(io::Error::new(io::ErrorKind::InvalidData, what))
    }

    /// Before the loop sleeps: true where nothing has come that no event told of.
    ///
    /// # Errors
    /// The connection has ended.
    fn may_sleep(&mut self) -> io::Result<bool> {
        Ok(true)
    }
}

/// How packets that the peer lends are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Borrow {
    /// Copied first.
    Copy,
    /// Used where they lie.
    Keep,
}

/// A packet that the peer has lent.
pub(crate) enum Borrowed {
    Copied(Bytes),
    /// Where the peer has it: nobody is to keep it for long.
    InPlace(Bytes),
}

/// How far a connection's bytes go through shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MemoryUse {
    /// Memory was made or mapped.
    pub there: bool,
    /// The peer's bytes come by it.
    pub reads: bool,
    /// Our bytes go by it.
    pub writes: bool,
}

impl MemoryUse {
    /// Whether bytes go both ways by it.
    pub fn goes_both_ways(self) -> bool {
        self.reads && self.writes
    }
}

/// A connection that two processes of one host may move into memory they share (see `hello`).
pub(crate) trait SharedMemory {
    /// Connector: makes memory to offer, of `ring_bytes` a direction; it travels with the next
    /// bytes sent.
    fn make(&mut self, ring_bytes: usize) -> io::Result<()>;

    /// Listener: maps the memory that came with an offer.
    fn accept(&mut self, ring_bytes: usize) -> io::Result<()>;

    /// Listener: what came with an offer is not wanted.
    fn refuse(&mut self);

    /// Our bytes go by ring once the `queued` bytes before them have gone by socket.
    fn switch_outgoing(&mut self, queued: usize);

    /// The peer's bytes come by ring from now on.
    fn switch_incoming(&mut self);

    /// Offers the memory of packets, which travels with the next bytes sent, where this peer may see it. Returns its bytes.
    fn offer_packets(&mut self, memory: &Arc<PacketMemory>, to: Lend) -> Option<u64>;

    /// Takes the memory of packets that came with an offer, after that of the rings if both came.
    ///
    /// # Errors
    /// It is no such memory.
    fn accept_packets(&mut self, bytes: u64, way: Borrow) -> io::Result<()>;

    /// The peer has taken the memory of packets: they are lent from now on.
    fn lend_packets(&mut self);
}

/// A socket that sends and receives datagrams: of one face, or of a listener with many. Used by
/// one loop's thread alone.
pub(crate) trait DatagramIo: Send + Sync {
    /// What the loop waits for events on.
    fn fd(&self) -> RawFd;

    /// The address of this end.
    ///
    /// # Errors
    /// Where the system does not tell.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// Differentiated services code point of what is sent.
    fn dscp(&self) -> Option<u8>;

    /// What the poll said.
    fn on_event(&self, event: &mio::event::Event);

    /// Whether there may be something to read.
    fn is_readable(&self) -> bool;

    /// Whether the socket takes datagrams, as far as is known.
    fn is_writable(&self) -> bool;

    /// Receives one batch and hands on its datagrams; returns what that cost, in bytes: those
    /// received, and more for each datagram. Whether there may be more, [`Self::is_readable`] tells.
    fn receive(
        &self,
        buffers: &mut DatagramBuffers,
        small: &mut SmallFrames,
        sink: &mut dyn FnMut(SocketAddr, Bytes),
    ) -> usize;

    /// How many datagrams one [`Self::send`] takes.
    fn max_batch(&self) -> usize;

    /// Sends `contents` to `peer`, in datagrams of `size` bytes (the last one perhaps smaller).
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where the socket takes none now; else why none was sent.
    fn send(&self, peer: SocketAddr, contents: &[u8], size: usize) -> io::Result<()>;

    /// Bytes that the system has not given to the network yet.
    fn untaken(&self) -> usize;
}
