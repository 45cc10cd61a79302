//! Several workers beside one: whatever happens, they send the same to the same faces, and count the same.

mod common;

use common::*;
use ndn_forwarder::mgmt::*;
use ndn_forwarder::{Config, FaceCounters, FaceId, FaceSpec, Forwarder, LinkType, Message, Output};
use ndn_forwarder::{Status, StrategyKind, Workers};
use ndn_packet::{NackReason, Name, NetKind, NetPacket, PitToken};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::time::Duration;

const NAMES: [&str; 14] = [
    "/",
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
    "/a/b/c/seg=2",
    "/a/b/c/d/seg=1",
    "/q/r/s/t/u",
];

#[derive(Debug, Clone)]
struct Asks {
    name: usize,
    nonce: u32,
    prefix: bool,
    fresh: bool,
    /// The name is followed by the digest of the Data that is never fresh.
    digest: bool,
    rejected: bool,
    hops: Option<u8>,
    lifetime_ms: u64,
}

#[derive(Debug, Clone, Copy)]
enum Token {
    Own,
    None,
    Forged(u64),
}

#[derive(Debug, Clone)]
enum Event {
    AddFace {
        kind: u8,
        worker: usize,
    },
    RemoveFace(usize),
    FaceUp(usize, bool),
    Resize(usize, bool),
    Interest(usize, Asks),
    Batch(usize, Vec<Asks>),
    /// Data as the answer to the n-th Interest that was last sent.
    Answer {
        pick: usize,
        token: Token,
        fresh_ms: u64,
        cached: bool,
        /// It is of a name below the one that was asked for.
        below: bool,
    },
    Nack {
        pick: usize,
        token: Token,
    },
    Data {
        face: usize,
        name: usize,
        token: Token,
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
    Unstrategy(usize),
    Erase(usize),
    Wait(u64),
}

fn asks(deep_prefixes_only: bool) -> impl Strategy<Value = Asks> {
    let flags = (any::<bool>(), any::<bool>(), 0u8..6, 0u8..4);
    (
        1..NAMES.len(),
        0u32..20,
        flags,
        prop::option::of(0u8..3),
        1u64..3000,
    )
        .prop_map(
            move |(name, nonce, (prefix, fresh, digest, rejected), hops, lifetime_ms)| {
                let is_deep = NAMES[name].split('/').count() > 5;
                let digest = digest == 0 && (is_deep || !deep_prefixes_only);
                Asks {
                    name,
                    nonce,
                    prefix: prefix && !digest && (is_deep || !deep_prefixes_only),
                    fresh,
                    digest,
                    // A short Interest that tells of a reject looks into no caches: it passes those that do.
                    rejected: rejected == 0 && !prefix,
                    hops,
                    lifetime_ms,
                }
            },
        )
}

fn token_use() -> impl Strategy<Value = Token> {
    prop_oneof![
        4 => Just(Token::Own),
        2 => Just(Token::None),
        1 => any::<u64>().prop_map(|n| Token::Forged(n & 0xffff_ffff_ffff)),
        1 => (0u64..4, 0u64..4).prop_map(|(worker, id)| Token::Forged(worker << 26 | id)),
    ]
}

fn events(kinds: &'static [StrategyKind]) -> impl Strategy<Value = Event> {
    let deep = kinds.contains(&StrategyKind::SelfLearning);
    let (face, name) = (0usize..6, 0usize..NAMES.len());
    let answer = (
        any::<usize>(),
        token_use(),
        0u64..100,
        0u8..4,
        any::<bool>(),
    );
    prop_oneof![
        1 => (0u8..4, 0usize..8).prop_map(|(kind, worker)| Event::AddFace { kind, worker }),
        1 => face.clone().prop_map(Event::RemoveFace),
        1 => (face.clone(), any::<bool>()).prop_map(|(f, up)| Event::FaceUp(f, up)),
        1 => (face.clone(), any::<bool>()).prop_map(|(f, small)| Event::Resize(f, small)),
        10 => (face.clone(), asks(deep)).prop_map(|(face, asks)| Event::Interest(face, asks)),
        2 => (face.clone(), prop::collection::vec(asks(deep), 1..20))
            .prop_map(|(face, asks)| Event::Batch(face, asks)),
        8 => answer.prop_map(|(pick, token, fresh_ms, cached, below)| {
            Event::Answer { pick, token, fresh_ms, cached: cached > 0, below }
        }),
        3 => (any::<usize>(), token_use()).prop_map(|(pick, token)| Event::Nack { pick, token }),
        2 => (face.clone(), name.clone(), token_use())
            .prop_map(|(face, name, token)| Event::Data { face, name: name.max(1), token }),
        3 => (face.clone(), name.clone(), 0u64..3)
            .prop_map(|(face, name, cost)| Event::Route { name, face, cost }),
        1 => (face, name.clone()).prop_map(|(face, name)| Event::Unroute { name, face }),
        1 => (name.clone(), 0..kinds.len()).prop_map(|(name, kind)| Event::Strategy { name, kind }),
        1 => name.clone().prop_map(Event::Unstrategy),
        1 => name.prop_map(Event::Erase),
        3 => (0u64..2000).prop_map(Event::Wait),
    ]
}

/// The workers of one forwarder, and what they have for each other.
struct Several {
    workers: Vec<Forwarder>,
    under_way: VecDeque<(usize, Message)>,
}

impl Several {
    fn new(config: &Config, count: usize, components: usize) -> Self {
        let workers = Workers::new(count, components);
        Several {
            workers: (0..count)
                .map(|n| Forwarder::worker(config.clone(), &workers, n))
                .collect(),
            under_way: VecDeque::new(),
        }
    }

