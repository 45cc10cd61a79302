//! A face over one stream connection: frames in, frames out, and the agreements with the peer.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ndn_packet::lp::{Lent, LpPacket};
use ndn_packet::{MAX_JUMBO_PACKET, MAX_PACKET, NetPacket};

use crate::config::{Lend, LinkOptions};
use crate::face::budget::Share;
use crate::face::budgets::Budgets;
use crate::face::hello::Hello;
use crate::face::io::{Borrow, Borrowed, MemoryUse, Side, StreamIo};
use crate::face::link::{Link, Received};
use crate::face::queue::SendQueue;
use crate::face::reader::{FrameReader, Next, ReadBuffers};
use crate::memory::packets::PacketMemory;
use crate::rate_limit::PeerLines;

/// Bytes read at once where the reader may not keep its chunk: so many that their frames are a turn's work at most.
const SMALL_READ: usize = 16 << 10;

/// Room to ask for before a packet is lent: more than any header that is sent in its place.
const MOST_LENT_HEADER: usize = 256;

/// What a face may keep of a jumbo packet beyond what it may of any; what is still longer is counted as an incomplete
/// packet.
const JUMBO_BYTES: usize = MAX_JUMBO_PACKET - MAX_PACKET;

/// So long a packet that no datagram would hold may take to come: a link that takes longer is none for such packets.
const LARGE_TIMEOUT: Duration = Duration::from_secs(10);

fn no_memory_left() -> io::Error {
    io::Error::new(
        io::ErrorKind::OutOfMemory,
        "the memory for faces is used up; raise faces.capacity",
    )
}

/// What a face may still read in its turn.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Bytes, about; what reading costs beside them is counted as bytes.
    pub bytes: usize,
    /// Bytes to read at once, at most.
    pub read: usize,
    /// Frames to take at once.
    pub burst: usize,
    /// Bytes of packets that the peer has lent; where they are used up, the burst ends, and the turn with it.
    pub lent: usize,
}

/// How far a face has come with reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All that has come is taken.
    Drained,
    /// The bytes of its turn are used up, and all that was read is taken.
    Spent,
    /// As many frames as may be taken at once; there may be more.
    Burst,
}

/// A stream face that is connected.
pub(crate) struct StreamFace {
    pub link: Link,
    pub conn: Box<dyn StreamIo>,
    queue: SendQueue,
    reader: Box<FrameReader>,
    side: Side,
    /// What its reads have cost beside their bytes and beyond its turn, in bytes: its next turns are shorter by that.
    owed: usize,
    /// Bytes of one ring, where shared memory is wanted and possible.
    ring_bytes: Option<usize>,
    /// What it takes beyond what every face takes: the beginning of a jumbo packet, rings, records of TLS.
    cost: Share,
    /// Who may be lent packets.
    lend: Lend,
    /// Packets that the peer lends are used where they lie.
    keep_lent: bool,
    lines: Arc<PeerLines>,
}

impl StreamFace {
    /// The face of a fresh connection. The connector introduces itself at once.
    pub fn new(
        mut conn: Box<dyn StreamIo>,
        side: Side,
        options: &LinkOptions,
        budgets: &Budgets,
        lines: Arc<PeerLines>,
    ) -> Self {
        let share = budgets.send_queues.share();
        let by_memory = conn.memory().is_some();
        let mut cost = budgets.faces.share();
        if side == Side::Connector {
            // A peer's was asked for before it was taken in.
            cost.set(conn.memory_bytes());
        }
        let mut face = Self {
            link: Link::new(options),
            conn,
            // Where shared memory takes over, the bytes before the switch are to stay before it.
            queue: SendQueue::new(options.send_queue_bytes, share, !by_memory),
            reader: Box::new(FrameReader::new(budgets.reassembly.share())),
            owed: 0,
            side,
            ring_bytes: (by_memory && options.shared_memory).then_some(options.ring_bytes),
            cost,
            lend: options.lend,
            keep_lent: options.keep_lent,
            lines,
        };
        if side == Side::Connector {
            face.say_hello(None);
        }
        face
    }

    /// Bytes waiting to be sent.
    pub fn queued(&self) -> usize {
        self.queue.bytes() + self.conn.unwritten()
    }

    /// Puts a packet into the send queue, or drops and counts it.
    pub fn send(&mut self, now: Duration, packet: &NetPacket) {
        let threshold = self.link.mark_threshold();
        let waiting = self.conn.waiting(now, self.queue.bytes(), threshold);
        let Some(mut lp) = self.link.wrap(now, packet, waiting) else {
            return;
        };
        let payload = lp.fragment.take().unwrap_or_default();
        let len = payload.len();
        if self.queue.has_room(MOST_LENT_HEADER)
            && let Some(lent) = self.conn.lend(&payload)
        {
            lp.lent = Some(lent);
            let added = self
                .queue
                .push(|buffer| lp.put_header(buffer, 0), Bytes::new());
            self.link.counters.out_bytes += (added + len) as u64;
            self.link.counters.lent += 1;
            return;
        }
        if !self.queue.has_room(len + lp.header_len(len)) {
            self.link.counters.queue_drops += 1;
            return;
        }
        let added = self
            .queue
            .push(|buffer| lp.put_header(buffer, len), payload);
        self.link.counters.out_bytes += added as u64;
    }

