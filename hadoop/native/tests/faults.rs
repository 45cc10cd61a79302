//! Streams that end, are closed, damaged, or meet a bound.

mod common;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use common::*;
use ndn_io::{App, AppHandle, Node};
use ndn_packet::{ComponentBuf, Data, NetKind, NetPacket, SigningKey};
use trunkline_native::{
    ChecksumType, FetchSettings, HEADER_LEN, NamedNode, NativeError, NodeSettings, Pull,
    PullSettings,
};

#[test]
fn segments_that_came_another_way_are_passed_over() {
    let node = NamedNode::open(NodeSettings::new(name("/hadoop"))).expect("a node alone");
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
    let node = NamedNode::open(NodeSettings::new(name("/hadoop"))).expect("a node alone");
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
    let node = NamedNode::open(NodeSettings::new(name("/hadoop"))).expect("a node alone");
    let prefix = name("/hadoop/blocks/BP-1/107/v=1");
    let producer = node.open_producer(&prefix, 64).expect("a producer");
    (0..3).for_each(|n| publish(&producer, n));
    let settings = PullSettings {
        first: 1,
        last: Some(2),
        segment_bytes: 64_512,
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
    let mut settings = NodeSettings::new(name("/hadoop"));
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
fn the_bound_for_pulled_bytes_is_kept() {
    let mut settings = NodeSettings::new(name("/hadoop"));
    settings.pull_bytes = 20 << 20;
    let node = NamedNode::open(settings).expect("a node alone");
    let mut pulls = Vec::new();
    let error = loop {
        match node.open_pull(
            &name(&format!("/hadoop/blocks/p/{}/v=1", pulls.len())),
            live(64),
        ) {
            Ok(pull) => pulls.push(pull),
            Err(error) => break error,
        }
        assert!(pulls.len() < 100);
    };
    assert!(matches!(error, NativeError::NoRoom(_)), "{error}");
    assert!(
        pulls.len() > 10,
        "later ones have smaller windows: {}",
        pulls.len()
    );
    assert!(
        status(&node)["pull_reserved_bytes"]
            .as_u64()
            .expect("a number")
            <= 20 << 20
    );
    pulls[0].close();
    node.open_pull(&name("/hadoop/blocks/p/100/v=1"), live(64))
        .expect("room again");
}

/// What is wrong with packets.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// Every third is damaged, the first time.
    DamagedOnce,
    DamagedAlways,
    /// Each says that it is the last one.
    Last,
}

/// A producer of packets with a fault.
struct Faulty {
    seen: std::collections::HashSet<Vec<u8>>,
    fault: Fault,
}

impl App for Faulty {
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
        let mut builder = Data::builder(&name).content(&content);
        if self.fault == Fault::Last {
            builder = builder.final_block_id(ComponentBuf::segment(n));
        }
        let mut wire = builder.sign(&SigningKey::DigestSha256).to_vec();
        let is_damaged = match self.fault {
            Fault::DamagedOnce => self.seen.insert(name.value().to_vec()),
            Fault::DamagedAlways => true,
            Fault::Last => false,
        };
        if n % 3 == 0 && is_damaged {
            wire[40_000] ^= 1;
        }
        let data = Data::parse(wire.into()).expect("still well formed");
        out.push(NetPacket::data(data).with_pit_token(packet.pit_token));
    }
}

/// The router that packets with a fault come through, and a pull of them.
fn pull_of_faulty(block: u32, fault: Fault) -> (Node, AppHandle, Arc<NamedNode>, Arc<Pull>) {
    let router = router("tcp://127.0.0.1:0");
    let faulty = Faulty {
        seen: Default::default(),
        fault,
    };
    let handle = router.attach(Box::new(faulty), "faulty").expect("attached");
    let prefix = format!("/hadoop/blocks/BP-1/{block}");
    handle.register(&name(&prefix)).expect("registered");
    let datanode = node(&address(&router), "d1");
    let settings = PullSettings {
        first: 0,
        last: Some(29),
        segment_bytes: 64_512,
        window: 8,
        live: false,
    };
    let pull = datanode
        .open_pull(&name(&format!("{prefix}/v=1")), settings)
        .expect("a pull");
    (router, handle, datanode, pull)
}

#[test]
fn damaged_segments_are_asked_for_again_and_never_delivered() {
    let (_router, _producer, _datanode, pull) = pull_of_faulty(300, Fault::DamagedOnce);
    take_all(&pull, 30);
    assert_eq!(pull.stats().expect("open").rejected, 10);
}

/// Digests and seals are over a segment's content: anybody may put another last one to it.
#[test]
fn segments_that_say_they_are_the_last_one_end_nothing() {
    let (_router, _producer, _datanode, pull) = pull_of_faulty(302, Fault::Last);
    take_all(&pull, 30);
    let stats = pull.stats().expect("open");
    assert_eq!((stats.rejected, stats.retransmitted), (0, 0));
}

#[test]
fn a_segment_that_is_damaged_at_its_source_ends_the_pull() {
    let (_router, _producer, _datanode, pull) = pull_of_faulty(301, Fault::DamagedAlways);
    let error = pull.take(0, PATIENCE).expect_err("it never verifies");
    assert!(matches!(error, NativeError::Unverified { .. }), "{error}");
    assert_eq!(pull.stats().expect("open").rejected, 3);
}

#[test]
fn closing_the_node_wakes_everybody() {
    let node = NamedNode::open(NodeSettings::new(name("/hadoop"))).expect("a node alone");
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
                rejected: false,
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
    let late: Result<(), NativeError> =
        producer.publish(0, 1, ChecksumType::Null, false, |_, _| Ok(()));
    assert!(late.is_err());
}
