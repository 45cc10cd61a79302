//! The repo protocol end to end, without a network: a producer of the test's own, a clock of its own.

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use common::{SimDisk, name, noise, open};
use ndn_packet::{ComponentBuf, Data, Interest, NackReason, Name, SigningKey};
use ndn_repo::Repo;
use ndn_repo::disk::Disk;
use ndn_repo::protocol::{
    Believed, CommandCounters, InsertLimits, Parameters, Response, Right, Server, Trust,
    TrustedKey, Verb, command, status,
};

const OWNER: &[u8] = b"the owner";
const UNIX_MS: u64 = 1_700_000_000_000;

/// A repository that takes commands, and a producer that it fetches from.
struct Bench {
    repo: Repo,
    server: Server,
    produced: BTreeMap<Name, Data>,
    /// What is not answered at all.
    silent: bool,
    /// Names that the repository has asked for.
    asked: Vec<Name>,
    now: Duration,
    sent: u64,
}

impl Bench {
    fn start(disk: &SimDisk, trust: Trust, limits: InsertLimits) -> Self {
        let repo = open(disk).expect("a repository");
        let server = Server::new(repo.clone(), name("/repo"), trust, limits).expect("a server");
        Self {
            repo,
            server,
            produced: BTreeMap::new(),
            silent: false,
            asked: Vec::new(),
            now: Duration::ZERO,
            sent: 0,
        }
    }

    fn owned() -> Self {
        let trust = Trust::owner(&SigningKey::hmac_sha256(OWNER));
        Self::start(&SimDisk::default(), trust, InsertLimits::default())
    }

    fn produce(&mut self, prefix: &Name, last: u64, told: Option<u64>, key: &SigningKey) {
        for n in 0..=last {
            let name = prefix.append_segment(n);
            let content = noise(500, n + 1);
            let mut builder = Data::builder(&name).content(&content);
            if let Some(told) = told {
                builder = builder.final_block_id(ComponentBuf::segment(told));
            }
            let data = Data::parse(builder.sign(key)).expect("a packet");
            self.produced.insert(name, data);
        }
    }

    /// Sends a command and reads the response.
    fn command(&mut self, verb: Verb, parameters: &Parameters, key: &SigningKey) -> Response {
        self.sent += 1;
        let wire = command(
            &name("/repo"),
            verb,
            parameters,
            key,
            UNIX_MS + self.sent,
            self.sent,
        );
        self.raw(wire)
    }

    fn raw(&mut self, wire: bytes::Bytes) -> Response {
        let interest = Interest::parse(wire).expect("an Interest");
        let wire = self
            .server
            .on_interest(self.now, UNIX_MS, &interest)
            .expect("it is a command");
        let data = Data::parse(wire).expect("a packet");
        assert_eq!(data.name(), interest.name());
        assert!(SigningKey::hmac_sha256(OWNER).verifier().verify(&data));
        Response::decode(data.content_slice()).expect("a response")
    }

    /// Runs until nothing goes on any more.
    fn run(&mut self) {
        while self.server.running() > 0 {
            let mut idle = true;
            while let Some(wire) = self.server.poll_interest(self.now) {
                idle = false;
                let interest = Interest::parse(wire).expect("an Interest");
                self.asked.push(interest.name().to_name());
                if self.silent {
                    continue;
                }
                match self.produced.get(&interest.name().to_name()) {
                    Some(data) => {
                        assert!(self.server.wants(data.name()));
                        self.server.on_data(self.now, data, false);
                    }
                    None => self
                        .server
                        .on_nack(self.now, &interest, NackReason::NoRoute),
                }
            }
            if idle {
                match self.server.deadline() {
                    // The disk has a clock of its own.
                    Some(at) if at <= self.now => std::thread::sleep(Duration::from_millis(1)),
                    Some(at) => self.now = at,
                    None => panic!("nothing will ever happen"),
                }
            }
            self.server.on_deadline(self.now);
        }
    }

    fn insert(&mut self, parameters: &Parameters, key: &SigningKey) -> Response {
        let begun = self.command(Verb::Insert, parameters, key);
        if begun.status != status::BEGUN {
            return begun;
        }
        self.run();
        let check = Parameters {
            process: begun.process,
            ..Parameters::default()
        };
        self.command(Verb::InsertCheck, &check, key)
    }

