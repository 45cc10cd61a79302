//! Faces over TLS: both ends are who their certificates say, or there is no face, and what strangers do meanwhile is
//! bounded. The other end of most tests is rustls as it comes.

mod common;

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use common::authority::{Authority, Files};
use common::tls::{
    ROUTER, address, certificates, connecting, connects_on, credentials, hears, interest, listener,
    options, plain_client, provider, refusal, router, unproven,
};
use common::{client, eventually, faces, fetch, listen, node, serve, uri};
use ndn_forwarder::FaceScope;
use ndn_io::{Client, ClientError, ClientOptions, FaceConfig, FaceUri, Node, NodeConfig};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ServerConfig, ServerConnection};

#[test]
fn segments_come_whole_and_each_end_knows_the_other() {
    for (segment_bytes, segments, window) in [
        (100, 2000, 64),
        (8000, 2000, 64),
        (64512, 2000, 64),
        (1_032_192, 60, 8),
    ] {
        let (authority, node) = router();
        let _source = serve(&node, segment_bytes);
        let host = authority.host(&["host1.rack1", "Alias.rack1", "192.0.2.1"]);
        let mut client = client(&node.listening()[0], &options(&host));
        fetch(&mut client, segments, segment_bytes, window);
        let face = &faces(&node)[0];
        assert!(face.jumbo && !face.shared_memory);
        assert_eq!(face.spec.scope, FaceScope::NonLocal);
        assert_eq!(face.spec.peer_names, ["host1.rack1", "alias.rack1"]);
        assert!(face.spec.remote_uri.starts_with("tls4://127.0.0.1:"));
        assert_eq!((face.link.queue_drops, face.link.malformed), (0, 0));
        drop(client);
        eventually("the face goes with its peer", || faces(&node).is_empty());
        assert_eq!(unproven(&node), 0);
    }
}

#[test]
fn a_face_that_connects_knows_its_peer_and_may_be_told_the_name() {
    let (authority, far) = router();
    let host = authority.host(&["host1"]);
    let mut face = FaceConfig::new(far.listening()[0].clone());
    face.link.tls = Some(credentials(&host));
    face.server_name = Some("router.test".to_owned());
    let near = connecting(face);
    eventually("up", || faces(&near)[0].up);
    assert_eq!(faces(&near)[0].spec.peer_names, ["router.test"]);
    eventually("known there", || {
        faces(&far).iter().any(|f| f.spec.peer_names == ["host1"])
    });
}

#[test]
fn who_connects_refuses_another_ca_and_another_name() {
    let (authority, node) = router();
    let to = &node.listening()[0];
    let stranger = Authority::new();
    let said = refusal(to, &options(&stranger.host(&["host1"])));
    assert!(said.contains("of another CA"), "{said}");

    let alone = authority.host(&["router.test"]);
    let other = self::node(vec![listener(&alone)]);
    let said = refusal(&other.listening()[0], &options(&authority.host(&["host1"])));
    assert!(
        said.contains("is not for 127.0.0.1 but for") && said.contains("router.test"),
        "{said}"
    );
    eventually("both count it", || {
        unproven(&node) == 1 && unproven(&other) == 1
    });
    assert!(faces(&node).is_empty() && faces(&other).is_empty());
}

#[test]
fn who_listens_refuses_another_ca() {
    let (authority, node) = router();
    let other = Authority::new();
    let mut host = other.host(&["host1"]);
    // It believes both, and is believed by one.
    host.ca = other.path("both.crt");
    let both = [authority.path("ca.crt"), other.path("ca.crt")];
    let both = both.map(|file| std::fs::read_to_string(file).expect("a certificate"));
    std::fs::write(&host.ca, both.concat()).expect("a file");
    let said = refusal(&node.listening()[0], &options(&host));
    assert!(said.contains("unknown_ca"), "{said}");
    eventually("it counts", || unproven(&node) == 1);
    assert!(faces(&node).is_empty());
}

