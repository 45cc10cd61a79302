//! Commands to NFD, as it behaves where ours does not: datasets that it keeps for a second, commands that it refuses because
//! another one with a later time came first.

mod common;

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use common::Bench;
use ndn_forwarder::mgmt::{
    ControlParameters, ControlResponse, Dataset, FaceQueryFilter, FaceStatus,
};
use ndn_packet::{
    ComponentBuf, Data, Interest, MAX_JUMBO_PACKET, NetKind, NetPacket, SigningKey, tlv,
};

/// Such a forwarder, and what it was asked to do.
#[derive(Default)]
struct Nfd {
    /// Number and remote address of each face.
    faces: Vec<(u64, &'static str)>,
    /// Faces as a dataset showed them a moment ago.
    kept_list: Vec<(u64, &'static str)>,
    /// So many commands are yet to be refused.
    refuses: usize,
    /// The latest time that a command had; one that is not later is never answered.
    last_time_ms: u64,
    /// `module/verb`, the face, and the time of each command that was accepted.
    done: Vec<(String, Option<u64>)>,
    refused: usize,
    queries: Vec<Vec<u8>>,
}

impl Nfd {
    /// The content that answers an Interest.
    fn answer(&mut self, interest: &Interest) -> Option<Bytes> {
        let name = interest.name();
        let word = |n: usize| {
            let component = name.get(n).map(|c| c.value.to_vec());
            String::from_utf8_lossy(&component.unwrap_or_default()).into_owned()
        };
        match (word(2).as_str(), word(3).as_str()) {
            ("faces", "list") => Some(list(&self.kept_list)),
            ("faces", "query") => {
                let element = name.get(4)?.value.to_vec();
                let filter = FaceQueryFilter::decode(&element).ok()?;
                self.queries.push(element);
                let fits = |(_, uri): &&(u64, &'static str)| filter.uri.as_deref() == Some(*uri);
                let faces: Vec<_> = self.faces.iter().filter(fits).copied().collect();
                Some(list(&faces))
            }
            (module, verb) => {
                let parameters = ControlParameters::decode(name.get(4)?.value).ok()?;
                let time = interest.signature_info()?.time?;
                if time <= self.last_time_ms {
                    return None;
                }
                self.last_time_ms = time;
                if self.refused < self.refuses {
                    self.refused += 1;
                    return Some(ControlResponse::error(403, "authorization rejected").encode());
                }
                self.done
                    .push((format!("{module}/{verb}"), parameters.face_id));
                let flags = parameters.flags.map(|_| 0);
                let body = ControlParameters {
                    face_id: parameters.face_id.or(Some(300)),
                    flags,
                    mask: None,
                    ..parameters
                };
                Some(ControlResponse::ok(body).encode())
            }
        }
    }
}

fn list(faces: &[(u64, &'static str)]) -> Bytes {
    let mut content = BytesMut::new();
    for (face_id, uri) in faces {
        let face = FaceStatus {
            face_id: *face_id,
            uri: String::from(*uri),
            ..FaceStatus::default()
        };
        face.put(&mut content);
    }
    content.freeze()
}

fn serve(mut stream: UnixStream, nfd: &Mutex<Nfd>) {
    let (mut read, mut part) = (Vec::new(), [0; 4096]);
    while let Ok(n @ 1..) = stream.read(&mut part) {
        read.extend_from_slice(&part[..n]);
        while let Ok(Some(len)) = tlv::frame_len(&read, MAX_JUMBO_PACKET) {
            if read.len() < len {
                break;
            }
            let frame: Vec<u8> = read.drain(..len).collect();
            let Ok(Some(packet)) = NetPacket::decode(frame.into()) else {
                continue;
            };
            let NetKind::Interest(interest) = packet.packet else {
                continue;
            };
            let content = nfd.lock().expect("no panic").answer(&interest);
            let Some(content) = content else { continue };
            let name = match interest.can_be_prefix() {
                true => interest.name_owned().append_version(1).append_segment(0),
                false => interest.name_owned(),
            };
            let wire = Data::builder(&name)
                .final_block_id(ComponentBuf::segment(0))
                .content(&content)
                .sign(&SigningKey::DigestSha256);
            if stream.write_all(&wire).is_err() {
                return;
            }
        }
    }
}

fn start(nfd: Nfd) -> (Bench, Arc<Mutex<Nfd>>) {
    let bench = Bench::without_forwarder();
    let listener = UnixListener::bind(bench.socket()).expect("a socket");
    let nfd = Arc::new(Mutex::new(nfd));
    let shared = nfd.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            serve(stream.expect("a connection"), &shared);
        }
    });
    (bench, nfd)
}

#[test]
fn a_face_is_looked_for_where_nothing_is_kept() {
    const REMOTE: &str = "tcp4://192.0.2.1:6363";
    let (bench, nfd) = start(Nfd {
        // It was made anew a moment ago, and another one has the number that it had.
        faces: vec![(301, REMOTE), (300, "tcp4://192.0.2.9:6363")],
        kept_list: vec![(300, REMOTE)],
        ..Nfd::default()
    });
    bench.ok(&["fwd", "face", "destroy", "tcp://192.0.2.1:6363"]);
    bench.ok(&["fwd", "route", "remove", "/a", "tcp://192.0.2.1:6363"]);
    let (code, said) = bench.fails(&["fwd", "face", "destroy", "tcp://192.0.2.2:6363"]);
    assert!(code == 1 && said.contains("there is none"), "{said}");
    let nfd = nfd.lock().expect("no panic");
    let done: Vec<_> = nfd
        .done
        .iter()
        .map(|(verb, face)| (verb.as_str(), *face))
        .collect();
    assert_eq!(
        done,
        [("faces/destroy", Some(301)), ("rib/unregister", Some(301))]
    );
    // An answer that is kept under a query's name is no answer to the next.
    assert_ne!(nfd.queries[0], nfd.queries[1]);
}

#[test]
fn one_of_many_faces_is_not_chosen_by_chance() {
    const REMOTE: &str = "udp4://192.0.2.1:6363";
    let (bench, nfd) = start(Nfd {
        faces: vec![(301, REMOTE), (302, REMOTE)],
        ..Nfd::default()
    });
    let (code, said) = bench.fails(&["fwd", "face", "destroy", REMOTE]);
    assert!(code == 1 && said.contains("301, 302"), "{said}");
    assert!(nfd.lock().expect("no panic").done.is_empty());
}

#[test]
fn a_command_that_is_refused_for_its_time_is_sent_again_with_a_later_one() {
    let (bench, nfd) = start(Nfd {
        refuses: 1,
        ..Nfd::default()
    });
    let (server, said) = bench.serve(&["pingserver", "/a"]);
    assert!(said.starts_with("answering /a/ping"), "{said}");
    drop(server);
    let nfd = nfd.lock().expect("no panic");
    assert_eq!((nfd.refused, nfd.done.len()), (1, 1));
}

#[test]
fn a_command_that_is_always_refused_ends_with_the_refusal() {
    let (bench, nfd) = start(Nfd {
        refuses: usize::MAX,
        ..Nfd::default()
    });
    let (code, said) = bench.fails(&["fwd", "strategy", "set", "/a", "multicast"]);
    assert!(code == 1 && said.contains("403"), "{said}");
    let nfd = nfd.lock().expect("no panic");
    assert!(nfd.done.is_empty() && nfd.refused > 1);
}

#[test]
fn reliability_that_is_not_to_be_had_is_refused() {
    let (bench, nfd) = start(Nfd::default());
    let create = [
        "fwd",
        "face",
        "create",
        "udp://192.0.2.1:6363",
        "--reliability",
        "on",
    ];
    let (code, said) = bench.fails(&create);
    assert!(code == 1 && said.contains("reliability"), "{said}");
    // The face that was made without it is not left behind.
    let nfd = nfd.lock().expect("no panic");
    let done: Vec<&str> = nfd.done.iter().map(|(verb, _)| verb.as_str()).collect();
    assert_eq!(done, ["faces/create", "faces/destroy"]);
}
