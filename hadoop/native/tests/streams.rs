//! Producers and pulls over a router on loopback.

mod common;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use common::*;
use ndn_io::App;
use ndn_packet::{Data, NetKind, NetPacket, SigningKey};
use trunkline_native::{
    FetchSettings, HEADER_LEN, NamedNode, NativeError, Pull, PullSettings, StreamProducer,
};

const PATIENCE: Duration = Duration::from_secs(20);

fn live(window: usize) -> PullSettings {
    PullSettings {
        first: 0,
        last: None,
        window,
        live: true,
    }
}

fn publish(producer: &StreamProducer, n: u64) {
    let done: Result<(), NativeError> = producer.publish(n, HEADER_LEN + BODY, |content| {
        fill(n, content);
        Ok(())
    });
    done.expect("published");
}

/// Takes segments 0 to `count` and checks their bytes.
fn take_all(pull: &Pull, count: u64) {
    for n in 0..count {
        pull.known(n);
        let content = pull
            .take(n, PATIENCE)
            .expect("no failure")
            .unwrap_or_else(|| panic!("no segment {n}"));
        check(n, &content);
    }
}

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
    let node = NamedNode::open(trunkline_native::NodeSettings::new(name("/hadoop")))
        .expect("a node alone");
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
    let again: Result<(), NativeError> = producer.publish(10, 1, |_| Ok(()));
    assert!(matches!(again, Err(NativeError::Closed { .. })));
    let pull = datanode.open_pull(&prefix, live(8)).expect("a pull");
    take_all(&pull, 10);
    wait_for("the segments go", || producer.stats().is_none());
    assert_eq!(status(&client)["reserved_bytes"], 0);
    assert_eq!(status(&client)["producers"]["published"], 10);
}

#[test]
fn segments_that_came_another_way_are_passed_over() {
    let node = NamedNode::open(trunkline_native::NodeSettings::new(name("/hadoop")))
        .expect("a node alone");
    let prefix = name("/hadoop/blocks/BP-1/105/v=1");
    let producer = node.open_producer(&prefix, 64).expect("a producer");
    let pull = node.open_pull(&prefix, live(8)).expect("a pull");
    for n in [0, 1, 5, 6] {
        publish(&producer, n);
    }
    check(
        0,
        &pull
            .take(0, PATIENCE)
            .expect("no failure")
            .expect("segment 0"),
    );
    check(
        5,
        &pull
            .take(5, PATIENCE)
            .expect("no failure")
            .expect("segment 5, past 1 to 4"),
    );
    check(
        6,
        &pull
            .take(6, PATIENCE)
            .expect("no failure")
            .expect("segment 6"),
    );
    let error = pull.take(5, PATIENCE).expect_err("5 was taken");
    assert!(
        error.to_string().contains("taken or passed over"),
        "{error}"
    );
}

#[test]
fn closing_wakes_who_waits() {
    let node = NamedNode::open(trunkline_native::NodeSettings::new(name("/hadoop")))
        .expect("a node alone");
    let pull = node
        .open_pull(&name("/hadoop/blocks/BP-1/106/v=1"), live(8))
        .expect("a pull");
    thread::scope(|scope| {
        let waits = scope.spawn(|| pull.take(0, PATIENCE));
        thread::sleep(Duration::from_millis(50));
        pull.close();
        let error = waits.join().expect("no panic").expect_err("closed");
        assert!(matches!(error, NativeError::Closed { .. }), "{error}");
    });
    node.close();
    assert!(node.open_pull(&name("/a"), live(8)).is_err());
    assert!(node.status().is_err());
    node.close();
}

#[test]
fn the_end_of_a_stream_is_an_error_past_it() {
    let node = NamedNode::open(trunkline_native::NodeSettings::new(name("/hadoop")))
        .expect("a node alone");
    let prefix = name("/hadoop/blocks/BP-1/107/v=1");
    let producer = node.open_producer(&prefix, 64).expect("a producer");
    (0..3).for_each(|n| publish(&producer, n));
    let settings = PullSettings {
        first: 1,
        last: Some(2),
        window: 8,
        live: false,
    };
    let pull = node.open_pull(&prefix, settings).expect("a pull");
    check(
        1,
        &pull
            .take(1, PATIENCE)
            .expect("no failure")
            .expect("segment 1"),
    );
    check(
        2,
        &pull
            .take(2, PATIENCE)
            .expect("no failure")
            .expect("segment 2"),
    );
    assert!(pull.take(3, PATIENCE).is_err());
    assert!(pull.take(0, PATIENCE).is_err());
}

