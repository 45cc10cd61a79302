//! Files of a cluster by name, against a NameNode of canned answers and a network that the test plays.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Bench, Hdfs, Server, entry, exception, listing, name, parameter};
use ndn_packet::{BatchSignature, Interest, NackReason, NetKind};
use trunkline_store::Signatures;

const REFUSED: Option<Result<(), NackReason>> = Some(Err(NackReason::NoRoute));

#[test]
fn a_file_is_cut_from_its_blocks_and_signed() {
    let file = Hdfs::of(&[2048, 2048, 700]);
    let mut bench = Bench::with(&file);
    let told = bench.told("/cluster/f");
    assert_eq!(
        (told.size, told.last, told.mode),
        (Some(4796), Some(4), Some(0o100_640))
    );
    assert_eq!(told.mtime_ns, Some(1_700_000_000_123_000_000));
    assert_eq!(bench.read(&told, true), file.bytes());
    // Each block segment was asked for once, though two or three segments of the file have bytes of it.
    assert_eq!(bench.interests.len(), 4 + 4 + 2);
    // The same packets each time, by name, by prefix, and as that version's metadata.
    let first = bench
        .segment(&told.name, 0)
        .expect("an answer")
        .expect("Data");
    for prefix in [name("/cluster/f"), told.name.clone()] {
        let wire = Interest::builder(&prefix)
            .can_be_prefix(true)
            .nonce(3)
            .build();
        let found = bench.ask(wire).expect("an answer").expect("Data");
        assert_eq!(found.wire(), first.wire());
    }
    let version = told
        .name
        .last()
        .and_then(|c| c.as_version())
        .expect("a version");
    let exact = name("/cluster/f/32=metadata").append_version(version);
    assert!(bench.segment(&exact, 0).expect("an answer").is_ok());
    assert_eq!(
        bench.segment(&told.name, 5).map(|a| a.map(drop)),
        REFUSED,
        "beyond the last"
    );
}

#[test]
fn an_empty_file_is_one_empty_segment() {
    let mut bench = Bench::with(&Hdfs::of(&[]));
    let told = bench.told("/cluster/f");
    assert_eq!(bench.read(&told, true), b"");
}

#[test]
fn a_file_of_many_blocks_is_asked_about_page_by_page() {
    let file = Hdfs::of(&[3000; 700]);
    let mut bench = Bench::with(&file);
    let told = bench.told("/cluster/f");
    assert_eq!(told.size, Some(2_100_000));
    let last = bench
        .segment(&told.name, 2099)
        .expect("an answer")
        .expect("Data");
    assert_eq!(last.content_slice(), &file.bytes()[2_099_000..]);
}

#[test]
fn names_become_paths_and_those_that_are_none_are_not_asked_about() {
    let server = Server::start(Box::new(|_| (404, exception("FileNotFoundException"))));
    let mut bench = Bench::new(vec![server.address.clone()]);
    for (asked, path) in [
        ("/cluster/a%20b%25/%C3%BC", Some("/a%20b%25/%C3%BC")),
        ("/cluster/......", Some("/...")),
        ("/cluster", Some("")),
        ("/cluster/x%2Fy", None),
        ("/cluster/x%3Ay", None),
        ("/cluster/...", None),
        ("/cluster/....", None),
        ("/cluster/a/.snapshot/s/f", None),
        ("/cluster/.snapshot/32=ls", None),
        ("/cluster/%FF", None),
        ("/cluster/a/32=versions", None),
        ("/cluster/a/v=5", None),
    ] {
        server.asked.lock().expect("the log").clear();
        assert_eq!(
            bench.metadata(&name(asked)).map(|a| a.map(drop)),
            REFUSED,
            "{asked}"
        );
        let log = server.asked.lock().expect("the log").clone();
        let right =
            path.map(|p| format!("/webhdfs/v1/published{p}?op=GETFILESTATUS&user.name=a%20user"));
        assert_eq!(log, Vec::from_iter(right), "{asked}");
    }
    // HDFS has no path as long as that.
    let long = "a".repeat(7990);
    server.asked.lock().expect("the log").clear();
    for (name, asked) in [(&long[1..], 1), (&long, 1)] {
        let wire = Interest::builder(&common::name(&format!("/cluster/{name}")))
            .can_be_prefix(true)
            .nonce(5)
            .build();
        assert_eq!(bench.ask(wire).map(|a| a.map(drop)), REFUSED);
        assert_eq!(server.asked.lock().expect("the log").len(), asked);
    }
}

