//! How a reader with a block token gets the key that a replica's segments are
//! sealed with: one Interest, one Data, no address.
//!
//! ```text
//!   reader                                             any DataNode that holds it
//!   …/v=<genstamp>/32=content-key/params-sha256=…  ──▶  parse, ask Java for the
//!     version, token's identifier, nonce, MAC            password, check the MAC
//!   open: metadata, key id, content key            ◀──  nonce, sealed answer
//! ```
//!
//! Both ends have the token's password, which says that the reader may read:
//! the MAC of the request is made with it, and the answer is sealed under a key
//! of it and of both nonces. Whoever replays a request gets an answer that only
//! the password opens. No I/O and no clock here: bytes in, bytes out.

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use ndn_packet::{Interest, Name, NameRef};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN as AEAD_NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{hkdf, hmac};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::error::{NativeError, Result};
use crate::metadata::BlockMetadata;
use crate::seal::{KEY_ID_LEN, Length, TAG_LEN, WRITE_KEY_LEN, WriteKey};

/// The keyword component under which a content key is asked for.
pub const KEYWORD: &str = "content-key";
/// Longest identifier of a block token that is taken, in bytes.
pub const MAX_IDENTIFIER: usize = 4096;
/// Length of each end's nonce in bytes.
pub const NONCE_LEN: usize = 16;

/// Of the request, the answer, and how what the key is for is sealed.
const VERSION: u8 = 3;
const MAC_LEN: usize = 32;
const MAC_LABEL: &[u8] = b"trunkline content key, request mac 1";
const ANSWER_LABEL: &[u8] = b"trunkline content key, answer 1";
const REPLICA_LABEL: &[u8] = b"trunkline content key, replica 1";
const GATE_LABEL: &[u8] = b"trunkline content key, gate 1";

/// Length in bytes of what a holder knows a [`KeyId::Replica`] by before it has
/// read the replica.
pub const GATE_LEN: usize = 8;

/// What the names of sealed segments tell their key by; says nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyId {
    /// Of a key that a writer drew: 8 bytes.
    Write([u8; KEY_ID_LEN]),
    /// Of a key that all holders derive of one of the cluster's block keys.
    Replica {
        /// Serial number of the block key.
        serial: u32,
        /// What nobody has who was not told the id; the same for whatever the
        /// block holds at this generation stamp.
        gate: [u8; GATE_LEN],
        /// Of the key itself.
        id: [u8; KEY_ID_LEN],
    },
}

impl KeyId {
    /// Reads the component of a name.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if let Ok(id) = bytes.try_into() {
            return Some(KeyId::Write(id));
        }
        let (serial, rest) = bytes.split_first_chunk::<4>()?;
        let (gate, id) = rest.split_first_chunk::<GATE_LEN>()?;
        Some(KeyId::Replica {
            serial: u32::from_be_bytes(*serial),
            gate: *gate,
            id: id.try_into().ok()?,
        })
    }

    /// The component of a name: 8 or 20 bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            KeyId::Write(id) => id.to_vec(),
            KeyId::Replica { serial, gate, id } => [&serial.to_be_bytes()[..], gate, id].concat(),
        }
    }
}

/// A secret of Hadoop: a token's password, or what stock code makes of a block
/// key in the same way. It has no text form.
/// It is wiped when it is let go of, as is what is made of it here; what ring
/// makes of that stays in ring's hands.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<[u8]>);

