//! Whole transfers over a bad network: complete, in order, as fast as the link, fair.

mod common;

use common::reader::assert_complete;
use common::{
    Congestion, Link, Outage, SEGMENT_BYTES, World, aimd, config, cubic, fixed_window, ms,
};
use ndn_endpoint::{ConsumerConfig, CubicConfig, FailReason, VerifyPolicy};
use ndn_packet::NackReason;
use std::time::Duration;

fn algorithms() -> [Congestion; 3] {
    [cubic(), aimd(), fixed_window(64)]
}

#[test]
fn complete_under_twenty_percent_loss() {
    for window in algorithms() {
        let link = Link {
            loss: 0.2,
            duplicate: 0.05,
            jitter: ms(5),
            ..Link::with_delay(ms(5))
        };
        let mut world = World::ready(400, link, 3);
        world.add(
            ConsumerConfig {
                congestion: window.clone(),
                ..config()
            },
            Duration::ZERO,
        );
        let took = world.run(Duration::from_secs(600));
        assert_complete(&world.readers[0], 400);
        println!(
            "{window:?}: {took:?} {:?}",
            world.readers[0].consumer.stats()
        );
    }
}

/// 100 Mbit/s, 20 ms round trip: 31 segments of 8000 bytes fill the pipe.
fn hundred_megabit() -> Link {
    Link {
        rate: 12_500_000,
        queue_bytes: 250_000,
        mark_bytes: 125_000,
        ..Link::with_delay(ms(10))
    }
}

fn utilization(world: &World, took: Duration) -> f64 {
    world.readers.iter().map(|r| r.bytes).sum::<u64>() as f64
        / took.as_secs_f64()
        / world.down.link.rate as f64
}

#[test]
fn the_window_fills_the_pipe() {
    for mark_bytes in [125_000, u64::MAX] {
        for window in algorithms() {
            let mut world = World::ready(
                6000,
                Link {
                    mark_bytes,
                    ..hundred_megabit()
                },
                3,
            );
            world.add(
                ConsumerConfig {
                    congestion: window.clone(),
                    ..config()
                },
                Duration::ZERO,
            );
            let took = world.run(Duration::from_secs(600));
            assert_complete(&world.readers[0], 6000);
            let utilization = utilization(&world, took);
            println!(
                "{window:?}: {utilization:.2} {took:?} {:?}",
                world.readers[0].consumer.stats()
            );
            assert!(utilization > 0.85, "{window:?}: {utilization:.2}");
        }
    }
}

#[test]
fn a_window_as_deep_as_the_pipe_needs_no_retransmission() {
    let mut world = World::ready(2000, hundred_megabit(), 3);
    world.add(
        ConsumerConfig {
            congestion: fixed_window(30),
            ..config()
        },
        Duration::ZERO,
    );
    let took = world.run(Duration::from_secs(60));
    assert_complete(&world.readers[0], 2000);
    let stats = world.readers[0].consumer.stats();
    assert_eq!(
        (
            stats.sent,
            stats.retransmitted,
            stats.timeouts,
            stats.duplicates
        ),
        (2000, 0, 0, 0)
    );
    assert!(utilization(&world, took) > 0.9);
}

#[test]
fn two_consumers_share_the_link() {
    for window in [cubic(), aimd()] {
        let mut world = World::ready(20_000, hundred_megabit(), 5);
        for (seed, start) in [(1, Duration::ZERO), (2, Duration::from_secs(1))] {
            world.add(
                ConsumerConfig {
                    congestion: window.clone(),
                    seed,
                    ..config()
                },
                start,
            );
        }
        world.run(Duration::from_secs(12));
        // From the fourth second on both have settled.
        let share = |i: usize| {
            let reader = &world.readers[i];
            let before = reader
                .progress
                .iter()
                .rev()
                .find(|(at, _)| *at < Duration::from_secs(4))
                .map_or(0, |p| p.1);
            (reader.bytes - before) as f64
        };
        let (a, b) = (share(0), share(1));
        println!(
            "{window:?}: {:.2} of the link, ratio {:.2}",
            (a + b) / 8.0 / 12_500_000.0,
            a / b
        );
        assert!((0.5..2.0).contains(&(a / b)), "{window:?}: {a} to {b}");
        assert!(
            (a + b) / 8.0 > 0.85 * 12_500_000.0,
            "{window:?}: both together {a} + {b}"
        );
    }
}

#[test]
fn marks_cut_the_window_once_a_round_trip() {
    let link = Link {
        mark_bytes: 0,
        ..hundred_megabit()
    };
    let mut world = World::ready(4000, link, 3);
    let window: Congestion = std::sync::Arc::new(CubicConfig {
        initial: 28.0,
        ..CubicConfig::default()
    });
    world.add(
        ConsumerConfig {
            congestion: window,
            ..config()
        },
        Duration::ZERO,
    );
    let took = world.run(Duration::from_secs(60));
    assert_complete(&world.readers[0], 4000);
    let stats = world.readers[0].consumer.stats();
    assert!(stats.marks > 100, "{stats:?}");
    assert!(
        stats.decreases <= took.as_millis() as u64 / 20,
        "{took:?} {stats:?}"
    );
    assert_eq!(stats.retransmitted, 0);
}

