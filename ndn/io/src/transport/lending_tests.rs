use std::io::IoSlice;

use super::*;
use crate::face::chunk::{BufferBudget, READING_BYTES};
use crate::memory::packets::{PACKET_BYTES, Size, Sizes};
use crate::transport::shm::{self, Rings};

const PACKET: usize = 65_000;

/// Both ends of a face, and the memory of one of them.
struct Pair {
    memory: Arc<PacketMemory>,
    near: Rings,
    far: Rings,
    lender: Lender,
}

fn pair(packets: usize) -> Pair {
    let memory = PacketMemory::new(Sizes {
        packets: packets * PACKET_BYTES,
        most: usize::MAX,
        ..Sizes::default()
    })
    .unwrap();
    let (file, near) = shm::create(64 << 10).unwrap();
    let far = shm::open(&file, 64 << 10).unwrap();
    let lender = Lender::new(memory.clone(), near.own_places());
    Pair {
        memory,
        near,
        far,
        lender,
    }
}

impl Pair {
    fn borrower(&self, way: Borrow) -> Borrower {
        let file = self.memory.file().try_clone_to_owned().unwrap();
        let bytes = self.memory.bytes() as u64;
        Borrower::new(file.into(), bytes, way, self.far.peer_places()).unwrap()
    }

    /// A packet in the memory; `None` where all of it is used.
    fn packet(&self, fill: u8) -> Option<Bytes> {
        let mut piece = self.memory.take(Size::Packet)?;
        piece.as_mut()[..PACKET].fill(fill);
        Some(Bytes::from_owner(piece).slice(..PACKET))
    }
}

fn pool() -> ChunkPool {
    let budget = BufferBudget::new(READING_BYTES + (4 << 20));
    ChunkPool::within(None, Size::Packet, 4, &budget)
}

fn bytes(borrowed: Borrowed) -> (Bytes, bool) {
    match borrowed {
        Borrowed::Copied(bytes) => (bytes, false),
        Borrowed::InPlace(bytes) => (bytes, true),
    }
}

#[test]
fn a_packet_is_kept_until_the_peer_is_done_with_it() {
    for way in [Borrow::Copy, Borrow::Keep] {
        let mut pair = pair(1);
        let (borrower, pool) = (pair.borrower(way), pool());
        for round in 0..3 {
            let packet = pair.packet(round).expect("the last one was let go");
            let lent = pair.lender.lend(&packet).expect("lent");
            drop(packet);
            assert_eq!(pair.lender.untaken(), PACKET);
            pair.lender.take_back();
            assert!(pair.packet(0).is_none(), "not taken yet");
            let (taken, in_place) = bytes(borrower.take(lent, &pool).unwrap());
            assert_eq!(in_place, way == Borrow::Keep);
            assert!(taken.len() == PACKET && taken.iter().all(|byte| *byte == round));
            assert_eq!(pair.lender.untaken(), 0);
            pair.lender.take_back();
            assert_eq!(
                pair.packet(9).is_some(),
                !in_place,
                "its copy needs it no more"
            );
            // What was copied stays what it was; what was kept is let go with its last slice.
            let slice = taken.slice(5..6);
            drop(taken);
            assert_eq!(slice[0], round);
            drop(slice);
            pair.lender.take_back();
        }
    }
}

#[test]
fn only_what_is_worth_it_and_lies_in_the_memory_is_lent() {
    let mut pair = pair(2);
    assert!(pair.lender.lend(&Bytes::from(vec![0; PACKET])).is_none());
    let packet = pair.packet(1).unwrap();
    assert!(pair.lender.lend(&packet.slice(..LEAST - 1)).is_none());
    assert!(pair.lender.lend(&packet.slice(..LEAST)).is_some());
}

#[test]
fn no_more_is_lent_than_there_are_places() {
    let mut pair = pair(1);
    let packet = pair.packet(1).unwrap();
    let lent: Vec<_> = std::iter::from_fn(|| pair.lender.lend(&packet)).collect();
    assert_eq!(lent.len(), PLACES);
    let (borrower, pool) = (pair.borrower(Borrow::Copy), pool());
    borrower.take(lent[700], &pool).unwrap();
    let again = pair.lender.lend(&packet).expect("one place is free");
    assert_eq!(again.place, lent[700].place);
    assert!(pair.lender.lend(&packet).is_none());
}

#[test]
fn what_cannot_be_is_refused() {
    let mut pair = pair(1);
    let packet = pair.packet(1).unwrap();
    let lent = pair.lender.lend(&packet).unwrap();
    let size = pair.memory.bytes() as u64;
    for way in [Borrow::Copy, Borrow::Keep] {
        let (borrower, pool) = (pair.borrower(way), pool());
        for wrong in [
            Lent {
                place: PLACES as u16,
                ..lent
            },
            Lent {
                offset: size - u64::from(lent.len) + 1,
                ..lent
            },
            Lent {
                offset: u64::MAX,
                ..lent
            },
            Lent { len: 0, ..lent },
            Lent {
                len: LEAST as u32 - 1,
                ..lent
            },
            Lent {
                len: MAX_STREAM_PACKET as u32 + 1,
                ..lent
            },
        ] {
            assert!(borrower.take(wrong, &pool).is_err(), "{wrong:?}, {way:?}");
        }
        assert!(borrower.take(lent, &pool).is_ok());
    }
}

