//! What a source asks of Java and answers, packet by packet: no network, no clock but the loop's.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ndn_io::App;
use ndn_packet::{Interest, Name, NetKind, NetPacket, sha256};

use super::answer::{Answer, Secrets, Written};
use super::source::BlockSource;
use super::{Replica, SealedByWrite};
use crate::content_key::{Asking, KeyId, Secret};
use crate::own::testing::Writable;
use crate::seal::WriteKey;
use crate::verify::{Verify, crc32c};

const PREFIX: &str = "/hadoop/blocks";
/// How long a worker may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A source and the loop's side of it.
struct Bench {
    source: Arc<BlockSource>,
    app: Box<dyn App>,
    out: Vec<NetPacket>,
    nonce: u32,
}

fn bench(guarded: bool) -> Bench {
    let prefix: Name = PREFIX.parse().unwrap();
    let (source, app) = BlockSource::new(&prefix, 1024, 8, Verify::Digest, guarded, None).unwrap();
    Bench {
        source,
        app,
        out: Vec::new(),
        nonce: 0,
    }
}

impl Bench {
    /// An Interest comes.
    fn ask(&mut self, uri: &str) {
        self.nonce += 1;
        let name: Name = format!("{PREFIX}/{uri}").parse().unwrap();
        let wire = Interest::builder(&name).nonce(self.nonce).build();
        self.comes(Interest::parse(wire).unwrap());
    }

    /// One for the key of a block comes, by who has some token.
    fn ask_key(&mut self, block: i64, identifier: &[u8]) {
        let version: Name = format!("{PREFIX}/p/{block}/v=1").parse().unwrap();
        let asking = Asking::new(&version, identifier, b"guess").unwrap();
        let wire = Interest::builder(asking.name())
            .application_parameters(asking.parameters())
            .nonce(1)
            .build();
        self.comes(Interest::parse(wire).unwrap());
    }

    fn comes(&mut self, interest: Interest) {
        let packet = NetPacket::interest(interest);
        self.app.on_packet(Duration::ZERO, packet, &mut self.out);
    }

    /// What Java is asked next.
    fn request(&self) -> Option<String> {
        self.source.next_request(Duration::ZERO).unwrap()
    }

    /// Waits until so many Interests are answered: the names of Data, and of what is refused.
    fn answers(&mut self, count: usize) -> (Vec<String>, Vec<String>) {
        let until = Instant::now() + PATIENCE;
        while self.out.len() < count {
            assert!(Instant::now() < until, "{} answers", self.out.len());
            std::thread::sleep(Duration::from_millis(1));
            self.app.on_wake(Duration::ZERO, &mut self.out);
        }
        let (mut data, mut nacks) = (Vec::new(), Vec::new());
        for packet in self.out.drain(..) {
            match packet.packet {
                NetKind::Data(made) => data.push(made.name().to_string()),
                NetKind::Nack { interest, .. } => nacks.push(interest.name().to_string()),
                NetKind::Interest(_) => panic!("an Interest of a source"),
            }
        }
        for names in [&mut data, &mut nacks] {
            names
                .iter_mut()
                .for_each(|name| *name = name.split_off(PREFIX.len() + 1));
        }
        (data, nacks)
    }
}

