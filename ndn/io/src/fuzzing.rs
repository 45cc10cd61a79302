//! What the fuzz targets of `ndn/io/fuzz` drive, of parts that nothing else outside this crate reaches.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use ndn_packet::lp::Lent;

use crate::FaceUri;
use crate::face::budgets::Budgets;
use crate::face::chunk::{BufferBudget, ChunkPool, READING_BYTES};
use crate::face::hello::Hello;
use crate::face::io::{Borrow, Borrowed};
use crate::face::reader::{FrameReader, Next, ReadBuffers};
use crate::memory::packets::{CHUNK_BYTES, PACKET_BYTES, PacketMemory, Size, Sizes};
use crate::transport::lending::{Borrower, Lender};
use crate::transport::shm::{self, PLACES, Rings};

/// Frames above this are passed over; with the second, large ones get memory of their own.
const LIMITS: [usize; 2] = [800, 200_000];
const RING_BYTES: usize = 4096;

/// The frames of a byte stream. The first two bytes say how reads and turns cut it, which changes nothing; what is held
/// between turns is the beginning of one frame at most.
pub fn stream(bytes: &[u8]) {
    let [cut, turns, stream @ ..] = bytes else {
        return;
    };
    let whole = frames(stream, CHUNK_BYTES, 0);
    assert_eq!(frames(stream, 1 + usize::from(*cut), *turns), whole);
}

#[derive(Debug, PartialEq)]
struct Read {
    frames: Vec<Bytes>,
    oversize: usize,
    is_stream: bool,
}

fn frames(stream: &[u8], cut: usize, turns: u8) -> Read {
    let limit = LIMITS[stream.len() % 2];
    let budgets = Budgets::of_one_face(READING_BYTES + 4 * CHUNK_BYTES);
    let budget = budgets.receive_buffers.clone();
    let mut buffers = ReadBuffers::new(&budgets);
    let mut reader = FrameReader::new(budgets.reassembly.share());
    let mut read = Read {
        frames: Vec::new(),
        oversize: 0,
        is_stream: true,
    };
    let (mut rest, mut turn) = (stream, 0);
    'all: while !rest.is_empty() {
        let spare = reader.spare(&buffers.pool, cut);
        let count = spare.len().min(rest.len());
        assert!(count > 0, "a reader that wants more has room");
        spare[..count].copy_from_slice(&rest[..count]);
        rest = &rest[count..];
        reader.filled(count);
        loop {
            match reader.next(limit, &mut buffers) {
                Ok(Next::Frame(frame)) => {
                    assert!(frame.len() <= limit);
                    // Copied, as a content store would not: the chunk is to be seen to be free again.
                    read.frames.push(Bytes::copy_from_slice(&frame));
                }
                Ok(Next::Oversize) => read.oversize += 1,
                Ok(Next::NoRoom) => panic!("no bound"),
                Ok(Next::More) => break,
                Err(_) => {
                    reader.clear();
                    read.is_stream = false;
                    break 'all;
                }
            }
        }
        assert!(reader.missing() > 0, "nothing is waited for");
        if turns >> (turn % 8) & 1 != 0 {
            reader.end_turn(Duration::ZERO, &buffers.pool, false);
        }
        turn += 1;
        assert!(buffers.pool.live() <= 2, "{} chunks", buffers.pool.live());
    }
    drop(reader);
    assert_eq!((buffers.pool.live(), budget.holders()), (0, 0));
    read
}

/// What two faces tell each other in an idle packet: it is read as it was written.
pub fn hello(bytes: &[u8]) {
    if let Ok(hello) = Hello::decode(&Bytes::copy_from_slice(bytes)) {
        let again = Bytes::from(hello.encode());
        assert_eq!(Hello::decode(&again), Ok(hello));
    }
}

/// Records of TLS behind the handshake.
pub fn tls(bytes: &[u8]) {
    crate::transport::tls::fuzzing::records(bytes);
}

/// A face's URI: what is shown of it is read as the same.
pub fn uri(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(uri) = text.parse::<FaceUri>() {
        let shown = uri.to_string();
        let again = shown
            .parse::<FaceUri>()
            .expect("what is shown is a face URI");
        assert_eq!(again.to_string(), shown);
    }
}

/// Both ends of a pair of rings, and a peer that writes anything into the memory that they share. Each step: what, how much.
/// Until the peer lies every byte comes through once and in order; afterwards nothing more is read or written than there is
/// room for, or the end says that the peer has lied.
pub fn rings(bytes: &[u8]) {
    let (file, mut near) = shm::create(RING_BYTES).expect("shared memory");
    let mut far = shm::open(&file, RING_BYTES).expect("what was made");
    let (mut there, mut back) = (Model::default(), Model::default());
    let mut honest = true;
    for step in bytes.chunks_exact(2) {
        let amount = usize::from(step[1]) * 24;
        match step[0] % 8 {
            0 | 1 => there.write(&mut near, amount, honest),
            2 => there.read(&mut far, amount, honest),
            3 => back.write(&mut far, amount, honest),
            4 => back.read(&mut near, amount, honest),
            5 => {
                let slept = (near.sleep_for_bytes(), far.sleep_for_room());
                assert!(!honest || slept.0.is_ok() && slept.1.is_ok());
                assert!(near.unread() <= RING_BYTES && far.unread() <= RING_BYTES);
            }
            6 => {
                let _ = (near.must_wake_reader(), near.must_wake_writer());
                let _ = (far.must_wake_reader(), far.must_wake_writer());
            }
            // By steps that reach from just right to far off, in both directions.
            _ if step[0] & 0x80 != 0 => {
                honest = false;
                let value = (i64::from(step[1] as i8) << (step[0] >> 3 & 0xf)) as u64;
                far.lie(usize::from(step[0] >> 5 & 1), step[0] & 0x40 != 0, value);
            }
            _ => {}
        }
    }
}