    fn packets(&self) -> u64 {
        self.repo.status().expect("status").packets
    }
}

fn parameters(prefix: &Name, start: Option<u64>, end: Option<u64>) -> Parameters {
    Parameters {
        name: Some(prefix.clone()),
        start,
        end,
        ..Parameters::default()
    }
}

fn owner() -> SigningKey {
    SigningKey::hmac_sha256(OWNER)
}

fn alice_key() -> SigningKey {
    SigningKey::hmac_sha256(b"alice")
}

/// The owner may do everything, and alice may insert under `prefix` what is `believed`.
fn trust_in_alice(prefix: &str, believed: Believed) -> Trust {
    let mut trust = Trust::owner(&owner());
    trust.keys.push(TrustedKey::secret(
        b"alice",
        vec![Right {
            prefix: name(prefix),
            insert: true,
            delete: false,
            believed,
        }],
    ));
    trust
}

#[test]
fn segments_are_inserted_checked_and_deleted() {
    let mut bench = Bench::owned();
    let prefix = name("/data/v=1");
    bench.produce(&prefix, 99, Some(99), &SigningKey::DigestSha256);
    let done = bench.insert(&parameters(&prefix, Some(0), Some(99)), &owner());
    assert_eq!(
        (done.status, done.inserted, done.end),
        (status::DONE, Some(100), Some(99))
    );
    for (name, data) in &bench.produced {
        assert_eq!(
            bench.repo.packet(name).expect("read").as_ref(),
            Some(data.wire())
        );
    }
    let part = bench.command(
        Verb::Delete,
        &parameters(&prefix, Some(90), Some(95)),
        &owner(),
    );
    assert_eq!((part.status, part.deleted), (status::DONE, Some(6)));
    let rest = bench.command(Verb::Delete, &parameters(&prefix, Some(0), None), &owner());
    assert_eq!((rest.status, rest.deleted), (status::DONE, Some(94)));
    assert_eq!(bench.packets(), 0);
}

#[test]
fn the_end_is_found_where_the_command_does_not_tell_it() {
    let mut bench = Bench::owned();
    let prefix = name("/data/v=1");
    bench.produce(&prefix, 20, Some(20), &SigningKey::DigestSha256);
    let done = bench.insert(&parameters(&prefix, Some(3), None), &owner());
    assert_eq!(
        (done.status, done.start, done.end, done.inserted),
        (status::DONE, Some(3), Some(20), Some(18))
    );
}

#[test]
fn a_single_packet_is_inserted_and_deleted_by_its_name() {
    let mut bench = Bench::owned();
    let single = name("/data/alone");
    let wire = Data::builder(&single)
        .content(b"x")
        .sign(&SigningKey::DigestSha256);
    let data = Data::parse(wire).expect("a packet");
    bench.produced.insert(single.clone(), data.clone());
    bench.produce(&name("/data"), 2, None, &SigningKey::DigestSha256);
    for packet in [&single, &name("/data/seg=1")] {
        let done = bench.insert(&parameters(packet, None, None), &owner());
        assert_eq!(
            (done.status, done.inserted),
            (status::DONE, Some(1)),
            "{packet}"
        );
        assert!(bench.repo.packet(packet).expect("read").is_some());
        let gone = bench.command(Verb::Delete, &parameters(packet, None, None), &owner());
        assert_eq!(
            (gone.status, gone.deleted),
            (status::DONE, Some(1)),
            "{packet}"
        );
    }
}

#[test]
fn a_producer_that_stalls_leaves_nothing() {
    let mut bench = Bench::owned();
    let prefix = name("/data");
    bench.produce(&prefix, 10, None, &SigningKey::DigestSha256);
    let failed = bench.insert(&parameters(&prefix, Some(0), Some(20)), &owner());
    assert_eq!(failed.status, status::NO_END);
    bench.silent = true;
    let failed = bench.insert(&parameters(&prefix, Some(0), Some(20)), &owner());
    assert_eq!(failed.status, status::NO_END);
    let failed = bench.insert(&parameters(&prefix, None, None), &owner());
    assert_eq!(failed.status, status::NO_END);
    assert_eq!(bench.packets(), 0);
}

