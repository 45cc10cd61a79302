use super::*;
use crate::PitToken;
use crate::lp::Fragmenter;

const MS: Duration = Duration::from_millis(1);

fn packet(len: usize) -> LpPacket {
    let payload: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
    LpPacket {
        pit_token: Some(PitToken::from_u48(9)),
        congestion_mark: Some(1),
        ..LpPacket::bare(payload.into())
    }
}

fn fragments(packet: &LpPacket, first_sequence: u64, mtu: usize) -> Vec<LpPacket> {
    let mut out = Vec::new();
    Fragmenter::new(first_sequence)
        .fragment(packet.clone(), mtu, &mut out)
        .unwrap();
    for piece in &out {
        let wire = piece.encode();
        assert!(wire.len() <= mtu, "{} > {mtu}", wire.len());
        assert_eq!(LpPacket::decode(wire).as_ref(), Ok(piece));
    }
    out
}

/// Bytes for one packet of up to 3000 bytes and the beginning of another.
const SMALL: usize = 6000;

fn small() -> Reassembler {
    Reassembler::new(ReassemblerConfig {
        max_packets: 2,
        max_bytes: SMALL,
        max_fragments: 8,
        max_packet_size: 3000,
        timeout: 10 * MS,
    })
}

#[test]
fn any_order_gives_the_packet_back() {
    let packet = packet(2500);
    let pieces = fragments(&packet, u64::MAX - 1, 1000);
    assert_eq!(pieces.len(), 3);
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [1, 0, 2]] {
        let mut reassembler = small();
        for (n, &i) in order.iter().enumerate() {
            let result = reassembler.receive(MS, 0, pieces[i].clone()).unwrap();
            assert_eq!(result, (n == 2).then(|| packet.clone()), "{order:?}");
        }
        assert_eq!(reassembler.memory(), 0);
        assert_eq!(reassembler.counters().completed, 1);
        assert_eq!(reassembler.deadline(), None);
    }
}

#[test]
fn whole_packets_pass() {
    let packet = packet(10);
    assert_eq!(fragments(&packet, 0, 1000), std::slice::from_ref(&packet));
    assert_eq!(
        small().receive(MS, 0, packet.clone()),
        Ok(Some(packet.clone()))
    );
    let numbered = LpPacket {
        sequence: Some(7),
        ..packet
    };
    assert_eq!(small().receive(MS, 0, numbered.clone()), Ok(Some(numbered)));
}

#[test]
fn senders_do_not_mix() {
    let (a, b) = (packet(1500), packet(1600));
    let (pieces_a, pieces_b) = (fragments(&a, 0, 1000), fragments(&b, 0, 1000));
    let mut reassembler = small();
    assert_eq!(reassembler.receive(MS, 1, pieces_a[0].clone()), Ok(None));
    assert_eq!(reassembler.receive(MS, 2, pieces_b[1].clone()), Ok(None));
    assert_eq!(reassembler.receive(MS, 2, pieces_b[0].clone()), Ok(Some(b)));
    assert_eq!(reassembler.receive(MS, 1, pieces_a[1].clone()), Ok(Some(a)));
}

#[test]
fn duplicates_are_counted() {
    let pieces = fragments(&packet(2500), 0, 1000);
    let mut reassembler = small();
    for i in [0, 0, 2, 2] {
        assert_eq!(reassembler.receive(MS, 0, pieces[i].clone()), Ok(None));
    }
    assert_eq!(reassembler.counters().duplicate_fragments, 2);
    assert!(
        reassembler
            .receive(MS, 0, pieces[1].clone())
            .unwrap()
            .is_some()
    );
}

#[test]
fn incomplete_packets_time_out() {
    let pieces = fragments(&packet(2500), 0, 1000);
    let mut reassembler = small();
    reassembler.receive(MS, 0, pieces[0].clone()).unwrap();
    reassembler.receive(6 * MS, 0, pieces[1].clone()).unwrap();
    assert!(reassembler.deadline().unwrap() <= 16 * MS);
    reassembler.on_deadline(11 * MS);
    assert_eq!(
        reassembler.deadline(),
        Some(16 * MS),
        "each fragment renews the time"
    );
    reassembler.on_deadline(16 * MS);
    assert_eq!((reassembler.deadline(), reassembler.memory()), (None, 0));
    assert_eq!(reassembler.counters().timed_out, 1);
    assert_eq!(reassembler.receive(17 * MS, 0, pieces[2].clone()), Ok(None));
}

