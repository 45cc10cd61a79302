//! Discover, then fetch: by metadata, by a manifest, by the first segment, from what is known.

mod common;

use common::ms;
use ndn_endpoint::rdr::{Metadata, manifest_name};
use ndn_endpoint::{
    Check, Distrust, Fetch, FetchConfig, FetchError, FetchErrorKind, Find, Goal, InMemory,
    VerifyPolicy,
};
use ndn_packet::{ComponentBuf, Data, Name, SigningKey, content_type, sha256};
use std::time::Duration;

const NOW: Duration = Duration::ZERO;

fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

fn config() -> FetchConfig {
    FetchConfig::new(name("/o"))
}

fn key() -> SigningKey {
    let pkcs8 = SigningKey::generate_ed25519().expect("a key");
    SigningKey::ed25519_from_pkcs8(&pkcs8).expect("a key")
}

fn trusting(key: &SigningKey) -> FetchConfig {
    let mut config = config();
    config.consumer.verify = VerifyPolicy::Signed(key.verifier());
    config
}

/// The names asked for now.
fn asked(fetch: &mut Fetch) -> Vec<String> {
    let mut names = Vec::new();
    while let Some(packet) = fetch.poll_interest(NOW) {
        names.push(packet.name().to_string());
    }
    names
}

fn segment(prefix: &Name, n: u64, last: u64, key: &SigningKey) -> Data {
    let wire = Data::builder(&prefix.append_segment(n))
        .final_block_id(ComponentBuf::segment(last))
        .content(format!("<{n}>").as_bytes())
        .sign(key);
    Data::parse(wire).expect("well formed")
}

fn metadata(told: &Metadata, key: &SigningKey) -> Data {
    Data::parse(told.packet(&name("/o"), 1, ms(1), key)).expect("well formed")
}

fn give(fetch: &mut Fetch, data: Data) {
    fetch.on_data(NOW, data, false);
}

fn read(fetch: &mut Fetch) -> Vec<String> {
    std::iter::from_fn(|| fetch.read())
        .map(|(_, data)| String::from_utf8_lossy(data.content_slice()).into_owned())
        .collect()
}

/// A version of two segments whose metadata tell the digest of its manifest; and the manifest's only segment.
fn version() -> (Metadata, [Data; 2], Data) {
    let versioned = name("/o/v=9");
    let segments = [0, 1].map(|n| segment(&versioned, n, 1, &SigningKey::DigestSha256));
    let digests = segments.each_ref().map(Data::signature_value).concat();
    let told = Metadata {
        last: Some(1),
        manifest_digest: Some(sha256(&digests)),
        ..Metadata::new(versioned.clone())
    };
    let wire = Data::builder(&manifest_name(&versioned).append_segment(0))
        .final_block_id(ComponentBuf::segment(0))
        .content(&digests)
        .sign(&SigningKey::DigestSha256);
    (told, segments, Data::parse(wire).expect("well formed"))
}

#[test]
fn the_newest_version_by_its_metadata() {
    let mut f = Fetch::new(config(), NOW);
    assert_eq!(asked(&mut f), ["/o/32=metadata"]);
    let (told, [first, second], _) = version();
    give(&mut f, metadata(&told, &SigningKey::DigestSha256));
    assert_eq!(
        (f.metadata(), f.versioned()),
        (Some(&told), Some(&told.name))
    );
    assert_eq!(asked(&mut f), ["/o/v=9/seg=0"]);
    give(&mut f, first);
    assert_eq!(read(&mut f), ["<0>"]);
    assert_eq!(asked(&mut f), ["/o/v=9/seg=1"]);
    assert!(!f.is_done());
    give(&mut f, second);
    assert_eq!(read(&mut f), ["<1>"]);
    assert!(f.is_done() && f.failure().is_none() && f.deadline().is_none());
}

#[test]
fn another_version_and_a_name_as_it_is() {
    let find = |find| FetchConfig { find, ..config() };
    let mut f = Fetch::new(find(Find::Version(7)), NOW);
    assert_eq!(asked(&mut f), ["/o/32=metadata/v=7/seg=0"]);
    let mut f = Fetch::new(find(Find::AsNamed), NOW);
    assert_eq!(asked(&mut f), ["/o/seg=0"]);
}

#[test]
fn a_dataset_by_its_first_segment() {
    let dataset = || {
        let mut f = Fetch::new(
            FetchConfig {
                find: Find::FirstSegment,
                ..config()
            },
            NOW,
        );
        assert_eq!(asked(&mut f), ["/o"]);
        f
    };
    let prefix = name("/o/v=3");
    let mut f = dataset();
    give(&mut f, segment(&prefix, 0, 1, &SigningKey::DigestSha256));
    assert!(!f.is_done());
    assert_eq!(read(&mut f), ["<0>"]);
    assert_eq!(asked(&mut f), ["/o/v=3/seg=1"]);
    give(&mut f, segment(&prefix, 1, 1, &SigningKey::DigestSha256));
    assert_eq!(read(&mut f), ["<1>"]);
    assert!(f.is_done());

    let mut f = dataset();
    give(&mut f, segment(&prefix, 0, 0, &SigningKey::DigestSha256));
    assert_eq!(asked(&mut f), [""; 0]);
    assert_eq!(read(&mut f), ["<0>"]);
    assert!(f.is_done());
}

