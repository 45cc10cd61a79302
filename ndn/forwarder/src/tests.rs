//! What only the inside can see: that the memory account is right, and that a face goes without a walk of the tables.

use crate::{Config, FaceId, FaceSpec, Forwarder, MemoryUse, Output, StrategyKind};
use ndn_packet::{Data, Interest, NackReason, Name, NetKind, NetPacket, PitToken, SigningKey};
use proptest::prelude::*;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn name(n: usize, len: usize) -> Name {
    format!("/{}/{n}/{}", n % 3, "x".repeat(len + 1))
        .parse()
        .expect("a name")
}

fn interest(name: &Name, nonce: u32, lifetime_ms: u32) -> NetPacket {
    let wire = Interest::builder(name)
        .nonce(nonce)
        .can_be_prefix(nonce.is_multiple_of(3))
        .lifetime(MS * lifetime_ms)
        .build();
    NetPacket::interest(Interest::parse(wire).expect("well formed"))
}

fn data(name: &Name, len: usize) -> NetPacket {
    let wire = Data::builder(name)
        .content(&vec![1; len])
        .sign(&SigningKey::DigestSha256);
    NetPacket::data(Data::parse(wire).expect("well formed"))
}

fn remote() -> FaceSpec {
    FaceSpec::remote("udp4://192.0.2.1:6363", "udp4://192.0.2.2:6363")
}

#[derive(Debug, Clone)]
enum Event {
    AddFace,
    RemoveFace(usize),
    FaceUp(usize, bool),
    Interest {
        face: usize,
        name: usize,
        len: usize,
        nonce: u32,
        lifetime_ms: u32,
    },
    Answer(usize, usize),
    Nack(usize),
    Route(usize, usize),
    Unroute(usize, usize),
    Strategy(usize, usize),
    Wait(u32),
    /// The driver takes what is to be sent.
    Drain,
}

fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => Just(Event::AddFace),
        1 => any::<usize>().prop_map(Event::RemoveFace),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(face, up)| Event::FaceUp(face, up)),
        20 => (any::<usize>(), 0usize..12, 0usize..1500, any::<u32>(), 1u32..4000).prop_map(
            |(face, name, len, nonce, lifetime_ms)| {
                // Few lengths, so that several faces ask for one name.
                let len = if nonce % 2 == 0 { 0 } else { len };
                Event::Interest { face, name, len, nonce, lifetime_ms }
            }
        ),
        5 => (any::<usize>(), 0usize..6000).prop_map(|(pick, len)| Event::Answer(pick, len)),
        3 => any::<usize>().prop_map(Event::Nack),
        3 => (0usize..12, any::<usize>()).prop_map(|(name, face)| Event::Route(name, face)),
        1 => (0usize..12, any::<usize>()).prop_map(|(name, face)| Event::Unroute(name, face)),
        1 => (0usize..12, 0..StrategyKind::ALL.len()).prop_map(|(n, kind)| Event::Strategy(n, kind)),
        2 => (0u32..2000).prop_map(Event::Wait),
        3 => Just(Event::Drain),
    ]
}

struct Watched {
    fw: Forwarder,
    now: Duration,
    faces: Vec<FaceId>,
    sent: Vec<(FaceId, NetPacket)>,
}

impl Watched {
    fn new(strategy: usize) -> Self {
        let mut watched = Watched {
            fw: Forwarder::new(Config {
                cs_capacity_bytes: 20_000,
                pit_max_bytes: 60_000,
                learned_max_bytes: 2_000,
                outputs_max_bytes: 20_000,
                dead_nonce_max_entries: 100,
                default_strategy: StrategyKind::ALL[strategy],
                ..Config::default()
            }),
            now: Duration::from_secs(1),
            faces: Vec::new(),
            sent: Vec::new(),
        };
        (0..4).for_each(|_| watched.apply(Event::AddFace));
        watched
    }

    fn face(&self, n: usize) -> FaceId {
        self.faces[n % self.faces.len()]
    }

