//! What is delivered is what was verified, whatever the packet's memory becomes.

use super::*;
use crate::own::testing::Writable;
use crate::seal::{self, StreamKind, WriteKey, sealed_len};
use crate::segment::ChecksumType;
use crate::verify::{checksums_match, segment};
use ndn_packet::SigningKey;

const SEGMENT: u64 = 7;

fn prefix() -> Name {
    "/hadoop/blocks/BP-1/7/v=3".parse().unwrap()
}

/// A segment of so many bytes of data.
fn content(checksum: ChecksumType, bytes_per_checksum: u32, len: usize) -> Vec<u8> {
    let data: Vec<u8> = (0..len).map(|n| ((n * 31) >> 2) as u8).collect();
    segment(checksum, bytes_per_checksum, &data)
}

fn packet(content: &[u8], key: &SigningKey) -> Vec<u8> {
    let name = prefix().append_segment(SEGMENT);
    Data::builder(&name).content(content).sign(key).to_vec()
}

fn sealed(key: &WriteKey, plain: &[u8]) -> Vec<u8> {
    let name = prefix().append_segment(SEGMENT);
    let mut sealed = vec![0; sealed_len(plain.len())];
    let sealer = key.sealer(StreamKind::Block);
    sealer
        .seal(name.value(), SEGMENT, &mut sealed, seal::from(plain))
        .unwrap();
    packet(&sealed, &SigningKey::Null)
}

/// What a test takes with.
struct Taker {
    verify: Verify,
    key: Option<WriteKey>,
    digest: Option<SegmentDigest>,
}

impl Taker {
    fn open(verify: Verify) -> Self {
        Taker {
            verify,
            key: None,
            digest: None,
        }
    }

    fn sealed(key: &WriteKey) -> Self {
        Taker {
            key: Some(key.clone()),
            ..Taker::open(Verify::Checksums)
        }
    }

    fn bound(self, content: &[u8]) -> Self {
        Taker {
            digest: SegmentDigest::of(content),
            ..self
        }
    }

    fn deliver<E>(
        &self,
        data: &Data,
        mut put: impl FnMut(usize, &[u8]) -> Result<(), E>,
    ) -> Result<usize, Undelivered<E>> {
        let opener = self.key.as_ref().map(|key| key.opener(StreamKind::Block));
        let expected = Expected {
            prefix: &prefix(),
            segment: SEGMENT,
            verify: self.verify,
            opener: opener.as_ref(),
            digest: self.digest,
        };
        // The room is that of another segment, as it is in a pull.
        expected.deliver(data, &mut vec![0xa5; 100], &mut put)
    }

    /// The content as it was put together.
    fn take(&self, wire: Vec<u8>) -> Result<Vec<u8>, Refusal> {
        let mut taken = Vec::new();
        let delivered = self.deliver(&Data::parse(wire.into()).unwrap(), |at, piece| {
            assert_eq!(at, taken.len(), "pieces follow each other");
            taken.extend_from_slice(piece);
            Ok::<(), ()>(())
        });
        match delivered {
            Ok(length) => {
                assert_eq!(length, taken.len());
                Ok(taken)
            }
            Err(Undelivered::Refused(refusal)) => Err(refusal),
            Err(Undelivered::Stopped(())) => panic!("nobody stopped it"),
        }
    }
}

/// Takers with packets that each has from its own way.
fn ways(content: &[u8]) -> Vec<(&'static str, Taker, Vec<u8>)> {
    let key = WriteKey::draw().unwrap();
    let (none, digest) = (SigningKey::Null, SigningKey::DigestSha256);
    let taker = Taker::open;
    let (sums, both) = (Verify::Checksums, Verify::Digest);
    let mut ways = vec![
        ("by digest", taker(both), packet(content, &digest)),
        (
            "by digest, bound",
            taker(both).bound(content),
            packet(content, &digest),
        ),
        ("sealed", Taker::sealed(&key), sealed(&key, content)),
        (
            "sealed, bound",
            Taker::sealed(&key).bound(content),
            sealed(&key, content),
        ),
    ];
    let signed = packet(content, &digest);
    match checksums_match(content) {
        None => ways.push(("without checksums", taker(sums), signed)),
        _ => ways.extend([
            ("by checksums", taker(sums), packet(content, &none)),
            (
                "by checksums, bound",
                taker(sums).bound(content),
                packet(content, &none),
            ),
            ("signed in vain", taker(sums), signed),
            ("without digest", taker(both), packet(content, &none)),
        ]),
    }
    ways
}

