//! Who is at the other end of a face that connects again: what the former peer has registered is not the new one's.

mod common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use common::authority::{Authority, Files};
use common::tls::{certificates, credentials, provider};
use common::{eventually, faces};
use ndn_forwarder::mgmt::{ControlParameters, Scope, Trust, command, command_name};
use ndn_io::{FaceConfig, FaceUri, Node, NodeConfig};
use ndn_packet::{Name, SigningKey};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

type Peer = StreamOwned<ServerConnection, std::net::TcpStream>;

/// Takes in who connects next, and shows this certificate.
fn accept(listener: &TcpListener, files: &Files) -> Peer {
    let key = PrivateKeyDer::from_pem_file(&files.key).expect("a key");
    let config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(certificates(&files.certificate), key)
        .expect("a pair");
    let (mut tcp, _) = listener.accept().expect("a peer");
    tcp.set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a timeout");
    let mut tls = ServerConnection::new(Arc::new(config)).expect("a server");
    while tls.is_handshaking() {
        tls.complete_io(&mut tcp).expect("a handshake");
    }
    StreamOwned::new(tls, tcp)
}

/// Registers a prefix as a neighbour does.
fn register(peer: &mut Peer, prefix: &str, nonce: u64) {
    let parameters = ControlParameters {
        name: Some(prefix.parse().expect("a name")),
        ..ControlParameters::default()
    };
    let name = command_name(Scope::Localhop, "rib", "register", &parameters);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.expect("a clock");
    let lifetime = Duration::from_secs(4);
    let wire = command(&name, &SigningKey::DigestSha256, nonce, now, lifetime);
    peer.write_all(&wire).expect("open");
    peer.flush().expect("open");
    // Its greeting and the answer.
    let mut heard = 0;
    while heard < 100 {
        heard += peer.read(&mut [0; 4096]).expect("an answer");
    }
}

#[test]
fn what_a_peer_has_registered_goes_where_another_answers_in_its_place() {
    let authority = Authority::new();
    let [first, renewed, second] = ["first.test", "first.test", "second.test"]
        .map(|name| authority.host(&[name, "127.0.0.1"]));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let uri = FaceUri::tls(listener.local_addr().expect("an address"));
    let mut face = FaceConfig::new(uri);
    face.link.tls = Some(credentials(&authority.host(&["host1"])));
    face.reconnect = (Duration::from_millis(20), Duration::from_millis(100));
    let mut config = NodeConfig {
        faces: vec![face],
        ..NodeConfig::default()
    };
    config.forwarder.commands.localhop_rib = Some(Trust::Any);
    let node = Node::start(config).expect("a node");
    let root: Name = "/".parse().expect("a name");
    let face = faces(&node)[0].id;
    let added = node.with_forwarder(move |forwarder, _| forwarder.add_route(&root, face, 10));
    added.expect("a node").expect("a route");
    let routes = || node.status().expect("a node").forwarder.rib_routes;
    let is_up = |name: &str| {
        let face = &faces(&node)[0];
        face.up && face.spec.peer_names[0] == name
    };

    let mut peer = accept(&listener, &first);
    eventually("up", || is_up("first.test"));
    register(&mut peer, "/a", 1);
    register(&mut peer, "/b", 2);
    assert_eq!(routes(), 3);
    drop(peer);
    let peer = accept(&listener, &renewed);
    eventually("up again", || is_up("first.test"));
    assert_eq!(routes(), 3, "the same host");
    drop(peer);
    let _peer = accept(&listener, &second);
    eventually("another", || is_up("second.test"));
    assert_eq!(routes(), 1, "the configuration's stays");
}
