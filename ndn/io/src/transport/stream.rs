//! A face over one stream connection: frames in, frames out, and the agreements with the peer.

use std::io;
use std::time::Duration;

use ndn_packet::NetPacket;

use crate::config::LinkOptions;
use crate::face::hello::Hello;
use crate::face::link::{Link, Received};
use crate::face::queue::SendQueue;
use crate::face::reader::{FrameReader, Next, ReadBuffers};
use crate::face::send_budget::QueueShare;
use crate::transport::conn::Conn;
use crate::transport::shm::Side;

/// A stream face that is connected.
pub(crate) struct StreamFace {
    pub link: Link,
    pub conn: Conn,
    queue: SendQueue,
    reader: FrameReader,
    side: Side,
    /// Bytes of one ring, where shared memory is wanted and possible.
    ring_bytes: Option<usize>,
}

impl StreamFace {
    /// The face of a fresh connection. The connector introduces itself at once.
    pub fn new(
        conn: Conn,
        side: Side,
        unix: bool,
        options: &LinkOptions,
        share: QueueShare,
    ) -> Self {
        let mut face = Self {
            link: Link::new(options, false),
            conn,
            // Where shared memory takes over, the bytes before the switch are to stay before it.
            queue: SendQueue::new(options.send_queue_bytes, share, !unix),
            reader: FrameReader::new(),
            side,
            ring_bytes: (unix && options.shared_memory).then_some(options.ring_bytes),
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
        match self.side {
            Side::Connector if hello.shm_able && !self.conn.has_memory() => {
                match self.conn.make_memory(ring_bytes) {
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
                }
            }
            Side::Connector
                if hello.shm_switch && self.conn.has_memory() && !self.conn.reads_memory() =>
            {
                self.switch_incoming();
                self.switch_outgoing();
            }
            Side::Listener if !self.conn.has_memory() => {
                let Some(ring_bytes) = hello.shm_offer else {
                    return Ok(());
                };
                match self
                    .conn
                    .accept_memory(usize::try_from(ring_bytes).unwrap_or(0))
                {
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
        self.conn.switch_outgoing(self.queue.bytes());
    }

    fn switch_incoming(&mut self) {
        if !self.conn.reads_memory() {
            // What was read behind the switch by socket is doorbells.
            self.reader.clear();
            self.conn.switch_incoming();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::send_budget::SendBudget;
    use ndn_packet::{Data, Name, SigningKey};
    use socket2::{Domain, Socket, Type};
    use std::io::Read;

    /// What the kernel has taken and the peer has not read waits as long as what is queued here.
    #[test]
    fn what_waits_in_the_kernel_is_marked_too() {
        let (own, peer) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
        own.set_nonblocking(true).unwrap();
        let options = LinkOptions {
            mark_threshold_bytes: 20_000,
            ..LinkOptions::default()
        };
        let share = SendBudget::new(usize::MAX).share();
        let conn = Conn::new(own, false);
        let mut face = StreamFace::new(conn, Side::Listener, true, &options, share);
        let name: Name = "/a".parse().unwrap();
        let wire = Data::builder(&name)
            .content(&[7; 1000])
            .sign(&SigningKey::DigestSha256);
        let data = NetPacket::data(Data::parse(wire).unwrap());
        let send = |face: &mut StreamFace, from: u64, count: u64| {
            for ms in from..from + count {
                face.send(Duration::from_millis(ms), &data);
                face.flush().unwrap();
                assert_eq!(face.queued(), 0, "the kernel has room");
            }
            face.link.counters.marks
        };
        let marks = send(&mut face, 0, 50);
        assert!(marks > 0);
        let (sent, mut read) = (face.link.counters.out_bytes as usize, 0);
        while read < sent {
            read += (&peer).read(&mut [0; 65_536]).unwrap();
        }
        assert_eq!(send(&mut face, 100, 3), marks, "the peer has caught up");
    }
}
