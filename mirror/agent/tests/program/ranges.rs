//! The bitmap of what D_j holds, against a set of octets; by whatever ACKs, wherever in the space of numbers.

use std::{cell::RefCell, collections::BTreeSet};

use proptest::{prelude::*, test_runner::TestRunner};
use trunkline_mirror::layout::{UNIT, WORDS};

use crate::{
    bench::{OK, STOLEN},
    bench_or_skip,
    sender::{Sender, sender},
    sockets::Numbers,
};

/// Octets of this many are one step of the model.
const GRAIN: u32 = 64;

/// An ACK of D_j: how far it goes on, and blocks beyond it as gap and length, all in grains.
#[derive(Clone, Debug)]
struct Told {
    on: u32,
    blocks: Vec<(u32, u32)>,
}

fn told() -> impl Strategy<Value = Vec<Told>> {
    let size = || prop_oneof![4 => 1u32..40, 1 => 40u32..3_000];
    let blocks = prop::collection::vec((size(), size()), 0..=3);
    prop::collection::vec(
        (
            prop_oneof![2 => Just(0u32), 1 => 0u32..60, 1 => 0u32..4_000],
            blocks,
        ),
        1..8,
    )
    .prop_map(|acks| {
        acks.into_iter()
            .map(|(on, blocks)| Told { on, blocks })
            .collect()
    })
}

/// Whether the unit of sequence space that holds the number is marked.
fn marked(held: &[u64; WORDS], number: u32) -> bool {
    let unit = (number / UNIT) as usize % (WORDS * 64);
    held[unit / 64] >> (unit % 64) & 1 == 1
}

fn check(s: &mut Sender, acks: &[Told]) -> Result<(), TestCaseError> {
    let mut acked = 0;
    let mut held: BTreeSet<u32> = BTreeSet::new();
    for told in acks {
        acked += told.on;
        // D_j acknowledges as far as it can.
        while held.contains(&acked) {
            acked += 1;
        }
        let (mut at, mut blocks) = (acked, Vec::new());
        for (gap, length) in &told.blocks {
            at += gap;
            held.extend(at..at + length);
            // A block is told as large as it has become.
            let (mut left, mut right) = (at, at + length);
            while left > acked + 1 && held.contains(&(left - 1)) {
                left -= 1;
            }
            while held.contains(&right) {
                right += 1;
            }
            held.extend(left..right);
            blocks.push((left * GRAIN, right * GRAIN));
            at = right;
        }
        held.retain(|grain| *grain >= acked);
        s.hear(s.sack(acked * GRAIN, &blocks));
        let flow = s.flow();
        let heard = held.last().map_or(acked, |last| last + 1).max(acked);
        prop_assert_eq!(flow.acked, s.number(acked * GRAIN));
        prop_assert_eq!(flow.heard, s.number(heard * GRAIN));
        // Every unit from the ACK's to the last whole one: marked when, and only when, all of it was told as held.
        let mut number = flow.acked / UNIT * UNIT;
        while flow.heard.wrapping_sub(number) >= UNIT && flow.heard.wrapping_sub(number) < 1 << 31 {
            let first = number.wrapping_sub(s.number(0)) as i32;
            let whole = (first..first + UNIT as i32)
                .step_by(GRAIN as usize)
                .all(|octet| octet >= 0 && held.contains(&(octet as u32 / GRAIN)));
            prop_assert_eq!(marked(&flow.held, number), whole, "unit at {}", first);
            number = number.wrapping_add(UNIT);
        }
    }
    Ok(())
}

#[test]
fn a_unit_is_marked_when_all_of_it_is_held() {
    let bench = RefCell::new(Some(bench_or_skip!()));
    let starts = prop_oneof![
        any::<u32>(),
        (0u32..2_000_000).prop_map(|back| 0u32.wrapping_sub(back))
    ];
    let strategy = (starts.prop_map(|start| start / GRAIN * GRAIN), told());
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 100,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner
        .run(&strategy, |(snd, acks)| {
            // One bench for all: the flow is announced anew, and its socket closed, with each case.
            let mut s = sender(
                bench.take().expect("a bench"),
                false,
                Numbers {
                    snd,
                    ..Numbers::default()
                },
            );
            let outcome = check(&mut s, &acks);
            bench.replace(Some(s.bench));
            outcome
        })
        .expect("bits follow the model");
}

/// What the bits are for, wherever the numbers wrap: a segment is virtual by its own merits when D_j holds all of it,
/// and real when D_j has told of a hole in it.
#[test]
fn segments_go_where_there_is_a_hole() {
    let bench = RefCell::new(Some(bench_or_skip!()));
    let strategy = (
        0u32..40_000,
        prop::collection::vec((1u32..20, 1u32..20), 1..=3),
    );
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 100,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner
        .run(&strategy, |(back, runs)| {
            let snd = 0u32.wrapping_sub(back) / UNIT * UNIT;
            let mut s = sender(
                bench.take().expect("a bench"),
                false,
                Numbers {
                    snd,
                    ..Numbers::default()
                },
            );
            let outcome = check_runs(&mut s, &runs);
            bench.replace(Some(s.bench));
            outcome
        })
        .expect("verdicts follow the runs");
}

fn check_runs(s: &mut Sender, runs: &[(u32, u32)]) -> Result<(), TestCaseError> {
    let (mut at, mut blocks, mut wanted) = (0, Vec::new(), Vec::new());
    for (gap, length) in runs {
        wanted.extend((at..at + gap).map(|unit| (unit, OK)));
        wanted.extend((at + gap..at + gap + length).map(|unit| (unit, STOLEN)));
        blocks.push(((at + gap) * UNIT, (at + gap + length) * UNIT));
        at += gap + length;
    }
    s.hear(s.sack(0, &blocks));
    for (unit, verdict) in wanted {
        prop_assert_eq!(
            s.send(unit * UNIT, UNIT as usize).verdict,
            verdict,
            "unit {}",
            unit
        );
    }
    prop_assert_eq!(s.send(at * UNIT, 100).verdict, OK, "beyond, unconfirmed");
    Ok(())
}