/// A replica's files.
struct Files {
    dir: PathBuf,
    block: PathBuf,
    meta: PathBuf,
    length: u64,
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Files {
    fn write(name: &str, data: &[u8]) -> Self {
        let dir =
            std::env::temp_dir().join(format!("trunkline-source-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (block, meta) = (dir.join("blk_7"), dir.join("blk_7_1.meta"));
        let mut sums = vec![0, 1, 2, 0, 0, 2, 0];
        for chunk in data.chunks(512) {
            sums.extend_from_slice(&crc32c(chunk).to_be_bytes());
        }
        std::fs::write(&block, data).unwrap();
        std::fs::write(&meta, sums).unwrap();
        let length = data.len() as u64;
        Files {
            dir,
            block,
            meta,
            length,
        }
    }

    /// What a write of all this has sealed.
    fn sealed(&self) -> SealedByWrite {
        let replica = Replica::open(&self.block, &self.meta, self.length, 1, 1024).unwrap();
        let manifest = replica.manifest().unwrap().unwrap();
        SealedByWrite {
            segments: replica.last_segment() + 1,
            digest: sha256(&manifest),
        }
    }

    /// From here on the checksum file cannot be read to its end.
    fn cut_checksums(&self) {
        std::fs::write(&self.meta, [0, 1, 2, 0, 0, 2, 0]).unwrap();
    }

    fn answer<'a>(&'a self, genstamp: u64, secrets: Secrets<'a>) -> Answer<'a> {
        Answer {
            block: &self.block,
            meta: &self.meta,
            length: self.length,
            genstamp,
            secrets,
        }
    }
}

/// A stranger's Interest waits for Java, and a reader's comes meanwhile.
#[test]
fn who_asks_for_a_wrong_generation_takes_no_answer_from_others() {
    let files = Files::write("generations", &[7; 2500]);
    let mut bench = bench(false);
    bench.ask("p/7/v=2/seg=0");
    bench.ask("p/7/v=1/seg=0");
    bench.ask("p/7/v=1/seg=1");
    let requests = [bench.request(), bench.request(), bench.request()];
    assert_eq!(
        requests.clone(),
        [Some("p 7 2".into()), Some("p 7 1".into()), None]
    );
    bench.source.answer("p 7 2", None);
    let answer = files.answer(1, Secrets::default());
    bench.source.answer("p 7 1", Some(answer));
    let (mut data, nacks) = bench.answers(3);
    data.sort();
    assert_eq!(data, ["p/7/v=1/seg=0", "p/7/v=1/seg=1"]);
    assert_eq!(nacks, ["p/7/v=2/seg=0"]);
}

/// It would have to be opened, and its checksums be read, again and again.
#[test]
fn a_replica_stays_known_while_others_ask_for_a_generation_that_is_not_there() {
    let files = Files::write("stays", &[7; 2500]);
    let mut bench = bench(false);
    bench.ask("p/7/v=1/seg=0");
    bench.request().unwrap();
    let answer = files.answer(1, Secrets::default());
    bench.source.answer("p 7 1", Some(answer));
    bench.answers(1);
    std::thread::sleep(super::source::ASK_AGAIN_AFTER);
    bench.ask("p/7/v=2/seg=0");
    assert_eq!(bench.request().as_deref(), Some("p 7 2"));
    assert_eq!(bench.source.stats().open_replicas, 1);
    bench.source.answer("p 7 2", None);
    assert_eq!(bench.source.stats().open_replicas, 1);
    bench.answers(1);

    // Java says that there is another one now.
    bench.ask("p/7/v=3/seg=0");
    assert_eq!(bench.request().as_deref(), Some("p 7 3"));
    let answer = files.answer(3, Secrets::default());
    bench.source.answer("p 7 3", Some(answer));
    assert_eq!(bench.answers(1).0, ["p/7/v=3/seg=0"]);
    assert_eq!(bench.source.stats().open_replicas, 1);
}

fn sealed(id: KeyId, segment: u64) -> String {
    let version: Name = "/p/7/v=1".parse().unwrap();
    let name = version.append_keyword(id.to_bytes());
    name.append_segment(segment).to_string().split_off(1)
}

/// The keys of block 7: the write's own, and what is made with block key 9.
struct Keys {
    write: WriteKey,
    sealed: SealedByWrite,
    secret: Secret,
}

impl Keys {
    fn of(files: &Files) -> Self {
        Keys {
            write: WriteKey::new(&[5; 16]),
            sealed: files.sealed(),
            secret: Secret::new(b"made with block key 9").unwrap(),
        }
    }

    fn secrets(&self) -> Secrets<'_> {
        Secrets {
            written: Some(Written {
                key: &self.write,
                segment_bytes: 1024,
                sealed: self.sealed,
            }),
            block_key: Some((9, &self.secret)),
            password: None,
        }
    }

    fn id_of_write(&self) -> KeyId {
        KeyId::Write(self.write.id())
    }
}

/// A stranger makes ids up: block ids, generation stamps and serial numbers are no secrets.
#[test]
fn nothing_is_opened_or_read_for_a_key_id_that_nobody_was_told() {
    let files = Files::write("strangers", &[7; 2500]);
    let keys = Keys::of(&files);
    files.cut_checksums();
    let mut bench = bench(true);
    let made_up = KeyId::Replica {
        serial: 9,
        gate: [1; 8],
        id: [2; 8],
    };
    bench.ask(&sealed(KeyId::Write([1; 8]), 0));
    bench.ask(&sealed(made_up, 0));
    while let Some(request) = bench.request() {
        let answer = files.answer(1, keys.secrets());
        bench.source.answer(&request, Some(answer));
    }
    assert_eq!(bench.answers(2).1.len(), 2);
    let stats = bench.source.stats();
    assert_eq!((stats.open_replicas, stats.read_errors), (0, 0));

    // Who was told is read for: the file is what it is.
    bench.ask(&sealed(keys.id_of_write(), 0));
    let answer = files.answer(1, keys.secrets());
    bench.source.answer("p 7 1 write", Some(answer));
    bench.answers(1);
    assert_eq!(bench.source.stats().read_errors, 1);
}

#[test]
fn a_key_id_that_nobody_was_told_has_no_part_in_what_others_are_served() {
    let files = Files::write("beside", &[7; 2500]);
    let keys = Keys::of(&files);
    let mut bench = bench(true);
    // In one question with who was told, and of a replica that is open then.
    bench.ask(&sealed(KeyId::Write([1; 8]), 0));
    bench.ask(&sealed(keys.id_of_write(), 0));
    assert_eq!(bench.request().as_deref(), Some("p 7 1 write"));
    assert_eq!(bench.request(), None);
    let answer = files.answer(1, keys.secrets());
    bench.source.answer("p 7 1 write", Some(answer));
    let (data, nacks) = bench.answers(2);
    assert_eq!(data, [sealed(keys.id_of_write(), 0)]);
    assert_eq!(nacks.len(), 1);
    bench.ask(&sealed(KeyId::Write([1; 8]), 0));
    assert_eq!(bench.out.len(), 1, "refused by the loop, not by a worker");
    assert_eq!(bench.answers(1).1.len(), 1);
}

/// An identifier may be of one byte: it costs a stranger next to nothing.
#[test]
fn a_proof_is_checked_as_it_came() {
    let mut bench = bench(true);
    let files = Files::write("proof", &[7; 1500]);
    let keys = Keys::of(&files);
    let version: Name = format!("{PREFIX}/p/7/v=1").parse().unwrap();
    let asking = Asking::new(&version, b"who", b"password of who").unwrap();
    let wire = Interest::builder(asking.name())
        .application_parameters(asking.parameters())
        .nonce(1)
        .build();
    let memory = Writable::holding(&wire);
    bench.comes(Interest::parse(memory.bytes()).unwrap());
    // Its memory is another packet's by the time that Java answers.
    memory.turn();
    let request = bench.request().unwrap();
    assert_eq!(request, "p 7 1 token 77686f");
    let password = Secret::new(b"password of who").unwrap();
    let secrets = Secrets {
        password: Some(&password),
        ..keys.secrets()
    };
    let answer = files.answer(1, secrets);
    bench.source.answer(&request, Some(answer));
    let asked = asking.name().to_string().split_off(PREFIX.len() + 1);
    assert_eq!(bench.answers(1).0, [asked]);
    assert_eq!(bench.source.stats().unproven, 0);
}

#[test]
fn requests_for_keys_do_not_keep_segments_from_java() {
    let files = Files::write("lanes", &[7; 2500]);
    let keys = Keys::of(&files);
    let mut bench = bench(true);
    for block in 0..2000 {
        bench.ask_key(1000 + block, b"x");
    }
    let refused = bench.answers(1).1.len();
    assert_eq!(refused, 2000 - 256);
    bench.ask(&sealed(keys.id_of_write(), 0));
    let requests = [bench.request().unwrap(), bench.request().unwrap()];
    assert!(requests.contains(&"p 7 1 write".into()), "{requests:?}");
    let answer = files.answer(1, keys.secrets());
    bench.source.answer("p 7 1 write", Some(answer));
    assert_eq!(bench.answers(1).0, [sealed(keys.id_of_write(), 0)]);
}

/// Twice the open files, and twice the reading, for what the first key does.
#[test]
fn a_replica_is_opened_for_its_second_key_only_where_the_first_has_no_seal() {
    let files = Files::write("two-keys", &[7; 2500]);
    let password = Secret::new(b"guess").unwrap();
    let keys = Keys::of(&files);
    let other = Keys {
        sealed: SealedByWrite {
            digest: [1; 32],
            ..keys.sealed
        },
        ..Keys::of(&files)
    };
    for (keys, open) in [(&keys, 1), (&other, 2)] {
        let mut bench = bench(true);
        bench.ask_key(7, b"x");
        let request = bench.request().unwrap();
        let secrets = Secrets {
            password: Some(&password),
            ..keys.secrets()
        };
        bench
            .source
            .answer(&request, Some(files.answer(1, secrets)));
        assert_eq!(bench.answers(1).0.len(), 1);
        assert_eq!(bench.source.stats().open_replicas, open);
    }
}
