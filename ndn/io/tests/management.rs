//! Management over real faces: prefixes registered, faces made and unmade.

mod common;

use common::apps::Source;
use common::{client, eventually, faces, fetch, listen, node, prefix, serve, uri};
use ndn_forwarder::mgmt::ControlParameters;
use ndn_io::{Client, ClientOptions, ListenConfig, Node};
use ndn_packet::SigningKey;

struct Place {
    node: Node,
    client: Client,
    _dir: tempfile::TempDir,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let face = format!("unix://{}/f.sock", dir.path().display());
    let node = node(vec![listen(&face)]);
    let client = client(&uri(&face), &ClientOptions::default());
    Place {
        node,
        client,
        _dir: dir,
    }
}

fn parameters(uri: &str) -> ControlParameters {
    ControlParameters {
        uri: Some(uri.to_owned()),
        ..Default::default()
    }
}

#[test]
fn a_client_serves_what_it_registers() {
    let mut place = place();
    let listening = place.node.listening()[0].clone();
    place.client.register(&prefix()).unwrap();
    let server = std::thread::spawn(move || {
        let mut source = Source::new(5000);
        // Ends with the node.
        let _ = place.client.run(&mut source, |_| false);
    });
    let mut reader = client(&listening, &ClientOptions::default());
    fetch(&mut reader, 500, 5000, 32);
    reader.unregister(&prefix()).unwrap();
    place.node.shutdown();
    server.join().unwrap();
}

/// A window full of Interests comes in one batch, and asks for far more than a send queue holds.
#[test]
fn a_client_drops_none_of_its_own_answers() {
    const SEGMENT_BYTES: usize = 60_000;
    const WINDOW: usize = 256;
    for shared_memory in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let place = uri(&format!("unix://{}/f.sock", dir.path().display()));
        let mut listener = ListenConfig::new(place.clone());
        listener.link.send_queue_bytes = 2 * WINDOW * SEGMENT_BYTES;
        let node = node(vec![listener]);
        let mut options = ClientOptions::default();
        options.link.shared_memory = shared_memory;
        let mut reader = client(&place, &options);
        options.link.send_queue_bytes = 8 * SEGMENT_BYTES;
        let mut server = client(&place, &options);
        server.register(&prefix()).unwrap();
        let server = std::thread::spawn(move || {
            let mut source = Source::new(SEGMENT_BYTES);
            // Ends with the node.
            let _ = server.run(&mut source, |_| false);
            server.counters()
        });
        fetch(&mut reader, 1500, SEGMENT_BYTES, WINDOW);
        node.shutdown();
        assert_eq!(server.join().unwrap().queue_drops, 0);
    }
}

#[test]
fn faces_are_made_and_unmade_on_command() {
    let mut place = place();
    for far_place in ["tcp://127.0.0.1:0", "udp://127.0.0.1:0"] {
        let far = node(vec![listen(far_place)]);
        let _source = serve(&far, 1000);
        let remote = far.listening()[0].to_string();
        let made = place.client.command(
            "faces",
            "create",
            &parameters(&remote),
            &SigningKey::DigestSha256,
        );
        let made = made.unwrap();
        assert_eq!(made.code, 200, "{}", made.text);
        let id = made.body.face_id.expect("a face");
        assert!(
            faces(&place.node)
                .iter()
                .any(|f| f.id.0 == id && f.up && f.spec.remote_uri == remote)
        );
        let again = place.client.command(
            "faces",
            "create",
            &parameters(&remote),
            &SigningKey::DigestSha256,
        );
        let again = again.unwrap();
        assert_eq!((again.code, again.body.face_id), (409, Some(id)));

        let route = ControlParameters {
            name: Some(prefix()),
            face_id: Some(id),
            ..Default::default()
        };
        let routed = place
            .client
            .command("rib", "register", &route, &SigningKey::DigestSha256)
            .unwrap();
        assert_eq!(routed.code, 200, "{}", routed.text);
        fetch(&mut place.client, 50, 1000, 4);

        let destroy = ControlParameters {
            face_id: Some(id),
            ..Default::default()
        };
        let gone = place
            .client
            .command("faces", "destroy", &destroy, &SigningKey::DigestSha256)
            .unwrap();
        assert_eq!(gone.code, 200);
        eventually("gone", || faces(&place.node).len() == 1);
        let erase = prefix();
        place
            .node
            .with_forwarder(move |forwarder, _| forwarder.erase_cs(&erase))
            .unwrap();
    }
}

#[test]
fn what_cannot_be_made_is_refused_with_a_reason() {
    let mut place = place();
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for (remote, code) in [
        (format!("tcp4://{closed}"), 504),
        ("tcp4://router.example:6363".to_owned(), 400),
        ("ether://[01:00:5e:00:17:aa]".to_owned(), 400),
    ] {
        let answer = place.client.command(
            "faces",
            "create",
            &parameters(&remote),
            &SigningKey::DigestSha256,
        );
        let answer = answer.unwrap();
        assert_eq!(answer.code, code, "{remote}: {}", answer.text);
        assert_eq!(faces(&place.node).len(), 1);
    }
}
