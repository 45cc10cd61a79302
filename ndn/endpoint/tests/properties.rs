//! Random networks, and packets that make no sense.

mod common;

use common::reader::assert_complete;
use common::{
    Congestion, Link, Outage, Source, Stream, World, aimd, config, cubic, fixed_window, ms, prefix,
};
use ndn_endpoint::{Consumer, ConsumerConfig, Producer, ProducerConfig, VerifyPolicy};
use ndn_packet::{ComponentBuf, Data, Interest, NackReason, Name, SigningKey};
use proptest::prelude::*;
use std::time::Duration;

fn window() -> impl Strategy<Value = Congestion> {
    prop_oneof![
        Just(cubic()),
        Just(aimd()),
        (1usize..100).prop_map(fixed_window),
    ]
}

fn link() -> impl Strategy<Value = Link> {
    (
        0u64..30_000,
        0u64..30_000,
        0.0..0.3,
        0.0..0.2,
        prop::sample::select(vec![0u64, 1_000_000, 50_000_000]),
    )
        .prop_map(|(delay_us, jitter_us, loss, duplicate, rate)| Link {
            delay: Duration::from_micros(delay_us),
            jitter: Duration::from_micros(jitter_us),
            loss,
            duplicate,
            rate,
            queue_bytes: 200_000,
            mark_bytes: 100_000,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every byte, in order, exactly once, whatever the network does (the simulator checks contents and the window).
    #[test]
    fn a_finished_stream_arrives(
        link in link(), window in window(), seed: u64, segments in 1u64..150, buffered in 1usize..200,
        corrupt_every in prop::sample::select(vec![0u64, 0, 5, 17]), last_known: bool,
        first_ahead in prop::sample::select(vec![0usize, 1, 4, usize::MAX]),
    ) {
        let mut world = World::ready(segments, link, seed);
        world.corrupt_every = corrupt_every;
        world.add(ConsumerConfig {
            congestion: window,
            seed,
            max_buffered_segments: buffered,
            first_ahead,
            max_rejects: 100,
            give_up_after: Duration::from_secs(600),
            last: last_known.then_some(segments - 1),
            ..config()
        }, Duration::ZERO);
        world.run(Duration::from_secs(100_000));
        assert_complete(&world.readers[0], segments);
        prop_assert!(world.readers[0].most_buffered <= buffered);
    }

    #[test]
    fn a_live_stream_arrives(
        link in link(), window in window(), seed: u64, segments in 1u64..100, every_us in 100u64..20_000,
        told_after in prop::option::of(0u64..100), dark in prop::option::of((0u64..500, 1u64..3000)),
        nack in prop::sample::select(vec![None, Some(NackReason::NoRoute), Some(NackReason::Congestion)]),
    ) {
        let every = Duration::from_micros(every_us);
        let mut world = World::live(segments, every, told_after.map(ms), link, seed);
        world.outages.extend(dark.map(|(from, len)| Outage { from: ms(from), to: ms(from + len), nack }));
        world.add(ConsumerConfig {
            live: true,
            congestion: window,
            seed,
            interest_lifetime: Duration::from_secs(1),
            give_up_after: Duration::from_secs(600),
            ..config()
        }, Duration::ZERO);
        world.run(Duration::from_secs(100_000));
        assert_complete(&world.readers[0], segments);
    }
}

#[derive(Debug, Clone)]
enum Move {
    Advance(u64),
    Poll,
    Data {
        segment: u64,
        last: Option<u64>,
        good: bool,
        marked: bool,
        foreign: bool,
    },
    /// A Nack for the n-th Interest sent so far, or for one never sent.
    Nack {
        which: usize,
        reason: u64,
    },
    Read,
    Reject(u64),
    Known(u64),
    Last(u64),
    Deadline,
}

fn segment() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0u64..40, 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn one_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        3 => (0u64..2000).prop_map(Move::Advance),
        6 => Just(Move::Poll),
        8 => (segment(), prop::option::weighted(0.1, segment()), prop::bool::weighted(0.8), any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(segment, last, good, marked, foreign)| Move::Data { segment, last, good, marked, foreign }),
        3 => (0usize..60, prop::sample::select(vec![0u64, 50, 100, 150, 7])).prop_map(|(which, reason)| Move::Nack { which, reason }),
        4 => Just(Move::Read),
        1 => segment().prop_map(Move::Reject),
        1 => segment().prop_map(Move::Known),
        1 => segment().prop_map(Move::Last),
        3 => Just(Move::Deadline),
    ]
}

