//! Which signatures a reader believes.

use std::fmt;

use ndn_packet::{BatchSignature, Data, KeyLocator, KnownRoots, Verifier, signature_type};

/// What must be true of the signature of each Data before it is handed on.
#[derive(Debug, Clone)]
pub enum VerifyPolicy {
    /// Nothing is checked here: whoever reads checks on a thread of its own and calls
    /// [`Consumer::reject`](crate::Consumer::reject) for what fails.
    None,
    /// The signature holds under this verifier: a digest, an HMAC secret, an ECDSA P-256 or an Ed25519 key.
    Signed(Verifier),
}

/// DigestSha256: finds corruption, says nothing of who made the packet.
impl Default for VerifyPolicy {
    fn default() -> Self {
        Self::Signed(Verifier::DigestSha256)
    }
}

impl VerifyPolicy {
    /// Whether digests are all that is asked for.
    pub fn is_digest(&self) -> bool {
        matches!(self, Self::Signed(Verifier::DigestSha256))
    }

    /// Whether a key's signature is asked for.
    pub fn wants_key(&self) -> bool {
        matches!(self, Self::Signed(_)) && !self.is_digest()
    }

    /// Whether this Data may be handed on. Takes one pass of the hash over the packet.
    pub fn holds(&self, data: &Data) -> bool {
        match self {
            Self::None => true,
            Self::Signed(verifier) => verifier.verify(data),
        }
    }

    /// As [`holds`](Self::holds), with the reason.
    ///
    /// # Errors
    /// Why this Data may not be handed on.
    pub fn check(&self, data: &Data) -> Result<(), Distrust> {
        self.check_with(data, &mut KnownRoots::default())
    }

    /// As [`check`](Self::check), for one packet after the other: a signature that a batch of them has together is
    /// verified once. The `known` roots are to be this policy's alone.
    ///
    /// # Errors
    /// As there.
    pub fn check_with(&self, data: &Data, known: &mut KnownRoots) -> Result<(), Distrust> {
        let Self::Signed(verifier) = self else {
            return Ok(());
        };
        if verifier.verify_with(data, known) {
            return Ok(());
        }
        let wanted = verifier.signature_type();
        if self.is_digest() && data.signature_type() == wanted {
            return Err(Distrust::Corrupt);
        }
        let by = SignedBy::of(data);
        Err(match by.signature_type {
            signature_type::DIGEST_SHA256 | signature_type::NULL => Distrust::Unsigned,
            found if found == wanted => Distrust::WrongKey(by),
            _ => Distrust::UnknownKey(by),
        })
    }
}

/// Why a Data is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    /// It has a digest, which is not its content's.
    #[error("its digest does not hold: the packet was changed on its way")]
    Corrupt,
    /// It has a digest or nothing, where a key's signature is asked for.
    #[error("it has no key's signature")]
    Unsigned,
    /// It is signed by a key of another kind than the one that is trusted, or where none is.
    #[error("it is signed by {0}, which is not known here")]
    UnknownKey(SignedBy),
    /// It is signed by a key of the right kind, but the signature does not hold under the trusted one.
    #[error("its signature by {0} does not hold under the key that is trusted")]
    WrongKey(SignedBy),
    /// It is a segment whose SignatureValue the signed manifest does not have.
    #[error("it is not the segment that was signed")]
    NotTheSigned,
    /// Whoever read it found it bad.
    #[error("its content is not what it should be")]
    Refused,
    /// It is longer than [`max_packet_bytes`](crate::ConsumerConfig::max_packet_bytes).
    #[error("its packet is too long")]
    TooLong,
}

impl Distrust {
    /// What its reader may do about it.
    pub fn way_out(&self) -> &'static str {
        match self {
            Self::Corrupt | Self::NotTheSigned => "does a cache or a link on the way damage it?",
            Self::Unsigned => "does its producer sign?",
            Self::UnknownKey(_) => "name its public key as the one to verify with, if you trust it",
            Self::WrongKey(_) => "is the key the right one?",
            Self::Refused | Self::TooLong => "see what its producer makes",
        }
    }
}

/// The key that a packet says has signed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedBy {
    /// SignatureType number.
    pub signature_type: u64,
    /// The packet's KeyLocator.
    pub key: Option<KeyLocator>,
}

impl SignedBy {
    fn of(data: &Data) -> Self {
        let (signature_type, key) = match BatchSignature::of(data) {
            Ok(Some(batch)) => (batch.signature_type, batch.key_locator),
            _ => (data.signature_type(), data.key_locator()),
        };
        Self {
            signature_type,
            key: key.map(|locator| locator.to_owned()),
        }
    }
}

impl fmt::Display for SignedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.signature_type {
            signature_type::SHA256_WITH_RSA => "RSA",
            signature_type::SHA256_WITH_ECDSA => "ECDSA",
            signature_type::HMAC_WITH_SHA256 => "HMAC",
            signature_type::ED25519 => "Ed25519",
            other => return write!(f, "a key of the unknown SignatureType {other}"),
        };
        match &self.key {
            Some(key) => write!(f, "{kind} key {key}"),
            None => write!(f, "an {kind} key that it does not name"),
        }
    }
}
