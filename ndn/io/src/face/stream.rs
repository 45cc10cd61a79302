//! A face over one stream connection: frames in, frames out, and the agreements with the peer.

use std::io;
use std::time::Duration;

use ndn_packet::NetPacket;

use crate::config::LinkOptions;
use crate::face::hello::Hello;
use crate::face::io::{MemoryUse, Side, StreamIo};
use crate::face::link::{Link, Received};
use crate::face::queue::SendQueue;
use crate::face::reader::{FrameReader, Next, ReadBuffers};
use crate::face::send_budget::QueueShare;

/// A stream face that is connected.
pub(crate) struct StreamFace {
    pub link: Link,
    pub conn: Box<dyn StreamIo>,
    queue: SendQueue,
    reader: FrameReader,
    side: Side,
    /// Bytes of one ring, where shared memory is wanted and possible.
    ring_bytes: Option<usize>,
}

impl StreamFace {
    /// The face of a fresh connection. The connector introduces itself at once.
    pub fn new(
        mut conn: Box<dyn StreamIo>,
        side: Side,
        options: &LinkOptions,
        share: QueueShare,
    ) -> Self {
        let by_memory = conn.memory().is_some();
        let mut face = Self {
            link: Link::new(options, false),
            conn,
            // Where shared memory takes over, the bytes before the switch are to stay before it.
            queue: SendQueue::new(options.send_queue_bytes, share, !by_memory),
            reader: FrameReader::new(),
            side,
            ring_bytes: (by_memory && options.shared_memory).then_some(options.ring_bytes),
        };
        if side == Side::Connector {
            face.say_hello();
        }
        face
    }

    /// Bytes waiting to be sent.
    pub fn queued(&self) -> usize {
        self.queue.bytes()
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

    /// Reads about `budget` bytes at most and hands on the packets in them. True where there
    /// may be more.
    ///
    /// # Errors
    /// The connection has ended, or the peer does not speak in frames.
    pub fn receive(
        &mut self,
        now: Duration,
        buffers: &mut ReadBuffers,
        budget: usize,
        mut sink: impl FnMut(NetPacket),
    ) -> io::Result<bool> {
        let mut left = budget;
        loop {
            self.cut(now, buffers, &mut sink)?;
            if left == 0 {
                return Ok(true);
            }
            let spare = self.reader.spare(&buffers.pool);
            let most = spare.len().min(budget);
            let n = self.conn.read(&mut spare[..most])?;
            if n == 0 {
                self.reader.rest();
                return Ok(false);
            }
            self.reader.filled(n);
            left = left.saturating_sub(n);
        }
    }

    fn cut(
        &mut self,
        now: Duration,
        buffers: &mut ReadBuffers,
        sink: &mut impl FnMut(NetPacket),
    ) -> io::Result<()> {
        loop {
            match self.reader.next(self.link.limit(), buffers) {
                Ok(Next::Frame(frame)) => match self.link.receive(now, 0, frame) {
                    Received::Packet(packet) => sink(packet),
                    Received::Hello(hello) => self.on_hello(&hello)?,
                    Received::Nothing => {}
                },
                Ok(Next::Oversize) => self.link.counters.oversize_in += 1,
                Ok(Next::More) => return Ok(()),
                Err(error) => {
                    self.link.counters.malformed += 1;
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            }
        }
    }

    fn say_hello(&mut self) {
        if let Some(hello) = self.link.hello(self.ring_bytes.is_some()) {
            self.queue.push_message(&hello.encode());
        }
    }

    fn on_hello(&mut self, hello: &Hello) -> io::Result<()> {
        if !self.link.said_hello() {
            self.say_hello();
        }
        let Some(ring_bytes) = self.ring_bytes else {
            return Ok(());
        };
        let MemoryUse { there, reads, .. } = self.conn.memory_use();
        let Some(memory) = self.conn.memory() else {
            return Ok(());
        };
        match self.side {
            Side::Connector if hello.shm_able && !there => match memory.make(ring_bytes) {
                Ok(()) => {
                    let offer = Some(ring_bytes as u64);
                    let offer = Hello {
                        shm_offer: offer,
                        ..Hello::default()
                    };
                    self.queue.push_message(&offer.encode());
                }
                // The socket still serves.
                Err(error) => {
                    self.ring_bytes = None;
                    tracing::warn!(%error, "no shared memory for a Unix face");
                }
            },
            Side::Connector if hello.shm_switch && there && !reads => {
                self.switch_incoming();
                self.switch_outgoing();
            }
            Side::Listener if !there => {
                let Some(ring_bytes) = hello.shm_offer else {
                    return Ok(());
                };
                match memory.accept(usize::try_from(ring_bytes).unwrap_or(0)) {
                    Ok(()) => self.switch_outgoing(),
                    Err(error) => {
                        // Once: further offers of this peer are not looked at.
                        self.ring_bytes = None;
                        tracing::warn!(%error, "a peer's shared memory was refused");
                    }
                }
            }
            Side::Listener if hello.shm_switch => self.switch_incoming(),
            _ => {}
        }
        Ok(())
    }

    fn switch_outgoing(&mut self) {
        let switch = Hello {
            shm_switch: true,
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
