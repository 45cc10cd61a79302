//! Producers and pulls over a router on loopback.

mod common;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use common::*;
use trunkline_native::{
    ChecksumType, HEADER_LEN, NamedNode, NativeError, NodeSettings, PullSettings,
};

fn three(face: &str) -> Vec<Arc<NamedNode>> {
    ["d1", "d2", "d3"]
        .iter()
        .map(|called| node(face, called))
        .collect()
}

#[test]
fn three_pulls_cross_the_producers_link_once() {
    let socket =
        std::env::temp_dir().join(format!("trunkline-streams-{}.sock", std::process::id()));
    for listen in [
        "tcp://127.0.0.1:0",
        "udp://127.0.0.1:0",
        &format!("unix://{}", socket.display()),
    ] {
        three_pulls(listen);
    }
}

fn three_pulls(listen: &str) {
    let router = router(listen);
    let face = address(&router);
    let client = node(&face, "client");
    let datanodes = three(&face);
    let prefix = name("/hadoop/blocks/BP-1/100/v=1");
    let producer = client.open_producer(&prefix, 128).expect("a producer");
    const COUNT: u64 = 300;
    thread::scope(|scope| {
        for datanode in &datanodes {
            let pull = datanode.open_pull(&prefix, live(32)).expect("a pull");
            scope.spawn(move || take_all(&pull, COUNT));
        }
        // As a writer would: never more than 80 segments ahead of the slowest.
        scope.spawn(|| {
            for n in 0..COUNT {
                publish(&producer, n);
                thread::sleep(Duration::from_millis(1));
            }
        });
    });
    let bytes = COUNT * (HEADER_LEN + BODY) as u64;
    let out = uplink(&client, "out_bytes");
    assert!(
        out >= bytes && out < bytes * 104 / 100,
        "{out} bytes left the client for {bytes}"
    );
    for datanode in &datanodes {
        let came = uplink(datanode, "in_bytes");
        assert!(
            came >= bytes && came < bytes * 104 / 100,
            "{came} bytes came for {bytes}"
        );
    }
    let totals = status(&client)["producers"].clone();
    assert_eq!(totals["published"], COUNT);
}

#[test]
fn a_slow_producer_is_waited_for() {
    let router = router("tcp://127.0.0.1:0");
    let face = address(&router);
    let (client, datanode) = (node(&face, "client"), node(&face, "d1"));
    let prefix = name("/hadoop/blocks/BP-1/101/v=1");
    let pull = datanode
        .open_pull(&prefix, live(16))
        .expect("a pull before its producer");
    assert!(
        matches!(pull.take(0, Duration::from_millis(50)), Ok(None)),
        "nothing is there yet"
    );
    let producer = client.open_producer(&prefix, 64).expect("a producer");
    thread::scope(|scope| {
        scope.spawn(|| take_all(&pull, 20));
        for n in 0..20 {
            thread::sleep(Duration::from_millis(30));
            publish(&producer, n);
        }
    });
    let stats = pull.stats().expect("open");
    assert_eq!(
        stats.timeouts + stats.gaps,
        0,
        "waiting is no loss: {stats:?}"
    );
}

#[test]
fn a_reader_that_stops_early_has_asked_for_little() {
    let router = router("tcp://127.0.0.1:0");
    let face = address(&router);
    let (client, reader) = (node(&face, "client"), node(&face, "reader"));
    let prefix = name("/hadoop/blocks/BP-1/103/v=1");
    let producer = client.open_producer(&prefix, 128).expect("a producer");
    for n in 0..100 {
        publish(&producer, n);
    }
    let settings = PullSettings {
        last: Some(99),
        live: false,
        ..live(64)
    };
    let pull = reader.open_pull(&prefix, settings).expect("a pull");
    assert!(matches!(pull.take(0, PATIENCE), Ok(Some(_))));
    wait_for("all that was asked for has come", || {
        let stats = pull.stats().expect("open");
        stats.outstanding == 0 && stats.buffered >= 3
    });
    let stats = pull.stats().expect("open");
    // Four ahead of the first, one more for the one that was taken, and that one.
    assert!(stats.sent - stats.retransmitted <= 6, "{stats:?}");
    for n in 1..100 {
        assert!(matches!(pull.take(n, PATIENCE), Ok(Some(_))), "segment {n}");
    }
}

#[test]
fn a_router_that_restarts_costs_time_and_no_bytes() {
    let first = router("tcp://127.0.0.1:0");
    let face = address(&first);
    let client = node(&face, "client");
    let datanodes = three(&face);
    let prefix = name("/hadoop/blocks/BP-1/102/v=1");
    let producer = client.open_producer(&prefix, 256).expect("a producer");
    thread::scope(|scope| {
        for datanode in &datanodes {
            let pull = datanode.open_pull(&prefix, live(32)).expect("a pull");
            scope.spawn(move || take_all(&pull, 200));
        }
        for n in 0..100 {
            publish(&producer, n);
            thread::sleep(Duration::from_millis(1));
        }
        first.shutdown();
        wait_for("the client sees its router gone", || {
            client.router_is_up() == Some(false)
        });
        assert_eq!(status(&client)["router"]["up"], false);
        for n in 100..150 {
            publish(&producer, n);
        }
        let started = Instant::now();
        let second = router(&face);
        wait_for("the client is back", || client.router_is_up() == Some(true));
        assert!(started.elapsed() < Duration::from_secs(4));
        for n in 150..200 {
            publish(&producer, n);
        }
        // Held until all have been taken.
        scope.spawn(move || {
            thread::sleep(PATIENCE / 4);
            drop(second);
        });
    });
}

