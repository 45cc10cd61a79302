//! The producer: early Interests, retention, the end, and against a model.

mod common;

use bytes::Bytes;
use common::{ms, prefix};
use ndn_endpoint::{Answer, Producer, ProducerConfig, PublishError};
use ndn_packet::{ComponentBuf, Data, Interest, NackReason, Name, SigningKey};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

fn packet(segment: u64) -> Bytes {
    let name = prefix().append_segment(segment);
    Data::builder(&name)
        .content(&segment.to_be_bytes())
        .sign(&SigningKey::DigestSha256)
}

fn asks(name: &Name) -> Interest {
    Interest::parse(Interest::builder(name).lifetime(ms(1000)).build()).expect("well formed")
}

fn asks_segment(segment: u64) -> Interest {
    asks(&prefix().append_segment(segment))
}

fn publish(p: &mut Producer<u32>, now: Duration, segment: u64) -> Result<Vec<u32>, PublishError> {
    let mut answers = Vec::new();
    p.publish(now, segment, packet(segment), &mut answers)?;
    assert!(answers.iter().all(|(_, wire)| *wire == packet(segment)));
    Ok(answers.into_iter().map(|(tag, _)| tag).collect())
}

#[test]
fn a_segment_far_below_the_first_is_refused_and_costs_nothing() {
    let mut p: Producer<u32> = Producer::new(ProducerConfig::new(prefix()));
    let (low, high) = (7, 1 << 40);
    assert_eq!(publish(&mut p, ms(0), high), Ok(vec![]));
    assert_eq!(publish(&mut p, ms(0), low), Err(PublishError::Gone(low)));
    assert_eq!(publish(&mut p, ms(0), high - 1023), Ok(vec![]));
    assert_eq!(p.stats().retained, 2);
}

const NO_ROUTE: Answer = Answer::Nack(NackReason::NoRoute);

#[test]
fn early_interests_wait_until_their_lifetime_ends() {
    let mut p = Producer::new(ProducerConfig::new(prefix()));
    assert_eq!(p.on_interest(ms(0), &asks_segment(0), 1), Answer::Waits);
    assert_eq!(p.on_interest(ms(0), &asks_segment(1), 1), Answer::Waits);
    assert_eq!(p.on_interest(ms(500), &asks_segment(0), 2), Answer::Waits);
    assert_eq!(
        p.on_interest(ms(500), &asks_segment(0), 2),
        Answer::Waits,
        "the same again waits once"
    );
    assert_eq!(publish(&mut p, ms(900), 0), Ok(vec![1, 2]));
    assert_eq!(
        p.on_interest(ms(900), &asks_segment(0), 3),
        Answer::Data(packet(0))
    );
    assert_eq!(
        publish(&mut p, ms(1100), 1),
        Ok(vec![]),
        "its Interest is over"
    );
    let stats = p.stats();
    assert_eq!(
        (
            stats.answered,
            stats.answered_late,
            stats.expired,
            stats.pending
        ),
        (3, 2, 1, 0)
    );
}

#[test]
fn what_is_acknowledged_is_gone() {
    let mut p = Producer::new(ProducerConfig::new(prefix()));
    for segment in 0..10 {
        publish(&mut p, ms(0), segment).expect("in order");
    }
    p.acknowledge(3);
    assert_eq!(p.on_interest(ms(0), &asks_segment(3), 0), NO_ROUTE);
    assert_eq!(
        p.on_interest(ms(0), &asks_segment(4), 0),
        Answer::Data(packet(4))
    );
    assert_eq!(publish(&mut p, ms(0), 3), Err(PublishError::Gone(3)));
    assert_eq!(publish(&mut p, ms(0), 4), Err(PublishError::Again(4)));
    assert_eq!((p.stats().retained, p.stats().evicted), (6, 0));
    p.acknowledge(20);
    assert_eq!(publish(&mut p, ms(0), 20), Err(PublishError::Gone(20)));
    assert_eq!(publish(&mut p, ms(0), 21), Ok(vec![]));
    assert_eq!(p.newest(), Some(21));
}

