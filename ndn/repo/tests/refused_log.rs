//! What the log says of refused commands. A process of its own, since a log is the process's.

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::commands::{Bench, alice_key, parameters, trust_in_alice};
use common::{SimDisk, name};
use ndn_packet::SigningKey;
use ndn_repo::protocol::{Believed, InsertLimits, Verb, status};

/// What is logged, as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// The lines since the last call.
    fn lines(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().expect("no panic"));
        let text = String::from_utf8(bytes).expect("text");
        text.lines().map(str::to_owned).collect()
    }
}

#[test]
fn the_log_says_why_and_no_more_than_once_a_minute() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).expect("the only test of this process");
    let trust = trust_in_alice("/data", Believed::Sound);
    let mut bench = Bench::start(&SimDisk::default(), trust, InsertLimits::default());
    let all = parameters(&name("/data"), Some(0), Some(3));
    let stranger = SigningKey::hmac_sha256(b"a stranger").with_key_name(name("/stranger/KEY/1"));
    bench.produce(&name("/data"), 3, Some(3), &stranger);
    let refuse = |bench: &mut Bench| {
        let told = bench.insert(&all, &alice_key());
        assert_eq!(told.status, status::UNTRUSTED_DATA);
        log.lines()
    };
    let lines = refuse(&mut bench);
    let [line] = &lines[..] else {
        panic!("one line: {lines:?}");
    };
    for word in [
        "insertion refused",
        "status=406",
        "name=/data",
        "why=packet /data/seg=0: no key of the trust policy verifies its signature",
        "it names key /stranger/KEY/1",
        "left_out=0",
    ] {
        assert!(line.contains(word), "{word}: {line}");
    }
    // Whoever goes on fills no disk.
    for _ in 0..5 {
        assert_eq!(refuse(&mut bench), [""; 0]);
    }
    bench.now += Duration::from_secs(60);
    let lines = refuse(&mut bench);
    assert!(
        lines.len() == 1 && lines[0].contains("left_out=5"),
        "{lines:?}"
    );
    // Refused commands name the key, too.
    let mallory = SigningKey::hmac_sha256(b"mallory").with_key_name(name("/mallory/KEY/2"));
    bench.command(Verb::Delete, &all, &mallory);
    let lines = log.lines();
    for word in [
        "delete command refused",
        "status=401",
        "no key of the trust policy verifies its signature; it names key /mallory/KEY/2",
    ] {
        assert!(
            lines.len() == 1 && lines[0].contains(word),
            "{word}: {lines:?}"
        );
    }
}