/// What a peer hears that has shown this certificate, or none.
fn alert(files: &Files, shown: bool, to: SocketAddr) -> String {
    let mut peer = plain_client(files, shown, to);
    let heard = peer.finish().and_then(|()| peer.read(&mut [0; 100]));
    match heard {
        Ok(n) => panic!("{n} bytes"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn no_certificate_one_that_has_expired_and_one_that_is_not_valid_yet() {
    let (authority, node) = router();
    let to = address(&node);
    let cases = [
        (authority.host(&["bare"]), false, "CertificateRequired"),
        (
            authority.host_valid(&["old"], -9, -1),
            true,
            "CertificateExpired",
        ),
        (
            authority.host_valid(&["early"], 1, 9),
            true,
            "CertificateExpired",
        ),
    ];
    for (i, (files, shown, expected)) in cases.iter().enumerate() {
        let heard = alert(files, *shown, to);
        // RFC 8446 has one alert for both ends of the validity, and rustls a less exact one for the beginning.
        let is_right = heard.contains(expected) || i == 2 && heard.contains("Certificate");
        assert!(is_right, "{heard}");
        eventually("it counts", || unproven(&node) == i as u64 + 1);
        assert!(faces(&node).is_empty());
    }
}

#[test]
fn keys_are_renewed_by_the_peer_and_a_close_is_told() {
    let (authority, node) = router();
    let _source = serve(&node, 1000);
    let mut peer = plain_client(&authority.host(&["host1"]), true, address(&node));
    peer.finish().expect("a handshake");
    for segment in 0..5 {
        // It asks for new keys of the node as well.
        peer.tls.refresh_traffic_keys().expect("new keys");
        peer.write(&interest(segment)).expect("open");
        hears(&mut peer, 1000).expect("Data");
    }
    assert_eq!(faces(&node)[0].link.malformed, 0);
    peer.tls.send_close_notify();
    peer.write(&[]).expect("open");
    eventually("closed", || faces(&node).is_empty());

    let mut peer = plain_client(&authority.host(&["host2"]), true, address(&node));
    peer.finish().expect("a handshake");
    peer.write(&interest(9)).expect("open");
    hears(&mut peer, 1000).expect("Data");
    node.shutdown();
    // With the rest of the Data before it.
    let mut part = [0; 4096];
    while peer.read(&mut part).expect("an end that is told") > 0 {}
}

#[test]
fn a_peer_that_breaks_the_rules_is_shown_out() {
    let (authority, node) = router();
    let _source = serve(&node, 1000);
    let host = authority.host(&["host1"]);
    for case in 0..4 {
        let mut peer = plain_client(&host, true, address(&node));
        peer.finish().expect("a handshake");
        peer.write(&interest(1)).expect("open");
        hears(&mut peer, 1000).expect("Data");
        match case {
            // A record that was changed, one that is not protected, one that is too long.
            0 => drop(peer.tcp.write_all(&[23, 3, 3, 0, 20].repeat(5))),
            1 => drop(peer.tcp.write_all(&[21, 3, 3, 0, 2, 1, 0])),
            2 => drop(peer.tcp.write_all(&[23, 3, 3, 0xff, 0xff])),
            // New keys without end.
            _ => {
                for _ in 0..50 {
                    let again = peer.tls.refresh_traffic_keys().is_ok();
                    if !again || peer.write(&[]).is_err() {
                        break;
                    }
                }
            }
        }
        eventually("closed", || faces(&node).is_empty());
    }
    let mut good = client(&node.listening()[0], &options(&host));
    fetch(&mut good, 100, 1000, 8);
}

/// The beginning of a handshake message of 60,000 bytes, in records.
fn endless_hello() -> Vec<u8> {
    let message = [&[1, 0, 0xea, 0x60][..], &[0; 40_000]].concat();
    let record = |part: &[u8]| {
        let length = (part.len() as u16).to_be_bytes();
        [&[22, 3, 1], &length[..], part].concat()
    };
    message.chunks(4000).flat_map(record).collect()
}

#[test]
fn what_is_no_handshake_is_refused_at_once() {
    let (authority, node) = router();
    let _source = serve(&node, 1000);
    let noise: Vec<u8> = (0..3000u32).map(|i| ((i * i) >> 3) as u8).collect();
    let old = b"\x16\x03\x01\x00\x2d\x01\x00\x00\x29\x03\x03";
    let cases: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &noise,
        &interest(1),
        &[20, 3, 3, 0, 1, 1].repeat(1000),
        &endless_hello(),
        &[&old[..], &[0; 38]].concat(),
    ];
    for (i, case) in cases.iter().enumerate() {
        let mut peer = TcpStream::connect(address(&node)).expect("a connection");
        // It may be closed before all is written.
        let _ = peer.write_all(case);
        eventually("refused", || unproven(&node) == i as u64 + 1);
        assert!(faces(&node).is_empty());
    }
    let mut good = client(&node.listening()[0], &options(&authority.host(&["host1"])));
    fetch(&mut good, 100, 1000, 8);
}

/// Bytes of the memory for faces that are taken.
fn faces_bytes(node: &Node) -> usize {
    let memory = node.status().expect("a running node").memory;
    let part = memory.iter().find(|(name, _)| *name == "faces");
    part.expect("a part").1.bytes
}

fn connect_from(from: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    socket.connect(&to.into())?;
    Ok(socket.into())
}

#[test]
fn silent_peers_cost_a_bound_and_keep_nobody_out() {
    let authority = Authority::new();
    let node = node(vec![listener(&authority.host(&ROUTER))]);
    let _source = serve(&node, 1000);
    let before = faces_bytes(&node);
    // More than are let in of one address, of as many addresses as would fill all places.
    let mut silent = Vec::new();
    for host in 10..20 {
        for _ in 0..70 {
            let from = Ipv4Addr::new(127, 0, 0, host);
            silent.push(connect_from(from, address(&node)).expect("a connection"));
        }
    }
    eventually("some are refused", || {
        node.status().expect("a node").listeners[0].refused > 0
    });
    assert!(faces(&node).is_empty());
    let held = faces_bytes(&node) - before;
    assert!(held <= 256 * (128 << 10), "{held} bytes");
    // Those that have had their time make room for one that speaks.
    let mut good = client(&node.listening()[0], &options(&authority.host(&["host1"])));
    fetch(&mut good, 100, 1000, 8);
    drop(silent);
    drop(good);
    eventually("all is given back", || faces_bytes(&node) == before);
}

/// Silent peers have all faces of a listener, and of the address: they make room, too.
#[test]
fn silent_peers_do_not_keep_the_faces_of_a_listener() {
    let authority = Authority::new();
    for of_one in [4, 8] {
        let mut listener = listener(&authority.host(&ROUTER));
        listener.handshake_timeout = Duration::from_secs(600);
        listener.max_faces = 4;
        listener.max_faces_per_address = Some(of_one);
        let node = node(vec![listener]);
        let _source = serve(&node, 1000);
        let silent: Vec<_> = (0..4)
            .map(|_| TcpStream::connect(address(&node)).expect("a connection"))
            .collect();
        let by_host = options(&authority.host(&["host1"]));
        let mut good = None;
        eventually("a place", || {
            good = connects_on(&node.listening()[0], &by_host);
            good.is_some()
        });
        fetch(&mut good.expect("a client"), 100, 1000, 8);
        assert!(unproven(&node) >= 1);
        drop(silent);
    }
}

#[test]
fn a_silent_peer_is_given_up_in_time() {
    let authority = Authority::new();
    let mut listener = listener(&authority.host(&ROUTER));
    listener.handshake_timeout = Duration::from_millis(200);
    let node = node(vec![listener]);
    let mut silent = TcpStream::connect(address(&node)).expect("a connection");
    silent
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a timeout");
    assert_eq!(silent.read(&mut [0; 10]).expect("an end"), 0);
    eventually("it counts", || unproven(&node) == 1);
}

/// A server with the certificate in these files, for one connection.
fn plain_server(files: &Files) -> (SocketAddr, std::thread::JoinHandle<io::Result<()>>) {
    let key = PrivateKeyDer::from_pem_file(&files.key).expect("a key");
    let config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(certificates(&files.certificate), key)
        .expect("a pair");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = std::thread::spawn(move || {
        let (mut tcp, _) = listener.accept()?;
        let mut tls = ServerConnection::new(Arc::new(config)).map_err(io::Error::other)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut tcp)?;
        }
        // It sends tickets, which nobody asked for, and then what is no frame.
        tls.writer().write_all(&[0, 0])?;
        while tls.wants_write() {
            tls.write_tls(&mut tcp)?;
        }
        tcp.read(&mut [0; 100]).map(drop)
    });
    (address, serving)
}

