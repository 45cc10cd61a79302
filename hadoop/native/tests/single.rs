//! Single packets: published, fetched, withdrawn.

mod common;

use std::time::{Duration, Instant};

use common::*;
use trunkline_native::{FetchSettings, NamedNode, NodeSettings};

const SETTINGS: FetchSettings = FetchSettings {
    must_be_fresh: true,
    can_be_prefix: false,
    rejected: false,
    timeout: PATIENCE,
};

#[test]
fn discovery_over_a_router() {
    let router = router("tcp://127.0.0.1:0");
    let face = address(&router);
    let (datanode, client) = (node(&face, "d1"), node(&face, "client"));
    let mine = name("/hadoop/datanodes/127.0.0.2/9866");
    let fixed = datanode
        .publish_fixed(&mine, b"{\"port\":7001}", Duration::from_secs(1))
        .expect("published");
    let found = client
        .fetch(&mine, SETTINGS)
        .expect("no failure")
        .expect("an answer");
    assert_eq!(&found[..], b"{\"port\":7001}");
    assert_eq!(fixed.served(), 1);

    let started = Instant::now();
    let other = name("/hadoop/datanodes/127.0.0.3/9866");
    assert!(
        client
            .fetch(&other, SETTINGS)
            .expect("no failure")
            .is_none()
    );
    assert!(
        started.elapsed() < PATIENCE / 4,
        "a DataNode without the plug-in is known soon"
    );

    let longer = FetchSettings {
        can_be_prefix: true,
        ..SETTINGS
    };
    let found = datanode
        .fetch(&name("/hadoop/datanodes/127.0.0.2"), longer)
        .expect("no failure");
    assert!(found.is_none() || found.as_deref() == Some(b"{\"port\":7001}"));

    fixed.close();
    std::thread::sleep(Duration::from_millis(1100));
    assert!(
        client.fetch(&mine, SETTINGS).expect("no failure").is_none(),
        "withdrawn and stale"
    );
}

#[test]
fn many_names_and_many_fetches_at_once() {
    let node = NamedNode::open(NodeSettings::new(name("/hadoop"))).expect("a node alone");
    let fixed: Vec<_> = (0..20u8)
        .map(|n| {
            let name = name(&format!("/hadoop/datanodes/10.0.0.{n}/9866"));
            node.publish_fixed(&name, &[n], Duration::from_secs(1))
                .expect("published")
        })
        .collect();
    std::thread::scope(|scope| {
        for (n, fixed) in fixed.iter().enumerate() {
            let node = &node;
            scope.spawn(move || {
                let found = node
                    .fetch(fixed.name(), SETTINGS)
                    .expect("no failure")
                    .expect("an answer");
                assert_eq!(&found[..], &[n as u8]);
            });
        }
    });
    assert_eq!(status(&node)["fetches"]["answered"], 20);
}

#[test]
fn a_fetch_ends_in_its_time_and_when_the_node_closes() {
    let node = node("tcp://127.0.0.1:9", "alone");
    assert_eq!(
        node.router_is_up(),
        Some(false),
        "nobody listens on the discard port"
    );
    let settings = FetchSettings {
        timeout: Duration::from_millis(300),
        ..SETTINGS
    };
    let started = Instant::now();
    assert!(
        node.fetch(&name("/hadoop/datanodes/x/1"), settings)
            .expect("no failure")
            .is_none()
    );
    assert!(started.elapsed() < Duration::from_secs(1));
    node.close();
    assert!(node.fetch(&name("/hadoop/x"), SETTINGS).is_err());
}

#[test]
fn content_that_is_too_large_is_refused() {
    let node = NamedNode::open(NodeSettings::new(name("/hadoop"))).expect("a node alone");
    let error = node
        .publish_fixed(&name("/hadoop/x"), &[0; 9000], Duration::ZERO)
        .err()
        .expect("refused");
    assert!(error.to_string().contains("8800"), "{error}");
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    for change in [
        |settings: &mut NodeSettings| settings.face = Some("gopher://x".into()),
        |settings: &mut NodeSettings| settings.listen = vec!["tcp://999.0.0.1:1".into()],
        |settings: &mut NodeSettings| settings.listen = vec!["nonsense".into()],
    ] {
        let mut settings = NodeSettings::new(name("/hadoop"));
        change(&mut settings);
        let error = NamedNode::open(settings)
            .err()
            .expect("refused")
            .to_string();
        assert!(!error.is_empty());
    }
}

#[test]
fn two_nodes_without_a_router() {
    let mut settings = NodeSettings::new(name("/hadoop"));
    settings.listen = vec!["tcp://127.0.0.1:0".into()];
    let first = NamedNode::open(settings).expect("a node that listens");
    let second = node(&first.listening().expect("running")[0], "second");
    let _fixed = first
        .publish_fixed(
            &name("/hadoop/datanodes/a/1"),
            b"here",
            Duration::from_secs(1),
        )
        .expect("published");
    let found = second
        .fetch(&name("/hadoop/datanodes/a/1"), SETTINGS)
        .expect("no failure");
    assert_eq!(found.as_deref(), Some(&b"here"[..]));
}

/// Who finds an answer to be none asks past whoever gave it, caches included.
#[test]
fn another_answer_is_had_past_the_first() {
    let router = router("tcp://127.0.0.1:0");
    let face = address(&router);
    let what = name("/hadoop/datanodes/10.0.0.5/9866");
    let (liar, reader) = (node(&face, "liar"), node(&face, "reader"));
    let minute = Duration::from_secs(60);
    let _forged = liar
        .publish_fixed(&what, b"forged", minute)
        .expect("published");
    let ask = |rejected| {
        let settings = FetchSettings {
            rejected,
            ..SETTINGS
        };
        reader.fetch(&what, settings).expect("no failure")
    };
    wait_for("the liar", || ask(false).is_some());
    let honest = node(&face, "honest");
    let _true = honest
        .publish_fixed(&what, b"genuine", minute)
        .expect("published");
    wait_for("the honest one", || {
        ask(true).is_some_and(|said| said[..] == b"genuine"[..])
    });
}