impl Drop for Secret {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl ZeroizeOnDrop for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// A secret; `None` for no bytes, which are none.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (!bytes.is_empty()).then(|| Secret(bytes.into()))
    }

    /// What letting go of it does.
    fn wipe(&mut self) {
        self.0.zeroize();
    }

    fn derive<const N: usize>(&self, salt: &[u8], info: &[&[u8]]) -> [u8; N] {
        let mut out = [0; N];
        hkdf::Salt::new(hkdf::HKDF_SHA256, salt)
            .extract(&self.0)
            .expand(info, Length(N))
            .and_then(|okm| okm.fill(&mut out))
            .expect("a few bytes are no more than HKDF gives");
        out
    }

    fn mac_key(&self) -> hmac::Key {
        let key = Zeroizing::new(self.derive::<32>(&[], &[MAC_LABEL]));
        hmac::Key::new(hmac::HMAC_SHA256, &*key)
    }

    fn answer_key(&self, reader: &[u8; NONCE_LEN], holder: &[u8; NONCE_LEN]) -> LessSafeKey {
        let nonces = [&reader[..], holder].concat();
        let key = Zeroizing::new(self.derive::<16>(&nonces, &[ANSWER_LABEL]));
        let key = UnboundKey::new(&AES_128_GCM, &*key).expect("16 bytes are a key of AES-128");
        LessSafeKey::new(key)
    }

    /// The key of a replica that no write's key is known of. `self` is made with
    /// a block key for this pool and block alone; `manifest` is the SHA-256 over
    /// the digests of all segments. Other content, other key: so no segment
    /// number is ever sealed for two contents under one of them.
    pub fn replica_key(&self, genstamp: u64, manifest: &[u8; 32]) -> WriteKey {
        let info = [REPLICA_LABEL, &genstamp.to_be_bytes(), manifest];
        WriteKey::new(&Zeroizing::new(self.derive(&[], &info)))
    }

    /// The gate in the ids of such keys. `self` as there.
    pub fn gate(&self, genstamp: u64) -> [u8; GATE_LEN] {
        self.derive(&[], &[GATE_LABEL, &genstamp.to_be_bytes()])
    }
}

fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| NativeError::Failed("the system gives no random numbers".into()))?;
    Ok(bytes)
}

/// The parameters of an Interest for a content key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRequest {
    /// The block token's identifier: who may do what until when.
    pub identifier: Bytes,
    nonce: [u8; NONCE_LEN],
    mac: [u8; MAC_LEN],
}

impl KeyRequest {
    /// Reads parameters; `None` when they are malformed.
    pub fn decode(parameters: Bytes) -> Option<Self> {
        let (version, rest) = parameters.split_first()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_be_bytes(*length));
        let fits = *version == VERSION && (1..=MAX_IDENTIFIER).contains(&length);
        if !fits || rest.len() != length + NONCE_LEN + MAC_LEN {
            return None;
        }
        Some(KeyRequest {
            nonce: *rest[length..].first_chunk()?,
            mac: *rest.last_chunk()?,
            identifier: parameters.slice(3..3 + length),
        })
    }

    /// The parameters.
    pub fn encode(&self) -> Bytes {
        let mut out = self.signed();
        out.put_slice(&self.mac);
        out.freeze()
    }

    /// What stands before the MAC.
    fn signed(&self) -> BytesMut {
        let mut out = BytesMut::with_capacity(3 + self.identifier.len() + NONCE_LEN + MAC_LEN);
        out.put_u8(VERSION);
        out.put_u16(self.identifier.len() as u16);
        out.put_slice(&self.identifier);
        out.put_slice(&self.nonce);
        out
    }

    /// What the MAC is over: the name up to the parameters' digest, with its
    /// length before it, and the parameters.
    fn covered(&self, name: NameRef<'_>) -> Vec<u8> {
        let asked: Name = name
            .components()
            .filter(|component| !component.is_params_digest())
            .collect();
        let value = asked.value();
        [
            &(value.len() as u32).to_be_bytes()[..],
            value,
            &self.signed(),
        ]
        .concat()
    }

    /// Whether who asks has the token's password. In constant time.
    pub fn is_proven(&self, name: NameRef<'_>, password: &Secret) -> bool {
        hmac::verify(&password.mac_key(), &self.covered(name), &self.mac).is_ok()
    }

    /// The content of the answer to this request under `name`, the Interest's
    /// whole name: a nonce, then the sealed metadata and key.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn answer(&self, name: NameRef<'_>, password: &Secret, granted: &Granted) -> Result<Bytes> {
        let holder: [u8; NONCE_LEN] = random()?;
        let mut sealed = granted.encode(name);
        password
            .answer_key(&self.nonce, &holder)
            .seal_in_place_append_tag(only(), Aad::from(name.value()), &mut sealed)
            .map_err(|_| NativeError::Argument("answer too long to be sealed".into()))?;
        Ok([&holder[..], &sealed].concat().into())
    }
}

