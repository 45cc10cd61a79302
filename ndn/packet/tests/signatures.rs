//! Signatures: packets that ndn-cxx signed, and each kind of key made, used and misused.

use bytes::Bytes;
use ndn_packet::{
    Data, Interest, KeyLocator, KeyLocatorRef, Name, SignedInterestFields, Signer, SigningKey,
    Verifier, content_type, sha256, signature_type,
};

fn hex(text: &str) -> Bytes {
    let digits: String = text.split_whitespace().collect();
    hex::decode(digits).expect("hexadecimal digits").into()
}

/// EcdsaDataset of ndn-cxx, tests/unit/security/verification-helpers.t.cpp.
const CERTIFICATE: &str = "06fd0162074708085365637572697479081754657374566572696669636174696f6e48656c7065727308024543
    08034b45590808a58f5f7f181a9814080473656c660809fd00000172cea8e753140918010219040036ee80155b3059301306072a8648ce3d02
    0106082a8648ce3d030107034200041594dfbf2d832c1fb79d559a6ac2db03e9b26b776df642812fc8de3f8bf4271c4fe9470c448352a0a24e
    5249c5ad2d9b9caef54c2ab5c4f5fbf393d48661e67016671b01031c3807360808536563757269747908175465737456657269666963617469
    6f6e48656c706572730802454308034b45590808a58f5f7f181a9814fd00fd26fd00fe0f313937303031303154303030303030fd00ff0f3230
    343030363134543232313735351746304402204bf785b8017d65026cfb69008b4dcc0fb587f84c69e07c16cc52b2296b24f57f02201c88de32
    3f1ae660a22994d9058f5714d6173c78bf85f51dcc03359ec9a96b09";
const GOOD_DATA: &str = "06a207130804746573740804646174610805456364736114001500163d1b01031c3807360808536563757269747908
    1754657374566572696669636174696f6e48656c706572730802454308034b45590808a58f5f7f181a981417483046022100d235ada9e61e0f
    f3de1dea18caee5d05d1e06a1ea51ad6e688b324a9d5974dc3022100b5a387d89bb692ad1984ae4df564ec1cf2a0b74d6b74ff3938fd5d9d46
    e0d2b4";
const BAD_DATA: &str = "06a50713080474657374080464617461080545636473611400150016401b01031c3b07390808536563757269747908
    1754657374566572696669636174696f6e48656c70657273080557726f6e6708034b45590808f3d01a45875d6e4317483046022100bb15ac92
    fb7d6f6c90c945719739cd8c30a08c69ca39dbe5c29555b413b4b895022100da5499f8e5c174ace0f2df0dc5e1cf99286cb02d55c87463562a
    1ab000bdffc5";
const GOOD_INTEREST: &str = "05ca07390804746573740808696e7465726573740805456364736102208f414940da38c10e755a6d4ad4fce2df
    ba52af0c9eebd6c5d11b5143bd19a7620a04f72c8a4b24002c3d1b01031c38073608085365637572697479081754657374566572696669636174
    696f6e48656c706572730802454308034b45590808a58f5f7f181a98142e4630440220141af59cd23fa9713b37d797e6291240447bf19803c1
    dbea3a71830dc426b72402200f1410dbdb24cbb3d24b456da0bb4b87c1599fc8be75f5cccbd24fd8872651bf";

#[test]
fn packets_signed_by_ndn_cxx_with_ecdsa() {
    let certificate = Data::parse(hex(CERTIFICATE)).unwrap();
    assert_eq!(certificate.content_type(), content_type::KEY);
    assert_eq!(
        certificate.signature_info().validity.unwrap().not_after,
        b"20400614T221755"
    );
    let verifier = Verifier::from_spki(&certificate.content()).unwrap();
    assert_eq!(
        verifier.to_spki().as_deref(),
        Some(&certificate.content()[..])
    );
    assert!(verifier.verify(&certificate), "self-signed");
    assert!(verifier.verify(&Data::parse(hex(GOOD_DATA)).unwrap()));
    assert!(!verifier.verify(&Data::parse(hex(BAD_DATA)).unwrap()));
    assert!(verifier.verify_interest(&Interest::parse(hex(GOOD_INTEREST)).unwrap()));
}

fn keys() -> Vec<SigningKey> {
    vec![
        SigningKey::DigestSha256,
        SigningKey::hmac_sha256(&SigningKey::generate_secret().unwrap()),
        SigningKey::ecdsa_p256_from_pkcs8(&SigningKey::generate_ecdsa_p256().unwrap()).unwrap(),
        SigningKey::ed25519_from_pkcs8(&SigningKey::generate_ed25519().unwrap()).unwrap(),
        SigningKey::Null,
    ]
}