#[test]
fn a_path_that_is_not_told_of_is_not_the_silence_of_the_namenode() {
    let file = Hdfs {
        mtime: -5,
        id: -1,
        ..Hdfs::of(&[600])
    };
    let told = file.clone();
    let server = Server::start(Box::new(move |query| match query.split('?').next() {
        Some("/webhdfs/v1/published/f") => told.answer(query),
        Some("/webhdfs/v1/published/large") => (200, " ".repeat((8 << 20) + 1)),
        Some("/webhdfs/v1/published/garbled") => (200, String::from("{}")),
        Some("/webhdfs/v1/published/refused") => (400, String::from("<html>")),
        _ => (403, exception("SnapshotException")),
    }));
    let mut bench = Bench::new(vec![server.address]);
    bench.have(&file);
    for other in ["large", "garbled", "refused", "strange", "strange/32=ls"] {
        let asked = name(&format!("/cluster/{other}"));
        assert_eq!(bench.metadata(&asked).map(|a| a.map(drop)), REFUSED);
        let found = bench.metadata(&name("/cluster/f")).expect("an answer");
        let found = found.expect("the NameNode is asked on");
        assert_eq!(found.mtime_ns, Some(0), "nothing is before the epoch");
        assert_eq!(bench.read(&found, true), file.bytes());
        bench.skip(Duration::from_millis(1100));
    }
}

#[test]
fn old_versions_outlive_the_appending() {
    let file = Hdfs::of(&[600]);
    let (mut bench, now) = changing(&file);
    let object = name("/cluster/f");
    let old = bench.told("/cluster/f");
    *now.lock().expect("the file") = Some(Hdfs {
        is_open: true,
        ..file.clone()
    });
    bench.skip(Duration::from_secs(2));
    assert_eq!(bench.metadata(&object).map(|a| a.map(drop)), REFUSED);
    assert_eq!(bench.read(&old, true), file.bytes());
}

#[test]
fn folders_are_listed_page_by_page() {
    let pages = [
        listing(&[entry("a", "FILE"), entry("b%", "DIRECTORY")], 1),
        listing(&[entry("ü", "FILE")], 0),
    ];
    let server = Server::start(Box::new(move |query| {
        assert_eq!(parameter(query, "op"), Some("LISTSTATUS_BATCH"));
        let page = match (query.split('?').next(), parameter(query, "startAfter")) {
            (Some("/webhdfs/v1/published/d"), None) => &pages[0],
            (Some("/webhdfs/v1/published/d"), Some("b%25")) => &pages[1],
            (Some("/webhdfs/v1/published/f"), None) => &listing(&[entry("", "FILE")], 0),
            _ => return (404, exception("FileNotFoundException")),
        };
        (200, page.clone())
    }));
    let mut bench = Bench::new(vec![server.address]);
    let told = bench.told("/cluster/d/32=ls");
    assert!(
        told.manifest_digest.is_some(),
        "the signature covers the listing"
    );
    assert_eq!(bench.read(&told, false), "a\0b%25/\0ü\0".as_bytes());
    for none in ["/cluster/f/32=ls", "/cluster/no/32=ls"] {
        assert_eq!(
            bench.metadata(&name(none)).map(|a| a.map(drop)),
            REFUSED,
            "{none}"
        );
    }
}

#[test]
fn a_folder_has_a_new_version_when_something_else_is_in_it() {
    let names = Arc::new(Mutex::new(vec!["a", "b"]));
    let now = names.clone();
    let server = Server::start(Box::new(move |_| {
        let names = now.lock().expect("names").clone();
        if names.is_empty() {
            return (200, String::from("no listing"));
        }
        let all: Vec<String> = names.iter().map(|name| entry(name, "FILE")).collect();
        (200, listing(&all, 0))
    }));
    let mut bench = Bench::new(vec![server.address.clone()]);
    let first = bench.told("/cluster/32=ls");
    for asked in 2..5 {
        bench.skip(Duration::from_millis(1100));
        assert_eq!(bench.told("/cluster/32=ls").name, first.name);
        assert_eq!(server.asked.lock().expect("the log").len(), asked);
    }
    assert_eq!(bench.read(&first, false), b"a\0b\0");
    // Nor when for a moment nothing can be understood.
    names.lock().expect("names").clear();
    bench.skip(Duration::from_millis(1100));
    let folder = bench.metadata(&name("/cluster/32=ls"));
    assert_eq!(folder.map(|a| a.map(drop)), REFUSED);
    *names.lock().expect("names") = vec!["a", "b"];
    bench.skip(Duration::from_millis(1100));
    assert_eq!(bench.told("/cluster/32=ls").name, first.name);
    *names.lock().expect("names") = vec!["a", "c"];
    bench.skip(Duration::from_millis(1100));
    let second = bench.told("/cluster/32=ls");
    assert!(second.name > first.name);
    assert_eq!(bench.read(&second, false), b"a\0c\0");
    assert_eq!(
        bench.read(&first, false),
        b"a\0b\0",
        "who reads it comes to its end"
    );
}