#[test]
fn a_producer_that_restarts_is_waited_for() {
    for nack in [
        None,
        Some(NackReason::NoRoute),
        Some(NackReason::Congestion),
    ] {
        let mut world = World::ready(3000, hundred_megabit(), 3);
        world.outages.push(Outage {
            from: ms(500),
            to: ms(4500),
            nack,
        });
        world.add(config(), Duration::ZERO);
        let took = world.run(Duration::from_secs(60));
        assert_complete(&world.readers[0], 3000);
        println!("{nack:?}: {took:?} {:?}", world.readers[0].consumer.stats());
        assert!(took < Duration::from_secs(11), "{nack:?}: {took:?}");
        // Silence and want of a route are answered by quiet, congestion by the least window, two a round trip.
        let in_vain = if nack == Some(NackReason::Congestion) {
            600
        } else {
            100
        };
        assert!(
            world.interests_seen < 3000 + in_vain,
            "{nack:?}: {}",
            world.interests_seen
        );
    }
}

#[test]
fn no_producer_is_a_clear_failure() {
    let forever = Duration::from_secs(1000);
    for nack in [None, Some(NackReason::NoRoute)] {
        let mut world = World::ready(10, hundred_megabit(), 3);
        world.outages.push(Outage {
            from: Duration::ZERO,
            to: forever,
            nack,
        });
        world.add(
            ConsumerConfig {
                give_up_after: Duration::from_secs(5),
                ..config()
            },
            Duration::ZERO,
        );
        let took = world.run(forever);
        let failure = world.readers[0]
            .consumer
            .failure()
            .cloned()
            .expect("it gave up");
        println!("{took:?}: {failure}");
        assert!(
            (Duration::from_secs(5)..Duration::from_secs(7)).contains(&took),
            "{took:?}"
        );
        match nack {
            None => assert!(matches!(failure, FailReason::Stalled { segment: 0, .. })),
            Some(_) => assert!(matches!(failure, FailReason::NoRoute { segment: 0, .. })),
        }
        assert_eq!(world.readers[0].consumer.deadline(), None);
    }
}

#[test]
fn corrupted_segments_are_asked_for_again() {
    let mut world = World::ready(500, hundred_megabit(), 3);
    world.corrupt_every = 7;
    world.add(config(), Duration::ZERO);
    world.run(Duration::from_secs(60));
    assert_complete(&world.readers[0], 500);
    assert!(world.readers[0].consumer.stats().rejected > 60);
}

#[test]
fn a_stream_that_never_verifies_fails() {
    let mut world = World::ready(500, hundred_megabit(), 3);
    world.corrupt_every = 1;
    world.add(config(), Duration::ZERO);
    world.run(Duration::from_secs(60));
    let failure = world.readers[0].consumer.failure();
    assert!(
        matches!(
            failure,
            Some(FailReason::Rejected {
                segment: 0,
                times: 4,
                ..
            })
        ),
        "{failure:?}"
    );
    assert!(world.readers[0].read.is_empty());
}

#[test]
fn the_wrong_key_is_no_key() {
    let mut world = World::ready(5, hundred_megabit(), 3);
    let verify = VerifyPolicy::Signed(ndn_packet::Verifier::hmac_sha256(b"secret"));
    world.add(ConsumerConfig { verify, ..config() }, Duration::ZERO);
    world.run(Duration::from_secs(60));
    assert!(matches!(
        world.readers[0].consumer.failure(),
        Some(FailReason::Rejected { .. })
    ));
}

#[test]
fn a_reader_that_does_not_read_bounds_the_memory() {
    let mut world = World::ready(5000, hundred_megabit(), 3);
    world.add(
        ConsumerConfig {
            max_buffered_segments: 100,
            ..config()
        },
        Duration::ZERO,
    );
    world.readers[0].reading = false;
    world.run(Duration::from_secs(20));
    let stats = world.readers[0].consumer.stats();
    assert_eq!(
        (stats.buffered, stats.outstanding, stats.sent),
        (100, 0, 100)
    );
    // It reads again after a long while: nobody counted that as a stall.
    world.now = Duration::from_secs(300);
    world.readers[0].reading = true;
    world.drive(0);
    world.run(Duration::from_secs(400));
    assert_complete(&world.readers[0], 5000);
    assert!(world.readers[0].most_buffered <= 100);
}

#[test]
fn a_lost_segment_costs_a_round_trip_not_a_timeout() {
    let link = Link {
        loss: 0.002,
        ..hundred_megabit()
    };
    let mut world = World::ready(3000, link, 11);
    world.add(
        ConsumerConfig {
            congestion: fixed_window(40),
            ..config()
        },
        Duration::ZERO,
    );
    world.run(Duration::from_secs(60));
    assert_complete(&world.readers[0], 3000);
    let reader = &world.readers[0];
    let stats = reader.consumer.stats();
    assert!(stats.gaps > 0 && stats.timeouts == 0, "{stats:?}");
    let longest = reader
        .progress
        .windows(2)
        .map(|w| w[1].0 - w[0].0)
        .max()
        .unwrap_or_default();
    assert!(
        longest < ms(120),
        "{longest:?}: under the least timeout of 200 ms"
    );
    assert_eq!(reader.bytes, 3000 * u64::from(SEGMENT_BYTES));
}
