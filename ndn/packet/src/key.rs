//! Keys: signing and verifying with DigestSha256, HMAC-SHA256, ECDSA P-256 and Ed25519.
//!
//! Signed portions come as pieces, because an Interest's is not contiguous.

use crate::{KeyError, KeyLocator, KeyLocatorRef, Name, signature_type};
use bytes::BufMut;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair, UnparsedPublicKey,
};
use ring::{digest, hmac};
use std::borrow::Cow;
use std::fmt;

/// Longest DER encoding of an ECDSA P-256 signature, in bytes.
const ECDSA_P256_MAX: usize = 72;
/// What precedes the 65-byte point of a P-256 key in a SubjectPublicKeyInfo.
const P256_SPKI: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// What precedes the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo.
const ED25519_SPKI: &[u8] = &[
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// SHA-256 of `bytes`.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    sha256_pieces(&[bytes])
}

/// SHA-256 of the pieces, one after the other.
pub(crate) fn sha256_pieces(pieces: &[&[u8]]) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    for piece in pieces {
        context.update(piece);
    }
    let mut out = [0; 32];
    out.copy_from_slice(context.finish().as_ref());
    out
}

/// What signs packets: [`SigningKey`], or a key kept elsewhere.
pub trait Signer {
    /// SignatureType number.
    fn signature_type(&self) -> u64;
    /// KeyLocator to put into the packet.
    fn key_locator(&self) -> Option<KeyLocatorRef<'_>>;
    /// Greatest number of bytes that [`Signer::sign`] writes.
    fn max_signature_len(&self) -> usize;
    /// Writes the signature over the pieces of the signed portion, one after the other.
    fn sign(&self, pieces: &[&[u8]], signature: &mut dyn BufMut);
}

/// A key that signs.
pub enum SigningKey {
    /// SHA-256 as a checksum; no key.
    DigestSha256,
    /// A shared secret.
    HmacSha256 {
        /// The secret.
        key: hmac::Key,
        /// KeyLocator to put into packets.
        locator: Option<KeyLocator>,
    },
    /// ECDSA on curve P-256 with SHA-256.
    EcdsaP256 {
        /// Private and public key.
        key: Box<EcdsaKeyPair>,
        /// KeyLocator to put into packets.
        locator: Option<KeyLocator>,
    },
    /// Ed25519.
    Ed25519 {
        /// Private and public key.
        key: Box<Ed25519KeyPair>,
        /// KeyLocator to put into packets.
        locator: Option<KeyLocator>,
    },
    /// No signature (SignatureType 200): for tests and measurements.
    Null,
}