#[test]
fn who_connects_refuses_what_has_expired_and_passes_over_tickets() {
    let authority = Authority::new();
    let host = options(&authority.host(&["host1"]));
    let old = authority.host_valid(&["old.test", "127.0.0.1"], -9, -1);
    let (address, serving) = plain_server(&old);
    let said = refusal(&FaceUri::tls(address), &host);
    assert!(
        said.contains("the peer's certificate expired on 20"),
        "{said}"
    );
    assert!(serving.join().expect("no panic").is_err());

    let (address, serving) = plain_server(&authority.host(&ROUTER));
    let said = refusal(&FaceUri::tls(address), &host);
    assert!(
        !said.contains("TLS"),
        "it is the frame that is wrong: {said}"
    );
    serving.join().expect("no panic").expect("a connection");
}

/// Certificates between a peer's own and the CA's: three at most, whichever end shows them, and no more are verified.
#[test]
fn a_peer_shows_a_short_chain() {
    let (authority, node) = router();
    let _source = serve(&node, 1000);
    let lengthen = |files: &Files, by: usize| {
        let read = |file| std::fs::read_to_string(file).expect("a certificate");
        let chain = read(&files.certificate) + &read(&files.ca).repeat(by);
        std::fs::write(&files.certificate, chain).expect("a file");
    };
    let host = authority.host(&["host1"]);
    lengthen(&host, 3);
    let mut peer = plain_client(&host, true, address(&node));
    peer.finish().expect("a handshake");
    peer.write(&interest(1)).expect("open");
    hears(&mut peer, 1000).expect("Data");
    lengthen(&host, 1);
    alert(&host, true, address(&node));
    eventually("it counts", || unproven(&node) == 1);

    let by_host = options(&authority.host(&["host2"]));
    let shown = authority.host(&["long.test", "127.0.0.1"]);
    lengthen(&shown, 4);
    let (address, serving) = plain_server(&shown);
    let said = refusal(&FaceUri::tls(address), &by_host);
    assert!(
        said.contains("4 certificates between its own and the CA's"),
        "{said}"
    );
    assert!(serving.join().expect("no panic").is_err());
}

