//! Single packets of the stream, and what a consumer sent.

use super::prefix;
use ndn_endpoint::Consumer;
use ndn_packet::{ComponentBuf, Data, Interest, NetKind, NetPacket, SigningKey};
use std::time::Duration;

pub fn data_with(segment: u64, last: Option<u64>) -> Data {
    let name = prefix().append_segment(segment);
    let mut data = Data::builder(&name);
    if let Some(last) = last {
        data = data.final_block_id(ComponentBuf::segment(last));
    }
    Data::parse(
        data.content(&segment.to_be_bytes())
            .sign(&SigningKey::DigestSha256),
    )
    .expect("well formed")
}

pub fn data(segment: u64) -> Data {
    data_with(segment, None)
}

/// The same packet with one content byte changed: its signature does not hold.
pub fn spoiled(data: &Data) -> Data {
    let mut bytes = data.wire().to_vec();
    let content = data.content();
    let at = bytes
        .windows(content.len())
        .position(|w| w == content)
        .expect("its content");
    bytes[at] ^= 1;
    Data::parse(bytes.into()).expect("still well formed")
}

/// The Interest in a packet that a consumer sends.
pub fn interest(packet: NetPacket) -> Interest {
    match packet.packet {
        NetKind::Interest(interest) => interest,
        other => panic!("not an Interest: {other:?}"),
    }
}

pub fn sent(consumer: &mut Consumer, now: Duration) -> Vec<Interest> {
    std::iter::from_fn(|| consumer.poll_interest(now))
        .map(interest)
        .collect()
}

pub fn segments(interests: &[Interest]) -> Vec<u64> {
    interests
        .iter()
        .map(|i| {
            i.name()
                .last()
                .and_then(|c| c.as_segment())
                .expect("a segment")
        })
        .collect()
}
