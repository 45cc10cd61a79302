//! Packets as they came: in, out, removed, moved.

mod common;

use common::{SimDisk, ask, name, noise, open};
use ndn_packet::{ComponentBuf, Data, Name, SigningKey};
use ndn_repo::{Repo, RepoError, SeriesInfo};
use std::path::Path;

/// A foreign packet, signed by a key whose signatures differ in length.
fn foreign(name: &Name, len: usize) -> Data {
    let wire = Data::builder(name)
        .final_block_id(ComponentBuf::segment(9))
        .content(&noise(len, len as u64 + 1))
        .sign(&SigningKey::hmac_sha256(b"a stranger"));
    Data::parse(wire).expect("a packet")
}

fn insert(repo: &Repo, prefix: &Name, segments: std::ops::Range<u64>, len: usize) -> Vec<Data> {
    let mut insertion = repo.insert(prefix, true);
    let packets: Vec<Data> = segments
        .map(|n| foreign(&prefix.append_segment(n), len + n as usize % 7))
        .collect();
    for packet in &packets {
        insertion.push(packet).expect("taken");
    }
    assert_eq!(insertion.commit().expect("committed"), packets.len() as u64);
    packets
}

fn series(repo: &Repo) -> Vec<SeriesInfo> {
    let mut all = Vec::new();
    repo.walk_packets(&Name::new(), &mut |one| {
        all.push(one);
        true
    })
    .expect("read");
    all
}

fn whole(repo: &Repo, packets: &[Data]) {
    for packet in packets {
        let found = ask(repo, &packet.name().to_name(), false).expect("read");
        assert_eq!(found.as_ref(), Some(packet));
    }
}

#[test]
fn packets_come_out_bit_for_bit() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let prefix = name("/foreign/v=3");
    let packets = insert(&repo, &prefix, 0..300, 100);
    let single = foreign(&name("/foreign/alone"), 50);
    let mut insertion = repo.insert(&name("/foreign/alone"), false);
    insertion.push(&single).expect("taken");
    insertion.commit().expect("committed");
    for round in 0..2 {
        let repo = if round == 0 {
            repo.clone()
        } else {
            open_again(&disk, round)
        };
        whole(&repo, &packets);
        whole(&repo, std::slice::from_ref(&single));
        assert_eq!(
            ask(&repo, &prefix.append_segment(300), false).expect("read"),
            None
        );
        assert_eq!(
            ask(&repo, &packets[5].full_name(), false).expect("read"),
            Some(packets[5].clone())
        );
        assert!(ask(&repo, &name("/foreign"), true).expect("read").is_some());
        assert_eq!(ask(&repo, &name("/foreign"), false).expect("read"), None);
        assert_eq!(
            ask(&repo, &prefix, true).expect("read"),
            Some(packets[0].clone())
        );
        let status = repo.status().expect("status");
        assert_eq!((status.series, status.packets), (2, 301));
        let report = repo.verify(&Name::new(), &mut |_| true).expect("read");
        assert_eq!((report.packets, report.damaged.len()), (301, 0));
    }
}

/// The disk as it is found when the process was killed and nothing else: all that was written is there.
fn open_again(disk: &SimDisk, _round: u32) -> Repo {
    use ndn_repo::disk::Disk;
    disk.sync_all().expect("synced");
    open(&disk.after_crash(1)).expect("a repository")
}

#[test]
fn an_insertion_is_whole_or_nothing() {
    let repo = open(&SimDisk::default()).expect("a repository");
    let prefix = name("/f");
    let mut insertion = repo.insert(&prefix, true);
    let first = foreign(&prefix.append_segment(4), 10);
    insertion.push(&first).expect("taken");
    assert!(
        matches!(insertion.push(&first), Err(RepoError::Setting(_))),
        "twice"
    );
    let stranger = foreign(&name("/g/seg=9"), 10);
    assert!(matches!(
        insertion.push(&stranger),
        Err(RepoError::Setting(_))
    ));
    let large = foreign(&prefix.append_segment(9), 70_000);
    assert!(
        matches!(insertion.push(&large), Err(RepoError::Setting(_))),
        "it could not be read again"
    );
    assert_eq!(
        ask(&repo, &prefix.append_segment(4), false).expect("read"),
        None
    );
    drop(insertion);
    assert_eq!(series(&repo), []);
    assert_eq!(repo.insert(&prefix, true).commit().expect("nothing"), 0);
}

#[test]
fn what_is_inserted_again_goes_before_and_what_is_removed_is_gone() {
    let repo = open(&SimDisk::default()).expect("a repository");
    let prefix = name("/f");
    let old = insert(&repo, &prefix, 0..10, 10);
    let new = insert(&repo, &prefix, 3..5, 20);
    whole(&repo, &old[..3]);
    whole(&repo, &new);
    whole(&repo, &old[5..]);
    assert_eq!(
        repo.remove_packets(&prefix, Some((2, 3))).expect("removed"),
        2
    );
    assert_eq!(
        repo.remove_packets(&prefix, Some((2, 3))).expect("removed"),
        0
    );
    assert_eq!(
        repo.remove_packets(&prefix.append_segment(9), None)
            .expect("removed"),
        1
    );
    for (n, here) in [
        (1, true),
        (2, false),
        (3, false),
        (4, true),
        (8, true),
        (9, false),
    ] {
        let found = ask(&repo, &prefix.append_segment(n), false).expect("read");
        assert_eq!(found.is_some(), here, "{n}");
    }
    assert_eq!(
        repo.remove_packets(&prefix, Some((0, u64::MAX)))
            .expect("removed"),
        7
    );
    assert_eq!(series(&repo), []);
    assert_eq!(
        repo.remove_packets(&name("/none"), None).expect("removed"),
        0
    );
}

