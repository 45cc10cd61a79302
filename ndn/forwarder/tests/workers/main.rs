//! Several workers beside one: whatever happens, they send the same to the same faces, and count the same.

#[path = "../common/mod.rs"]
mod common;
mod events;
mod requests;
mod several;
mod twins;

use std::time::Duration;

use common::*;
use events::{Event, NAMES, events};
use ndn_forwarder::{FaceId, Forwarder, StrategyKind};
use ndn_packet::{Name, NetKind, NetPacket};
use proptest::prelude::*;
use several::{Several, config, spec, take_outputs};
use twins::{Twins, packet};

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