#[test]
fn what_can_not_be_served_is_refused() {
    let open = Hdfs {
        is_open: true,
        ..Hdfs::of(&[5])
    };
    let secret = Hdfs {
        more: r#""encBit":true,"#,
        ..Hdfs::of(&[5])
    };
    let coded = Hdfs {
        more: r#""ecBit":true,"#,
        ..Hdfs::of(&[5])
    };
    let mut group = Hdfs::of(&[5]);
    group.blocks[0].0 = -9_223_372_036_854_775_792;
    for file in [open, secret, coded, group] {
        let mut bench = Bench::with(&file);
        assert_eq!(
            bench.metadata(&name("/cluster/f")).map(|a| a.map(drop)),
            REFUSED
        );
    }
    for class in ["FileNotFoundException", "AccessControlException"] {
        let server = Server::start(Box::new(move |_| (403, exception(class))));
        let mut bench = Bench::new(vec![server.address]);
        assert_eq!(
            bench.metadata(&name("/cluster/f")).map(|a| a.map(drop)),
            REFUSED
        );
        assert_eq!(
            bench.metadata(&name("/cluster/32=ls")).map(|a| a.map(drop)),
            REFUSED
        );
    }
}

#[test]
fn a_file_that_changes_while_it_is_asked_about_is_one_version() {
    let before = Hdfs::of(&[2048, 10]);
    let after = Hdfs {
        mtime: before.mtime + 5,
        ..Hdfs::of(&[2048, 2048, 99])
    };
    let asked = AtomicUsize::new(0);
    let (old, new) = (before.clone(), after.clone());
    let server = Server::start(Box::new(move |query| {
        match asked.fetch_add(1, Ordering::Relaxed) {
            // Status of the old one, blocks of the new one.
            0 => old.answer(query),
            _ => new.answer(query),
        }
    }));
    let mut bench = Bench::new(vec![server.address]);
    bench.have(&after);
    let told = bench.told("/cluster/f");
    assert_eq!(told.mtime_ns, Some(after.mtime as u64 * 1_000_000));
    assert_eq!(bench.read(&told, true), after.bytes());
}

/// A store over a NameNode that has this file until it is told otherwise.
fn changing(file: &Hdfs) -> (Bench, Arc<Mutex<Option<Hdfs>>>) {
    let now = Arc::new(Mutex::new(Some(file.clone())));
    let told = now.clone();
    let server = Server::start(Box::new(move |query| {
        match &*told.lock().expect("the file") {
            Some(file) => file.answer(query),
            None => (404, exception("FileNotFoundException")),
        }
    }));
    let mut bench = Bench::new(vec![server.address]);
    bench.have(file);
    (bench, now)
}

#[test]
fn a_change_is_a_new_version_and_what_has_gone_is_gone() {
    let first = Hdfs::of(&[600]);
    let (mut bench, now) = changing(&first);
    let object = name("/cluster/f");
    let old = bench.told("/cluster/f");
    assert_eq!(bench.read(&old, true), first.bytes());
    let mut second = Hdfs {
        mtime: first.mtime + 1000,
        ..Hdfs::of(&[600, 300])
    };
    second.blocks.remove(0);
    *now.lock().expect("the file") = Some(second.clone());
    bench.have(&second);
    bench.skip(Duration::from_secs(2));
    let new = bench.told("/cluster/f");
    assert!(new.name != old.name);
    assert_eq!(bench.read(&new, true), second.bytes());
    assert_eq!(
        bench.read(&old, true),
        first.bytes(),
        "as long as its blocks are there"
    );

    *now.lock().expect("the file") = None;
    bench.skip(Duration::from_secs(2));
    assert_eq!(bench.metadata(&object).map(|a| a.map(drop)), REFUSED);
    assert_eq!(bench.segment(&new.name, 0).map(|a| a.map(drop)), REFUSED);
    assert_eq!(bench.segment(&old.name, 0).map(|a| a.map(drop)), REFUSED);
}

