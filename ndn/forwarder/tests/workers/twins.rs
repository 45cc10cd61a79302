//! One forwarder beside several workers: they live through the same, and are compared.

use std::time::Duration;

use ndn_forwarder::{Config, FaceCounters, FaceId, FaceSpec, Forwarder, Status, StrategyKind};
use ndn_packet::{NackReason, NetKind, NetPacket, PitToken};
use proptest::prelude::*;

use crate::common::*;
use crate::events::{Asks, Event, NAMES, Token};
use crate::several::{Several, config, spec, take_outputs};

/// What was sent, comparable between the two: a face by its place in the test, Interests without their tokens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Sent {
    face: usize,
    what: String,
}

/// One forwarder and several workers that live through the same.
pub struct Twins {
    now: Duration,
    one: Forwarder,
    several: Several,
    faces: Vec<(FaceId, FaceId)>,
    kinds: &'static [StrategyKind],
    /// Interests that both have sent to the same face.
    sent: Vec<(usize, NetPacket, NetPacket)>,
}

impl Twins {
    pub fn new(count: usize, components: usize, kinds: &'static [StrategyKind]) -> Self {
        let config = Config {
            default_strategy: kinds[0],
            ..config()
        };
        let mut twins = Twins {
            now: Duration::from_secs(1000),
            one: Forwarder::new(config.clone()),
            several: Several::new(&config, count, components),
            faces: Vec::new(),
            kinds,
            sent: Vec::new(),
        };
        for (kind, worker) in [(0, 0), (3, 1), (3, 0)] {
            twins.apply(Event::AddFace { kind, worker });
        }
        twins.apply(Event::Route {
            name: 1,
            face: 1,
            cost: 1,
        });
        twins
    }

    fn face(&self, n: usize) -> (usize, FaceId, FaceId) {
        let at = n % self.faces.len();
        let (one, several) = self.faces[at];
        (at, one, several)
    }

    fn receive(&mut self, face: usize, one: NetPacket, several: NetPacket) {
        let (_, in_one, in_several) = self.face(face);
        let now = self.now;
        self.one.receive(now, in_one, one);
        self.several
            .of(in_several)
            .receive(now, in_several, several);
    }

