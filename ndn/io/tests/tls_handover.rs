//! What a peer sends right behind its last message of the handshake comes with it, in one read: it is processed as if it
//! had come later. The other end is rustls as it comes.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use common::authority::Authority;
use common::tls::{
    ROUTER, address, certificates, connecting, credentials, hears, interest, plain_client,
    provider, roots, router,
};
use common::{eventually, faces, serve};
use ndn_io::{FaceConfig, FaceUri};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConnection, Error, ServerConfig, ServerConnection};

const CONTENT: usize = 1000;

/// What a peer adds to its last message of the handshake.
type Adds = fn(&mut ClientConnection) -> Result<(), Error>;

fn add(tls: &mut ClientConnection, segment: u64) -> Result<(), Error> {
    let written = tls.writer().write_all(&interest(segment));
    written.map_err(|error| Error::General(error.to_string()))
}

#[test]
fn new_keys_and_packets_behind_the_handshake_are_taken() {
    let (authority, node) = router();
    let _source = serve(&node, CONTENT);
    let host = authority.host(&["host1"]);
    let cases: [(&str, Adds, usize); 4] = [
        ("an Interest", |tls| add(tls, 1), 1),
        ("new keys", |tls| tls.refresh_traffic_keys(), 0),
        (
            "new keys and an Interest",
            |tls| tls.refresh_traffic_keys().and_then(|()| add(tls, 2)),
            1,
        ),
        (
            "an Interest, new keys, and that again",
            |tls| {
                for segment in [3, 4] {
                    add(tls, segment)?;
                    tls.refresh_traffic_keys()?;
                }
                Ok(())
            },
            2,
        ),
    ];
    for (what, adds, answers) in cases {
        // In one piece, cut between any two octets of the end, and octet by octet.
        for cut in [0, 1, 3, 20, 60, usize::MAX] {
            let mut peer = plain_client(&host, true, address(&node));
            peer.tcp.set_nodelay(true).expect("a socket");
            let flight = peer.last_flight(adds).expect("a handshake");
            let pieces: Vec<&[u8]> = match cut {
                usize::MAX => flight.chunks(1).collect(),
                cut => {
                    let (first, second) = flight.split_at(flight.len() - cut);
                    vec![first, second]
                }
            };
            for piece in pieces {
                peer.tcp.write_all(piece).expect("open");
            }
            // The answers, and what is asked for afterwards, with whichever keys each end has now.
            let heard = hears(&mut peer, answers * CONTENT);
            heard.unwrap_or_else(|error| panic!("{what}, cut at {cut}: {error}"));
            peer.write(&interest(100)).expect("open");
            let heard = hears(&mut peer, CONTENT);
            heard.unwrap_or_else(|error| panic!("{what}, cut at {cut}: {error}"));
            drop(peer);
            eventually("closed", || faces(&node).is_empty());
        }
    }
}

#[test]
fn a_packet_and_an_end_behind_the_handshake_are_taken() {
    let (authority, node) = router();
    let _source = serve(&node, CONTENT);
    let mut peer = plain_client(&authority.host(&["host1"]), true, address(&node));
    let flight = peer.last_flight(|tls| {
        add(tls, 1)?;
        tls.send_close_notify();
        Ok(())
    });
    peer.tcp
        .write_all(&flight.expect("a handshake"))
        .expect("open");
    let asked = || {
        node.status()
            .expect("a node")
            .forwarder
            .packets
            .in_interests
    };
    eventually("it is asked", || asked() == 1);
    eventually("closed", || faces(&node).is_empty());
    let status = node.status().expect("a node");
    assert_eq!(status.listeners[0].unproven, 0, "the handshake was good");
}

/// A server that sends an Interest right behind its first flight, before it knows who has connected, and new keys later.
/// It begins when it is told to.
fn eager_server(
    authority: &Authority,
    begin: Receiver<()>,
) -> (SocketAddr, std::thread::JoinHandle<usize>) {
    let files = authority.host(&ROUTER);
    let key = PrivateKeyDer::from_pem_file(&files.key).expect("a key");
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots(&files)), provider()).build();
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_client_cert_verifier(verifier.expect("a verifier"))
        .with_single_cert(certificates(&files.certificate), key)
        .expect("a pair");
    config.send_half_rtt_data = true;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    let serving = std::thread::spawn(move || {
        begin.recv().expect("a word");
        let (mut tcp, _) = listener.accept().expect("a peer");
        tcp.set_read_timeout(Some(Duration::from_secs(20)))
            .expect("a timeout");
        let mut tls = ServerConnection::new(Arc::new(config)).expect("a server");
        tls.writer().write_all(&interest(1)).expect("half an RTT");
        while tls.is_handshaking() {
            tls.complete_io(&mut tcp).expect("a handshake");
        }
        tls.refresh_traffic_keys().expect("new keys");
        tls.writer().write_all(&interest(2)).expect("open");
        let mut stream = rustls::Stream::new(&mut tls, &mut tcp);
        let (mut heard, mut part) = (0, [0; 4096]);
        while heard < 2 * CONTENT {
            heard += stream.read(&mut part).expect("Data");
        }
        heard
    });
    (at, serving)
}

#[test]
fn who_connects_takes_what_comes_with_the_first_flight() {
    let authority = Authority::new();
    let (tell, begin) = channel();
    let (at, serving) = eager_server(&authority, begin);
    let mut face = FaceConfig::new(FaceUri::tls(at));
    face.link.tls = Some(credentials(&authority.host(&["host1"])));
    let node = connecting(face);
    let _source = serve(&node, CONTENT);
    tell.send(()).expect("a server");
    assert!(serving.join().expect("no panic") >= 2 * CONTENT);
}