impl SigningKey {
    /// A shared secret of any length (32 bytes or more are advised).
    pub fn hmac_sha256(secret: &[u8]) -> Self {
        SigningKey::HmacSha256 {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret),
            locator: None,
        }
    }

    /// An ECDSA P-256 key from PKCS#8 (DER) that holds the public key too, as openssl and [`SigningKey::generate_ecdsa_p256`] make it.
    ///
    /// # Errors
    /// [`KeyError::Pkcs8`] when the bytes are something else.
    pub fn ecdsa_p256_from_pkcs8(pkcs8: &[u8]) -> Result<Self, KeyError> {
        let key =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8, &SystemRandom::new())
                .map_err(|e| KeyError::Pkcs8("ECDSA P-256", e.to_string()))?;
        Ok(SigningKey::EcdsaP256 {
            key: Box::new(key),
            locator: None,
        })
    }

    /// An Ed25519 key from PKCS#8 (DER), with or without the public key.
    ///
    /// # Errors
    /// [`KeyError::Pkcs8`] when the bytes are something else.
    pub fn ed25519_from_pkcs8(pkcs8: &[u8]) -> Result<Self, KeyError> {
        let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8)
            .map_err(|e| KeyError::Pkcs8("Ed25519", e.to_string()))?;
        Ok(SigningKey::Ed25519 {
            key: Box::new(key),
            locator: None,
        })
    }

    /// A new ECDSA P-256 key as PKCS#8 (DER).
    ///
    /// # Errors
    /// [`KeyError::Random`] when the system gives no random bytes.
    pub fn generate_ecdsa_p256() -> Result<Vec<u8>, KeyError> {
        EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new())
            .map(|d| d.as_ref().to_vec())
            .map_err(|_| KeyError::Random)
    }

    /// A new Ed25519 key as PKCS#8 (DER).
    ///
    /// # Errors
    /// [`KeyError::Random`] when the system gives no random bytes.
    pub fn generate_ed25519() -> Result<Vec<u8>, KeyError> {
        Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
            .map(|d| d.as_ref().to_vec())
            .map_err(|_| KeyError::Random)
    }

    /// A new secret of 32 bytes for [`SigningKey::hmac_sha256`].
    ///
    /// # Errors
    /// [`KeyError::Random`] when the system gives no random bytes.
    pub fn generate_secret() -> Result<[u8; 32], KeyError> {
        let mut secret = [0; 32];
        SystemRandom::new()
            .fill(&mut secret)
            .map_err(|_| KeyError::Random)?;
        Ok(secret)
    }

    /// The same key, naming itself in packets. DigestSha256 and Null have no KeyLocator and stay as they are.
    #[must_use]
    pub fn with_key_name(self, name: Name) -> Self {
        let locator = Some(KeyLocator::Name(name));
        match self {
            SigningKey::HmacSha256 { key, .. } => SigningKey::HmacSha256 { key, locator },
            SigningKey::EcdsaP256 { key, .. } => SigningKey::EcdsaP256 { key, locator },
            SigningKey::Ed25519 { key, .. } => SigningKey::Ed25519 { key, locator },
            keyless => keyless,
        }
    }

    /// What verifies this key's signatures.
    pub fn verifier(&self) -> Verifier {
        match self {
            SigningKey::DigestSha256 => Verifier::DigestSha256,
            SigningKey::HmacSha256 { key, .. } => Verifier::HmacSha256(key.clone()),
            SigningKey::EcdsaP256 { key, .. } => {
                Verifier::EcdsaP256(key.public_key().as_ref().to_vec())
            }
            SigningKey::Ed25519 { key, .. } => {
                Verifier::Ed25519(key.public_key().as_ref().to_vec())
            }
            SigningKey::Null => Verifier::Null,
        }
    }
}

impl Signer for SigningKey {
    fn signature_type(&self) -> u64 {
        match self {
            SigningKey::DigestSha256 => signature_type::DIGEST_SHA256,
            SigningKey::HmacSha256 { .. } => signature_type::HMAC_WITH_SHA256,
            SigningKey::EcdsaP256 { .. } => signature_type::SHA256_WITH_ECDSA,
            SigningKey::Ed25519 { .. } => signature_type::ED25519,
            SigningKey::Null => signature_type::NULL,
        }
    }

    fn key_locator(&self) -> Option<KeyLocatorRef<'_>> {
        match self {
            SigningKey::HmacSha256 { locator, .. }
            | SigningKey::EcdsaP256 { locator, .. }
            | SigningKey::Ed25519 { locator, .. } => locator.as_ref().map(KeyLocator::as_ref),
            SigningKey::DigestSha256 | SigningKey::Null => None,
        }
    }

    fn max_signature_len(&self) -> usize {
        match self {
            SigningKey::DigestSha256 | SigningKey::HmacSha256 { .. } => 32,
            SigningKey::EcdsaP256 { .. } => ECDSA_P256_MAX,
            SigningKey::Ed25519 { .. } => 64,
            SigningKey::Null => 0,
        }
    }

    /// # Panics
    /// With ECDSA, when the system's random source fails.
    fn sign(&self, pieces: &[&[u8]], signature: &mut dyn BufMut) {
        match self {
            SigningKey::DigestSha256 => signature.put_slice(&sha256_pieces(pieces)),
            SigningKey::HmacSha256 { key, .. } => {
                signature.put_slice(hmac_pieces(key, pieces).as_ref())
            }
            SigningKey::EcdsaP256 { key, .. } => {
                let made = key
                    .sign(&SystemRandom::new(), &joined(pieces))
                    .expect("the system's random source works");
                signature.put_slice(made.as_ref());
            }
            SigningKey::Ed25519 { key, .. } => {
                signature.put_slice(key.sign(&joined(pieces)).as_ref())
            }
            SigningKey::Null => {}
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SigningKey(type {}, {:?})",
            self.signature_type(),
            self.key_locator()
        )
    }
}