/// One direction, as it must be.
#[derive(Default)]
struct Model {
    under_way: VecDeque<u8>,
    next: u8,
}

impl Model {
    fn write(&mut self, rings: &mut Rings, amount: usize, honest: bool) {
        let bytes: Vec<u8> = (0..amount)
            .map(|i| self.next.wrapping_add(i as u8))
            .collect();
        let (first, second) = bytes.split_at(amount / 3);
        match rings.write(&[IoSlice::new(first), IoSlice::new(second)]) {
            Ok(taken) => {
                assert!(taken <= amount && taken <= RING_BYTES);
                self.next = self.next.wrapping_add(taken as u8);
                self.under_way.extend(&bytes[..taken]);
                assert!(!honest || self.under_way.len() <= RING_BYTES);
            }
            Err(_) => assert!(!honest),
        }
    }

    fn read(&mut self, rings: &mut Rings, amount: usize, honest: bool) {
        let mut buffer = vec![0; amount];
        match rings.read(&mut buffer) {
            Ok(count) if honest => {
                assert!(count == amount.min(self.under_way.len()));
                assert!(
                    self.under_way
                        .drain(..count)
                        .eq(buffer[..count].iter().copied())
                );
            }
            Ok(count) => assert!(count <= amount),
            Err(_) => assert!(!honest),
        }
    }
}

/// A lender and two that borrow from it, one of which keeps packets where they lie, and a peer that sets places as it likes
/// and tells of packets that are none. What was lent and is not freed is what it was; nothing is read outside of the memory.
/// Each step: what, how much.
pub fn lending(bytes: &[u8]) {
    let memory = PacketMemory::new(Sizes {
        packets: 8 * PACKET_BYTES,
        most: usize::MAX,
        ..Sizes::default()
    })
    .expect("memory of packets");
    let (file, near) = shm::create(RING_BYTES).expect("shared memory");
    let far = shm::open(&file, RING_BYTES).expect("what was made");
    let mut lender = Lender::new(memory.clone(), near.own_places());
    let size = memory.bytes() as u64;
    let borrower = |way| {
        let file = memory.file().try_clone_to_owned().expect("a descriptor");
        Borrower::new(file.into(), size, way, far.peer_places()).expect("what was made")
    };
    let borrowers = [Borrow::Copy, Borrow::Keep].map(borrower);
    let pool = ChunkPool::within(
        None,
        Size::Packet,
        2,
        &BufferBudget::new(READING_BYTES + (1 << 20)),
    );
    let (mut lent, mut kept, mut honest) = (VecDeque::new(), VecDeque::new(), true);
    for step in bytes.chunks_exact(2) {
        let amount = usize::from(step[1]);
        match step[0] % 6 {
            0 | 1 => {
                let Some(mut piece) = memory.take(Size::Packet) else {
                    continue;
                };
                let len = 1 + amount * 257;
                piece.as_mut()[..len].fill(step[1]);
                let packet = Bytes::from_owner(piece).slice(..len);
                lent.extend(lender.lend(&packet).map(|lent| (lent, step[1])));
            }
            2 => {
                if let Some((lent, fill)) = lent.pop_front() {
                    let taken = borrowers[amount % 2].take(lent, &pool);
                    match taken.expect("it was lent") {
                        Borrowed::Copied(packet) => {
                            assert!(!honest || packet.iter().all(|byte| *byte == fill));
                        }
                        Borrowed::InPlace(packet) => kept.push_back((packet, fill)),
                    }
                }
            }
            3 => {
                if let Some((packet, fill)) = kept.pop_front() {
                    assert!(!honest || packet.iter().all(|byte| *byte == fill));
                }
            }
            4 => {
                lender.take_back();
                assert!(lender.untaken() <= 8 * PACKET_BYTES);
            }
            _ if step[0] & 0x80 != 0 => {
                honest = false;
                let place = amount << (step[0] >> 3 & 3) & (PLACES - 1);
                let places = far.peer_places();
                places.state(place).store(step[0] >> 3, Ordering::Relaxed);
            }
            _ => {
                let wrong = Lent {
                    place: u16::from_be_bytes([step[0], step[1]]),
                    len: (amount << (step[0] >> 3 & 15)) as u32,
                    offset: size.wrapping_sub(amount as u64 * 300),
                };
                if let Ok(taken) = borrowers[amount % 2].take(wrong, &pool) {
                    honest = false;
                    assert!(wrong.offset + u64::from(wrong.len) <= size);
                    drop(taken);
                }
            }
        }
    }
}
