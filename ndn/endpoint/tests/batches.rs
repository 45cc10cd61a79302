//! Segments that have one signature together, read by whoever asks for a key's.

mod common;

use common::ms;
use ndn_endpoint::{
    Consumer, ConsumerConfig, Distrust, FailReason, Segmenter, SignedBy, VerifyPolicy,
};
use ndn_packet::{Batch, Data, Name, Signer, SigningKey};

fn key(secret: &[u8]) -> SigningKey {
    SigningKey::hmac_sha256(secret)
}

fn segmenter() -> Segmenter {
    let prefix: Name = "/a/v=1".parse().expect("a name");
    Segmenter::new(prefix, 10 * 5 + 3, 5)
}

/// Segments in batches of four.
fn segments(key: &SigningKey) -> Vec<Data> {
    let segmenter = segmenter();
    let all: Vec<u64> = (0..=segmenter.last()).collect();
    let sign = |numbers: &[u64]| {
        let mut batch = Batch::new(key, numbers.len());
        for n in numbers {
            let fill = |offset, content: &mut [u8]| {
                content.fill(offset as u8);
                Ok::<(), std::io::Error>(())
            };
            let joined = segmenter.join(*n, &mut batch, fill);
            assert!(joined.expect("filled"));
        }
        batch.sign()
    };
    let parse = |wire| Data::parse(wire).expect("well formed");
    all.chunks(4).flat_map(sign).map(parse).collect()
}

fn consumer(verify: VerifyPolicy) -> Consumer {
    let config = ConsumerConfig {
        verify,
        probe: false,
        max_rejects: 0,
        ..ConsumerConfig::new(segmenter().prefix().clone())
    };
    Consumer::new(config, ms(0))
}

/// Gives a consumer all that is there; the segments that it hands on.
fn read(consumer: &mut Consumer, all: &[Data]) -> Vec<u64> {
    let mut read = Vec::new();
    while consumer.failure().is_none() && !consumer.is_done() {
        let before = read.len();
        while consumer.poll_interest(ms(0)).is_some() {}
        for data in all {
            consumer.on_data(ms(1), data.clone(), false);
        }
        read.extend(std::iter::from_fn(|| consumer.read()).map(|(n, _)| n));
        if read.len() == before {
            break;
        }
    }
    read
}

#[test]
fn they_are_read_with_the_key_and_by_those_who_look_at_digests() {
    let all = segments(&key(b"k"));
    let whole: Vec<u64> = (0..=segmenter().last()).collect();
    for policy in [
        VerifyPolicy::Signed(key(b"k").verifier()),
        VerifyPolicy::default(),
    ] {
        let mut consumer = consumer(policy);
        assert_eq!(read(&mut consumer, &all), whole);
        assert!(consumer.is_done());
    }
}

#[test]
fn those_of_another_key_are_not() {
    let policy = VerifyPolicy::Signed(key(b"k").verifier());
    let other = key(b"another");
    let mut all = segments(&key(b"k"));
    all[6] = segments(&other).remove(6);
    let mut consumer = consumer(policy);
    assert_eq!(read(&mut consumer, &all), [0, 1, 2, 3, 4, 5]);
    let Some(FailReason::Rejected { segment, why, .. }) = consumer.failure() else {
        panic!("{:?}", consumer.failure())
    };
    let by = SignedBy {
        signature_type: other.signature_type(),
        key: other.key_locator().map(|locator| locator.to_owned()),
    };
    assert_eq!((*segment, why), (6, &Distrust::WrongKey(by)));
}

#[test]
fn why_one_is_not_believed() {
    let data = &segments(&key(b"k"))[0];
    let pkcs8 = SigningKey::generate_ed25519().expect("a key");
    let ed25519 = SigningKey::ed25519_from_pkcs8(&pkcs8).expect("a key");
    let unknown = VerifyPolicy::Signed(ed25519.verifier()).check(data);
    assert!(matches!(unknown, Err(Distrust::UnknownKey(_))));
    let plain = segmenter().segment(0, &SigningKey::DigestSha256, |_, _| Ok::<(), ()>(()));
    let plain = Data::parse(plain.expect("filled").expect("there")).expect("well formed");
    let unsigned = VerifyPolicy::Signed(ed25519.verifier()).check(&plain);
    assert_eq!(unsigned, Err(Distrust::Unsigned));
    let mut wire = data.wire().to_vec();
    *wire.last_mut().expect("a digest") ^= 1;
    let damaged = Data::parse(wire.into()).expect("well formed");
    let corrupt = VerifyPolicy::default().check(&damaged);
    assert_eq!(corrupt, Err(Distrust::Corrupt));
}
