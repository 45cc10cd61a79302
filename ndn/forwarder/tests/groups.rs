//! Names of one object learned together: a block is flooded for once at most, and not at all where its replicas were
//! given it by name.

mod common;

use common::*;
use ndn_forwarder::{Config, FaceId, StrategyKind};
use ndn_packet::{NackReason, NetPacket};

const DATANODES: usize = 1000;

/// A rack's router: a writer, and DataNodes that are found without routes.
fn rack() -> (World, FaceId, Vec<FaceId>) {
    rack_with(|c| c.learned_groups = vec![(name("/h"), 4)])
}

fn rack_with(change: impl FnOnce(&mut Config)) -> (World, FaceId, Vec<FaceId>) {
    let mut w = World::new(|c| {
        c.cs_capacity_bytes = 0;
        c.default_strategy = StrategyKind::SelfLearning;
        change(c);
    });
    let writer = w.remote();
    let datanodes = (0..DATANODES).map(|_| w.remote()).collect();
    (w, writer, datanodes)
}

/// The router has heard of these DataNodes: somebody has asked for where they are.
fn introduce(w: &mut World, asker: FaceId, datanodes: &[FaceId]) {
    for (n, datanode) in datanodes.iter().enumerate() {
        let uri = format!("/h/datanodes/host-{n}/50010/32=record");
        w.receive(asker, interest(&uri, 1));
        assert_eq!(faces(&w.receive(*datanode, data(&uri))), [asker]);
    }
}

fn segment(n: usize) -> String {
    format!("/h/blocks/p/7/v=1/seg={n}")
}

/// The writer publishes four segments, which three replicas pull; then some time passes.
fn write(w: &mut World, writer: FaceId, replicas: &[FaceId]) {
    introduce(w, writer, replicas);
    for n in 0..4 {
        for (nonce, replica) in replicas.iter().enumerate() {
            w.receive(*replica, interest(&segment(n), nonce as u32));
        }
        let served = w.receive(writer, data(&segment(n)));
        assert_eq!(faces(&served), replicas);
    }
    w.wait(ms(5000));
}

/// How many Interests were sent for it, when each is answered by `holders` and refused by the others.
fn read(w: &mut World, reader: FaceId, holders: &[FaceId]) -> usize {
    let mut asked = 0;
    let nonce = reader.0 as u32;
    let names = [
        "/h/blocks/p/7/32=metadata".to_owned(),
        "/h/blocks/p/7/v=1/32=manifest/seg=0".to_owned(),
    ];
    for uri in names.into_iter().chain((0..4).map(segment)) {
        let mut waiting = w.receive(reader, interest(&uri, nonce));
        let mut answered = false;
        while let Some((face, packet)) = waiting.pop() {
            if face == reader {
                assert_eq!(brief(&[(face, packet)]), [format!("{face} data {uri}")]);
                answered = true;
                continue;
            }
            asked += 1;
            let answer = if holders.contains(&face) {
                data(&uri)
            } else {
                nack_of(&packet, NackReason::NoRoute)
            };
            waiting.extend(w.receive(face, answer));
        }
        assert!(answered, "{uri}");
    }
    asked
}

#[test]
fn a_block_written_by_name_is_read_without_a_flood() {
    let (mut w, writer, dns) = rack();
    write(&mut w, writer, &dns[..3]);
    let floods = w.fw.status().floods;
    let asked = read(&mut w, dns[500], &dns[..3]);
    assert_eq!(asked, 3 + 5, "the replicas, and then who answered");
    assert_eq!(w.fw.status().floods, floods);
    // Nor when who answered has gone, or the writer.
    w.fw.remove_face(w.now, dns[2]);
    w.fw.remove_face(w.now, writer);
    w.sent();
    let asked = read(&mut w, dns[501], &dns[..3]);
    assert_eq!(asked, 2 + 5, "a reader is no holder");
    assert_eq!(w.fw.status().floods, floods);
    w.wait(ms(5000));
    w.assert_idle();
}