#[test]
fn an_interrupted_insertion_goes_on_where_it_was() {
    let trust = trust_in_alice("/data", Believed::default());
    let alice = alice_key();
    let mut bench = Bench::start(&SimDisk::default(), trust, InsertLimits::default());
    let prefix = name("/data/v=1");
    let all = parameters(&prefix, Some(0), Some(20));
    let first = |bench: &mut Bench| {
        let asked = std::mem::take(&mut bench.asked);
        asked
            .iter()
            .filter_map(|n| n.last()?.as_segment())
            .min()
            .expect("Interests")
    };
    bench.produce(&prefix, 10, None, &SigningKey::DigestSha256);
    let stopped = bench.insert(&all, &owner());
    assert_eq!(
        (stopped.status, stopped.inserted),
        (status::NO_END, Some(11))
    );
    assert_eq!((bench.packets(), first(&mut bench)), (0, 0));
    // Nobody else goes on with what the owner has begun, and something else is not this.
    bench.insert(&all, &alice);
    assert_eq!(first(&mut bench), 0);
    bench.insert(&parameters(&prefix, Some(0), Some(19)), &owner());
    assert_eq!(first(&mut bench), 0);
    // It stops once more, and then comes to its end.
    bench.produce(&prefix, 15, None, &SigningKey::DigestSha256);
    let stopped = bench.insert(&all, &owner());
    assert_eq!(
        (stopped.status, stopped.inserted),
        (status::NO_END, Some(16))
    );
    assert_eq!((bench.packets(), first(&mut bench)), (0, 11));
    bench.produce(&prefix, 20, None, &SigningKey::DigestSha256);
    // Asked for twice before it is over, it is one insertion.
    let begun = bench.command(Verb::Insert, &all, &owner());
    assert_eq!(
        bench.command(Verb::Insert, &all, &owner()).process,
        begun.process
    );
    let done = bench.insert(&all, &owner());
    assert_eq!(
        (done.status, done.inserted, done.process),
        (status::DONE, Some(21), begun.process)
    );
    assert_eq!(first(&mut bench), 16);
    assert_eq!(bench.packets(), 21);
    for (name, data) in &bench.produced {
        assert_eq!(
            bench.repo.packet(name).expect("read").as_ref(),
            Some(data.wire())
        );
    }
}

/// A bench on a disk, some time after another one was there.
fn again(disk: &SimDisk, trust: Trust, prefix: &Name, last: u64) -> Bench {
    let mut bench = Bench::start(disk, trust, InsertLimits::default());
    bench.sent = 1000;
    bench.produce(prefix, last, None, &SigningKey::DigestSha256);
    bench
}

#[test]
fn an_insertion_outlives_the_repository() {
    let trust = || Trust::owner(&owner());
    let prefix = name("/data/v=1");
    let all = parameters(&prefix, Some(0), Some(4000));
    let part_files = |disk: &SimDisk| {
        let files = disk.files();
        files
            .iter()
            .filter(|path| path.extension().is_some_and(|e| e == "part"))
            .count()
    };
    // 500 bytes each: more than what is written down at once.
    let interrupted = || {
        let disk = SimDisk::default();
        let mut bench = Bench::start(&disk, trust(), InsertLimits::default());
        bench.produce(&prefix, 3000, None, &SigningKey::DigestSha256);
        let stopped = bench.insert(&all, &owner());
        assert_eq!(stopped.inserted, Some(3001));
        assert_eq!(part_files(&disk), 1);
        (disk, bench)
    };
    let goes_on = |disk: &SimDisk| {
        let mut bench = again(disk, trust(), &prefix, 4000);
        assert_eq!(bench.packets(), 0);
        let done = bench.insert(&all, &owner());
        assert_eq!((done.status, done.inserted), (status::DONE, Some(4001)));
        let asked = bench.asked.iter().filter_map(|n| n.last()?.as_segment());
        let first = asked.min().expect("Interests");
        assert_eq!(bench.packets(), 4001);
        for (name, data) in &bench.produced {
            let packet = bench.repo.packet(name).expect("read");
            assert_eq!(packet.as_ref(), Some(data.wire()));
        }
        let report = bench.repo.verify(&Name::new(), &mut |_| true);
        assert_eq!(report.expect("read").rotten, []);
        drop(bench);
        assert_eq!(part_files(disk), 0);
        first
    };

    // It is stopped, and nothing of what has come travels again.
    let (disk, bench) = interrupted();
    drop(bench);
    assert_eq!(goes_on(&disk), 3001);
    // It is killed: what was in its memory alone does.
    let (disk, bench) = interrupted();
    let first = goes_on(&disk);
    assert!((1500..=3001).contains(&first), "{first}");
    std::mem::forget(bench);
    // The power fails: more may be lost, and whatever is left is right.
    for seed in 0..20 {
        let (disk, bench) = interrupted();
        let disk = disk.after_crash(seed);
        drop(bench);
        let first = goes_on(&disk);
        assert!(first <= 3001, "{first}");
    }
}

