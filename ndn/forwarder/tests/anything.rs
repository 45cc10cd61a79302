//! Any sequence of events: nothing panics, nothing is forgotten, nobody gets what he did not ask for.

mod common;

use common::*;
use ndn_forwarder::{FaceId, FaceSpec, LinkType, Output, StrategyKind};
use ndn_packet::{NackReason, NetKind, NetPacket};
use proptest::prelude::*;
use std::collections::HashSet;

#[derive(Debug, Clone)]
enum Event {
    AddFace(u8),
    RemoveFace(usize),
    FaceUp(usize, bool),
    Interest {
        face: usize,
        name: usize,
        nonce: u32,
        prefix: bool,
        fresh: bool,
        hops: Option<u8>,
        lifetime_ms: u64,
    },
    /// Data as the answer to the n-th Interest that was last sent, or out of the blue.
    Answer {
        pick: usize,
        with_token: bool,
        fresh_ms: u64,
    },
    Nack {
        pick: usize,
    },
    Data {
        face: usize,
        name: usize,
    },
    Route {
        name: usize,
        face: usize,
        cost: u64,
    },
    Unroute {
        name: usize,
        face: usize,
    },
    Strategy {
        name: usize,
        kind: usize,
    },
    Wait(u64),
    Batch {
        face: usize,
        first: usize,
    },
}

const NAMES: [&str; 10] = [
    "/a",
    "/a/b",
    "/a/b/c",
    "/a/b/d",
    "/a/e",
    "/x/y/z",
    "/x/y",
    "/localhost/a",
    "/localhop/a",
    "/a/b/c/seg=1",
];

fn events() -> impl Strategy<Value = Event> {
    let (face, name) = (0usize..6, 0usize..NAMES.len());
    prop_oneof![
        1 => (0u8..4).prop_map(Event::AddFace),
        1 => face.clone().prop_map(Event::RemoveFace),
        1 => (face.clone(), any::<bool>()).prop_map(|(f, up)| Event::FaceUp(f, up)),
        8 => (face.clone(), name.clone(), 0u32..20, any::<bool>(), any::<bool>(), prop::option::of(0u8..3), 1u64..3000)
            .prop_map(|(face, name, nonce, prefix, fresh, hops, lifetime_ms)| {
                Event::Interest { face, name, nonce, prefix, fresh, hops, lifetime_ms }
            }),
        6 => (any::<usize>(), any::<bool>(), 0u64..100)
            .prop_map(|(pick, with_token, fresh_ms)| Event::Answer { pick, with_token, fresh_ms }),
        3 => any::<usize>().prop_map(|pick| Event::Nack { pick }),
        2 => (face.clone(), name.clone()).prop_map(|(face, name)| Event::Data { face, name }),
        3 => (face.clone(), name.clone(), 0u64..3).prop_map(|(face, name, cost)| Event::Route { name, face, cost }),
        1 => (face.clone(), name.clone()).prop_map(|(face, name)| Event::Unroute { name, face }),
        1 => (name.clone(), 0..StrategyKind::ALL.len()).prop_map(|(name, kind)| Event::Strategy { name, kind }),
        3 => (0u64..2000).prop_map(Event::Wait),
        1 => (face, 0usize..NAMES.len()).prop_map(|(face, first)| Event::Batch { face, first }),
    ]
}

struct Watched {
    w: World,
    faces: Vec<FaceId>,
    /// Interests that were sent, with where to.
    sent: Vec<(FaceId, NetPacket)>,
    /// Faces and names that an Interest came from, ever.
    asked: HashSet<(FaceId, String)>,
}

impl Watched {
    fn face(&self, n: usize) -> FaceId {
        self.faces[n % self.faces.len()]
    }

    fn receive(&mut self, face: FaceId, packet: NetPacket) {
        if let NetKind::Interest(i) = &packet.packet {
            self.asked.insert((face, i.name().to_name().to_string()));
        }
        self.w.fw.receive(self.w.now, face, packet);
    }