#[test]
fn retention_is_bounded_by_segments_and_bytes() {
    let bytes = packet(0).len();
    let mut p = Producer::new(ProducerConfig {
        retain_segments: 8,
        retain_bytes: 5 * bytes,
        ..ProducerConfig::new(prefix())
    });
    for segment in 0..100 {
        assert_eq!(p.has_room(bytes), segment < 5);
        publish(&mut p, ms(0), segment).expect("in order");
        assert!(p.stats().retained_bytes <= 5 * bytes);
    }
    assert_eq!((p.stats().retained, p.stats().evicted), (5, 95));
    assert_eq!(p.on_interest(ms(0), &asks_segment(94), 0), NO_ROUTE);
    assert_eq!(
        p.on_interest(ms(0), &asks_segment(95), 0),
        Answer::Data(packet(95))
    );
    // A leap leaves nothing behind, and no ring of its size.
    publish(&mut p, ms(0), u64::MAX).expect("ahead");
    assert_eq!((p.stats().retained, p.newest()), (1, Some(u64::MAX)));
}

#[test]
fn a_flood_of_interests_meets_a_bound_and_keeps_out_nobody() {
    let mut p = Producer::new(ProducerConfig {
        max_pending_interests: 100,
        ..ProducerConfig::new(prefix())
    });
    for i in 0..10_000u32 {
        p.on_interest(ms(0), &asks_segment(1_000_000 + u64::from(i)), i);
        assert!(p.stats().pending <= 100);
    }
    assert_eq!(
        p.on_interest(ms(0), &asks_segment(1_000_200), 1),
        Answer::Nack(NackReason::Congestion)
    );
    assert_eq!(p.on_interest(ms(0), &asks_segment(0), 77), Answer::Waits);
    assert_eq!(publish(&mut p, ms(1), 0), Ok(vec![77]));
    assert_eq!(p.stats().pushed_out, 1);
    // Once the flood's lifetime is over there is room again.
    for i in 0..100 {
        assert_eq!(
            p.on_interest(ms(1000), &asks_segment(2_000_000), i),
            Answer::Waits
        );
    }
    assert_eq!((p.stats().pending, p.stats().expired), (100, 99));
}

#[test]
fn the_end_refuses_what_lies_beyond() {
    let mut p = Producer::new(ProducerConfig::new(prefix()));
    for segment in 0..6 {
        p.on_interest(ms(0), &asks_segment(segment), segment as u32);
    }
    let mut refused = Vec::new();
    p.finish(3, &mut refused);
    assert_eq!(refused, [4, 5]);
    assert_eq!(p.on_interest(ms(0), &asks_segment(4), 9), NO_ROUTE);
    assert_eq!(publish(&mut p, ms(0), 3), Ok(vec![3]));
    assert_eq!(
        publish(&mut p, ms(0), 4),
        Err(PublishError::BeyondLast {
            segment: 4,
            last: 3
        })
    );
}

#[test]
fn other_names_find_the_stream_or_nothing() {
    let mut p = Producer::new(ProducerConfig::new(prefix()));
    let whole = |name: &Name| {
        Interest::parse(Interest::builder(name).can_be_prefix(true).build()).expect("well formed")
    };
    assert_eq!(
        p.on_interest(ms(0), &whole(&prefix()), 5),
        Answer::Waits,
        "for the first segment"
    );
    assert_eq!(publish(&mut p, ms(0), 0), Ok(vec![5]));
    assert_eq!(
        p.on_interest(ms(0), &whole(&prefix().parent()), 5),
        Answer::Data(packet(0))
    );
    assert_eq!(p.on_interest(ms(0), &asks(&prefix()), 5), NO_ROUTE);
    assert_eq!(
        p.on_interest(ms(0), &asks(&prefix().append_generic("x")), 5),
        NO_ROUTE
    );
    let exact = |digest: &[u8; 32]| {
        prefix()
            .append_segment(0)
            .append(ComponentBuf::implicit_digest(digest))
    };
    let digest = Data::parse(packet(0))
        .expect("well formed")
        .implicit_digest();
    assert_eq!(
        p.on_interest(ms(0), &asks(&exact(&digest)), 5),
        Answer::Data(packet(0))
    );
    assert_eq!(p.on_interest(ms(0), &asks(&exact(&[0; 32])), 5), NO_ROUTE);
}