#[test]
fn a_version_that_is_read_for_long_is_asked_about_again() {
    let file = Hdfs::of(&[600]);
    let (mut bench, now) = changing(&file);
    let told = bench.told("/cluster/f");
    *now.lock().expect("the file") = None;
    assert!(
        bench.segment(&told.name, 0).expect("an answer").is_ok(),
        "told just now"
    );
    bench.skip(Duration::from_secs(11));
    assert!(
        bench.segment(&told.name, 0).expect("an answer").is_ok(),
        "the NameNode is being asked"
    );
    let gone = || bench.segment(&told.name, 0).map(|a| a.map(drop)) == REFUSED;
    assert!(eventually(gone), "a file that has gone is still served");
}

/// The cluster has Kerberos now: nothing of it is served on, though its NameNode is not silent.
#[test]
fn what_asks_for_a_login_is_served_no_more() {
    let file = Hdfs::of(&[600]);
    let asks = Arc::new(Mutex::new(false));
    let (told, now) = (file.clone(), asks.clone());
    let server = Server::start(Box::new(move |query| {
        match *now.lock().expect("a switch") {
            true => (401, String::from("<html>Authentication required</html>")),
            false => told.answer(query),
        }
    }));
    let mut bench = Bench::new(vec![server.address.clone()]);
    bench.have(&file);
    let told = bench.told("/cluster/f");
    assert_eq!(bench.read(&told, true), file.bytes());
    *asks.lock().expect("a switch") = true;
    bench.skip(Duration::from_secs(11));
    for asked in ["/cluster/f", "/cluster/g", "/cluster/32=ls"] {
        assert_eq!(
            bench.metadata(&name(asked)).map(|a| a.map(drop)),
            REFUSED,
            "{asked}"
        );
    }
    let gone = || bench.segment(&told.name, 0).map(|a| a.map(drop)) == REFUSED;
    assert!(eventually(gone), "what was told before is still served");
}

/// One of two addresses is of something else that has a login: the NameNode at the other tells.
#[test]
fn a_login_at_one_address_hides_no_namenode_at_another() {
    let file = Hdfs::of(&[600]);
    let other = Server::start(Box::new(|_| (401, String::from("<html>"))));
    let told = file.clone();
    let server = Server::start(Box::new(move |query| told.answer(query)));
    let mut bench = Bench::new(vec![other.address.clone(), server.address.clone()]);
    bench.have(&file);
    let told = bench.told("/cluster/f");
    assert_eq!(bench.read(&told, true), file.bytes());
}

#[test]
fn the_active_one_of_two_namenodes_is_found_again() {
    let file = Hdfs::of(&[600]);
    let active = Arc::new(AtomicUsize::new(1));
    let servers: Vec<Server> = (0..2)
        .map(|n| {
            let (file, active) = (file.clone(), active.clone());
            Server::start(Box::new(move |query| {
                match active.load(Ordering::Relaxed) == n {
                    true => file.answer(query),
                    false => (403, exception("StandbyException")),
                }
            }))
        })
        .collect();
    let mut bench = Bench::new(servers.iter().map(|s| s.address.clone()).collect());
    for now in [1, 0] {
        active.store(now, Ordering::Relaxed);
        assert!(
            bench
                .metadata(&name("/cluster/f"))
                .expect("an answer")
                .is_ok()
        );
        bench.skip(Duration::from_secs(2));
    }
    assert_eq!(servers[0].asked.lock().expect("the log").len(), 1 + 3);
}

#[test]
fn without_a_namenode_known_versions_are_served_on() {
    let file = Hdfs::of(&[2048]);
    let is_up = Arc::new(Mutex::new(true));
    let (told, up) = (file.clone(), is_up.clone());
    let server = Server::start(Box::new(move |query| match *up.lock().expect("a switch") {
        true => told.answer(query),
        false => (503, String::from("<html>")),
    }));
    let mut bench = Bench::new(vec![server.address.clone()]);
    bench.have(&file);
    let told = bench.told("/cluster/f");
    *is_up.lock().expect("a switch") = false;
    bench.skip(Duration::from_secs(20));
    assert_eq!(
        bench.metadata(&name("/cluster/f")).map(|a| a.map(drop)),
        REFUSED
    );
    let asked = server.asked.lock().expect("the log").len();
    assert_eq!(
        bench.metadata(&name("/cluster/g")).map(|a| a.map(drop)),
        REFUSED
    );
    assert_eq!(
        server.asked.lock().expect("the log").len(),
        asked,
        "it is left alone for a second"
    );
    assert_eq!(bench.read(&told, true), file.bytes());
    assert_eq!(
        server.asked.lock().expect("the log").len(),
        asked,
        "nor is it asked what is still there"
    );
    *is_up.lock().expect("a switch") = true;
    bench.skip(Duration::from_secs(2));
    let back = || {
        bench
            .metadata(&name("/cluster/f"))
            .is_some_and(|a| a.is_ok())
    };
    assert!(eventually(back), "it is not asked again");
}