/// The one nonce of a key that seals one answer.
fn only() -> Nonce {
    Nonce::assume_unique_for_key([0; AEAD_NONCE_LEN])
}

/// A request on its way, and what opens its answer.
pub struct Asking {
    request: KeyRequest,
    password: Secret,
    name: Name,
}

impl Asking {
    /// A request for the key of `version`, `/<root>/blocks/<pool>/<id>/v=<genstamp>`.
    ///
    /// # Errors
    /// When the identifier is empty or too long, or there is no password.
    pub fn new(version: &Name, identifier: &[u8], password: &[u8]) -> Result<Self> {
        let refused = NativeError::Argument;
        if identifier.is_empty() || identifier.len() > MAX_IDENTIFIER {
            return Err(refused(format!(
                "block token's identifier of {} bytes",
                identifier.len()
            )));
        }
        let password = Secret::new(password)
            .ok_or_else(|| refused("block token without a password".into()))?;
        let asked = version.append_keyword(KEYWORD);
        let mut request = KeyRequest {
            identifier: Bytes::copy_from_slice(identifier),
            nonce: random()?,
            mac: [0; MAC_LEN],
        };
        let mac = hmac::sign(&password.mac_key(), &request.covered(asked.as_ref()));
        request.mac.copy_from_slice(mac.as_ref());
        let interest = Interest::builder(&asked)
            .application_parameters(request.encode())
            .build();
        let interest = Interest::parse(interest)
            .map_err(|e| NativeError::Failed(format!("content key of {version}: {e}")))?;
        Ok(Asking {
            request,
            password,
            name: interest.name_owned(),
        })
    }

    /// The Interest's whole name, which no other Interest has.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The Interest's parameters.
    pub fn parameters(&self) -> Bytes {
        self.request.encode()
    }

    /// What the content of an answer says; `None` when it was not made by who has
    /// the token's password, for this request, or is malformed.
    pub fn open(&self, content: &[u8]) -> Option<Granted> {
        let (holder, sealed) = content.split_first_chunk::<NONCE_LEN>()?;
        if sealed.len() < TAG_LEN {
            return None;
        }
        let mut plain = Zeroizing::new(sealed.to_vec());
        let plain = self
            .password
            .answer_key(&self.request.nonce, holder)
            .open_in_place(only(), Aad::from(self.name.value()), &mut plain)
            .ok()?;
        Granted::decode(plain)
    }
}

/// What a reader is given: what the replica is, and what its segments are sealed with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Names the key.
    pub id: KeyId,
    /// The key.
    pub key: WriteKey,
    /// Facts of the replica; without a manifest, which a key stands for.
    pub metadata: BlockMetadata,
}

impl Granted {
    /// Length of the key's id (1), id, key (16), metadata.
    fn encode(&self, name: NameRef<'_>) -> Vec<u8> {
        let id = self.id.to_bytes();
        let facts = self.facts(name);
        // One that grows would leave the key where it was.
        let mut out = Vec::with_capacity(1 + id.len() + WRITE_KEY_LEN + facts.len() + TAG_LEN);
        out.push(id.len() as u8);
        out.extend_from_slice(&id);
        out.extend_from_slice(self.key.bytes());
        out.extend_from_slice(&facts);
        out
    }

    fn facts(&self, name: NameRef<'_>) -> Vec<u8> {
        // Three components follow the block's name: version, keyword, digest.
        let block: Name = name
            .components()
            .take(name.len().saturating_sub(3))
            .collect();
        let facts = BlockMetadata {
            manifest_digest: None,
            ..self.metadata
        };
        facts.encode(&block).to_vec()
    }