    fn of(&mut self, face: FaceId) -> &mut Forwarder {
        let worker = face.worker(self.workers.len());
        &mut self.workers[worker]
    }

    /// Takes what the workers have for each other.
    fn collect(&mut self) {
        for worker in &mut self.workers {
            while let Some(message) = worker.poll_message() {
                self.under_way.push_back(message);
            }
        }
    }

    /// Delivers one message.
    fn deliver(&mut self, now: Duration) -> bool {
        self.collect();
        let Some((to, message)) = self.under_way.pop_front() else {
            return false;
        };
        self.workers[to].receive_messages(now, &mut vec![message]);
        true
    }

    fn deadline(&self) -> Option<Duration> {
        self.workers.iter().filter_map(Forwarder::deadline).min()
    }

    fn on_deadline(&mut self, now: Duration) {
        self.workers
            .iter_mut()
            .for_each(|worker| worker.on_deadline(now));
    }

    fn status(&self) -> Status {
        let mut sum = self.workers[0].status();
        for worker in &self.workers[1..] {
            sum.add(&worker.status());
        }
        sum
    }

    fn counters(&self, face: FaceId) -> Option<FaceCounters> {
        let mut sum = self.workers[0].counters(face)?;
        for worker in &self.workers[1..] {
            sum.add(&worker.counters(face)?);
        }
        Some(sum)
    }
}

/// What was sent, comparable between the two: a face by its place in the test, Interests without their tokens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Sent {
    face: usize,
    what: String,
}

/// One forwarder and several workers that live through the same.
struct Twins {
    now: Duration,
    one: Forwarder,
    several: Several,
    faces: Vec<(FaceId, FaceId)>,
    kinds: &'static [StrategyKind],
    /// Interests that both have sent to the same face.
    sent: Vec<(usize, NetPacket, NetPacket)>,
}

fn config() -> Config {
    Config {
        // The list turns at other times where it is shared out.
        dead_nonce_lifetime: Duration::from_secs(100_000),
        seed: 7,
        ..Config::default()
    }
}

fn spec(kind: u8) -> FaceSpec {
    match kind {
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
    }
}

