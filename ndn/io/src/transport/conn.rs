//! One connection by a stream socket, of whatever family, and the shared memory that a Unix socket
//! may have grown.

use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ndn_packet::lp::Lent;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use socket2::Socket;

use crate::config::Lend;
use crate::face::backlog::{self, Backlog};
use crate::face::chunk::ChunkPool;
use crate::face::io::{Borrow, Borrowed, MemoryUse, SharedMemory, StreamIo};
use crate::face::queue::{GATHER, SendQueue};
use crate::memory::packets::PacketMemory;
use crate::transport::fd_passing::{self, AllPassed, Passed};
use crate::transport::lending::{Borrower, Lender};
use crate::transport::low_water::LowWater;
use crate::transport::shm::{self, Rings};
use crate::transport::socket;
use crate::uri::FaceUri;

/// Neither a signal for a peer that has gone, nor a wait.
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

/// Doorbells that may be found at once. A peer that keeps to the rules rings once for bytes and
/// once for room before it must be asked again.
const MAX_DOORBELLS: usize = 4096;

/// One stream connection.
pub(crate) struct Conn {
    socket: Socket,
    is_unix: bool,
    /// What the kernel, or the ring, holds of what we wrote.
    backlog: Backlog,
    /// The socket may have something to read (edge-triggered: true until a read says no).
    pub readable: bool,
    writable: bool,
    /// The peer will send nothing more.
    hung_up: bool,
    /// How much wakes the loop, of a TCP connection.
    low_water: LowWater,
    /// A stranger's Unix socket: descriptors may come beside the bytes.
    brings_descriptors: bool,
    received: AllPassed,
    /// Rings that travel with the next bytes sent.
    offered: Option<OwnedFd>,
    /// Memory of packets that is offered, and whether its file has been sent.
    packets: Option<(Arc<PacketMemory>, bool)>,
    memory: Option<Memory>,
    lender: Option<Lender>,
    borrower: Option<Borrower>,
}

struct Memory {
    rings: Rings,
    /// The peer's bytes come by ring.
    incoming: bool,
    outgoing: Outgoing,
    /// The peer was to be woken while our own bytes still went by socket.
    owes_doorbell: bool,
}

/// Which way our bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outgoing {
    Socket,
    /// This many more bytes by socket, then by ring.
    SocketFor(usize),
    Ring,
}

impl Conn {
    /// Takes a non-blocking socket. `brings_descriptors` where it is a stranger's Unix socket.
    pub fn new(socket: Socket, brings_descriptors: bool) -> Self {
        let is_unix = socket.local_addr().is_ok_and(|own| own.is_unix());
        Self {
            socket,
            is_unix,
            backlog: Backlog::default(),
            readable: false,
            writable: true,
            hung_up: false,
            low_water: LowWater::new(),
            brings_descriptors,
            received: AllPassed::default(),
            offered: None,
            packets: None,
            memory: None,
            lender: None,
            borrower: None,
        }
    }

    /// The bytes read, and whether the socket may hold more.
    fn read_socket(&mut self, buf: &mut [u8]) -> io::Result<(usize, bool)> {
        let (n, came) = self.read_once(buf)?;
        // A short read has emptied the socket; what comes later is a new event. Not so the end
        // of the stream, which may have come already.
        Ok((n, n == buf.len() || came || self.hung_up))
    }

    fn read_once(&mut self, buf: &mut [u8]) -> io::Result<(usize, bool)> {
        if !self.brings_descriptors {
            return (&self.socket).read(buf).map(|n| (n, false));
        }
        fd_passing::read(&self.socket, buf, &mut self.received)
    }