    pub fn apply(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::AddFace { kind, worker } => {
                let worker = worker % self.several.workers.len();
                let several = self.several.workers[worker].add_face(now, spec(kind));
                self.faces
                    .push((self.one.add_face(now, spec(kind)), several));
            }
            Event::RemoveFace(n) => {
                let (_, one, several) = self.face(n);
                self.one.remove_face(now, one);
                self.several.of(several).remove_face(now, several);
            }
            Event::FaceUp(n, up) => {
                let (_, one, several) = self.face(n);
                self.one.set_face_up(now, one, up);
                self.several.of(several).set_face_up(now, several, up);
            }
            Event::Resize(n, small) => {
                let (_, one, several) = self.face(n);
                if let Some(spec) = self.one.face(one) {
                    let spec = FaceSpec {
                        max_packet_bytes: small.then_some(8800),
                        peer_names: if small {
                            vec!["x".to_owned()]
                        } else {
                            Vec::new()
                        },
                        ..spec.clone()
                    };
                    self.one.face_updated(one, spec.clone());
                    self.several.of(several).face_updated(several, spec);
                }
            }
            Event::Interest(face, asks) => self.receive(face, packet(&asks), packet(&asks)),
            Event::Batch(face, asks) => {
                let (_, one, several) = self.face(face);
                let packets: Vec<NetPacket> = asks.iter().map(packet).collect();
                self.one.receive_batch(now, one, &mut packets.clone());
                let worker = self.several.of(several);
                worker.receive_batch(now, several, &mut packets.clone());
            }
            Event::Answer {
                pick,
                token,
                fresh_ms,
                cached,
                below,
            } => {
                if self.sent.is_empty() {
                    return;
                }
                let (face, one, several) = self.sent[pick % self.sent.len()].clone();
                let mut uri = one.name().to_name().to_string();
                if let Some((name, _)) = uri.split_once("/sha256digest") {
                    uri = name.to_owned();
                } else if below {
                    uri = format!("{}/z/seg=9", uri.trim_end_matches('/'));
                }
                let mut answer = data_fresh(&uri, fresh_ms);
                answer.no_cache = !cached;
                answer.congestion_mark = Some(fresh_ms % 2);
                let one = use_token(token, one.pit_token);
                let several = use_token(token, several.pit_token);
                let both = [one, several].map(|token| answer.clone().with_pit_token(token));
                let [one, several] = both;
                self.receive(face, one, several);
            }
            Event::Nack { pick, token } => {
                if self.sent.is_empty() {
                    return;
                }
                let (face, one, several) = self.sent[pick % self.sent.len()].clone();
                // A forged one is of no entry: by luck it could be that of another Interest of this name with one of the
                // two, and of none with the other.
                let token = match token {
                    Token::Forged(n) => Token::Forged(n | 0xffff << 32),
                    token => token,
                };
                let both = [one, several].map(|asked| {
                    let token = use_token(token, asked.pit_token);
                    nack_of(&asked, NackReason::Congestion).with_pit_token(token)
                });
                let [one, several] = both;
                self.receive(face, one, several);
            }
            Event::Data { face, name, token } => {
                let packet = data(NAMES[name]).with_pit_token(use_token(token, None));
                self.receive(face, packet.clone(), packet);
            }
            Event::Route {
                name: n,
                face,
                cost,
            } => {
                let (_, one, several) = self.face(face);
                let prefix = name(NAMES[n]);
                let added = self.one.add_route(&prefix, one, cost).is_ok();
                let also = self.several.workers[0].add_route(&prefix, several, cost);
                assert_eq!(added, also.is_ok());
            }
            Event::Unroute { name: n, face } => {
                let (_, one, several) = self.face(face);
                let prefix = name(NAMES[n]);
                self.one.remove_route(&prefix, one);
                self.several.workers[0].remove_route(&prefix, several);
            }
            Event::Strategy { name: n, kind } => {
                let kind = self.kinds[kind];
                self.one.set_strategy(&name(NAMES[n]), kind);
                self.several.workers[0].set_strategy(&name(NAMES[n]), kind);
            }
            Event::Unstrategy(n) => {
                self.one.unset_strategy(&name(NAMES[n]));
                self.several.workers[0].unset_strategy(&name(NAMES[n]));
            }
            Event::Erase(n) => {
                self.one.erase_cs(&name(NAMES[n]));
                self.several.workers[0].erase_cs(&name(NAMES[n]));
            }
            Event::Wait(time) => self.wait(ms(time)),
        }
        while self.several.deliver(self.now) {}
    }

    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        let due = |twins: &Self| {
            let both = [twins.one.deadline(), twins.several.deadline()];
            both.into_iter().flatten().min()
        };
        while let Some(due) = due(self).filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.one.on_deadline(self.now);
            self.several.on_deadline(self.now);
            while self.several.deliver(self.now) {}
        }
        self.now = end;
    }

    /// Takes what both have sent, and says whether it is the same. One name's packets to one face are in one order with
    /// both. Which Data of several answers an Interest for the names below its own is free.
    pub fn check(&mut self, event: &Event) -> Result<(), TestCaseError> {
        let (mut one, mut several) = (Vec::new(), Vec::new());
        take_outputs(&mut self.one, &mut one);
        for worker in &mut self.several.workers {
            take_outputs(worker, &mut several);
        }
        let at_one = |face| self.faces.iter().position(|both| both.0 == face);
        let at_several = |face| self.faces.iter().position(|both| both.1 == face);
        let is_free = match event {
            Event::Interest(_, asks) => asks.prefix,
            Event::Batch(_, asks) => asks.iter().any(|asks| asks.prefix),
            _ => false,
        };
        let described = |face: Option<usize>, packet: &NetPacket| Sent {
            face: face.expect("a face of the test"),
            what: describe(packet, is_free),
        };
        let mut ones: Vec<_> = one
            .iter()
            .map(|(f, p)| (described(at_one(*f), p), p))
            .collect();
        let mut severals: Vec<_> = several
            .iter()
            .map(|(f, p)| (described(at_several(*f), p), p))
            .collect();
        // Stable: what is alike keeps its order.
        ones.sort_by(|a, b| a.0.cmp(&b.0));
        severals.sort_by(|a, b| a.0.cmp(&b.0));
        let said = |all: &[(Sent, &NetPacket)]| -> Vec<Sent> {
            all.iter().map(|(sent, _)| sent.clone()).collect()
        };
        prop_assert_eq!(said(&ones), said(&severals), "after {:?}", event);
        for ((sent, a), (_, b)) in ones.into_iter().zip(severals) {
            if matches!(a.packet, NetKind::Interest(_)) {
                let token = b.pit_token.as_ref().map(|token| token.as_slice().len());
                prop_assert_eq!(token, Some(6), "the only length that all take");
                self.sent.push((sent.face, a.clone(), b.clone()));
            }
        }
        let status = |s: Status| {
            let tables = [
                s.faces,
                s.fib_entries,
                s.pit_entries,
                s.cs_entries,
                s.rib_routes,
            ];
            let counts = [s.cs_hits, s.cs_misses, s.floods];
            (
                tables,
                counts,
                s.satisfied_interests,
                s.unsatisfied_interests,
                without_bytes(s.packets),
            )
        };
        let (a, b) = (status(self.one.status()), status(self.several.status()));
        prop_assert_eq!(a, b, "after {:?}", event);
        for (one, several) in &self.faces {
            let (a, b) = (self.one.counters(*one), self.several.counters(*several));
            let (a, b) = (a.map(without_bytes), b.map(without_bytes));
            prop_assert_eq!(a, b, "after {:?}", event);
        }
        Ok(())
    }
}