#[test]
fn whoever_asks_by_digests_has_one_computed_for_each_segment() {
    let mut p = Producer::new(ProducerConfig::new(prefix()));
    publish(&mut p, ms(0), 0).expect("room");
    publish(&mut p, ms(0), 1).expect("room");
    let exact = |segment: u64, digest: &[u8; 32]| {
        asks(
            &prefix()
                .append_segment(segment)
                .append(ComponentBuf::implicit_digest(digest)),
        )
    };
    for n in 0..100 {
        let wrong = exact(u64::from(n % 2), &[n; 32]);
        assert_eq!(p.on_interest(ms(0), &wrong, 5), NO_ROUTE);
    }
    for segment in 0..2 {
        let right = ndn_packet::sha256(&packet(segment));
        let answer = p.on_interest(ms(0), &exact(segment, &right), 5);
        assert_eq!(answer, Answer::Data(packet(segment)));
    }
    assert_eq!(p.stats().digests, 2);
}

#[derive(Debug, Clone)]
enum Op {
    Publish(u64),
    Ask(u64),
    Acknowledge(u64),
    Wait(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..40u64).prop_map(Op::Publish),
        4 => (0..60u64).prop_map(Op::Ask),
        1 => (0..30u64).prop_map(Op::Acknowledge),
        1 => (0..1500u64).prop_map(Op::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every Interest gets the Data it asked for, or a Nack, or waits and gets it at publication within its lifetime;
    /// bounds hold throughout.
    #[test]
    fn answers_as_a_map_would(ops in prop::collection::vec(op(), 1..120)) {
        let retain = 16;
        let mut p = Producer::new(ProducerConfig { retain_segments: retain, ..ProducerConfig::new(prefix()) });
        let mut here: BTreeMap<u64, Bytes> = BTreeMap::new();
        let mut floor = 0;
        let mut waiting: BTreeMap<u64, Vec<(u32, Duration)>> = BTreeMap::new();
        let mut now = ms(0);
        for (tag, op) in ops.into_iter().enumerate() {
            let tag = tag as u32;
            match op {
                Op::Wait(millis) => now += ms(millis),
                Op::Acknowledge(upto) => {
                    p.acknowledge(upto);
                    floor = floor.max(upto + 1);
                }
                Op::Ask(segment) => {
                    let answer = p.on_interest(now, &asks_segment(segment), tag);
                    if segment < floor {
                        prop_assert_eq!(answer, NO_ROUTE);
                    } else if let Some(wire) = here.get(&segment) {
                        prop_assert_eq!(answer, Answer::Data(wire.clone()));
                    } else {
                        prop_assert_eq!(answer, Answer::Waits);
                        waiting.entry(segment).or_default().push((tag, now + ms(1000)));
                    }
                }
                Op::Publish(segment) => {
                    match publish(&mut p, now, segment) {
                        Err(PublishError::Gone(_)) => {
                            prop_assert!(segment < floor);
                            continue;
                        }
                        Err(PublishError::Again(_)) => {
                            prop_assert!(here.contains_key(&segment));
                            continue;
                        }
                        Err(other) => return Err(TestCaseError::fail(other.to_string())),
                        Ok(tags) => {
                            let due: Vec<u32> = waiting.remove(&segment).unwrap_or_default().into_iter()
                                .filter(|(_, expires)| *expires > now).map(|(tag, _)| tag).collect();
                            prop_assert_eq!(tags, due);
                        }
                    }
                    here.insert(segment, packet(segment));
                    floor = floor.max((segment + 1).saturating_sub(retain as u64));
                }
            }
            here.retain(|segment, _| *segment >= floor);
            prop_assert_eq!(p.stats().retained, here.len());
            prop_assert_eq!(p.stats().retained_bytes, here.values().map(Bytes::len).sum::<usize>());
        }
    }
}