#[test]
fn a_manifest_vouches_for_each_segment_where_a_key_is_trusted() {
    let key = key();
    let (told, [first, second], manifest) = version();
    let mut f = Fetch::new(trusting(&key), NOW);
    asked(&mut f);
    give(&mut f, metadata(&told, &key));
    assert_eq!(asked(&mut f), ["/o/v=9/32=manifest/seg=0"]);
    give(&mut f, manifest);
    assert_eq!(asked(&mut f), ["/o/v=9/seg=0"]);
    // Its digest holds, but it is another segment than the one that was signed.
    let other = Data::builder(&told.name.append_segment(0)).sign(&SigningKey::DigestSha256);
    give(&mut f, Data::parse(other).expect("well formed"));
    assert_eq!(read(&mut f), [""; 0]);
    assert!(
        asked(&mut f).contains(&String::from("/o/v=9/seg=0")),
        "anew"
    );
    give(&mut f, first);
    give(&mut f, second);
    assert_eq!(read(&mut f), ["<0>", "<1>"]);
    assert!(f.is_done());
}

#[test]
fn a_manifest_that_is_not_the_signed_one_ends_it() {
    let key = key();
    let (mut told, _, manifest) = version();
    told.manifest_digest = Some([7; 32]);
    let mut f = Fetch::new(trusting(&key), NOW);
    asked(&mut f);
    give(&mut f, metadata(&told, &key));
    for _ in 0..3 {
        assert_eq!(f.failure(), None);
        asked(&mut f);
        give(&mut f, manifest.clone());
    }
    let name = manifest_name(&told.name);
    assert_eq!(f.failure(), Some(FetchError::NotTheSigned { name }));

    // One that does not fit where it is to be kept ends it, too.
    let (told, _, manifest) = version();
    let mut f = Fetch::new(
        FetchConfig {
            store: Box::new(InMemory::new(63)),
            ..trusting(&key)
        },
        NOW,
    );
    asked(&mut f);
    give(&mut f, metadata(&told, &key));
    asked(&mut f);
    give(&mut f, manifest);
    assert_eq!(f.failure().map(|e| e.kind()), Some(FetchErrorKind::NoRoom));
}

/// Anybody may have put it into a cache: it has a digest alone.
#[test]
fn another_manifest_is_asked_past() {
    let key = key();
    let (told, [first, second], manifest) = version();
    let forged = |content: &[u8]| {
        let kind = match content {
            [] => content_type::NACK,
            _ => content_type::BLOB,
        };
        let wire = Data::builder(&manifest_name(&told.name).append_segment(0))
            .content_type(kind)
            .final_block_id(ComponentBuf::segment(0))
            .content(content)
            .sign(&SigningKey::DigestSha256);
        Data::parse(wire).expect("well formed")
    };
    // Another one of the same length; one that is too long; a refusal.
    for content in [&[5; 64][..], &[5; 96], &[]] {
        let mut f = Fetch::new(trusting(&key), NOW);
        asked(&mut f);
        give(&mut f, metadata(&told, &key));
        let plain = f.poll_interest(NOW).expect("an Interest for the manifest");
        assert!(!plain.rejected);
        give(&mut f, forged(content));
        let past = f.poll_interest(NOW).expect("one more");
        assert_eq!(past.name(), plain.name());
        assert!(past.rejected);
        give(&mut f, manifest.clone());
        asked(&mut f);
        give(&mut f, first.clone());
        asked(&mut f);
        give(&mut f, second.clone());
        assert_eq!(read(&mut f), ["<0>", "<1>"]);
        assert!(f.is_done());
    }
}

#[test]
fn a_small_object_is_held_against_its_digest_at_the_end() {
    for is_changed in [false, true] {
        let (mut told, [first, second], _) = version();
        if is_changed {
            told.manifest_digest = Some([7; 32]);
        }
        let mut f = Fetch::new(
            FetchConfig {
                check: Check::AtEnd,
                ..config()
            },
            NOW,
        );
        asked(&mut f);
        give(&mut f, metadata(&told, &SigningKey::DigestSha256));
        assert_eq!(asked(&mut f), ["/o/v=9/seg=0"], "no manifest is needed");
        give(&mut f, first);
        assert_eq!(read(&mut f), ["<0>"]);
        asked(&mut f);
        give(&mut f, second);
        read(&mut f);
        assert_eq!(f.is_done(), !is_changed);
        let kind = f.failure().map(|e| e.kind());
        assert_eq!(kind, is_changed.then_some(FetchErrorKind::Unverified));
    }
}

