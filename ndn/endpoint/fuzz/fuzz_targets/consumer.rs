//! Any answers to the reader of a stream, at any time: it hands out each segment once and in order, holds no more than its
//! bound, and comes to an end.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ndn_endpoint::{Consumer, ConsumerConfig, VerifyPolicy};
use ndn_packet::{ComponentBuf, Data, DataBuilder, NackReason, Name, NetKind, SigningKey};
use std::time::Duration;

const BUFFERED: usize = 8;
const PACKET: usize = 256;

fuzz_target!(|bytes: &[u8]| {
    let mut now = Duration::from_secs(1);
    let prefix: Name = "/a/v=1".parse().expect("a name");
    let mut consumer = Consumer::new(
        ConsumerConfig {
            max_buffered_segments: BUFFERED,
            max_packet_bytes: PACKET,
            give_up_after: Duration::from_secs(2),
            verify: VerifyPolicy::None,
            ..ConsumerConfig::new(prefix.clone())
        },
        now,
    );
    let (mut rest, mut asked, mut next) = (bytes, Vec::new(), 0);
    // Each event: what, milliseconds since the last, which segment or Interest, length of content.
    while let [what, wait, which, length, tail @ ..] = rest {
        rest = tail;
        now += Duration::from_millis(u64::from(*wait));
        while let Some(due) = consumer.deadline().filter(|due| *due <= now) {
            consumer.on_deadline(due);
        }
        while let Some(packet) = consumer.poll_interest(now) {
            let NetKind::Interest(interest) = packet.packet else {
                unreachable!("it asks by Interests")
            };
            asked.push(interest);
            if asked.len() > 64 {
                asked.remove(0);
            }
        }
        match what % 4 {
            0 | 1 => {
                let name = prefix.append_segment(u64::from(*which % 32));
                let content = vec![*what; usize::from(*length)];
                let mut data = DataBuilder::new(&name).content(&content);
                if what & 0x10 != 0 {
                    data = data.final_block_id(ComponentBuf::segment(u64::from(*length % 32)));
                }
                let data = Data::parse(data.sign(&SigningKey::DigestSha256)).expect("what was built");
                let _ = consumer.on_data(now, data, what & 0x20 != 0);
            }
            2 => {
                let count = tail.len().min(usize::from(*length));
                if let Ok(data) = Data::parse(Bytes::copy_from_slice(&tail[..count])) {
                    let _ = consumer.on_data(now, data, false);
                }
                rest = &tail[count..];
            }
            _ => {
                if let Some(interest) = asked.get(usize::from(*which)) {
                    let reason = [NackReason::NoRoute, NackReason::Congestion, NackReason::Duplicate];
                    consumer.on_nack(now, interest, reason[usize::from(*length) % reason.len()]);
                }
            }
        }
        assert!(consumer.ahead() <= BUFFERED);
        if what & 0x40 != 0 {
            while let Some((segment, data)) = consumer.read() {
                assert_eq!(segment, next);
                assert!(data.wire().len() <= PACKET);
                next += 1;
            }
        }
    }
    // Nothing comes any more.
    for _ in 0..100_000 {
        while consumer.read().is_some() {}
        while consumer.poll_interest(now).is_some() {}
        match consumer.deadline() {
            Some(due) => {
                now = now.max(due);
                consumer.on_deadline(now);
            }
            None => break,
        }
    }
    assert!(consumer.is_done() || consumer.failure().is_some());
});