#[test]
fn an_insertion_of_before_the_start_is_its_owner_s_and_is_given_up_in_time() {
    let trust = trust_in_alice("/data", Believed::default());
    let prefix = name("/data/v=1");
    let all = parameters(&prefix, Some(0), Some(20));
    let disk = SimDisk::default();
    let mut bench = Bench::start(&disk, trust.clone(), InsertLimits::default());
    bench.produce(&prefix, 10, None, &SigningKey::DigestSha256);
    assert_eq!(bench.insert(&all, &owner()).inserted, Some(11));
    drop(bench);
    let parts = || {
        let files = disk.files();
        let parts = files
            .iter()
            .filter(|f| f.to_string_lossy().contains(".part"));
        parts.cloned().collect::<Vec<_>>()
    };
    assert_eq!(parts().len(), 1);

    // Neither room is given back that it needs, nor does another key go on with it.
    let mut bench = again(&disk, trust.clone(), &prefix, 10);
    bench.repo.compact().expect("compacted");
    let alice = alice_key();
    bench.insert(&all, &alice);
    let asked = bench.asked.iter().filter_map(|n| n.last()?.as_segment());
    assert_eq!(asked.min(), Some(0));
    assert_eq!(parts().len(), 2);
    bench.asked.clear();
    assert_eq!(bench.insert(&all, &owner()).inserted, Some(11));
    let asked = bench.asked.iter().filter_map(|n| n.last()?.as_segment());
    assert_eq!(asked.min(), Some(11));
    drop(bench);

    // What nobody asks for again is gone after a while.
    let limits = InsertLimits::default();
    let mut bench = again(&disk, trust, &prefix, 10);
    bench.server.on_deadline(limits.resume);
    assert_eq!(parts(), Vec::<std::path::PathBuf>::new());
    drop(bench);

    // So is what is not understood; and where nobody takes commands, with the room that it took.
    for path in ["packets/0.part", "packets/1.part"] {
        let file = disk.create(path.as_ref()).expect("a file");
        file.write_at(0, b"TLP1 what is this?").expect("written");
    }
    let repo = open(&disk).expect("a repository");
    assert_eq!(parts(), Vec::<std::path::PathBuf>::new());
    drop(repo);
    let mut bench = again(&disk, Trust::owner(&owner()), &prefix, 10);
    bench.sent = 2000;
    bench.insert(&all, &owner());
    drop(bench);
    assert_eq!(parts().len(), 1);
    let repo = open(&disk).expect("a repository");
    repo.compact().expect("compacted");
    assert_eq!(parts(), Vec::<std::path::PathBuf>::new());
    assert_eq!(repo.status().expect("status").log_bytes, 0);
}

#[test]
fn what_nobody_goes_on_with_is_forgotten() {
    let limits = InsertLimits {
        max_running: 2,
        ..InsertLimits::default()
    };
    let mut bench = Bench::start(&SimDisk::default(), Trust::owner(&owner()), limits.clone());
    let begun = |bench: &mut Bench, n: u64| {
        let prefix = name(&format!("/data/{n}"));
        bench.produce(&prefix, 3, None, &SigningKey::DigestSha256);
        let stopped = bench.insert(&parameters(&prefix, Some(0), Some(9)), &owner());
        assert_eq!(stopped.status, status::NO_END);
        let all = std::mem::take(&mut bench.asked);
        all.iter().filter_map(|n| n.last()?.as_segment()).min()
    };
    for n in 0..3 {
        assert_eq!(begun(&mut bench, n), Some(0));
    }
    // Two are kept, the youngest.
    assert_eq!(begun(&mut bench, 2), Some(4));
    assert_eq!(begun(&mut bench, 0), Some(0));
    bench.now += limits.resume;
    bench.server.on_deadline(bench.now);
    assert_eq!(begun(&mut bench, 2), Some(0));
}

