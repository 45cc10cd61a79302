//! Keys that sign: DigestSha256, HMAC-SHA256, ECDSA P-256 and Ed25519.

use crate::pieces::{hmac_pieces, joined, sha256_pieces};
use crate::verifier::{ED25519_SPKI, P256_SPKI};
use crate::{KeyError, KeyLocator, KeyLocatorRef, Name, Signer, Verifier, sha256, signature_type};
use bytes::{BufMut, Bytes};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use std::fmt;

/// Longest DER encoding of an ECDSA P-256 signature, in bytes.
const ECDSA_P256_MAX: usize = 72;

/// A key that signs.
pub enum SigningKey {
    /// SHA-256 as a checksum; no key.
    DigestSha256,
    /// A shared secret.
    HmacSha256 {
        /// The secret.
        key: hmac::Key,
        /// KeyLocator to put into packets.
        locator: KeyLocator,
    },
    /// ECDSA on curve P-256 with SHA-256.
    EcdsaP256 {
        /// Private and public key.
        key: Box<EcdsaKeyPair>,
        /// KeyLocator to put into packets.
        locator: KeyLocator,
    },
    /// Ed25519.
    Ed25519 {
        /// Private and public key.
        key: Box<Ed25519KeyPair>,
        /// KeyLocator to put into packets.
        locator: KeyLocator,
    },
    /// No signature (SignatureType 200): for tests and measurements.
    Null,
}

impl SigningKey {
    /// A shared secret of any length (32 bytes or more are advised). Packets name it by the SHA-256 of the secret.
    pub fn hmac_sha256(secret: &[u8]) -> Self {
        SigningKey::HmacSha256 {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret),
            locator: KeyLocator::KeyDigest(Bytes::copy_from_slice(&sha256(secret))),
        }
    }

    /// An ECDSA P-256 key from PKCS#8 (DER) that holds the public key too, as openssl and
    /// [`SigningKey::generate_ecdsa_p256`] make it. Packets name it by the SHA-256 of its SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// [`KeyError::Pkcs8`] when the bytes are something else.
    pub fn ecdsa_p256_from_pkcs8(pkcs8: &[u8]) -> Result<Self, KeyError> {
        let key =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8, &SystemRandom::new())
                .map_err(|e| KeyError::Pkcs8("ECDSA P-256", e.to_string()))?;
        let locator = digest_of([P256_SPKI, key.public_key().as_ref()]);
        Ok(SigningKey::EcdsaP256 {
            key: Box::new(key),
            locator,
        })
    }

    /// An Ed25519 key from PKCS#8 (DER), with or without the public key. Packets name it by the SHA-256 of its
    /// SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// [`KeyError::Pkcs8`] when the bytes are something else.
    pub fn ed25519_from_pkcs8(pkcs8: &[u8]) -> Result<Self, KeyError> {
        let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8)
            .map_err(|e| KeyError::Pkcs8("Ed25519", e.to_string()))?;
        let locator = digest_of([ED25519_SPKI, key.public_key().as_ref()]);
        Ok(SigningKey::Ed25519 {
            key: Box::new(key),
            locator,
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

    /// The same key, naming itself so in packets. DigestSha256 and Null have no KeyLocator and stay as they are.
    #[must_use]
    pub fn with_key_name(self, name: Name) -> Self {
        let locator = KeyLocator::Name(name);
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
            | SigningKey::Ed25519 { locator, .. } => Some(locator.as_ref()),
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

/// KeyLocator of a public key, its SubjectPublicKeyInfo given in two pieces.
fn digest_of(spki: [&[u8]; 2]) -> KeyLocator {
    KeyLocator::KeyDigest(Bytes::copy_from_slice(&sha256_pieces(&spki)))
}