#[test]
fn removed_packets_give_their_room_back() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let doomed = insert(&repo, &name("/doomed"), 0..2000, 1000);
    let kept = insert(&repo, &name("/kept"), 0..300, 1000);
    let more = insert(&repo, &name("/doomed"), 2000..4000, 1000);
    drop((doomed, more));
    let full = repo.status().expect("status").log_bytes;
    assert!(full > 4_000_000);
    repo.remove_packets(&name("/doomed"), Some((0, u64::MAX)))
        .expect("removed");
    repo.compact().expect("compacted");
    let left = repo.status().expect("status").log_bytes;
    assert!(left < 800_000, "{left} of {full}");
    whole(&repo, &kept);
    drop(repo);
    let repo = open(&disk).expect("a repository");
    whole(&repo, &kept);
    assert_eq!(
        repo.verify(&Name::new(), &mut |_| true)
            .expect("read")
            .packets,
        300
    );
}

#[test]
fn a_damaged_packet_is_found_not_served_and_not_moved() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let packets = insert(&repo, &name("/f"), 0..10, 100);
    insert(&repo, &name("/g"), 0..100, 100);
    drop(repo);
    let log = Path::new("packets/00000000.log");
    for bit in (0..16_000).step_by(331) {
        disk.flip(log, bit);
        let repo = open(&disk).expect("a repository");
        for packet in &packets {
            match ask(&repo, &packet.name().to_name(), false) {
                Ok(Some(found)) => assert_eq!(&found, packet, "bit {bit}"),
                Err(RepoError::Damaged { .. }) => {}
                other => panic!("bit {bit}: {other:?}"),
            }
        }
        drop(repo);
        disk.flip(log, bit);
    }
    disk.flip(log, 500);
    let repo = open(&disk).expect("a repository");
    repo.remove_packets(&name("/g"), Some((0, 99)))
        .expect("removed");
    repo.compact().expect("compacted");
    let report = repo.verify(&Name::new(), &mut |_| true).expect("read");
    assert_eq!((report.packets, report.damaged.len()), (9, 1));
    whole(&repo, &packets[1..]);
}

/// No segment comes after it, and extents tell the one after their last.
#[test]
fn the_greatest_segment_is_refused_and_all_else_goes_on() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let greatest = foreign(&name("/f").append_segment(u64::MAX), 100);
    let mut insertion = repo.insert(&name("/f"), true);
    assert!(matches!(
        insertion.push(&greatest),
        Err(RepoError::Setting(_))
    ));
    drop(insertion);
    let last = insert(&repo, &name("/f"), u64::MAX - 1..u64::MAX, 100);
    let first = insert(&repo, &name("/f"), 0..3, 100);
    drop(repo);
    let repo = open(&disk).expect("a repository");
    whole(&repo, &first);
    whole(&repo, &last);
    assert_eq!(series(&repo).iter().map(|s| s.packets).sum::<u64>(), 4);
    repo.compact().expect("compacted");
}

#[test]
fn insertions_of_many_at_once_share_the_log() {
    let repo = open(&SimDisk::default()).expect("a repository");
    std::thread::scope(|scope| {
        for user in 0..8 {
            let repo = &repo;
            scope.spawn(move || {
                for round in 0..5 {
                    insert(repo, &name(&format!("/user/{user}/{round}")), 0..50, 200);
                }
            });
        }
    });
    let all = series(&repo);
    assert_eq!(
        (all.len(), all.iter().map(|s| s.packets).sum::<u64>()),
        (40, 2000)
    );
    let report = repo.verify(&Name::new(), &mut |_| true).expect("read");
    assert_eq!((report.packets, report.damaged.len()), (2000, 0));
}

#[test]
fn a_full_disk_refuses_packets_and_goes_on_reading() {
    let disk = SimDisk::default();
    let repo = open(&disk).expect("a repository");
    let packets = insert(&repo, &name("/f"), 0..10, 100);
    disk.set_capacity(disk.used() + 200_000);
    let mut insertion = repo.insert(&name("/big"), true);
    let mut failed = None;
    for n in 0..3000 {
        let packet = foreign(&name("/big").append_segment(n), 1000);
        if let Err(error) = insertion.push(&packet) {
            failed = Some(error);
            break;
        }
    }
    let error = match failed {
        Some(error) => error,
        None => insertion.commit().expect_err("there is no room"),
    };
    assert!(error.is_disk_full(), "{error}");
    whole(&repo, &packets);
    assert_eq!(ask(&repo, &name("/big/seg=0"), false).expect("read"), None);
    disk.set_capacity(u64::MAX);
    insert(&repo, &name("/big"), 0..10, 1000);
}

#[test]
fn what_is_being_inserted_outlives_a_compaction() {
    for size in [100, 40_000] {
        let disk = SimDisk::default();
        let repo = open(&disk).expect("a repository");
        let prefix = name("/f/v=1");
        let packets: Vec<Data> = (0..40)
            .map(|n| foreign(&prefix.append_segment(n), size))
            .collect();
        let mut insertion = repo.insert(&prefix, true);
        for packet in &packets[..30] {
            insertion.push(packet).expect("taken");
        }
        repo.compact().expect("compacted");
        for packet in &packets[30..] {
            insertion.push(packet).expect("taken");
        }
        insertion.commit().expect("committed");
        let repo = open_again(&disk, 1);
        whole(&repo, &packets);
    }
}