fn packet(asks: &Asks) -> NetPacket {
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

fn take_outputs(forwarder: &mut Forwarder, into: &mut Vec<(FaceId, NetPacket)>) {
    while let Some(output) = forwarder.poll_output() {
        if let Output::Send { face, packet } = output {
            into.push((face, packet));
        }
    }
}

impl Twins {
    fn new(count: usize, components: usize, kinds: &'static [StrategyKind]) -> Self {
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

    fn apply(&mut self, event: Event) {
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
    fn check(&mut self, event: &Event) -> Result<(), TestCaseError> {
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

fn live(
    events: Vec<Event>,
    (count, components): (usize, usize),
    kinds: &'static [StrategyKind],
) -> Result<(), TestCaseError> {
    let mut twins = Twins::new(count, components, kinds);
    for event in events {
        twins.apply(event.clone());
        twins.check(&event)?;
    }
    let end = Event::Wait(200_000);
    twins.apply(end.clone());
    twins.check(&end)
}

const PLAIN: &[StrategyKind] = &[StrategyKind::BestRoute, StrategyKind::Multicast];
const LEARNING: &[StrategyKind] = &[StrategyKind::SelfLearning, StrategyKind::Multicast];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn several_do_as_one(
        events in prop::collection::vec(events(PLAIN), 1..100),
        shape in (2usize..6, 1usize..5),
    ) {
        live(events, shape, PLAIN)?;
    }

    /// What is learned by an Interest with CanBePrefix for a short name, or with its digest, is one worker's own: such are
    /// left out.
    #[test]
    fn several_learn_as_one(
        events in prop::collection::vec(events(LEARNING), 1..100),
        shape in (2usize..6, 1usize..5),
    ) {
        live(events, shape, LEARNING)?;
    }

    /// Messages that come when they come, between packets: nothing is forgotten, and everybody gets what one of the two
    /// orders would have brought.
    #[test]
    fn late_messages_leave_nothing_behind(
        events in prop::collection::vec((events(PLAIN), 0usize..6), 1..100),
        shape in (2usize..6, 1usize..5),
    ) {
        let mut several = Several::new(&config(), shape.0, shape.1);
        let mut now = Duration::from_secs(1000);
        let mut faces = Vec::new();
        for worker in 0..3 {
            let worker = &mut several.workers[worker % shape.0];
            faces.push(worker.add_face(now, spec(3)));
        }
        let mut sent: Vec<(FaceId, NetPacket)> = Vec::new();
        for (event, deliveries) in events {
            let face = |n: usize| faces[n % faces.len()];
            match event {
                Event::RemoveFace(n) => several.of(face(n)).remove_face(now, face(n)),
                Event::FaceUp(n, up) => several.of(face(n)).set_face_up(now, face(n), up),
                Event::Interest(n, asks) => several.of(face(n)).receive(now, face(n), packet(&asks)),
                Event::Answer { pick, .. } if !sent.is_empty() => {
                    let (face, asked) = sent[pick % sent.len()].clone();
                    let answer = data(&asked.name().to_name().to_string());
                    several.of(face).receive(now, face, answer.with_pit_token(asked.pit_token));
                }
                Event::Route { name: n, face: f, cost } => {
                    let _ = several.workers[0].add_route(&name(NAMES[n]), face(f), cost);
                }
                Event::AddFace { kind, worker } => {
                    let worker = &mut several.workers[worker % shape.0];
                    faces.push(worker.add_face(now, spec(kind)));
                }
                Event::Wait(time) => {
                    now += ms(time);
                    several.on_deadline(now);
                }
                _ => {}
            }
            for _ in 0..deliveries {
                several.deliver(now);
            }
            let mut outputs = Vec::new();
            several.workers.iter_mut().for_each(|worker| take_outputs(worker, &mut outputs));
            sent.extend(outputs.into_iter().filter(|(_, p)| matches!(p.packet, NetKind::Interest(_))));
        }
        while several.deliver(now) {}
        now += Duration::from_secs(200);
        several.on_deadline(now);
        while several.deliver(now) {}
        for worker in &mut several.workers {
            take_outputs(worker, &mut Vec::new());
            prop_assert_eq!(worker.outputs_bytes(), 0);
        }
        let status = several.status();
        prop_assert_eq!((status.pit_entries, status.pit_bytes), (0, 0));
        prop_assert_eq!((status.packets.pending_in, status.packets.pending_out), (0, 0));
        // All have the same routes.
        for uri in NAMES {
            let name: Name = name(uri);
            let routes = |worker: &Forwarder| {
                let mut routes = worker.lookup_route(&name);
                routes.sort();
                routes
            };
            let first = routes(&several.workers[0]);
            if first.iter().any(|(face, _)| *face == FaceId::INTERNAL) {
                continue;
            }
            for worker in &several.workers[1..] {
                prop_assert_eq!(routes(worker), first.clone(), "{}", uri);
            }
        }
    }
}

/// What all workers have sent.
fn sent(several: &mut Several) -> Vec<(FaceId, NetPacket)> {
    let mut sent = Vec::new();
    several
        .workers
        .iter_mut()
        .for_each(|worker| take_outputs(worker, &mut sent));
    sent
}

/// Asks for a dataset on a face and gives its content, of one segment.
fn dataset(several: &mut Several, face: FaceId, name: &str, nonce: u32) -> Option<Vec<u8>> {
    let now = Duration::from_secs(1000);
    sent(several);
    let name = dataset_name(Scope::Localhost, name).to_string();
    let asked = interest_with(&name, |b| {
        b.nonce(nonce).can_be_prefix(true).must_be_fresh(true)
    });
    several.of(face).receive(now, face, asked);
    while several.deliver(now) {}
    let sent = sent(several);
    sent.into_iter()
        .find_map(|(to, packet)| match packet.packet {
            NetKind::Data(data) if to == face => Some(data.content_slice().to_vec()),
            _ => None,
        })
}

#[test]
fn datasets_are_of_all_workers() {
    let now = Duration::from_secs(1000);
    let mut several = Several::new(&config(), 4, 4);
    let asker = several.workers[1].add_face(now, spec(0));
    let producer = several.workers[2].add_face(now, spec(3));
    while several.deliver(now) {}
    several.workers[0]
        .add_route(&name("/n"), producer, 1)
        .unwrap();
    while several.deliver(now) {}
    for n in 0..30 {
        let uri = format!("/n/{n}/seg=0");
        several.of(asker).receive(now, asker, interest(&uri, n));
        while several.deliver(now) {}
        several.of(producer).receive(now, producer, data(&uri));
        while several.deliver(now) {}
    }
    let by_worker = several
        .workers
        .iter()
        .map(|worker| worker.status().cs_entries);
    assert!(
        by_worker.clone().all(|n| n > 0),
        "{:?}",
        by_worker.collect::<Vec<_>>()
    );

    let faces = dataset(&mut several, asker, "faces/list", 1).expect("the list");
    let faces = FaceStatus::decode_all(&faces).unwrap();
    let of = |face: FaceId| {
        faces
            .iter()
            .find(|f| f.face_id == face.0)
            .expect("a face")
            .packets
    };
    assert_eq!((of(asker).in_interests, of(asker).out_data), (31, 30));
    assert_eq!((of(producer).out_interests, of(producer).in_data), (30, 30));

    let info = dataset(&mut several, asker, "cs/info", 2).expect("the store's");
    let info = CsInfo::decode_all(&info).unwrap()[0];
    assert_eq!((info.entries, info.misses), (30, 32));
    assert_eq!(info.capacity, config().cs_capacity_bytes as u64);

    let status = dataset(&mut several, asker, "status/general", 3).expect("the status");
    let status = GeneralStatus::decode(&status).unwrap();
    assert_eq!((status.cs_entries, status.satisfied_interests), (30, 32));
    let part = |part: &str| {
        status
            .memory
            .iter()
            .find(|m| m.name == part)
            .expect("a part")
    };
    let alone = Forwarder::new(config()).memory();
    for (name, bound) in alone.tables() {
        let (sum, bound) = (part(name).capacity_bytes, bound.capacity_bytes as u64);
        assert!(
            sum.abs_diff(bound) <= bound / 100,
            "{name}: {sum} of {bound}"
        );
    }
}

/// Whoever asks for figures without end has so many requests going from worker to worker, and no more.
#[test]
fn requests_that_go_by_all_workers_are_bounded() {
    let now = Duration::from_secs(1000);
    let mut several = Several::new(&config(), 3, 4);
    let asker = several.workers[0].add_face(now, spec(0));
    while several.deliver(now) {}
    for n in 0..100 {
        let uri = dataset_name(Scope::Localhost, "status/general").append_segment(0);
        // Each of another name: none waits for another's answer.
        let uri = format!("{}/{n}", uri.parent());
        several.of(asker).receive(now, asker, interest(&uri, n));
    }
    several.collect();
    assert_eq!(several.under_way.len(), 16);
    while several.deliver(now) {}
    assert!(
        dataset(&mut several, asker, "status/general", 1000).is_some(),
        "they have come back"
    );
}
