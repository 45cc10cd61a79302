//! A stream of link-layer packets into a reassembler: its bounds hold whatever comes.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ndn_packet::lp::{LpPacket, Reassembler, ReassemblerConfig};
use std::time::Duration;

fuzz_target!(|bytes: &[u8]| {
    let config = ReassemblerConfig {
        max_packets: 4,
        max_bytes: 2048,
        max_fragments: 8,
        max_packet_size: 128,
        timeout: Duration::from_millis(20),
    };
    let mut reassembler = Reassembler::new(config.clone());
    let mut now = Duration::ZERO;
    let mut rest = bytes;
    // Each fragment: milliseconds since the last, sender, sequence, index, count, length, bytes.
    while let [wait, sender, sequence, index, count, len, tail @ ..] = rest {
        let (payload, tail) = tail.split_at(usize::from(*len % 64).min(tail.len()));
        rest = tail;
        now += Duration::from_millis(u64::from(*wait % 32));
        let packet = LpPacket {
            sequence: Some(u64::from(*sequence % 16)),
            frag_index: u64::from(*index % 10),
            frag_count: u64::from(*count % 10),
            ..LpPacket::bare(Bytes::copy_from_slice(payload))
        };
        let fragmented = packet.frag_count > 1;
        if let Ok(Some(whole)) = reassembler.receive(now, u64::from(*sender % 3), packet) {
            assert!(
                !fragmented
                    || whole
                        .fragment
                        .is_some_and(|f| f.len() <= config.max_packet_size)
            );
        }
        assert!(reassembler.memory() <= config.max_bytes);
        reassembler.on_deadline(now);
        assert!(reassembler.deadline().is_none_or(|deadline| deadline > now));
    }
    reassembler.on_deadline(now + config.timeout);
    assert_eq!(
        (reassembler.memory(), reassembler.deadline()),
        (0, None)
    );
});
