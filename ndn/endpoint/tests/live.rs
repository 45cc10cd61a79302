//! Streams that are pulled while they are produced.

mod common;

use common::reader::assert_complete;
use common::{Congestion, Link, Outage, Source, World, aimd, config, cubic, fixed_window, ms};
use ndn_endpoint::ConsumerConfig;
use std::time::Duration;

fn live(congestion: Congestion) -> ConsumerConfig {
    ConsumerConfig {
        live: true,
        congestion,
        interest_lifetime: Duration::from_secs(1),
        ..config()
    }
}

fn algorithms() -> [Congestion; 3] {
    [cubic(), aimd(), fixed_window(32)]
}

#[test]
fn a_slow_producer_is_no_loss() {
    // With and without news of what was produced, the news before the Data or long after.
    for told_after in [None, Some(Duration::ZERO), Some(ms(30))] {
        for window in algorithms() {
            let mut world = World::live(60, ms(300), told_after, Link::with_delay(ms(5)), 3);
            world.add(live(window.clone()), Duration::ZERO);
            let took = world.run(Duration::from_secs(60));
            assert_complete(&world.readers[0], 60);
            let stats = world.readers[0].consumer.stats();
            assert_eq!(
                (
                    stats.decreases,
                    stats.timeouts,
                    stats.gaps,
                    stats.retransmitted
                ),
                (0, 0, 0, 0),
                "{stats:?}"
            );
            assert!(
                stats.reexpressed > 0,
                "Interests lived 1 s, segments took 0.3 s each: {stats:?}"
            );
            assert!(
                took <= ms(60 * 300 + 10),
                "each came a delay after it was made: {took:?}"
            );
        }
    }
}

#[test]
fn the_first_segment_opens_the_window() {
    let mut world = World::live(60, ms(300), None, Link::with_delay(ms(5)), 3);
    world.add(live(fixed_window(32)), Duration::ZERO);
    world.run(ms(299));
    assert_eq!(world.interests_seen, 1);
    world.run(ms(320));
    assert_eq!(world.interests_seen, 33);
}

#[test]
fn losses_are_made_good_at_once() {
    for told_after in [None, Some(ms(1))] {
        let link = Link {
            loss: 0.05,
            jitter: ms(1),
            ..Link::with_delay(ms(2))
        };
        let mut world = World::live(1000, ms(5), told_after, link, 9);
        world.add(live(fixed_window(64)), Duration::ZERO);
        let took = world.run(Duration::from_secs(60));
        assert_complete(&world.readers[0], 1000);
        println!(
            "{told_after:?}: {took:?} {:?}",
            world.readers[0].consumer.stats()
        );
        assert!(took < Duration::from_secs(8), "5 s of production: {took:?}");
    }
}

#[test]
fn a_fast_producer_fills_the_pipe() {
    // 50 segments of 8000 bytes are on their way in 40 ms; the producer makes one every 0.7 ms.
    for window in algorithms() {
        let link = Link {
            rate: 12_500_000,
            queue_bytes: 500_000,
            mark_bytes: 250_000,
            ..Link::with_delay(ms(20))
        };
        let mut world = World::live(5000, Duration::from_micros(700), Some(ms(20)), link, 9);
        if format!("{window:?}").starts_with("Fixed") {
            world.add(live(fixed_window(128)), Duration::ZERO);
        } else {
            world.add(live(window.clone()), Duration::ZERO);
        }
        // A producer ahead of its consumer keeps what is not acknowledged: here, all of it.
        if let Source::Live { producer, .. } = &mut world.source {
            **producer = ndn_endpoint::Producer::new(ndn_endpoint::ProducerConfig {
                retain_segments: 5000,
                ..ndn_endpoint::ProducerConfig::new(common::prefix())
            });
        }
        let took = world.run(Duration::from_secs(60));
        assert_complete(&world.readers[0], 5000);
        println!(
            "{window:?}: {took:?} {:?}",
            world.readers[0].consumer.stats()
        );
        assert!(took < ms(4800), "3.5 s of production, {window:?}: {took:?}");
    }
}

#[test]
fn an_outage_in_mid_stream_is_survived() {
    let mut world = World::live(500, ms(10), Some(ms(1)), Link::with_delay(ms(2)), 9);
    world.outages.push(Outage {
        from: ms(1000),
        to: ms(3000),
        nack: None,
    });
    world.add(live(fixed_window(32)), Duration::ZERO);
    let took = world.run(Duration::from_secs(60));
    assert_complete(&world.readers[0], 500);
    assert!(took < Duration::from_secs(9), "{took:?}");
}

#[test]
fn three_replicas_pull_one_stream() {
    let link = Link {
        loss: 0.01,
        ..Link::with_delay(ms(1))
    };
    let mut world = World::live(300, ms(3), Some(ms(1)), link, 21);
    for seed in 0..3 {
        world.add(
            ConsumerConfig {
                seed,
                ..live(fixed_window(32))
            },
            Duration::ZERO,
        );
    }
    world.run(Duration::from_secs(60));
    for reader in &world.readers {
        assert_complete(reader, 300);
    }
}