#[test]
fn the_oldest_gives_way_to_keep_the_bounds() {
    let mut reassembler = small();
    for n in 0..10 {
        let pieces = fragments(&packet(2900), n * 100, 1000);
        for piece in &pieces[..2] {
            reassembler
                .receive(n as u32 * MS, 0, piece.clone())
                .unwrap();
            assert!(reassembler.memory() <= SMALL);
        }
    }
    assert!(reassembler.counters().evicted >= 7);
}

/// What is kept free goes by the first fragment, and strangers make that the shortest.
#[test]
fn buffers_that_grow_keep_the_bounds() {
    for max_bytes in (1000..SMALL).step_by(10) {
        let mut reassembler = small();
        reassembler.set_max_bytes(max_bytes);
        for sender in 0..3 {
            for (index, length) in [1, 1000, 10].into_iter().enumerate() {
                let piece = LpPacket {
                    sequence: Some(index as u64),
                    frag_index: index as u64,
                    frag_count: 8,
                    ..LpPacket::bare(vec![1; length].into())
                };
                let _ = reassembler.receive(MS, sender, piece);
                assert!(
                    reassembler.memory() <= max_bytes,
                    "{} of {max_bytes}",
                    reassembler.memory()
                );
            }
        }
    }
}

#[test]
fn what_is_set_aside_for_a_packet_counts() {
    // The first fragment says that there are eight: 8 * 375 bytes are kept free for them.
    let one = LpPacket {
        sequence: Some(0),
        frag_count: 8,
        ..LpPacket::bare(vec![1; 375].into())
    };
    let mut reassembler = small();
    reassembler.receive(MS, 0, one.clone()).unwrap();
    assert!(reassembler.memory() >= 3000, "{}", reassembler.memory());
    // So do fragments without their predecessors, however small.
    let mut reassembler = small();
    for index in 1..8 {
        let tiny = LpPacket {
            sequence: Some(index),
            frag_index: index,
            frag_count: 8,
            ..LpPacket::bare(vec![1].into())
        };
        let before = reassembler.memory();
        reassembler.receive(MS, 0, tiny).unwrap();
        assert!(reassembler.memory() - before > 64);
    }
}

#[test]
fn a_smaller_bound_holds_from_the_next_fragment_on() {
    let mut reassembler = small();
    for n in 0..2 {
        let piece = fragments(&packet(1500), n * 100, 1000).swap_remove(0);
        reassembler.receive(n as u32 * MS, 0, piece).unwrap();
    }
    assert!(reassembler.memory() > 3000);
    reassembler.set_max_bytes(3000);
    let piece = fragments(&packet(1500), 500, 1000).swap_remove(0);
    reassembler.receive(3 * MS, 0, piece.clone()).unwrap();
    assert!(reassembler.memory() <= 3000, "{}", reassembler.memory());
    assert_eq!(reassembler.counters().evicted, 2);
    reassembler.set_max_bytes(100);
    assert_eq!(
        reassembler.receive(3 * MS, 1, piece),
        Err(ReassemblyError::NoRoom(100))
    );
    assert_eq!(reassembler.memory(), 0);
}

#[test]
fn what_is_dropped() {
    let mut reassembler = small();
    let many = fragments(&packet(2500), 0, 200);
    assert_eq!(
        reassembler.receive(MS, 0, many[0].clone()),
        Err(ReassemblyError::TooManyFragments(many.len() as u64))
    );
    let large = fragments(&packet(3100), 0, 1000);
    for piece in &large[..3] {
        assert_eq!(reassembler.receive(MS, 0, piece.clone()), Ok(None));
    }
    assert_eq!(
        reassembler.receive(MS, 0, large[3].clone()),
        Err(ReassemblyError::TooLarge(3000))
    );
    assert_eq!(reassembler.memory(), 0);

    let mut other = fragments(&packet(2500), 0, 1000);
    reassembler.receive(MS, 0, other[0].clone()).unwrap();
    other[1].frag_count = 4;
    assert_eq!(
        reassembler.receive(MS, 0, other[1].clone()),
        Err(ReassemblyError::Mismatch)
    );
    assert_eq!(reassembler.memory(), 0);
}