#[test]
fn producer_and_pulls_of_one_name_on_one_node() {
    let node = NamedNode::open(NodeSettings::new(name("/hadoop"))).expect("a node alone");
    let prefix = name("/hadoop/blocks/BP-1/103/v=1");
    let pulls: Vec<_> = (0..3)
        .map(|_| node.open_pull(&prefix, live(16)).expect("a pull"))
        .collect();
    let producer = node.open_producer(&prefix, 128).expect("a producer");
    thread::scope(|scope| {
        for pull in &pulls {
            scope.spawn(move || take_all(pull, 100));
        }
        for n in 0..100 {
            publish(&producer, n);
        }
    });
}

#[test]
fn a_closed_producer_lingers_for_stragglers() {
    let router = router("tcp://127.0.0.1:0");
    let face = address(&router);
    let (client, datanode) = (node(&face, "client"), node(&face, "d1"));
    let prefix = name("/hadoop/blocks/BP-1/104/v=1");
    let producer = client.open_producer(&prefix, 64).expect("a producer");
    for n in 0..10 {
        publish(&producer, n);
    }
    producer.close(Duration::from_secs(1));
    let again: Result<(), NativeError> =
        producer.publish(10, 1, ChecksumType::Null, false, |_, _| Ok(()));
    assert!(matches!(again, Err(NativeError::Closed { .. })));
    let pull = datanode.open_pull(&prefix, live(8)).expect("a pull");
    take_all(&pull, 10);
    wait_for("the segments go", || producer.stats().is_none());
    assert_eq!(status(&client)["reserved_bytes"], 0);
    assert_eq!(status(&client)["producers"]["published"], 10);
}

#[test]
fn acknowledged_segments_are_let_go() {
    let node = NamedNode::open(NodeSettings::new(name("/hadoop"))).expect("a node alone");
    let prefix = name("/hadoop/blocks/BP-1/105/v=1");
    let producer = node.open_producer(&prefix, 64).expect("a producer");
    for n in 0..10 {
        publish(&producer, n);
    }
    producer.acknowledge(6);
    let stats = producer.stats().expect("an open producer");
    assert_eq!((stats.retained, stats.evicted), (3, 0));
    publish(&producer, 10);
    let pull = PullSettings {
        first: 7,
        ..live(8)
    };
    let pull = node.open_pull(&prefix, pull).expect("a pull");
    assert!(pull.take(10, PATIENCE).expect("it is kept").is_some());
}

#[test]
fn eight_writers_at_once() {
    let router = router("tcp://127.0.0.1:0");
    let face = address(&router);
    let client = node(&face, "client");
    let datanodes = three(&face);
    thread::scope(|scope| {
        for block in 0..8 {
            let prefix = name(&format!("/hadoop/blocks/BP-1/{}/v=1", 200 + block));
            let producer = client.open_producer(&prefix, 128).expect("a producer");
            for datanode in &datanodes {
                let pull = datanode.open_pull(&prefix, live(32)).expect("a pull");
                scope.spawn(move || take_all(&pull, 60));
            }
            scope.spawn(move || {
                (0..60).for_each(|n| publish(&producer, n));
                producer.close(PATIENCE);
            });
        }
    });
    let bytes = 8 * 60 * (HEADER_LEN + BODY) as u64;
    let out = uplink(&client, "out_bytes");
    assert!(
        out < bytes * 104 / 100,
        "{out} bytes left the client for {bytes}"
    );
    let closed = |node: &NamedNode| status(node)["pulls"]["open"] == 0;
    assert!(datanodes.iter().all(|node| closed(node)));
    assert_eq!(status(&datanodes[0])["pulls"]["taken"], 480);
}

#[test]
fn a_full_buffer_does_not_stall_its_reader() {
    let node = NamedNode::open(NodeSettings::new(name("/hadoop"))).expect("a node alone");
    let prefix = name("/hadoop/blocks/BP-1/108/v=1");
    let producer = node.open_producer(&prefix, 400).expect("a producer");
    (0..400).for_each(|n| publish(&producer, n));
    let settings = PullSettings {
        first: 0,
        last: Some(399),
        segment_bytes: 64_512,
        window: 8,
        live: false,
    };
    let pull = node.open_pull(&prefix, settings).expect("a pull");
    wait_for("the buffer fills", || {
        pull.stats().is_some_and(|stats| stats.buffered >= 4)
    });
    let started = Instant::now();
    take_all(&pull, 400);
    let took = started.elapsed();
    assert!(
        took < Duration::from_secs(3),
        "{took:?} for what lies ready"
    );
}