#[test]
fn each_key_signs_and_only_it_verifies() {
    let name: Name = "/a/b".parse().unwrap();
    let keys = keys();
    for (i, key) in keys.iter().enumerate() {
        let data = Data::parse(Data::builder(&name).content(b"content").sign(key)).unwrap();
        assert_eq!(data.signature_type(), key.signature_type());
        assert_eq!(data.key_locator(), key.key_locator());
        let signed = Interest::builder(&name).sign(key, SignedInterestFields::default());
        let interest = Interest::parse(signed).unwrap();
        for (j, other) in keys.iter().enumerate() {
            assert_eq!(other.verifier().verify(&data), i == j, "{key:?} {other:?}");
            assert_eq!(
                other.verifier().verify_interest(&interest),
                i == j,
                "{key:?} {other:?}"
            );
        }
    }
}

#[test]
fn a_changed_byte_is_noticed() {
    let name: Name = "/a/b".parse().unwrap();
    for key in keys()
        .iter()
        .filter(|k| k.signature_type() != signature_type::NULL)
    {
        let wire = Data::builder(&name).content(b"content").sign(key);
        for at in [
            6,
            wire.len() - 1,
            wire.windows(7).position(|w| w == b"content").unwrap(),
        ] {
            let mut changed = wire.to_vec();
            changed[at] ^= 1;
            let verified = Data::parse(changed.into()).is_ok_and(|d| key.verifier().verify(&d));
            assert!(!verified, "{key:?} at {at}");
        }
    }
}

#[test]
fn keys_name_themselves_by_digest_or_by_name() {
    let pkcs8 = SigningKey::generate_ed25519().unwrap();
    let key = SigningKey::ed25519_from_pkcs8(&pkcs8).unwrap();
    let digest = sha256(&key.verifier().to_spki().unwrap());
    assert_eq!(key.key_locator(), Some(KeyLocatorRef::KeyDigest(&digest)));
    let name: Name = "/me/KEY/1".parse().unwrap();
    let key = key.with_key_name(name.clone());
    assert_eq!(key.key_locator(), Some(KeyLocator::Name(name).as_ref()));
    assert_eq!(SigningKey::DigestSha256.key_locator(), None);
}

#[test]
fn ecdsa_signatures_of_all_lengths_fit_all_header_lengths() {
    // DER makes a signature 70 to 72 bytes long, rarely less; around 252 the outer header's length changes with it.
    let key =
        SigningKey::ecdsa_p256_from_pkcs8(&SigningKey::generate_ecdsa_p256().unwrap()).unwrap();
    let name: Name = "/a".parse().unwrap();
    for len in 90..140 {
        let wire = Data::builder(&name).content(&vec![7; len]).sign(&key);
        let data = Data::parse(wire).unwrap();
        assert!(key.verifier().verify(&data));
        assert_eq!(data.content().len(), len);
    }
}

#[test]
fn what_is_no_key() {
    let ecdsa = SigningKey::generate_ecdsa_p256().unwrap();
    let ed25519 = SigningKey::generate_ed25519().unwrap();
    assert!(SigningKey::ecdsa_p256_from_pkcs8(&ed25519).is_err());
    assert!(SigningKey::ed25519_from_pkcs8(&ecdsa).is_err());
    assert!(SigningKey::ed25519_from_pkcs8(b"").is_err());
    assert!(Verifier::from_spki(b"").is_err());
    let spki = SigningKey::ed25519_from_pkcs8(&ed25519)
        .unwrap()
        .verifier()
        .to_spki()
        .unwrap();
    assert!(Verifier::from_spki(&spki[..spki.len() - 1]).is_err());
}

#[test]
fn secrets_are_not_printed() {
    let key = SigningKey::hmac_sha256(b"0123456789abcdef");
    let printed = format!("{key:?} {:?}", key.verifier());
    assert!(!printed.contains("0123"), "{printed}");
}

#[test]
fn hmac_as_in_rfc_4231() {
    // Test case 2: key "Jefe".
    let key = SigningKey::hmac_sha256(b"Jefe");
    let mut mac = Vec::new();
    key.sign(&[b"what do ya want ", b"for nothing?"], &mut mac);
    assert_eq!(
        mac,
        hex("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    );
    assert!(
        key.verifier()
            .verify_pieces(4, &[b"what do ya want for nothing?"], &mac)
    );
}