#[test]
fn copies_take_no_more_of_the_pool_than_its_budget() {
    let mut pair = pair(1);
    let packet = pair.packet(3).unwrap();
    let budget = BufferBudget::new(READING_BYTES + 3 * PACKET_BYTES);
    let pool = ChunkPool::within(None, Size::Packet, 4, &budget);
    let borrower = pair.borrower(Borrow::Copy);
    let kept: Vec<_> = (0..20)
        .map(|_| {
            let lent = pair.lender.lend(&packet).unwrap();
            bytes(borrower.take(lent, &pool).unwrap()).0
        })
        .collect();
    assert!(kept.iter().all(|copy| *copy == packet));
    assert!(budget.used() <= READING_BYTES + 4 * PACKET_BYTES);
}

#[test]
fn a_peer_that_frees_what_it_never_took_harms_itself_alone() {
    let mut pair = pair(1);
    let packet = pair.packet(1).unwrap();
    let lent = pair.lender.lend(&packet).unwrap();
    drop(packet);
    let places = pair.far.peer_places();
    places
        .state(lent.place.into())
        .store(FREE, Ordering::Release);
    pair.lender.take_back();
    assert!(pair.packet(2).is_some(), "let go");
    places.state(lent.place.into()).store(77, Ordering::Release);
    pair.lender.take_back();
    assert_eq!(pair.lender.untaken(), 0);
    // The rings are not touched by any of it.
    pair.near.write(&[IoSlice::new(b"on")]).unwrap();
    assert_eq!(pair.far.read(&mut [0; 8]), Ok(2));
}

#[test]
fn a_peer_that_never_comes_to_one_packet_costs_no_more_for_the_others() {
    let mut pair = pair(2);
    let first = pair.packet(1).unwrap();
    pair.lender.lend(&first).unwrap();
    let other = pair.packet(2).unwrap();
    let places = pair.far.peer_places();
    for _ in 0..3 * PLACES {
        let lent = pair.lender.lend(&other).expect("a place is free");
        places
            .state(lent.place.into())
            .store(FREE, Ordering::Release);
    }
    assert!(pair.lender.untaken.len() <= PLACES);
    assert!(pair.lender.untaken() <= PLACES * PACKET);
}

#[test]
fn what_a_peer_may_be_reading_outlives_the_face() {
    for taken in [false, true] {
        let mut pair = pair(1);
        let packet = pair.packet(7).unwrap();
        let lent = pair.lender.lend(&packet).unwrap();
        drop(packet);
        let (borrower, pool) = (pair.borrower(Borrow::Keep), pool());
        let kept = taken.then(|| bytes(borrower.take(lent, &pool).unwrap()).0);
        let Pair { memory, lender, .. } = pair;
        drop(lender);
        assert!(memory.take(Size::Packet).is_none(), "nobody else's yet");
        let kept = kept.unwrap_or_else(|| bytes(borrower.take(lent, &pool).unwrap()).0);
        assert!(kept.iter().all(|byte| *byte == 7));
        drop(kept);
        // Though no other face comes or goes.
        let deadline = Instant::now() + 6 * LINGER;
        while memory.take(Size::Packet).is_none() {
            assert!(Instant::now() < deadline, "it is never let go");
            std::thread::sleep(LINGER / 50);
        }
    }
}

/// A page of such a file can be taken out of it under whoever has mapped it.
#[test]
fn memory_of_huge_pages_is_refused() {
    use rustix::fs::MemfdFlags;
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB;
    let Ok(file) = rustix::fs::memfd_create("t", flags) else {
        eprintln!("skipped: this kernel makes no memory of huge pages");
        return;
    };
    rustix::fs::ftruncate(&file, 2 << 20).unwrap();
    rustix::fs::fcntl_add_seals(&file, SEALS).unwrap();
    let refused = mapping::check_sealed(&file, SEALS, 2 << 20).unwrap_err();
    assert!(refused.to_string().contains("huge pages"), "{refused}");
}

#[test]
fn memory_that_others_could_write_to_is_refused() {
    let pair = pair(1);
    let file = mapping::memory_file("t", 1 << 20).unwrap();
    let sealed = rustix::fs::SealFlags::SHRINK | rustix::fs::SealFlags::GROW;
    rustix::fs::fcntl_add_seals(&file, sealed).unwrap();
    let places = || pair.far.peer_places();
    assert!(Borrower::new(file.into(), 1 << 20, Borrow::Keep, places()).is_err());
    let plain: std::os::fd::OwnedFd = tempfile::tempfile().unwrap().into();
    assert!(Borrower::new(plain.into(), 0, Borrow::Copy, places()).is_err());
    let own = pair.memory.file().try_clone_to_owned().unwrap();
    assert!(Borrower::new(own.into(), 4096, Borrow::Copy, places()).is_err());
}