/// Counters without what depends on which of several Data was the answer.
fn without_bytes(mut counters: FaceCounters) -> FaceCounters {
    counters.out_bytes = 0;
    counters
}

fn describe(packet: &NetPacket, is_free: bool) -> String {
    let name = packet.name().to_name();
    let marks = format!(
        "mark {:?} no_cache {}",
        packet.congestion_mark, packet.no_cache
    );
    match &packet.packet {
        NetKind::Interest(interest) => format!(
            "interest {name} {:?} {:?} {} {} {} {marks}",
            interest.nonce(),
            interest.hop_limit(),
            interest.can_be_prefix(),
            interest.must_be_fresh(),
            packet.rejected,
        ),
        NetKind::Data(_) if is_free => format!("data {:?} {marks}", packet.pit_token),
        NetKind::Data(_) => format!("data {name} {:?} {marks}", packet.pit_token),
        NetKind::Nack { reason, interest } => {
            format!(
                "nack {name} {reason} {:?} {:?}",
                interest.nonce(),
                packet.pit_token
            )
        }
    }
}

pub fn packet(asks: &Asks) -> NetPacket {
    let uri = match asks.digest {
        true => with_digest(NAMES[asks.name]),
        false => NAMES[asks.name].to_owned(),
    };
    let mut packet = interest_with(&uri, |b| {
        let b = b
            .nonce(asks.nonce)
            .can_be_prefix(asks.prefix)
            .must_be_fresh(asks.fresh)
            .lifetime(ms(asks.lifetime_ms));
        match asks.hops {
            Some(hops) => b.hop_limit(hops),
            None => b,
        }
    });
    packet.rejected = asks.rejected;
    packet.with_pit_token(token(&asks.nonce.to_be_bytes()))
}

fn with_digest(uri: &str) -> String {
    let NetKind::Data(data) = data(uri).packet else {
        panic!("no Data")
    };
    let hex: String = data
        .implicit_digest()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    format!("{uri}/sha256digest={hex}")
}

fn use_token(token: Token, own: Option<PitToken>) -> Option<PitToken> {
    match token {
        Token::Own => own,
        Token::None => None,
        Token::Forged(n) => Some(PitToken::from_u48(n)),
    }
}
