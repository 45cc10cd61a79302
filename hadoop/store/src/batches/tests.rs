//! Batches without a network.

use super::*;
use crate::cut::Cut;
use crate::file::Draft;
use crate::webhdfs::{Block, LocatedBlock};
use ndn_packet::{BatchSignature, Data};
use trunkline_native::{ChecksumType, SegmentHeader};

/// Bytes of a block segment here; a file's segments have as many, so that a batch of 64 has 64 of those.
const BYTES: u32 = 64;

fn key() -> SigningKey {
    SigningKey::hmac_sha256(b"the owner's")
}

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

/// A file of one block of so many segments.
fn file(segments: u64) -> Arc<File> {
    let length = segments * u64::from(BYTES);
    let mut draft = Draft::new();
    let block = LocatedBlock {
        start_offset: 0,
        block: Block {
            block_pool_id: String::from("BP-1"),
            block_id: 7,
            generation_stamp: 5,
            num_bytes: length,
        },
    };
    draft.extend(&[block]).expect("in order");
    let status = format!(
        r#"{{"type":"FILE","length":{length},"blockSize":1,"modificationTime":9,"fileId":7,"permission":"644"}}"#,
    );
    let status = serde_json::from_str(&status).expect("a status");
    let cut = Cut {
        root: name("/hadoop"),
        block_segment_bytes: BYTES,
        segment_bytes: BYTES,
        freshness: Duration::from_secs(1),
    };
    let file = draft.finish(&name("/c/f"), &status, &cut);
    Arc::new(file.expect("served"))
}

/// The content of a block segment that has `len` bytes, the last of them its number.
fn content(number: u64, len: u32) -> Bytes {
    let header = SegmentHeader {
        checksum: ChecksumType::Null,
        bytes_per_checksum: 512,
        data_len: len,
        offset_in_block: number * u64::from(BYTES),
    };
    let mut content = header.encode().to_vec();
    content.resize(content.len() + len as usize, number as u8);
    content.into()
}

fn wish(
    batches: &mut Batches,
    file: &Arc<File>,
    n: u64,
    now: Duration,
) -> (BatchId, Range<u64>, Gathered) {
    let range = file.batch(n, &key()).expect("a batch");
    let id = BatchId {
        versioned: file.versioned().clone(),
        first: range.start,
    };
    let times = (now, now + Duration::from_secs(4));
    let gathered = batches.gather(&id, (file, range.clone()), |_| None, &key(), times);
    (id, range, gathered)
}

fn number(name: &Name) -> u64 {
    name.last()
        .and_then(|c| c.as_segment())
        .expect("a block segment")
}

#[test]
fn a_batch_is_signed_when_its_last_block_segment_comes() {
    let file = file(70);
    let mut batches = Batches::new();
    for (n, count) in [(3, 64), (69, 6)] {
        let (id, range, gathered) = wish(&mut batches, &file, n, Duration::ZERO);
        let Gathered::Lacks(mut names) = gathered else {
            panic!("{gathered:?}")
        };
        assert_eq!(names.len(), count);
        let (_, _, again) = wish(&mut batches, &file, n, Duration::ZERO);
        assert_eq!(again, Gathered::Lacks(Vec::new()), "asked for just now");
        let last = names.remove(5);
        for name in &names {
            let content = content(number(name), BYTES);
            let done = batches.came(name, &content, &key(), Duration::ZERO);
            assert_eq!(done, []);
        }
        let later = wish(&mut batches, &file, n, AGAIN).2;
        assert_eq!(later, Gathered::Lacks(vec![last.clone()]));
        let content = content(number(&last), BYTES);
        let done = batches.came(&last, &content, &key(), Duration::ZERO);
        assert_eq!(done, [(id.clone(), Gathered::Signed)]);
        for n in range.clone() {
            let data = Data::parse(batches.packet(&id, n).expect("signed")).expect("well formed");
            assert_eq!(data.name().last().and_then(|c| c.as_segment()), Some(n));
            assert_eq!(data.content_slice(), [n as u8; BYTES as usize]);
            assert!(key().verifier().verify(&data));
            assert!(BatchSignature::of(&data).expect("well formed").is_some());
        }
        assert_eq!(batches.packet(&id, range.end), None);
    }
    assert_eq!(batches.gathered_bytes, 0);
    assert!(batches.gathering.is_empty() && batches.lacking.is_empty());
}

#[test]
fn a_batch_that_can_not_be_had_whole_is_apart_for_a_while() {
    let file = file(64);
    let mut batches = Batches::new();
    let (id, _, gathered) = wish(&mut batches, &file, 0, Duration::ZERO);
    let Gathered::Lacks(names) = gathered else {
        panic!("{gathered:?}")
    };
    assert_eq!(
        batches.refused(&names[3], false, Duration::ZERO),
        std::slice::from_ref(&id)
    );
    assert!(
        !batches.is_apart(&id, Duration::ZERO),
        "in a moment it may be had"
    );
    assert_eq!(batches.refused(&names[3], true, Duration::ZERO), []);
    wish(&mut batches, &file, 0, Duration::ZERO);
    assert_eq!(
        batches.refused(&names[3], true, Duration::ZERO),
        std::slice::from_ref(&id)
    );
    assert!(batches.is_apart(&id, Duration::ZERO) && !batches.is_apart(&id, APART));
    assert!(batches.gathering.is_empty() && batches.lacking.is_empty());

    // Nor is one signed with bytes that are not its own.
    wish(&mut batches, &file, 0, APART);
    for name in &names[1..] {
        batches.came(name, &content(number(name), BYTES), &key(), APART);
    }
    let done = batches.came(&names[0], &content(0, BYTES - 1), &key(), APART);
    assert_eq!(done, [(id.clone(), Gathered::Unfit(names[0].clone()))]);
    assert!(batches.is_apart(&id, APART));
}

#[test]
fn what_is_gathered_is_bounded_and_forgotten_when_nobody_waits() {
    let file = file(64 * 10_000);
    let mut batches = Batches::new();
    let mut wish_for = |n: u64, now| wish(&mut batches, &file, n * 64, now).2;
    let full = (0..10_000).find(|n| wish_for(*n, Duration::ZERO) == Gathered::NoRoom);
    let full = full.expect("there is an end of room");
    let late = Duration::from_secs(5);
    assert!(matches!(wish_for(full, late), Gathered::Lacks(_)));
    assert_eq!(batches.gathering.len(), 1, "the others were forgotten");
    assert_eq!(batches.lacking.len(), 64);
    let left: usize = batches.gathering.values().map(|g| g.bytes).sum();
    assert_eq!(batches.gathered_bytes, left);
}