#[test]
fn it_stops_at_its_goal_and_goes_on_from_what_is_known() {
    let key = key();
    let (told, [_, second], manifest) = version();
    let mut f = Fetch::new(
        FetchConfig {
            goal: Goal::Metadata,
            ..trusting(&key)
        },
        NOW,
    );
    asked(&mut f);
    give(&mut f, metadata(&told, &key));
    assert!(f.is_done() && f.deadline().is_none());
    assert_eq!(asked(&mut f), [""; 0]);
    assert!(f.metadata_packet().is_some());

    let mut f = Fetch::new(
        FetchConfig {
            goal: Goal::Manifest,
            find: Find::Known(Box::new(told.clone()), None),
            ..trusting(&key)
        },
        NOW,
    );
    assert_eq!(asked(&mut f), ["/o/v=9/32=manifest/seg=0"]);
    give(&mut f, manifest);
    assert!(f.is_done());
    let manifest = f.manifest().cloned();

    let mut known = FetchConfig {
        find: Find::Known(Box::new(told), manifest),
        ..trusting(&key)
    };
    known.consumer.first = 1;
    let mut f = Fetch::new(known, NOW);
    assert_eq!(asked(&mut f), ["/o/v=9/seg=1"]);
    give(&mut f, second);
    assert_eq!(read(&mut f), ["<1>"]);
    assert!(f.is_done());
}

#[test]
fn one_that_stays_at_the_metadata_begins_where_it_is_told() {
    let (told, [_, second], _) = version();
    let mut f = Fetch::new(
        FetchConfig {
            goal: Goal::Metadata,
            ..config()
        },
        NOW,
    );
    asked(&mut f);
    give(&mut f, metadata(&told, &SigningKey::DigestSha256));
    assert!(f.is_done());
    f.begin(NOW, |told, consumer| {
        consumer.first = told.last.expect("told")
    });
    assert!(!f.is_done());
    assert_eq!(asked(&mut f), ["/o/v=9/seg=1"]);
    give(&mut f, second);
    assert_eq!(read(&mut f), ["<1>"]);
    assert!(f.is_done());
}

#[test]
fn failures_say_what_is_wrong() {
    let answered = |content: &[u8], typ| {
        let mut f = Fetch::new(config(), NOW);
        asked(&mut f);
        let wire = Data::builder(&name("/o/32=metadata/v=1/seg=0"))
            .content_type(typ)
            .content(content)
            .sign(&SigningKey::DigestSha256);
        give(&mut f, Data::parse(wire).expect("well formed"));
        f.failure().expect("failed")
    };
    let absent = answered(b"", content_type::NACK);
    assert_eq!(absent, FetchError::Absent { name: name("/o") });
    let malformed = answered(b"?", content_type::BLOB);
    assert_eq!(malformed.kind(), FetchErrorKind::Malformed);

    let mut silent = Fetch::new(config(), NOW);
    let mut ended = NOW;
    while let Some(at) = silent.deadline() {
        silent.poll_interest(at);
        silent.on_deadline(at);
        ended = at;
    }
    assert_eq!(
        silent.failure().expect("failed").kind(),
        FetchErrorKind::Silent
    );
    assert_eq!(ended, Duration::from_secs(15));
}

#[test]
fn a_key_that_is_not_known_is_named() {
    let stranger = key().with_key_name(name("/someone/KEY/1"));
    let told = Metadata::new(name("/o/v=9"));
    let failed = |config: FetchConfig, key: &SigningKey| {
        let mut f = Fetch::new(config, NOW);
        asked(&mut f);
        give(&mut f, metadata(&told, key));
        f.failure().expect("failed").to_string()
    };
    let said = failed(config(), &stranger);
    assert!(
        said.contains("signed by Ed25519 key /someone/KEY/1"),
        "{said}"
    );
    let said = failed(trusting(&key()), &stranger);
    assert!(
        said.contains("by Ed25519 key /someone/KEY/1 does not hold"),
        "{said}"
    );
    let said = failed(trusting(&key()), &SigningKey::DigestSha256);
    assert!(said.contains("has no key's signature"), "{said}");
    let unnamed = failed(config(), &SigningKey::hmac_sha256(b"secret"));
    let digest: String = sha256(b"secret")
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert!(
        unnamed.contains(&format!("HMAC key sha256:{digest}")),
        "{unnamed}"
    );

    // The same of segments.
    let mut f = Fetch::new(
        FetchConfig {
            find: Find::AsNamed,
            ..config()
        },
        NOW,
    );
    while f.failure().is_none() {
        assert!(asked(&mut f).contains(&String::from("/o/seg=0")));
        give(&mut f, segment(&name("/o"), 0, 0, &stranger));
        assert!(f.read().is_none());
    }
    let Some(FetchError::Stream(ndn_endpoint::FailReason::Rejected { why, .. })) = f.failure()
    else {
        panic!("{:?}", f.failure());
    };
    assert!(matches!(&why, Distrust::UnknownKey(by) if by.to_string().contains("/someone/KEY/1")));
}