/// What checks signatures of one key.
#[derive(Clone)]
pub enum Verifier {
    /// Checks the digest: the bytes are whole, whoever made them.
    DigestSha256,
    /// A shared secret.
    HmacSha256(hmac::Key),
    /// Uncompressed point of an ECDSA P-256 key, 65 bytes.
    EcdsaP256(Vec<u8>),
    /// Ed25519 public key, 32 bytes.
    Ed25519(Vec<u8>),
    /// Accepts packets that say they carry no signature.
    Null,
}

impl Verifier {
    /// A shared secret.
    pub fn hmac_sha256(secret: &[u8]) -> Self {
        Verifier::HmacSha256(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// A public key from SubjectPublicKeyInfo (DER), as NDN certificates carry it.
    ///
    /// # Errors
    /// [`KeyError::PublicKey`] for keys other than P-256 (uncompressed) and Ed25519.
    pub fn from_spki(spki: &[u8]) -> Result<Self, KeyError> {
        match (
            spki.strip_prefix(P256_SPKI),
            spki.strip_prefix(ED25519_SPKI),
        ) {
            (Some(point), _) if point.len() == 65 => Ok(Verifier::EcdsaP256(point.to_vec())),
            (_, Some(key)) if key.len() == 32 => Ok(Verifier::Ed25519(key.to_vec())),
            _ => Err(KeyError::PublicKey),
        }
    }

    /// The public key as SubjectPublicKeyInfo (DER); `None` for kinds without a public key.
    pub fn to_spki(&self) -> Option<Vec<u8>> {
        match self {
            Verifier::EcdsaP256(point) => Some([P256_SPKI, point].concat()),
            Verifier::Ed25519(key) => Some([ED25519_SPKI, key].concat()),
            Verifier::DigestSha256 | Verifier::HmacSha256(_) | Verifier::Null => None,
        }
    }

    /// SignatureType number that this verifier checks.
    pub fn signature_type(&self) -> u64 {
        match self {
            Verifier::DigestSha256 => signature_type::DIGEST_SHA256,
            Verifier::HmacSha256(_) => signature_type::HMAC_WITH_SHA256,
            Verifier::EcdsaP256(_) => signature_type::SHA256_WITH_ECDSA,
            Verifier::Ed25519(_) => signature_type::ED25519,
            Verifier::Null => signature_type::NULL,
        }
    }

    /// Whether `signature`, said to be of `signature_type`, is this key's over the pieces.
    pub fn verify_pieces(&self, signature_type: u64, pieces: &[&[u8]], signature: &[u8]) -> bool {
        if signature_type != self.signature_type() {
            return false;
        }
        match self {
            Verifier::DigestSha256 => sha256_pieces(pieces) == signature,
            Verifier::HmacSha256(key) => {
                // A MAC of the received one under the same key compares in constant time.
                let expected = hmac_pieces(key, pieces);
                signature.len() == 32
                    && hmac::verify(key, expected.as_ref(), hmac::sign(key, signature).as_ref())
                        .is_ok()
            }
            Verifier::EcdsaP256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point)
                .verify(&joined(pieces), signature)
                .is_ok(),
            Verifier::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key)
                .verify(&joined(pieces), signature)
                .is_ok(),
            Verifier::Null => signature.is_empty(),
        }
    }

    /// Whether the Data is signed by this key.
    pub fn verify(&self, data: &crate::Data) -> bool {
        self.verify_pieces(
            data.signature_type(),
            &[data.signed_portion()],
            data.signature_value(),
        )
    }

    /// Whether the Interest is signed by this key; its parameters digest is checked too.
    pub fn verify_interest(&self, interest: &crate::Interest) -> bool {
        match (interest.signature_info(), interest.signature_value()) {
            (Some(info), Some(value)) => {
                interest.verify_params_digest()
                    && self.verify_pieces(info.signature_type, &interest.signed_portion(), value)
            }
            _ => false,
        }
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Verifier(type {})", self.signature_type())
    }
}

fn hmac_pieces(key: &hmac::Key, pieces: &[&[u8]]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(key);
    for piece in pieces {
        context.update(piece);
    }
    context.sign()
}

fn joined<'a>(pieces: &[&'a [u8]]) -> Cow<'a, [u8]> {
    match pieces {
        [one] => Cow::Borrowed(one),
        many => Cow::Owned(many.concat()),
    }
}