fn packet(segment: u64, last: Option<u64>, good: bool, foreign: bool) -> Data {
    let name: Name = if foreign {
        prefix().append_generic("x")
    } else {
        prefix().append_segment(segment)
    };
    let mut builder = Data::builder(&name);
    if let Some(last) = last {
        builder = builder.final_block_id(ComponentBuf::segment(last));
    }
    let key = if good {
        SigningKey::DigestSha256
    } else {
        SigningKey::hmac_sha256(b"other")
    };
    Data::parse(builder.content(b"content").sign(&key)).expect("well formed")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any order of calls: no panic, bounds kept, what is read is in order but for what was rejected.
    #[test]
    fn nothing_breaks_a_consumer(
        moves in prop::collection::vec(one_move(), 1..200), window in window(), live: bool, probe: bool,
        buffered in 1usize..50, verify: bool, first in prop::sample::select(vec![0u64, 0, 3, u64::MAX - 2]),
    ) {
        let verify = if verify { VerifyPolicy::default() } else { VerifyPolicy::None };
        let mut now = ms(0);
        let mut c = Consumer::new(
            ConsumerConfig { congestion: window, live, probe, first, verify, max_buffered_segments: buffered, ..config() }, now);
        let mut sent: Vec<Interest> = Vec::new();
        let mut beyond = 0;
        let mut expected = first;
        let mut rejected = false;
        for step in moves {
            match step {
                Move::Advance(millis) => now += ms(millis),
                Move::Poll => {
                    let before = c.stats();
                    if let Some(packet) = c.poll_interest(now) {
                        // After a timeout one Interest is sent whatever else is out, and this poll may end the wait
                        // that followed, in which the window counted as 1.
                        beyond += u64::from(before.outstanding - before.early >= before.window);
                        prop_assert!(beyond <= 2 * before.timeouts);
                        sent.push(common::packets::interest(packet));
                    }
                }
                Move::Data { segment, last, good, marked, foreign } => {
                    c.on_data(now, packet(segment, last, good, foreign), marked);
                }
                Move::Nack { which, reason } => {
                    let stray = Interest::parse(Interest::builder(&prefix().append_segment(which as u64)).nonce(1).build())
                        .expect("well formed");
                    c.on_nack(now, sent.get(which).unwrap_or(&stray), NackReason::from_code(reason));
                }
                Move::Read => if let Some((segment, _)) = c.read() {
                    prop_assert!(rejected || segment == expected, "{segment} for {expected}");
                    expected = segment + 1;
                },
                Move::Reject(segment) => rejected |= c.reject(segment),
                Move::Known(upto) => c.known_produced(now, upto),
                Move::Last(last) => c.set_last(last),
                Move::Deadline => {
                    now = now.max(c.deadline().unwrap_or(now));
                    c.on_deadline(now);
                    prop_assert!(c.deadline().is_none_or(|at| at > now), "a deadline must move on");
                }
            }
            let stats = c.stats();
            prop_assert!(stats.buffered + stats.outstanding <= buffered, "{stats:?}");
        }
    }

    /// Random Interests at a producer: no panic, bounds kept.
    #[test]
    fn nothing_breaks_a_producer(steps in prop::collection::vec((segment(), 0u8..4, 0u64..3000), 1..200)) {
        let mut p = Producer::new(ProducerConfig {
            retain_segments: 10, max_pending_interests: 10, ..ProducerConfig::new(prefix())
        });
        let (mut now, mut answers, mut refused) = (ms(0), Vec::new(), Vec::new());
        for (segment, what, millis) in steps {
            now += ms(millis);
            match what {
                0 => {
                    let wire = Interest::builder(&prefix().append_segment(segment)).build();
                    p.on_interest(now, &Interest::parse(wire).expect("well formed"), 1);
                }
                1 => drop(p.publish(now, segment, packet(segment, None, true, false).wire().clone(), &mut answers)),
                2 => p.acknowledge(segment),
                _ => p.finish(segment, &mut refused),
            }
            prop_assert!(p.stats().retained <= 10 && p.stats().pending <= 10);
        }
    }
}

/// The same seed gives the same run.
#[test]
fn runs_repeat_exactly() {
    let run = || {
        let link = Link {
            loss: 0.1,
            jitter: ms(3),
            ..Link::with_delay(ms(5))
        };
        let mut world = World::new(
            Source::Ready(Stream::new(200, common::SEGMENT_BYTES)),
            link,
            42,
        );
        world.add(config(), Duration::ZERO);
        let took = world.run(Duration::from_secs(100));
        (took, world.readers[0].consumer.stats())
    };
    assert_eq!(run(), run());
}