    fn read_memory(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let ended = self.readable && self.drain_doorbells()?;
        let Some(memory) = &mut self.memory else {
            return Ok(0);
        };
        let n = memory.rings.read(buf).map_err(io::Error::other)?;
        if n > 0 && memory.rings.must_wake_writer() {
            self.ring_doorbell();
        }
        if n == 0 && ended {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "closed by the peer",
            ));
        }
        Ok(n)
    }

    /// Empties the socket; true where the peer has closed it.
    fn drain_doorbells(&mut self) -> io::Result<bool> {
        let mut rings = [0; 256];
        let mut heard = 0;
        while heard < MAX_DOORBELLS {
            match self.read_socket(&mut rings) {
                Ok((0, _)) => return Ok(true),
                Ok((n, true)) => heard += n,
                Ok(_) => {
                    self.readable = false;
                    return Ok(false);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readable = false;
                    return Ok(false);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Bytes may still lie in the ring; an error is an end like any other.
                Err(_) => return Ok(true),
            }
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the peer rings without end",
        ))
    }

    fn flush_memory(&mut self, queue: &mut SendQueue) -> io::Result<bool> {
        let Some(memory) = &mut self.memory else {
            return Ok(true);
        };
        let mut slots = [IoSlice::new(&[]); GATHER];
        let filled = queue.gather(&mut slots, usize::MAX);
        let taken = memory
            .rings
            .write(&slots[..filled])
            .map_err(io::Error::other)?;
        queue.advance(taken);
        self.backlog.wrote(taken);
        let waits = taken == 0 && memory.rings.sleep_for_room().map_err(io::Error::other)?;
        if memory.rings.must_wake_reader() {
            self.ring_doorbell();
        }
        Ok(waits)
    }

    fn flush_socket(&mut self, queue: &mut SendQueue, max: usize) -> io::Result<bool> {
        if !self.writable {
            return Ok(true);
        }
        let mut slots = [IoSlice::new(&[]); GATHER];
        let filled = queue.gather(&mut slots, max);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(fd_passing::WANTED))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let rings = self.offered.as_ref().map(|file| file.as_fd());
        let packets = match &self.packets {
            Some((memory, false)) => Some(memory.file()),
            _ => None,
        };
        let offered: Vec<BorrowedFd<'_>> = rings.into_iter().chain(packets).collect();
        if !offered.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&offered));
        }
        match rustix::net::sendmsg(&self.socket, &slots[..filled], &mut control, SEND_FLAGS) {
            Ok(taken) => {
                // The descriptor travels with the first byte; the peer has mapped nothing
                // before it reads the offer behind it.
                self.offered = None;
                if let Some((_, sent)) = &mut self.packets {
                    *sent = true;
                }
                queue.advance(taken);
                self.sent_by_socket(taken);
                Ok(false)
            }
            Err(rustix::io::Errno::AGAIN) => {
                self.writable = false;
                Ok(true)
            }
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(rustix::io::Errno::TOOMANYREFS) if !offered.is_empty() => {
                // This user has too many descriptors under way: the face does without memory. A peer refuses an offer
                // that comes without it.
                self.offered = None;
                self.packets = None;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn sent_by_socket(&mut self, taken: usize) {
        self.backlog.wrote(taken);
        if let Some(memory) = &mut self.memory
            && let Outgoing::SocketFor(left) = memory.outgoing
        {
            memory.outgoing = match left - taken {
                0 => Outgoing::Ring,
                left => Outgoing::SocketFor(left),
            };
            if memory.outgoing == Outgoing::Ring && std::mem::take(&mut memory.owes_doorbell) {
                self.ring_doorbell();
            }
        }
    }

    fn ring_doorbell(&mut self) {
        if let Some(memory) = &mut self.memory
            && memory.outgoing != Outgoing::Ring
        {
            memory.owes_doorbell = true;
            return;
        }
        // A full socket is full of doorbells, and one that is gone is seen when it is read.
        let _ = rustix::net::send(&self.socket, &[0], SEND_FLAGS);
    }

    fn next_received(&mut self) -> io::Result<Passed> {
        self.received.take().ok_or_else(|| {
            let what = "an offer of memory without the memory";
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
    }

    fn set_memory(&mut self, rings: Rings) {
        self.memory = Some(Memory {
            rings,
            incoming: false,
            outgoing: Outgoing::Socket,
            owes_doorbell: false,
        });
    }
}

impl StreamIo for Conn {
    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn connected(&mut self) -> Option<io::Result<()>> {
        socket::connected(&self.socket)
    }

    fn local_uri(&self) -> String {
        match self
            .socket
            .local_addr()
            .ok()
            .and_then(|own| own.as_socket())
        {
            Some(address) => FaceUri::tcp(address).to_string(),
            None => format!("fd://{}", self.socket.as_raw_fd()),
        }
    }

    fn dscp(&self) -> Option<u8> {
        socket::dscp(&self.socket)
    }

    fn on_event(&mut self, event: &mio::event::Event) {
        self.readable |= event.is_readable() || event.is_read_closed() || event.is_error();
        self.writable |= event.is_writable();
        self.hung_up |= event.is_read_closed() || event.is_error();
    }

    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.memory_use().reads {
            return self.read_memory(buf);
        }
        if !self.readable {
            return Ok(0);
        }
        match self.read_socket(buf) {
            Ok((0, _)) => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "closed by the peer",
            )),
            Ok((n, more)) => {
                self.readable = more;
                Ok(n)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                Ok(0)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.read(buf),
            Err(error) => Err(error),
        }
    }

    fn expect(&mut self, bytes: usize) -> io::Result<()> {
        if self.is_unix {
            return Ok(()); // poll does not go by the mark there
        }
        self.low_water.expect(self.socket.as_fd(), bytes)
    }

    fn flush(&mut self, queue: &mut SendQueue) -> io::Result<()> {
        if let Some(lender) = &mut self.lender {
            lender.take_back();
        }
        while !queue.is_empty() {
            let outgoing = self
                .memory
                .as_ref()
                .map_or(Outgoing::Socket, |m| m.outgoing);
            let waits = match outgoing {
                Outgoing::Ring => self.flush_memory(queue)?,
                Outgoing::Socket => self.flush_socket(queue, usize::MAX)?,
                Outgoing::SocketFor(bytes) => self.flush_socket(queue, bytes)?,
            };
            if waits {
                break;
            }
        }
        Ok(())
    }

    fn waiting(&mut self, now: Duration, queued: usize, threshold: usize) -> usize {
        let Self {
            socket,
            is_unix,
            backlog,
            memory,
            lender,
            ..
        } = self;
        backlog.total(now, queued, threshold, || {
            let by_socket = if *is_unix {
                backlog::untaken(socket.as_fd())
            } else {
                backlog::unsent(socket.as_fd())
            };
            let by_memory = memory.as_ref().map_or(0, |memory| memory.rings.unread());
            by_socket + by_memory + lender.as_mut().map_or(0, Lender::untaken)
        })
    }

    fn memory(&mut self) -> Option<&mut dyn SharedMemory> {
        self.is_unix.then_some(self as &mut dyn SharedMemory)
    }

    fn memory_use(&self) -> MemoryUse {
        self.memory
            .as_ref()
            .map_or(MemoryUse::default(), |memory| MemoryUse {
                there: true,
                reads: memory.incoming,
                writes: memory.outgoing == Outgoing::Ring,
            })
    }

    fn lend(&mut self, packet: &Bytes) -> Option<Lent> {
        let lent = self.lender.as_mut()?.lend(packet)?;
        self.backlog.wrote(packet.len());
        Some(lent)
    }

    fn take_lent(&mut self, lent: Lent, pool: &ChunkPool) -> io::Result<Borrowed> {
        let Some(borrower) = &self.borrower else {
            let what = "the peer lends packets of memory that it has not offered";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        };
        borrower.take(lent, pool)
    }

    fn may_sleep(&mut self) -> io::Result<bool> {
        if let Some(lender) = &mut self.lender {
            lender.take_back();
        }
        match &mut self.memory {
            Some(memory) if memory.incoming => {
                memory.rings.sleep_for_bytes().map_err(io::Error::other)
            }
            _ => Ok(true),
        }
    }
}

impl SharedMemory for Conn {
    fn make(&mut self, ring_bytes: usize) -> io::Result<()> {
        let (file, rings) = shm::create(ring_bytes)?;
        self.offered = Some(file);
        self.set_memory(rings);
        Ok(())
    }

    fn accept(&mut self, ring_bytes: usize) -> io::Result<()> {
        let file = self.next_received()?;
        self.set_memory(shm::open(&file, ring_bytes)?);
        Ok(())
    }

    fn refuse(&mut self) {
        while self.received.take().is_some() {}
    }

    fn switch_outgoing(&mut self, queued: usize) {
        if let Some(memory) = &mut self.memory {
            memory.outgoing = Outgoing::SocketFor(queued);
        }
    }

    fn switch_incoming(&mut self) {
        if let Some(memory) = &mut self.memory {
            memory.incoming = true;
        }
    }

    fn offer_packets(&mut self, memory: &Arc<PacketMemory>, to: Lend) -> Option<u64> {
        let may_see = match to {
            Lend::Nobody => false,
            Lend::SameUser => is_same_user(&self.socket),
            Lend::Anyone => true,
        };
        if !may_see || self.packets.is_some() {
            return None;
        }
        self.packets = Some((memory.clone(), false));
        Some(memory.bytes() as u64)
    }

    fn accept_packets(&mut self, bytes: u64, way: Borrow) -> io::Result<()> {
        let file = self.next_received()?;
        let Some(memory) = &self.memory else {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        };
        let places = memory.rings.peer_places();
        // Who could change a packet while it is read must be one who may do anything to this process anyhow.
        let way = match way {
            Borrow::Keep if !is_same_user(&self.socket) => Borrow::Copy,
            way => way,
        };
        self.borrower = Some(Borrower::new(file, bytes, way, places)?);
        Ok(())
    }

    fn lend_packets(&mut self) {
        if let (Some((packets, true)), Some(memory), None) =
            (&self.packets, &self.memory, &self.lender)
        {
            let places = memory.rings.own_places();
            self.lender = Some(Lender::new(packets.clone(), places));
        }
    }
}

/// The user as whom the kernel shows those of other user namespaces (its default for `kernel.overflowuid`).
const ANYBODY: u32 = 65_534;

/// Whether the process at the other end is this one's user's, or root's.
fn is_same_user(socket: &Socket) -> bool {
    let own = rustix::process::geteuid();
    let is_told = |uid: u32| uid != ANYBODY;
    rustix::net::sockopt::socket_peercred(socket)
        .is_ok_and(|peer| peer.uid.is_root() || peer.uid == own && is_told(peer.uid.as_raw()))
}

impl Drop for Conn {
    fn drop(&mut self) {
        if self.brings_descriptors {
            fd_passing::empty(&self.socket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LinkOptions;
    use crate::face::budgets::Budgets;
    use crate::face::io::Side;
    use crate::face::stream::StreamFace;
    use crate::memory::packets::Sizes;
    use ndn_packet::{Data, Name, NetPacket, SigningKey};
    use socket2::{Domain, Type};

    /// What the kernel has taken and the peer has not read waits as long as what is queued here.
    #[test]
    fn what_waits_in_the_kernel_is_marked_too() {
        let (own, peer) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
        own.set_nonblocking(true).unwrap();
        let options = LinkOptions {
            mark_threshold_bytes: 20_000,
            ..LinkOptions::default()
        };
        let (budgets, lines) = (Budgets::of_one_face(usize::MAX), Default::default());
        let conn = Box::new(Conn::new(own, false));
        let mut face = StreamFace::new(conn, Side::Listener, &options, &budgets, lines);
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

    /// What a thread of that user does: the kernel keeps users by thread.
    fn as_user<T: Send>(uid: u32, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let uid = rustix::process::Uid::from_raw(uid);
                rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }

    /// With memory that is lent a process sees all that a router receives, meant for it or not.
    #[test]
    fn memory_is_lent_to_the_same_user_and_to_root() {
        if !rustix::process::geteuid().is_root() {
            return; // none but root can be another user
        }
        let memory = PacketMemory::new(Sizes {
            packets: 1 << 20,
            most: usize::MAX,
            ..Sizes::default()
        });
        let memory = memory.unwrap();
        let users = [
            (0, 0, true),
            (0, 1000, false),
            (1000, 0, true),
            (1000, 1000, true),
            (1000, 1001, false),
            (ANYBODY, ANYBODY, false),
        ];
        for (own, peer, is_same) in users {
            let offered = |to: Lend| {
                let made = as_user(peer, || Socket::pair(Domain::UNIX, Type::STREAM, None));
                let (near, _far) = made.unwrap();
                let mut conn = Conn::new(near, true);
                as_user(own, || conn.offer_packets(&memory, to)).is_some()
            };
            assert!(!offered(Lend::Nobody));
            assert!(offered(Lend::Anyone));
            assert_eq!(offered(Lend::SameUser), is_same, "{own} to {peer}");
        }
    }
}
