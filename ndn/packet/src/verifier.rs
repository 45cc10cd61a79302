//! Keys that verify: DigestSha256, HMAC-SHA256, ECDSA P-256 and Ed25519.

use crate::pieces::{hmac_pieces, joined, sha256_pieces};
use crate::{KeyError, KnownRoots, signature_type};
use ring::hmac;
use ring::signature::{ECDSA_P256_SHA256_ASN1, ED25519, UnparsedPublicKey};
use std::fmt;

/// What precedes the 65-byte point of a P-256 key in a SubjectPublicKeyInfo.
pub(crate) const P256_SPKI: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// What precedes the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo.
pub(crate) const ED25519_SPKI: &[u8] = &[
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

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

    /// Whether it says who made a packet: there is a key.
    pub fn is_key(&self) -> bool {
        !matches!(self, Verifier::DigestSha256 | Verifier::Null)
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

    /// Whether the Data is signed by this key, alone or in a [`Batch`](crate::Batch).
    pub fn verify(&self, data: &crate::Data) -> bool {
        self.verify_with(data, &mut KnownRoots::default())
    }

    /// As [`verify`](Self::verify); a batch's signature is verified once for each of the `known` roots, which are to be
    /// this verifier's alone.
    pub fn verify_with(&self, data: &crate::Data, known: &mut KnownRoots) -> bool {
        if self.is_key() && data.signature_type() == signature_type::DIGEST_SHA256 {
            return self.verify_batched(data, known);
        }
        self.verify_pieces(
            data.signature_type(),
            &[data.signed_portion()],
            data.signature_value(),
        )
    }

    /// Whether the Interest is signed by this key, and its name ends with the right parameters digest.
    pub fn verify_interest(&self, interest: &crate::Interest) -> bool {
        match (interest.signature_info(), interest.signature_value()) {
            (Some(info), Some(value)) => {
                interest.name().last().is_some_and(|c| c.is_params_digest())
                    && interest.verify_params_digest()
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