/// Replicas ask for segments at different times: the writer is asked for each, not those who have none yet.
#[test]
fn while_a_block_is_written_its_writer_is_asked() {
    let (mut w, writer, dns) = rack();
    introduce(&mut w, writer, &dns[..3]);
    w.receive(dns[0], interest(&segment(0), 1));
    w.receive(writer, data(&segment(0)));
    for n in 1..50 {
        w.wait(ms(200));
        let asked = w.receive(dns[n % 3], interest(&segment(n), 1));
        assert_eq!(faces(&asked), [writer], "segment {n}");
        w.receive(writer, data(&segment(n)));
    }
    // A writer that paused: those who have nothing more refuse, and it is asked after them.
    w.wait(ms(3000));
    let asked = w.receive(dns[0], interest(&segment(50), 1));
    assert_eq!(faces(&asked), dns[1..3]);
    let refused = |n: usize| nack_of(&asked[n].1, NackReason::NoRoute);
    assert_eq!(faces(&w.receive(dns[1], refused(0))), []);
    assert_eq!(faces(&w.receive(dns[2], refused(1))), [writer]);
    assert_eq!(faces(&w.receive(writer, data(&segment(50)))), [dns[0]]);
    let asked = w.receive(dns[0], interest(&segment(51), 1));
    assert_eq!(faces(&asked), [writer]);
}

/// The router of a host, whose uplink leads to all others.
#[test]
fn what_a_hosts_own_datanode_was_given_is_read_from_it() {
    let (mut w, uplink, local) = rack();
    let (datanode, task) = (local[0], local[1]);
    introduce(&mut w, uplink, &local[..1]);
    w.receive(datanode, interest(&segment(0), 1));
    w.receive(uplink, data(&segment(0)));
    w.wait(ms(2000));
    let asked = w.receive(task, interest("/h/blocks/p/7/32=metadata", 1));
    assert_eq!(faces(&asked), [datanode], "not a packet on the link");
}

#[test]
fn any_other_block_is_flooded_for_once() {
    let (mut w, _, dns) = rack();
    let asked = read(&mut w, dns[0], &dns[1..2]);
    assert_eq!(asked, DATANODES + 5);
    assert_eq!(w.fw.status().floods, 1);
}

/// Metadata, digests and data lie under three prefixes.
#[test]
fn without_groups_a_block_is_flooded_for_three_times() {
    let (mut w, _, dns) = rack_with(|_| {});
    let asked = read(&mut w, dns[0], &dns[1..2]);
    assert_eq!(asked, 3 * DATANODES + 3);
    let (mut w, writer, dns) = rack_with(|_| {});
    write(&mut w, writer, &dns[..3]);
    let asked = read(&mut w, dns[500], &dns[..3]);
    assert_eq!(asked, 3 * DATANODES + 3, "the writer, and then all others");
}

#[test]
fn where_replicas_refuse_all_others_are_asked() {
    let (mut w, writer, dns) = rack();
    write(&mut w, writer, &dns[..3]);
    w.fw.remove_face(w.now, writer);
    w.sent();
    // The balancer has moved it.
    let asked = read(&mut w, dns[500], &dns[900..901]);
    assert_eq!(asked, 3 + (DATANODES - 1 - 3) + 5);
    assert_eq!(
        read(&mut w, dns[501], &dns[900..901]),
        6,
        "it is known there"
    );
}

#[test]
fn where_replicas_stay_silent_all_others_are_asked() {
    let (mut w, writer, dns) = rack();
    write(&mut w, writer, &dns[..3]);
    w.fw.remove_face(w.now, writer);
    w.sent();
    let uri = "/h/blocks/p/7/32=metadata";
    assert_eq!(faces(&w.receive(dns[500], interest(uri, 1))), dns[..3]);
    w.wait(ms(11));
    let again = w.receive(dns[500], interest(uri, 2));
    assert_eq!(again.len(), DATANODES - 1, "at the first retransmission");
    w.wait(ms(5000));
    w.assert_idle();
    let later = w.receive(dns[500], interest(uri, 3));
    assert_eq!(
        later.len(),
        DATANODES - 1,
        "who was silent is not preferred any more"
    );
}

#[test]
fn a_reader_who_was_given_a_false_packet_is_led_past_the_replicas() {
    let (mut w, writer, dns) = rack_with(|c| {
        c.learned_groups = vec![(name("/h"), 4)];
        c.cs_capacity_bytes = 1 << 20;
    });
    write(&mut w, writer, &dns[..3]);
    w.fw.remove_face(w.now, writer);
    w.sent();
    let asked = w.receive(dns[500], interest(&segment(9), 1));
    assert_eq!(faces(&asked), dns[..3]);
    w.receive(dns[0], data_fresh(&segment(9), 60_000));
    let rejecting = interest_with(&segment(9), |b| b.nonce(2).must_be_fresh(true));
    let sent = w.receive(
        dns[500],
        NetPacket {
            rejected: true,
            ..rejecting
        },
    );
    assert!(!faces(&sent).contains(&dns[0]));
    assert_eq!(sent.len(), DATANODES - 2);
}