#[test]
fn a_producer_that_lies_about_its_end() {
    // It says that it has more than it has: nothing comes of it.
    let mut bench = Bench::owned();
    bench.produce(&name("/more"), 5, Some(1 << 60), &SigningKey::DigestSha256);
    let failed = bench.insert(&parameters(&name("/more"), Some(0), None), &owner());
    assert_eq!(failed.status, status::NO_END);
    assert_eq!(bench.packets(), 0);
    // It says that it has less than the command: that is what there is, and the response tells it.
    bench.produce(&name("/less"), 20, Some(5), &SigningKey::DigestSha256);
    let done = bench.insert(&parameters(&name("/less"), Some(0), Some(20)), &owner());
    assert_eq!(
        (done.status, done.end, done.inserted),
        (status::DONE, Some(5), Some(6))
    );
    // It never comes to an end: it is stopped.
    let limits = InsertLimits {
        max_bytes: 10_000,
        ..InsertLimits::default()
    };
    let mut bench = Bench::start(&SimDisk::default(), Trust::owner(&owner()), limits);
    bench.produce(&name("/endless"), 500, None, &SigningKey::DigestSha256);
    let failed = bench.insert(&parameters(&name("/endless"), Some(0), None), &owner());
    assert_eq!(failed.status, status::NO_END);
    assert_eq!(bench.packets(), 0);
}

#[test]
fn packets_that_are_not_believed_are_not_kept() {
    let alice = alice_key();
    for (believed, by_digest, by_alice, by_stranger) in [
        (Believed::Sound, true, true, false),
        (Believed::Signed, false, true, false),
        (Believed::Any, true, true, true),
    ] {
        let trust = trust_in_alice("/data", believed);
        let mut bench = Bench::start(&SimDisk::default(), trust, InsertLimits::default());
        for (key, kept) in [
            (SigningKey::DigestSha256, by_digest),
            (alice_key(), by_alice),
            (SigningKey::hmac_sha256(b"a stranger"), by_stranger),
        ] {
            bench.produce(&name("/data"), 3, Some(3), &key);
            let told = bench.insert(&parameters(&name("/data"), Some(0), Some(3)), &alice);
            let expected = if kept {
                status::DONE
            } else {
                status::UNTRUSTED_DATA
            };
            assert_eq!(told.status, expected, "{believed:?} {key:?}");
        }
    }
}

#[test]
fn who_may_not_is_refused_and_counted() {
    let disk = SimDisk::default();
    let trust = trust_in_alice("/alice", Believed::default());
    let alice = alice_key();
    let mut bench = Bench::start(&disk, trust.clone(), InsertLimits::default());
    let some = parameters(&name("/alice/x"), Some(0), Some(0));
    let refused = |bench: &mut Bench, verb, parameters: &Parameters, key: &SigningKey| {
        let response = bench.command(verb, parameters, key);
        assert_eq!(
            response,
            Response::of(status::UNAUTHORIZED),
            "{verb:?} {key:?}"
        );
    };
    refused(
        &mut bench,
        Verb::Insert,
        &some,
        &SigningKey::hmac_sha256(b"mallory"),
    );
    refused(&mut bench, Verb::Insert, &some, &SigningKey::DigestSha256);
    refused(&mut bench, Verb::Delete, &some, &alice);
    refused(
        &mut bench,
        Verb::Insert,
        &parameters(&name("/bob"), Some(0), Some(0)),
        &alice,
    );
    let unsigned = name("/repo/insert").append_generic(some.encode());
    let response = bench.raw(Interest::builder(&unsigned).build());
    assert_eq!(response.status, status::UNAUTHORIZED);
    let nonsense = name("/repo/insert").append_generic(b"nonsense");
    assert_eq!(
        bench.raw(Interest::builder(&nonsense).build()).status,
        status::MALFORMED
    );
    let backward = parameters(&name("/alice/x"), Some(2), Some(1));
    assert_eq!(
        bench.command(Verb::Insert, &backward, &alice).status,
        status::MALFORMED
    );

    let wire = command(
        &name("/repo"),
        Verb::Insert,
        &some,
        &alice,
        UNIX_MS + 500,
        7,
    );
    let begun = bench.raw(wire.clone());
    assert_eq!(begun.status, status::BEGUN);
    assert_eq!(
        bench.raw(wire.clone()).status,
        status::UNAUTHORIZED,
        "replayed"
    );
    let old = command(
        &name("/repo"),
        Verb::Insert,
        &some,
        &alice,
        UNIX_MS - 120_000,
        8,
    );
    assert_eq!(
        bench.raw(old).status,
        status::UNAUTHORIZED,
        "of another time"
    );
    let check = Parameters {
        process: begun.process,
        ..Parameters::default()
    };
    let others = bench.command(Verb::InsertCheck, &check, &owner());
    assert_eq!(
        others.status,
        status::NO_SUCH_PROCESS,
        "alice's is not told to others"
    );
    assert_eq!(
        bench.server.counters(),
        CommandCounters {
            taken: 2,
            unsigned: 1,
            wrong_signature: 2,
            replayed: 2,
            forbidden: 2,
            malformed: 2,
        }
    );
    drop(bench);
    let mut bench = Bench::start(&disk, trust, InsertLimits::default());
    assert_eq!(
        bench.raw(wire).status,
        status::UNAUTHORIZED,
        "replayed after a restart"
    );
}

