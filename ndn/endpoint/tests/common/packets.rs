//! Single packets of the stream, and what a consumer sent.

use super::prefix;
use bytes::Bytes;
use ndn_endpoint::Consumer;
use ndn_packet::{ComponentBuf, Data, Interest, SigningKey};
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

pub fn sent(consumer: &mut Consumer, now: Duration) -> Vec<Interest> {
    let wires: Vec<Bytes> = std::iter::from_fn(|| consumer.poll_interest(now)).collect();
    wires
        .into_iter()
        .map(|wire| Interest::parse(wire).expect("well formed"))
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