    fn pick(&self, n: usize) -> Option<(FaceId, NetPacket)> {
        let len = self.sent.len();
        (len > 0).then(|| self.sent[n % len].clone())
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::AddFace(kind) => {
                let spec = match kind {
                    0 => FaceSpec::local("fd://9", "unix:///run/t.sock"),
                    1 => FaceSpec {
                        link_type: LinkType::AdHoc,
                        ..FaceSpec::remote("ether://a", "dev://b")
                    },
                    2 => FaceSpec {
                        link_type: LinkType::MultiAccess,
                        ..FaceSpec::remote("udp4://224.0.23.170:56363", "dev://b")
                    },
                    _ => FaceSpec::remote("udp4://192.0.2.7:6363", "udp4://192.0.2.2:6363"),
                };
                self.faces.push(self.w.fw.add_face(self.w.now, spec));
            }
            Event::RemoveFace(n) => self.w.fw.remove_face(self.w.now, self.face(n)),
            Event::FaceUp(n, up) => self.w.fw.set_face_up(self.w.now, self.face(n), up),
            Event::Interest {
                face,
                name,
                nonce,
                prefix,
                fresh,
                hops,
                lifetime_ms,
            } => {
                let mut packet = interest_with(NAMES[name], |b| {
                    let b = b
                        .nonce(nonce)
                        .can_be_prefix(prefix)
                        .must_be_fresh(fresh)
                        .lifetime(ms(lifetime_ms));
                    match hops {
                        Some(hops) => b.hop_limit(hops),
                        None => b,
                    }
                });
                packet.rejected = nonce.is_multiple_of(4);
                self.receive(
                    self.face(face),
                    packet.with_pit_token(token(&nonce.to_be_bytes())),
                );
            }
            Event::Answer {
                pick,
                with_token,
                fresh_ms,
            } => {
                if let Some((face, asked)) = self.pick(pick) {
                    let packet = data_fresh(&asked.name().to_name().to_string(), fresh_ms);
                    let token = asked.pit_token.filter(|_| with_token);
                    self.receive(face, packet.with_pit_token(token));
                }
            }
            Event::Nack { pick } => {
                if let Some((face, asked)) = self.pick(pick) {
                    self.receive(face, nack_of(&asked, NackReason::Congestion));
                }
            }
            Event::Data { face, name } => self.receive(self.face(face), data(NAMES[name])),
            Event::Route {
                name: n,
                face,
                cost,
            } => {
                let _ = self.w.fw.add_route(&name(NAMES[n]), self.face(face), cost);
            }
            Event::Unroute { name: n, face } => {
                self.w.fw.remove_route(&name(NAMES[n]), self.face(face));
            }
            Event::Strategy { name: n, kind } => {
                self.w
                    .fw
                    .set_strategy(&name(NAMES[n]), StrategyKind::ALL[kind]);
            }
            Event::Wait(time) => {
                let end = self.w.now + ms(time);
                while let Some(due) = self.w.fw.deadline().filter(|due| *due <= end) {
                    self.w.now = self.w.now.max(due);
                    self.w.fw.on_deadline(self.w.now);
                }
                self.w.now = end;
            }
            Event::Batch { face, first } => {
                let face = self.face(face);
                let mut batch: Vec<NetPacket> = (0..40)
                    .map(|n| interest(NAMES[(first + n) % NAMES.len()], 1000 + n as u32))
                    .collect();
                for packet in &batch {
                    self.asked
                        .insert((face, packet.name().to_name().to_string()));
                }
                self.w.fw.receive_batch(self.w.now, face, &mut batch);
            }
        }
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        while let Some(output) = self.w.fw.poll_output() {
            let Output::Send { face, packet } = output else {
                continue;
            };
            prop_assert!(
                self.faces.contains(&face),
                "sent to {} that never was",
                face
            );
            let local = self
                .w
                .fw
                .face(face)
                .is_none_or(|spec| spec.scope == ndn_forwarder::FaceScope::Local);
            let sent_name = packet.name().to_name().to_string();
            prop_assert!(
                local || !sent_name.starts_with("/localhost"),
                "{} left the host",
                sent_name
            );
            match &packet.packet {
                NetKind::Interest(i) => {
                    prop_assert!(i.nonce().is_some());
                    prop_assert!(packet.pit_token.is_some());
                    self.sent.push((face, packet));
                }
                NetKind::Data(_) | NetKind::Nack { .. } => {
                    let wanted = self
                        .asked
                        .iter()
                        .any(|(f, n)| *f == face && sent_name.starts_with(n.as_str()));
                    prop_assert!(wanted, "{} got {} unasked", face, sent_name);
                }
            }
        }
        let status = self.w.fw.status();
        let (mut pending_in, mut pending_out) = (0, 0);
        for (_, _, _, counters) in self.w.fw.faces() {
            pending_in += counters.pending_in;
            pending_out += counters.pending_out;
        }
        prop_assert_eq!(
            (status.packets.pending_in, status.packets.pending_out),
            (pending_in, pending_out)
        );
        prop_assert!(status.pit_entries as u64 <= pending_in);
        prop_assert_eq!(status.pit_entries == 0, status.pit_bytes == 0);
        prop_assert_eq!(status.pit_entries > 0, self.w.fw.deadline().is_some());
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn holds_its_promises(events in prop::collection::vec(events(), 1..120), strategy in 0..StrategyKind::ALL.len()) {
        let mut w = World::new(|c| {
            c.default_strategy = StrategyKind::ALL[strategy];
            c.learned_groups = vec![(name("/a"), 1)];
            c.cs_capacity_bytes = 3000;
            c.pit_max_per_face = 20;
        });
        let faces = vec![w.local(), w.remote(), w.remote()];
        w.route("/a", faces[1], 1);
        let mut watched = Watched { w, faces, sent: Vec::new(), asked: HashSet::new() };
        for event in events {
            watched.apply(event);
            watched.check()?;
        }
        watched.apply(Event::Wait(200_000));
        watched.check()?;
        watched.w.assert_idle();
    }
}