#[test]
fn certificates_are_read_again_when_they_have_changed() {
    let authority = Authority::new();
    let files = authority.host(&ROUTER);
    let node = node(vec![listener(&files)]);
    let host = authority.host(&["host1"]);
    let names = || {
        let mut face = FaceConfig::new(node.listening()[0].clone());
        face.link.tls = Some(credentials(&host));
        let near = connecting(face);
        eventually("up", || faces(&near)[0].up);
        faces(&near)[0].spec.peer_names.clone()
    };
    assert_eq!(names(), ["router.test"]);
    // What can't be used changes nothing.
    std::fs::write(&files.certificate, "nothing").expect("a file");
    assert_eq!(names(), ["router.test"]);
    authority.renew(&files, &["new.test", "127.0.0.1"], -1, 1);
    eventually("the new one is shown", || names() == ["new.test"]);
}

#[test]
fn tls_without_a_certificate_is_refused_before_anything_is_opened() {
    let refused = Node::start(NodeConfig {
        listeners: vec![listen("tls://127.0.0.1:0")],
        faces: vec![FaceConfig::new(uri("tls://router.test"))],
        ..NodeConfig::default()
    });
    let said = refused.err().expect("refused").to_string();
    assert_eq!(said.matches("there is no certificate for TLS").count(), 2);
    let refused = Client::connect(&uri("tls://127.0.0.1:1"), &ClientOptions::default());
    assert!(matches!(refused.err(), Some(ClientError::Config(_))));
}