const ALL: [ChecksumType; 3] = [
    ChecksumType::Null,
    ChecksumType::Crc32,
    ChecksumType::Crc32c,
];

#[test]
fn all_of_it_comes() {
    let page = PIECE_BYTES as u32;
    for checksum in ALL {
        for chunk in [1, 512, 1000, page - 1, page, page + 1, 1 << 20, u32::MAX] {
            for len in [0, 1, 511, 512, 513, 4096, 4097, 9999, 12_800] {
                let content = content(checksum, chunk, len);
                for (way, taker, wire) in ways(&content) {
                    let taken = taker.take(wire);
                    assert!(
                        taken.as_ref() == Ok(&content),
                        "{way}: {len} bytes, {chunk} a checksum, {checksum:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_no_segment_has_its_digest() {
    for content in [&b""[..], b"TLB1", b"anything else, longer than a header"] {
        for verify in [Verify::Checksums, Verify::Digest] {
            let taker = Taker::open(verify);
            let signed = packet(content, &SigningKey::DigestSha256);
            assert_eq!(taker.take(signed).as_deref(), Ok(content));
            let unsigned = packet(content, &SigningKey::Null);
            assert_eq!(taker.take(unsigned), Err(Refusal::Damaged));
        }
        let key = WriteKey::draw().unwrap();
        let taken = Taker::sealed(&key).take(sealed(&key, content));
        assert_eq!(taken.as_deref(), Ok(content), "whoever has the key made it");
    }
}

/// The ways of an open segment accept what [`Verify::accepts`] does.
#[test]
fn every_turned_byte_is_judged_as_in_the_packet() {
    for checksum in ALL {
        let content = content(checksum, 512, 1300);
        for (way, taker, wire) in ways(&content) {
            let start = wire.windows(content.len()).position(|w| w == content);
            let Some(start) = start else {
                continue; // sealed
            };
            for at in 0..content.len() {
                let mut wire = wire.clone();
                wire[start + at] ^= 0x10;
                let packet = Data::parse(wire.clone().into()).unwrap();
                let mut turned = content.clone();
                turned[at] ^= 0x10;
                let expected = if !taker.verify.accepts(&packet) {
                    Err(Refusal::Damaged)
                } else if taker.digest.is_some() {
                    Err(Refusal::Another)
                } else {
                    Ok(turned)
                };
                assert!(taker.take(wire) == expected, "{way}: byte {at}");
            }
        }
    }
}

#[test]
fn refusals_are_told_apart() {
    let (this, other) = (
        content(ChecksumType::Crc32c, 512, 9000),
        content(ChecksumType::Crc32c, 512, 8999),
    );
    for (way, taker, wire) in ways(&other) {
        let bound = taker.digest.is_some();
        let taken = taker.bound(&this).take(wire);
        assert_eq!(taken, Err(Refusal::Another), "{way}, bound: {bound}");
    }
    let (key, stranger) = (WriteKey::draw().unwrap(), WriteKey::draw().unwrap());
    let taker = Taker::sealed(&key);
    assert_eq!(taker.take(sealed(&stranger, &this)), Err(Refusal::Forged));
    let open = packet(&this, &SigningKey::Null);
    assert_eq!(taker.take(open), Err(Refusal::Forged));

    // Damaged before it was sealed: the checksums tell, or the taker's record does.
    let mut damaged = this.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let wire = sealed(&key, &damaged);
    assert_eq!(taker.take(wire.clone()), Err(Refusal::Damaged));
    assert_eq!(taker.bound(&this).take(wire), Ok(damaged.clone()));
    let wire = packet(&damaged, &SigningKey::DigestSha256);
    let taker = Taker::open(Verify::Checksums).bound(&other);
    assert_eq!(taker.take(wire), Err(Refusal::Damaged), "before another");

    let mut long = this;
    long.push(0);
    let wire = packet(&long, &SigningKey::Null);
    let taken = Taker::open(Verify::Checksums).take(wire);
    assert_eq!(taken, Err(Refusal::Damaged));
}

#[test]
fn nothing_unverified_of_a_sealed_segment_is_put() {
    let key = WriteKey::draw().unwrap();
    let content = content(ChecksumType::Crc32c, 512, 30_000);
    let wire = sealed(&key, &content);
    let inside = Data::parse(wire.clone().into()).unwrap().content();
    let start = wire
        .windows(inside.len())
        .position(|w| w == inside)
        .unwrap();
    for at in [
        0,
        100,
        7000,
        15_000,
        29_999,
        content.len(),
        inside.len() - 1,
    ] {
        let mut wire = wire.clone();
        wire[start + at] ^= 1;
        let packet = Data::parse(wire.into()).unwrap();
        let mut put = Vec::new();
        let delivered = Taker::sealed(&key).deliver(&packet, |_, piece| {
            put.extend_from_slice(piece);
            Ok::<(), ()>(())
        });
        assert_eq!(delivered, Err(Refusal::Forged.into()), "byte {at}");
        assert!(content.starts_with(&put), "byte {at}");
        assert!(put.len() <= at || at >= content.len(), "byte {at}");
    }
}

/// Whoever has the key can seal what does not match its checksums, or is no segment as its header has it.
#[test]
fn every_turned_byte_that_was_sealed_is_judged_as_if_it_was_open() {
    let key = WriteKey::draw().unwrap();
    for checksum in ALL {
        let content = content(checksum, 500, 7000);
        let end = content.len();
        for at in (0..100).chain(6000..6300).chain(end - 100..end) {
            let mut turned = content.clone();
            turned[at] ^= 0x10;
            let expected = match checksums_match(&turned) {
                Some(false) => Err(Refusal::Damaged),
                _ => Ok(turned.clone()),
            };
            let taken = Taker::sealed(&key).take(sealed(&key, &turned));
            assert!(taken == expected, "byte {at}, {checksum:?}");
        }
        for other in [
            &content[..HEADER_LEN + 3],
            &content[..end - 1],
            &[&content[..], &[0]].concat(),
        ] {
            let expected = match checksums_match(other) {
                Some(false) => Err(Refusal::Damaged),
                _ => Ok(other.to_vec()),
            };
            let taken = Taker::sealed(&key).take(sealed(&key, other));
            assert!(taken == expected, "{} bytes, {checksum:?}", other.len());
        }
    }
}

/// Between verification and delivery of each piece, all of the packet changes.
#[test]
fn a_packet_that_changes_is_not_delivered_otherwise_than_verified() {
    for checksum in ALL {
        let content = content(checksum, 512, 9000);
        for (way, taker, wire) in ways(&content) {
            for moment in 0.. {
                let memory = Writable::holding(&wire);
                let packet = Data::parse(memory.bytes()).unwrap();
                let (mut taken, mut pieces) = (Vec::new(), 0);
                let delivered = taker.deliver(&packet, |_, piece| {
                    if pieces == moment {
                        memory.turn();
                    }
                    pieces += 1;
                    taken.extend_from_slice(piece);
                    Ok::<(), ()>(())
                });
                assert!(content.starts_with(&taken), "{way}: all put was verified");
                if pieces > moment + 1 {
                    panic!("{way}: a piece of the changed packet was put");
                }
                let refusal = match taker.key {
                    Some(_) => Refusal::Forged,
                    None => Refusal::Damaged,
                };
                if taken.len() < content.len() {
                    assert_eq!(delivered, Err(refusal.into()), "{way}");
                    continue;
                }
                // It changed with the last piece, when all was copied: the name says so, where no digest says that it is
                // right all the same.
                let is_told_by_name = pieces > 1 && taker.digest.is_none() && taker.key.is_none();
                let expected = match is_told_by_name {
                    true => Err(Refusal::Another.into()),
                    false => Ok(content.len()),
                };
                assert_eq!(delivered, expected, "{way}");
                break;
            }
        }
    }
}

/// A lender that thinks it has been given its memory back puts another packet there.
#[test]
fn another_packet_in_its_place_is_not_delivered() {
    let content = content(ChecksumType::Crc32c, 512, 9000);
    let other = Data::builder(&prefix().append_segment(SEGMENT + 1))
        .content(&content)
        .sign(&SigningKey::Null);
    let memory = Writable::holding(&packet(&content, &SigningKey::Null));
    let packet = Data::parse(memory.bytes()).unwrap();
    memory.become_other(&other);
    let delivered = Taker::open(Verify::Checksums).deliver(&packet, |_, _| Ok::<(), ()>(()));
    assert_eq!(delivered, Err(Refusal::Another.into()));
}

#[test]
fn a_taker_can_stop_it() {
    let content = content(ChecksumType::Crc32c, 512, 9000);
    for (way, taker, wire) in ways(&content) {
        let packet = Data::parse(wire.into()).unwrap();
        let delivered = taker.deliver(&packet, |_, _| Err("no more"));
        assert_eq!(delivered, Err(Undelivered::Stopped("no more")), "{way}");
    }
}