#[test]
fn nothing_is_taken_under_a_name_that_is_served_from_elsewhere() {
    let limits = InsertLimits {
        closed: Some(name("/data/cluster")),
        ..InsertLimits::default()
    };
    let mut bench = Bench::start(&SimDisk::default(), Trust::owner(&owner()), limits);
    for (prefix, last, expected) in [
        ("/data/cluster/v=1", Some(3), status::FAILED),
        ("/data/cluster", None, status::FAILED),
        ("/data/v=1", Some(3), status::DONE),
        ("/data/clusters", None, status::NO_END),
    ] {
        let prefix = name(prefix);
        bench.produce(&prefix, 3, Some(3), &SigningKey::DigestSha256);
        let told = bench.insert(&parameters(&prefix, last.map(|_| 0), last), &owner());
        assert_eq!(told.status, expected, "{prefix}");
    }
    assert_eq!(bench.packets(), 4);
    assert!(
        bench
            .asked
            .iter()
            .all(|n| !name("/data/cluster").is_prefix_of(n))
    );
}

#[test]
fn too_many_insertions_and_a_full_disk_are_said() {
    let limits = InsertLimits {
        max_running: 2,
        ..InsertLimits::default()
    };
    let disk = SimDisk::default();
    let mut bench = Bench::start(&disk, Trust::owner(&owner()), limits);
    bench.produce(&name("/data"), 99, Some(99), &SigningKey::DigestSha256);
    for (first, expected) in [
        (0, status::BEGUN),
        (1, status::BEGUN),
        (2, status::BUSY),
        (1, status::BEGUN),
    ] {
        let some = parameters(&name("/data"), Some(first), Some(99));
        let told = bench.command(Verb::Insert, &some, &owner());
        assert_eq!(told.status, expected, "{first}");
    }
    bench.run();
    let before = bench.produced.clone();
    // More than the index's file may give back.
    bench.produce(&name("/big"), 4999, Some(4999), &SigningKey::DigestSha256);
    disk.set_capacity(disk.used() + 20_000);
    let failed = bench.insert(&parameters(&name("/big"), Some(0), Some(4999)), &owner());
    assert_eq!(failed.status, status::FAILED);
    for (name, data) in &before {
        assert_eq!(
            bench.repo.packet(name).expect("read").as_ref(),
            Some(data.wire())
        );
    }
}

#[test]
fn a_file_version_is_deleted_by_its_name() {
    use std::io::Write;
    let mut bench = Bench::owned();
    let object = name("/data/file");
    let mut file = bench
        .repo
        .put(&object, &ndn_repo::PutOptions::default())
        .expect("a writer");
    file.write_all(b"some").expect("written");
    let staged = file.finish().expect("whole");
    let info = bench
        .repo
        .publish(vec![staged])
        .expect("published")
        .remove(0);
    let versioned = object.append_version(info.version);
    let gone = bench.command(Verb::Delete, &parameters(&versioned, None, None), &owner());
    assert_eq!((gone.status, gone.deleted), (status::DONE, Some(1)));
    assert_eq!(bench.repo.find(&object, None).expect("read"), None);
}