    fn decode(plain: &[u8]) -> Option<Self> {
        let (length, rest) = plain.split_first()?;
        let (id, rest) = rest.split_at_checked(usize::from(*length))?;
        let (key, facts) = rest.split_first_chunk::<WRITE_KEY_LEN>()?;
        Some(Granted {
            id: KeyId::from_bytes(id)?,
            key: WriteKey::new(key),
            metadata: BlockMetadata::decode(facts).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PASSWORD: &[u8] = b"twenty bytes of HMAC";

    fn version() -> Name {
        "/hadoop/blocks/BP-1/7/v=1001".parse().unwrap()
    }

    fn replica_id(serial: u32) -> KeyId {
        KeyId::Replica {
            serial,
            gate: *b"the gate",
            id: *b"12345678",
        }
    }

    fn granted() -> Granted {
        Granted {
            id: replica_id(77),
            key: WriteKey::new(&[5; WRITE_KEY_LEN]),
            metadata: BlockMetadata {
                genstamp: 1001,
                length: 134_217_728,
                segment_bytes: 64_512,
                checksum_type: 2,
                bytes_per_checksum: 512,
                manifest_digest: None,
            },
        }
    }

    fn received(asking: &Asking) -> KeyRequest {
        let asked = version().append_keyword(KEYWORD);
        let interest = Interest::builder(&asked)
            .application_parameters(asking.parameters())
            .build();
        let interest = Interest::parse(interest).unwrap();
        assert_eq!(interest.name(), *asking.name());
        KeyRequest::decode(interest.application_parameters().unwrap()).unwrap()
    }

    #[test]
    fn a_reader_is_given_the_key() {
        let asking = Asking::new(&version(), b"identifier", PASSWORD).unwrap();
        let password = Secret::new(PASSWORD).unwrap();
        let request = received(&asking);
        assert_eq!(request.identifier, b"identifier"[..]);
        assert!(request.is_proven(asking.name().as_ref(), &password));
        let answer = request
            .answer(asking.name().as_ref(), &password, &granted())
            .unwrap();
        assert_eq!(asking.open(&answer), Some(granted()));
        assert!(!answer.windows(4).any(|w| w == [5; 4]), "the key is sealed");
        let again = request
            .answer(asking.name().as_ref(), &password, &granted())
            .unwrap();
        assert_ne!(answer, again, "each answer has a key of its own");
    }

    #[test]
    fn another_password_name_or_token_proves_nothing() {
        let asking = Asking::new(&version(), b"identifier", PASSWORD).unwrap();
        let password = Secret::new(PASSWORD).unwrap();
        let request = received(&asking);
        let name = asking.name().as_ref();
        assert!(!request.is_proven(name, &Secret::new(b"another").unwrap()));
        let other: Name = "/hadoop/blocks/BP-1/8/v=1001/32=content-key"
            .parse()
            .unwrap();
        assert!(!request.is_proven(other.as_ref(), &password));
        let forged = KeyRequest {
            identifier: Bytes::from_static(b"IDENTIFIER"),
            ..request
        };
        assert!(!forged.is_proven(name, &password));
    }

    /// Who replays a request, or answers one, without the password.
    #[test]
    fn an_answer_is_of_one_request_and_password() {
        let password = Secret::new(PASSWORD).unwrap();
        let first = Asking::new(&version(), b"identifier", PASSWORD).unwrap();
        let second = Asking::new(&version(), b"identifier", PASSWORD).unwrap();
        assert_ne!(first.name(), second.name());
        let answer = received(&first)
            .answer(first.name().as_ref(), &password, &granted())
            .unwrap();
        assert_eq!(second.open(&answer), None, "of another request");
        let stranger = Asking {
            request: first.request.clone(),
            password: Secret::new(b"guess").unwrap(),
            name: first.name.clone(),
        };
        assert_eq!(stranger.open(&answer), None, "without the password");
    }

    #[test]
    fn what_is_no_token_is_not_sent() {
        assert!(Asking::new(&version(), b"", PASSWORD).is_err());
        assert!(Asking::new(&version(), &[1; MAX_IDENTIFIER + 1], PASSWORD).is_err());
        assert!(Asking::new(&version(), b"identifier", b"").is_err());
        assert!(Asking::new(&version(), &[1; MAX_IDENTIFIER], PASSWORD).is_ok());
    }

    #[test]
    fn a_secret_is_wiped_when_it_is_let_go_of() {
        fn wiped<T: ZeroizeOnDrop>(_: &T) {}
        let mut secret = Secret::new(PASSWORD).unwrap();
        wiped(&secret);
        secret.wipe();
        assert!(secret.0.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn replica_keys_differ_with_all_they_are_made_of() {
        let secret = Secret::new(PASSWORD).unwrap();
        let key = secret.replica_key(1001, &[1; 32]);
        assert_eq!(key, secret.replica_key(1001, &[1; 32]));
        assert_ne!(key, secret.replica_key(1002, &[1; 32]));
        assert_ne!(key, secret.replica_key(1001, &[2; 32]));
        let other = Secret::new(b"another").unwrap();
        assert_ne!(key, other.replica_key(1001, &[1; 32]));
        assert_eq!(secret.gate(1001), secret.gate(1001));
        assert_ne!(secret.gate(1001), secret.gate(1002));
        assert_ne!(secret.gate(1001), other.gate(1001));
    }

    #[test]
    fn key_ids() {
        for id in [KeyId::Write(*b"abcdefgh"), replica_id(9)] {
            assert_eq!(KeyId::from_bytes(&id.to_bytes()), Some(id));
        }
        for bytes in [
            &b""[..],
            b"abcd",
            b"abcdefghi",
            b"twelve bytes",
            &[0; 19],
            &[0; 21],
        ] {
            assert_eq!(KeyId::from_bytes(bytes), None);
        }
    }

    #[test]
    fn secrets_have_no_text() {
        let asking = Asking::new(&version(), b"identifier", PASSWORD).unwrap();
        assert_eq!(format!("{:?}", asking.password), "Secret");
        assert!(format!("{:?}", granted()).contains("key: WriteKey,"));
    }

    proptest! {
        #[test]
        fn parameters_go_round(identifier in proptest::collection::vec(any::<u8>(), 1..=MAX_IDENTIFIER)) {
            let asking = Asking::new(&version(), &identifier, PASSWORD).unwrap();
            let request = KeyRequest::decode(asking.parameters()).unwrap();
            prop_assert_eq!(&request, &asking.request);
            prop_assert_eq!(request.encode(), asking.parameters());
        }

        #[test]
        fn any_parameters_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..5000), real: bool) {
            let mut bytes = bytes;
            if real && bytes.len() > 3 {
                bytes[0] = VERSION;
                let length = bytes.len().saturating_sub(3 + NONCE_LEN + MAC_LEN) as u16;
                bytes[1..3].copy_from_slice(&length.to_be_bytes());
            }
            if let Some(request) = KeyRequest::decode(bytes.clone().into()) {
                prop_assert_eq!(request.encode(), bytes);
                prop_assert!(request.identifier.len() <= MAX_IDENTIFIER);
                prop_assert!(!request.is_proven(version().as_ref(), &Secret::new(PASSWORD).unwrap()));
            }
        }

        #[test]
        fn a_changed_request_proves_nothing(at: usize, bit in 0..8u8) {
            let asking = Asking::new(&version(), b"identifier", PASSWORD).unwrap();
            let mut bytes = asking.parameters().to_vec();
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            if let Some(request) = KeyRequest::decode(bytes.into()) {
                prop_assert!(!request.is_proven(asking.name().as_ref(), &Secret::new(PASSWORD).unwrap()));
            }
        }

        #[test]
        fn a_changed_answer_does_not_open(at: usize, bit in 0..8u8) {
            let asking = Asking::new(&version(), b"identifier", PASSWORD).unwrap();
            let password = Secret::new(PASSWORD).unwrap();
            let answer = received(&asking).answer(asking.name().as_ref(), &password, &granted()).unwrap();
            let mut bytes = answer.to_vec();
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(asking.open(&bytes), None);
            prop_assert_eq!(asking.open(&answer[..at]), None);
        }

        #[test]
        fn any_plain_answer_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            drop(Granted::decode(&bytes));
        }
    }
}