#[test]
fn the_bound_for_retained_bytes_is_kept() {
    let mut settings = trunkline_native::NodeSettings::new(name("/hadoop"));
    settings.retain_bytes = 10 << 20;
    let node = NamedNode::open(settings).expect("a node alone");
    let open =
        |block: u64| node.open_producer(&name(&format!("/hadoop/blocks/p/{block}/v=1")), 128);
    let first = open(1).expect("room for one ring of 8 MiB");
    let error = open(2).err().expect("no room for two").to_string();
    assert!(error.contains("retain"), "{error}");
    publish(&first, 0);
    first.close(Duration::from_secs(60));
    let second = open(2).expect("one that lingers makes room");
    assert!(first.stats().is_none());
    drop(second);
    open(3).expect("room again");
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

/// A producer whose packets are damaged the first time each.
struct Damaging {
    seen: std::collections::HashSet<Vec<u8>>,
}

impl App for Damaging {
    fn on_packet(&mut self, _now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let NetKind::Interest(interest) = packet.packet else {
            return;
        };
        let name = interest.name_owned();
        let n = name
            .last()
            .and_then(|last| last.as_segment())
            .expect("a segment");
        let mut content = vec![0; HEADER_LEN + BODY];
        fill(n, &mut content);
        let mut wire = Data::builder(&name)
            .content(&content)
            .sign(&SigningKey::DigestSha256)
            .to_vec();
        if n % 3 == 0 && self.seen.insert(name.value().to_vec()) {
            wire[40_000] ^= 1;
        }
        let data = Data::parse(wire.into()).expect("still well formed");
        out.push(NetPacket::data(data).with_pit_token(packet.pit_token));
    }
}

#[test]
fn damaged_segments_are_asked_for_again_and_never_delivered() {
    let router = router("tcp://127.0.0.1:0");
    let damaging = Damaging {
        seen: Default::default(),
    };
    let handle = router
        .attach(Box::new(damaging), "damaging")
        .expect("attached");
    handle
        .register(&name("/hadoop/blocks/BP-1/300"))
        .expect("registered");
    let datanode = node(&address(&router), "d1");
    let settings = PullSettings {
        first: 0,
        last: Some(29),
        window: 8,
        live: false,
    };
    let pull = datanode
        .open_pull(&name("/hadoop/blocks/BP-1/300/v=1"), settings)
        .expect("a pull");
    take_all(&pull, 30);
    assert_eq!(pull.stats().expect("open").rejected, 10);
}

#[test]
fn closing_the_node_wakes_everybody() {
    let node = NamedNode::open(trunkline_native::NodeSettings::new(name("/hadoop")))
        .expect("a node alone");
    let pull = node
        .open_pull(&name("/hadoop/blocks/BP-1/400/v=1"), live(8))
        .expect("a pull");
    let source = node
        .open_blocks(&name("/hadoop/blocks"), 64_512, 8)
        .expect("a source");
    let producer = node
        .open_producer(&name("/hadoop/blocks/BP-1/401/v=1"), 8)
        .expect("a producer");
    thread::scope(|scope| {
        let take = scope.spawn(|| pull.take(0, PATIENCE));
        let next = scope.spawn(|| {
            while source
                .next_request(PATIENCE)
                .is_ok_and(|asked| asked.is_some())
            {}
        });
        let fetch = scope.spawn(|| {
            let settings = FetchSettings {
                must_be_fresh: true,
                can_be_prefix: true,
                timeout: PATIENCE,
            };
            node.fetch(&name("/hadoop/blocks/BP-1/402/32=metadata"), settings)
        });
        thread::sleep(Duration::from_millis(100));
        let started = Instant::now();
        node.close();
        assert!(take.join().expect("no panic").is_err());
        next.join().expect("no panic");
        assert!(fetch.join().expect("no panic").is_err());
        assert!(started.elapsed() < PATIENCE / 4);
    });
    let late: Result<(), NativeError> = producer.publish(0, 1, |_| Ok(()));
    assert!(late.is_err());
}