#[test]
fn a_namenode_that_nobody_is_at_refuses_at_once() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address").to_string();
    drop(free);
    let mut bench = Bench::new(vec![address]);
    assert_eq!(
        bench.metadata(&name("/cluster/f")).map(|a| a.map(drop)),
        REFUSED
    );
}

#[test]
fn a_damaged_block_segment_is_never_handed_on() {
    let file = Hdfs::of(&[2048]);
    let mut bench = Bench::with(&file);
    let told = bench.told("/cluster/f");
    bench.damaged = true;
    assert!(bench.segment(&told.name, 0).is_none(), "silence");
    bench.damaged = false;
    bench.skip(Duration::from_secs(1));
    assert_eq!(bench.read(&told, true), file.bytes());
}

#[test]
fn blocks_that_nobody_has_are_refused_and_others_in_their_place() {
    let file = Hdfs::of(&[2048]);
    let mut bench = Bench::with(&file);
    let told = bench.told("/cluster/f");
    bench.blocks.clear();
    assert_eq!(bench.segment(&told.name, 0).map(|a| a.map(drop)), REFUSED);
    // A block shorter than the NameNode says: its last segment has other bytes than it should.
    bench.have(&Hdfs::of(&[1600]));
    assert_eq!(bench.segment(&told.name, 1).map(|a| a.map(drop)), REFUSED);
    // They are not kept: what comes next time may be right.
    bench.have(&file);
    assert_eq!(bench.read(&told, true), file.bytes());
}

#[test]
fn what_waits_is_bounded() {
    let file = Hdfs::of(&[20_000_000]);
    let mut bench = Bench::with(&file);
    let told = bench.told("/cluster/f");
    let (mut refused, mut out) = (0, Vec::new());
    for n in 0..20_000 {
        let wire = Interest::builder(&told.name.append_segment(n))
            .nonce(4)
            .build();
        let interest = Interest::parse(wire).expect("an Interest");
        bench
            .store
            .on_interest(bench.now(), interest, None, &mut out);
        for packet in out.drain(..) {
            if let NetKind::Nack { reason, .. } = packet.packet {
                assert_eq!(reason, NackReason::Congestion);
                refused += 1;
            }
        }
    }
    // Each takes some 500 bytes of six MiB.
    assert!((4_000..12_000).contains(&refused), "{refused}");
    // They are forgotten when nobody waits any more.
    bench.skip(Duration::from_secs(5));
    assert!(bench.segment(&told.name, 7).expect("an answer").is_ok());
}

/// Whether it comes about within two seconds.
fn eventually(mut it: impl FnMut() -> bool) -> bool {
    (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        it()
    })
}

#[test]
fn segments_have_one_signature_together_or_one_each() {
    let file = Hdfs::of(&[80_000]);
    for (signatures, together) in [(Signatures::Batch, true), (Signatures::Each, false)] {
        let mut bench = Bench::with_signatures(&file, signatures);
        let told = bench.told("/cluster/f");
        assert_eq!(bench.read(&told, true), file.bytes());
        let asked = bench.interests.len();
        assert_eq!(asked, 80_000_usize.div_ceil(common::BLOCK_SEGMENT));
        for n in [0, 31, 63, 64, 79] {
            let data = bench.segment(&told.name, n).expect("an answer");
            let data = data.expect("Data");
            let batch = BatchSignature::of(&data).expect("well formed");
            assert_eq!(batch.is_some(), together);
            assert_eq!(data.verify_digest(), together, "as others see it");
        }
        assert_eq!(bench.interests.len(), asked, "what was signed is kept");
    }
}

#[test]
fn a_lost_block_takes_no_others_with_it() {
    let file = Hdfs::of(&[2048, 2048, 2048]);
    let mut bench = Bench::with(&file);
    let told = bench.told("/cluster/f");
    let lost = file.blocks[1].0.to_string();
    bench.blocks.remove(&lost);
    for (n, is_there) in [
        (0, true),
        (1, true),
        (2, false),
        (3, false),
        (5, true),
        (0, true),
    ] {
        let answer = bench.segment(&told.name, n).expect("an answer");
        assert_eq!(answer.is_ok(), is_there, "segment {n}");
        if let Ok(data) = answer {
            assert!(common::key().verifier().verify(&data));
        }
    }
}