    fn pick(&self, n: usize) -> Option<(FaceId, NetPacket)> {
        let len = self.sent.len();
        (len > 0).then(|| self.sent[n % len].clone())
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::AddFace => self.faces.push(self.fw.add_face(self.now, remote())),
            Event::RemoveFace(n) => self.fw.remove_face(self.now, self.face(n)),
            Event::FaceUp(n, up) => self.fw.set_face_up(self.now, self.face(n), up),
            Event::Interest {
                face,
                name: n,
                len,
                nonce,
                lifetime_ms,
            } => {
                let token = PitToken::new(&nonce.to_be_bytes()).ok();
                let mut packet = interest(&name(n, len), nonce, lifetime_ms).with_pit_token(token);
                packet.rejected = nonce.is_multiple_of(5);
                self.fw.receive(self.now, self.face(face), packet);
            }
            Event::Answer(n, len) => {
                if let Some((face, asked)) = self.pick(n) {
                    self.fw
                        .receive(self.now, face, data(&asked.name().to_name(), len));
                }
            }
            Event::Nack(n) => {
                if let Some((face, asked)) = self.pick(n)
                    && let NetKind::Interest(interest) = asked.packet
                {
                    let nack = NetPacket::nack(NackReason::NoRoute, interest);
                    self.fw
                        .receive(self.now, face, nack.with_pit_token(asked.pit_token));
                }
            }
            Event::Route(n, face) => {
                let _ = self.fw.add_route(&name(n, 0).prefix(2), self.face(face), 1);
            }
            Event::Unroute(n, face) => {
                self.fw.remove_route(&name(n, 0).prefix(2), self.face(face));
            }
            Event::Strategy(n, kind) => {
                self.fw
                    .set_strategy(&name(n, 0).prefix(2), StrategyKind::ALL[kind]);
            }
            Event::Wait(ms) => {
                self.now += MS * ms;
                self.fw.on_deadline(self.now);
            }
            Event::Drain => {
                while let Some(output) = self.fw.poll_output() {
                    if let Output::Send { face, packet } = output {
                        self.sent.push((face, packet));
                    }
                }
            }
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let (pit, memory) = (&self.fw.state.pit, self.fw.memory());
        prop_assert_eq!((pit.bytes(), pit.memory()), pit.recount());
        prop_assert!(pit.charges_are_right());
        prop_assert_eq!(self.fw.rib.memory(), self.fw.rib.recount());
        prop_assert_eq!(memory.content_store.bytes, self.fw.cs.recount());
        prop_assert_eq!(memory.outputs.bytes, self.fw.state.outputs.recount());
        for (
            table,
            MemoryUse {
                bytes,
                capacity_bytes,
            },
        ) in memory.tables()
        {
            prop_assert!(
                bytes <= capacity_bytes,
                "{}: {} of {}",
                table,
                bytes,
                capacity_bytes
            );
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_memory_account_is_a_count_of_what_is_held_and_within_its_bounds(
        events in prop::collection::vec(events(), 1..250),
        strategy in 0..StrategyKind::ALL.len(),
    ) {
        let mut watched = Watched::new(strategy);
        for event in events {
            watched.apply(event);
            watched.check()?;
        }
    }
}

/// Entries looked at when a face goes that has 3 pending Interests each way beside `others` of other faces.
fn steps_to_remove(others: u32) -> usize {
    let mut fw = Forwarder::new(Config {
        pit_max_bytes: 1 << 30,
        pit_max_per_face: 1 << 20,
        cs_capacity_bytes: 0,
        ..Config::default()
    });
    let now = Duration::from_secs(1);
    let [down, up, leaving] = [(); 3].map(|()| fw.add_face(now, remote()));
    let prefix = |uri: &str| uri.parse::<Name>().expect("a name");
    fw.add_route(&prefix("/"), up, 1).expect("a route");
    fw.add_route(&prefix("/own"), leaving, 0).expect("a route");
    for n in 0..others {
        let name = prefix("/others").append_segment(n.into());
        fw.receive(now, down, interest(&name, 3 * n + 1, 4000));
        while fw.poll_output().is_some() {}
    }
    for n in 0..3u32 {
        let own = prefix("/own").append_segment(n.into());
        let asked = prefix("/asked").append_segment(n.into());
        fw.receive(now, down, interest(&own, n, 4000));
        fw.receive(now, leaving, interest(&asked, n, 4000));
    }
    assert_eq!(
        fw.counters(leaving).map(|c| (c.pending_in, c.pending_out)),
        Some((3, 3))
    );
    fw.remove_face(now, leaving);
    assert_eq!(
        fw.status().pit_entries,
        others as usize + 3,
        "what it asked is gone"
    );
    let sent: Vec<Output> = std::iter::from_fn(|| fw.poll_output()).collect();
    let again = sent
        .iter()
        .filter(|o| matches!(o, Output::Send { face, .. } if *face == up));
    assert_eq!(
        again.count(),
        3 + 3,
        "asked of {up} by the leaving face, and in its stead"
    );
    fw.state.pit.steps
}

#[test]
fn a_face_that_goes_costs_its_own_entries_alone() {
    assert_eq!(steps_to_remove(0), 6);
    assert_eq!(steps_to_remove(100_000), 6);
}

/// What is kept of earlier Interests is looked through a few times a second at most, not for each packet of a flood.
#[test]
fn a_flood_to_many_faces_costs_few_steps_for_each_packet() {
    let mut fw = Forwarder::new(Config {
        pit_max_bytes: 4 << 20,
        cs_capacity_bytes: 0,
        default_strategy: StrategyKind::SelfLearning,
        ..Config::default()
    });
    let mut now = Duration::from_secs(1);
    let floods: Vec<FaceId> = (0..40).map(|_| fw.add_face(now, remote())).collect();
    let prefix: Name = "/flood".parse().expect("a name");
    let mut offered = 0;
    for _ in 0..500 {
        for &face in &floods {
            for _ in 0..5 {
                offered += 1;
                let name = prefix.append_segment(offered.into());
                fw.receive(now, face, interest(&name, offered, 4000));
                while fw.poll_output().is_some() {}
            }
        }
        now += 20 * MS;
        fw.on_deadline(now);
    }
    let refused = fw.status().packets.dropped_pit_full;
    assert!(refused > 10_000, "{refused} of {offered} were refused");
    let steps = fw.state.pit.steps;
    assert!(steps <= 8 * offered as usize, "{steps} for {offered}");
}
