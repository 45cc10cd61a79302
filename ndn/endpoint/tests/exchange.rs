//! One question, one answer.

mod common;

use common::ms;
use ndn_endpoint::rdr::{self, Metadata};
use ndn_endpoint::{Distrust, Exchange, ExchangeConfig, ExchangeError};
use ndn_packet::{Data, Interest, NackReason, Name, SigningKey};
use std::time::Duration;

fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

fn poll(e: &mut Exchange, now: Duration) -> Option<Interest> {
    e.poll_interest(now).map(common::packets::interest)
}

#[test]
fn metadata_is_discovered() {
    let object = name("/files/x");
    let mut e = Exchange::new(rdr::discovery(&object), ms(0));
    let interest = poll(&mut e, ms(0)).expect("it asks");
    assert!(interest.can_be_prefix() && interest.must_be_fresh());
    assert!(rdr::asks_metadata(&object, interest.name()));
    assert!(poll(&mut e, ms(0)).is_none());
    let metadata = Metadata {
        size: Some(7),
        ..Metadata::new(object.append_version(3))
    };
    let wire = metadata.packet(&object, 1, ms(1), &SigningKey::DigestSha256);
    assert!(e.on_data(Data::parse(wire).expect("well formed")));
    let answer = e.result().expect("over").expect("an answer");
    assert_eq!(Metadata::from_data(answer), Ok(metadata));
    assert_eq!(e.deadline(), None);
}

#[test]
fn it_asks_again_and_gives_up_in_time() {
    let mut e = Exchange::new(
        ExchangeConfig {
            timeout: ms(2000),
            ..ExchangeConfig::new(name("/a"))
        },
        ms(0),
    );
    let mut nonces = Vec::new();
    let mut now = ms(0);
    loop {
        nonces.extend(poll(&mut e, now).map(|i| (now, i.nonce())));
        let Some(at) = e.deadline() else { break };
        assert!(at > now);
        now = at;
        e.on_deadline(now);
    }
    assert_eq!(
        nonces.iter().map(|n| n.0).collect::<Vec<_>>(),
        [ms(0), ms(500), ms(1500)]
    );
    assert!(nonces[0].1 != nonces[1].1 && nonces[1].1 != nonces[2].1);
    assert_eq!(
        e.result(),
        Some(Err(&ExchangeError::Timeout {
            name: name("/a"),
            waited: ms(2000)
        }))
    );
}

#[test]
fn nacks_end_it_after_a_few() {
    let mut e = Exchange::new(
        ExchangeConfig {
            max_nacks: 2,
            ..ExchangeConfig::new(name("/a"))
        },
        ms(0),
    );
    let first = poll(&mut e, ms(0)).expect("it asks");
    e.on_nack(ms(1), &first, NackReason::Duplicate);
    let second = poll(&mut e, ms(1)).expect("at once");
    e.on_nack(ms(2), &first, NackReason::NoRoute);
    assert_eq!(e.result(), None, "a Nack for the older Interest is none");
    e.on_nack(ms(2), &second, NackReason::NoRoute);
    assert_eq!(
        e.result(),
        Some(Err(&ExchangeError::Nack {
            name: name("/a"),
            reason: NackReason::NoRoute
        }))
    );
}

#[test]
fn only_the_name_asked_for_answers() {
    let data = |uri: &str| {
        Data::parse(Data::builder(&name(uri)).sign(&SigningKey::DigestSha256)).expect("well formed")
    };
    let mut e = Exchange::new(ExchangeConfig::new(name("/a")), ms(0));
    assert!(!e.on_data(data("/a/b")) && !e.on_data(data("/b")) && !e.on_data(data("/")));
    let verify = ndn_endpoint::VerifyPolicy::Signed(ndn_packet::Verifier::hmac_sha256(b"k"));
    let mut strict = Exchange::new(
        ExchangeConfig {
            verify,
            ..ExchangeConfig::new(name("/a"))
        },
        ms(0),
    );
    assert!(strict.on_data(data("/a")));
    assert_eq!(
        strict.result(),
        Some(Err(&ExchangeError::Rejected {
            name: name("/a"),
            why: Distrust::Unsigned,
        }))
    );
    assert!(e.on_data(data("/a")));
    assert!(e.result().expect("over").is_ok());
}