    /// Writes what goes without waiting.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn flush(&mut self) -> io::Result<()> {
        self.conn.flush(&mut self.queue)
    }

    /// Reads on: takes frames from what has come, until `turn` allows no more in one burst, and puts the packets in them
    /// into `packets`.
    ///
    /// # Errors
    /// The connection has ended, or the peer does not speak in frames.
    pub fn receive(
        &mut self,
        now: Duration,
        buffers: &mut ReadBuffers,
        turn: &mut Turn,
        packets: &mut Vec<NetPacket>,
    ) -> io::Result<Progress> {
        let mut left = turn.burst;
        let paid = self.owed.min(turn.bytes);
        self.owed -= paid;
        turn.bytes -= paid;
        loop {
            if !self.cut(now, buffers, (&mut left, &mut turn.lent), packets)? {
                return Ok(Progress::Burst);
            }
            if turn.bytes == 0 {
                return Ok(Progress::Spent);
            }
            if !self.reader.may_keep(&buffers.pool) {
                turn.bytes = turn.bytes.min(SMALL_READ);
                turn.read = turn.bytes;
            }
            let most = turn.read;
            let spare = self.reader.spare(&buffers.pool, most);
            let n = self.conn.read(spare)?;
            if n == 0 {
                self.conn.expect(self.reader.missing())?;
                return Ok(Progress::Drained);
            }
            self.reader.filled(n);
            let beside = self.conn.take_read_cost();
            turn.bytes = turn.bytes.saturating_sub(n);
            self.owed += beside.saturating_sub(turn.bytes);
            turn.bytes = turn.bytes.saturating_sub(beside);
        }
    }

    /// Whether the turn must go on until all that was read is cut.
    pub fn must_finish(&self, buffers: &ReadBuffers) -> bool {
        !self.reader.may_keep(&buffers.pool)
    }

    /// Ends a turn; `more` where there may be more to take.
    pub fn end_turn(&mut self, now: Duration, buffers: &ReadBuffers, more: bool) {
        self.reader.end_turn(now, &buffers.pool, more);
    }

    /// When a large packet that has begun must have come.
    pub fn deadline(&self) -> Option<Duration> {
        Some(self.reader.large_since()? + LARGE_TIMEOUT)
    }

    /// Gives up the large packet whose time has passed, so that others have its memory.
    pub fn on_deadline(&mut self, now: Duration) {
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.reader.give_up_large();
        }
    }

    /// Takes `left` frames at most, and no more lent packets than may be; false where there may be more of them.
    fn cut(
        &mut self,
        now: Duration,
        buffers: &mut ReadBuffers,
        (left, lent_left): (&mut usize, &mut usize),
        packets: &mut Vec<NetPacket>,
    ) -> io::Result<bool> {
        while *left > 0 {
            match self.reader.next(self.link.limit(), buffers) {
                Ok(Next::Frame(frame)) => match self.link.receive(now, 0, frame) {
                    Received::Packet(packet) => packets.push(packet),
                    Received::Hello { hello, answer } => {
                        self.on_hello(now, &hello, answer, buffers.memory.as_ref())?;
                    }
                    Received::Lent(header, lent) => {
                        let bytes = self.take_lent(header, lent, buffers, packets)?;
                        *lent_left = lent_left.saturating_sub(bytes);
                        if *lent_left == 0 {
                            return Ok(false);
                        }
                    }
                    Received::Nothing => {}
                },
                Ok(Next::Oversize) => self.link.counters.oversize_in += 1,
                Ok(Next::NoRoom) => self.link.counters.reassembly_drops += 1,
                Ok(Next::More) => return Ok(true),
                Err(error) => {
                    self.link.counters.malformed += 1;
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            }
            *left -= 1;
        }
        Ok(false)
    }

    /// Takes a packet that lies in the peer's memory; returns its bytes.
    fn take_lent(
        &mut self,
        header: LpPacket,
        lent: Lent,
        buffers: &ReadBuffers,
        packets: &mut Vec<NetPacket>,
    ) -> io::Result<usize> {
        let pool = buffers.of_packets(lent.len as usize);
        let taken = self.conn.take_lent(lent, pool);
        let borrowed = taken.inspect_err(|_| self.link.counters.malformed += 1)?;
        let (packet, in_place) = match borrowed {
            Borrowed::Copied(packet) => (packet, false),
            Borrowed::InPlace(packet) => (packet, true),
        };
        let bytes = packet.len();
        self.owed += bytes;
        if let Received::Packet(mut packet) = self.link.receive_lent(header, packet) {
            // The peer has no more than so many places, and a store would soon hold on to all of them.
            packet.no_cache |= in_place;
            packets.push(packet);
        }
        Ok(bytes)
    }

    /// The memory of packets, where the peer may be lent them; returns its bytes.
    fn offer_packets(&mut self, memory: Option<&Arc<PacketMemory>>) -> Option<u64> {
        self.conn.memory()?.offer_packets(memory?, self.lend)
    }

    /// Takes the memory of packets that the peer offers; false where that can't be.
    fn accept_packets(&mut self, now: Duration, offer: Option<u64>) -> bool {
        let (Some(bytes), Some(memory)) = (offer, self.conn.memory()) else {
            return false;
        };
        let way = if self.keep_lent && self.side == Side::Connector {
            Borrow::Keep
        } else {
            Borrow::Copy
        };
        match memory.accept_packets(bytes, way) {
            Ok(()) => true,
            // The rings still serve.
            Err(error) => {
                if self.lines.allows(now) {
                    tracing::warn!(%error, "a peer's memory of packets was refused");
                }
                false
            }
        }
    }

    fn lend_packets(&mut self) {
        if let Some(memory) = self.conn.memory() {
            memory.lend_packets();
        }
    }

    /// `packets` is the memory to lend from: whoever listens offers it here, whoever connects later.
    fn say_hello(&mut self, packets: Option<&Arc<PacketMemory>>) {
        if !self.cost.grows(JUMBO_BYTES) {
            self.link.refuse_jumbo();
        }
        if let Some(mut hello) = self.link.hello(self.ring_bytes.is_some(), true) {
            if hello.shm_able {
                hello.shm_packets = self.offer_packets(packets);
            }
            self.queue.push_message(&hello.encode());
        }
    }

    fn on_hello(
        &mut self,
        now: Duration,
        hello: &Hello,
        answer: bool,
        packets: Option<&Arc<PacketMemory>>,
    ) -> io::Result<()> {
        if answer {
            self.say_hello(packets);
        }
        let Some(ring_bytes) = self.ring_bytes else {
            return Ok(());
        };
        let MemoryUse { there, reads, .. } = self.conn.memory_use();
        let Some(memory) = self.conn.memory() else {
            return Ok(());
        };
        match self.side {
            Side::Connector if hello.shm_able && !there => {
                let made = if self.cost.grows(ring_bytes.saturating_mul(2)) {
                    memory.make(ring_bytes)
                } else {
                    Err(no_memory_left())
                };
                match made {
                    Ok(()) => {
                        let offer = Hello {
                            shm_offer: Some(ring_bytes as u64),
                            shm_takes: self.accept_packets(now, hello.shm_packets),
                            shm_packets: self.offer_packets(packets),
                            ..Hello::default()
                        };
                        self.queue.push_message(&offer.encode());
                    }
                    // The socket still serves.
                    Err(error) => {
                        self.ring_bytes = None;
                        if self.lines.allows(now) {
                            tracing::warn!(%error, "no shared memory for a Unix face");
                        }
                    }
                }
            }
            Side::Connector if hello.shm_switch && there && !reads => {
                self.switch_incoming();
                self.switch_outgoing(false);
                if hello.shm_takes {
                    self.lend_packets();
                }
            }
            Side::Listener if !there => {
                let Some(offered) = hello.shm_offer else {
                    return Ok(());
                };
                let offered = usize::try_from(offered).unwrap_or(usize::MAX);
                let both = offered.saturating_mul(2);
                // A stranger's say: peers that have no rings are not to be without a face for it.
                let accepted = if offered > ring_bytes {
                    Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("it offers rings of {offered} bytes; `ring` is {ring_bytes} here"),
                    ))
                } else if self.cost.grows_within_most(both) {
                    let accepted = memory.accept(offered);
                    if accepted.is_err() {
                        self.cost.shrinks(both);
                    }
                    accepted
                } else {
                    Err(no_memory_left())
                };
                match accepted {
                    Ok(()) => {
                        let takes = self.accept_packets(now, hello.shm_packets);
                        self.switch_outgoing(takes);
                        if hello.shm_takes {
                            self.lend_packets();
                        }
                    }
                    Err(error) => {
                        // Once: further offers of this peer are not looked at.
                        self.ring_bytes = None;
                        memory.refuse();
                        if self.lines.allows(now) {
                            tracing::warn!(%error, "a peer's shared memory was refused");
                        }
                    }
                }
            }
            Side::Listener if hello.shm_switch => self.switch_incoming(),
            _ => {}
        }
        Ok(())
    }

    fn switch_outgoing(&mut self, takes: bool) {
        let switch = Hello {
            shm_switch: true,
            shm_takes: takes,
            ..Hello::default()
        };
        self.queue.push_message(&switch.encode());
        if let Some(memory) = self.conn.memory() {
            memory.switch_outgoing(self.queue.bytes());
        }
    }

    fn switch_incoming(&mut self) {
        if !self.conn.memory_use().reads
            && let Some(memory) = self.conn.memory()
        {
            // What was read behind the switch by socket is doorbells.
            self.reader.clear();
            memory.switch_incoming();
        }
    }
}
