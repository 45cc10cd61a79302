//! Which signatures a reader believes.

use ndn_packet::{Data, Verifier, signature_type};

use crate::ExchangeConfig;
use crate::rdr::Metadata;

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

    /// Asks for an object's metadata. Where digests are all that is asked for, it does not matter whose signature the
    /// answer has: it is looked at by [`believes`](Self::believes) alone.
    #[must_use]
    pub fn asking(&self, question: ExchangeConfig) -> ExchangeConfig {
        ExchangeConfig {
            verify: match self.is_digest() {
                true => Self::None,
                false => self.clone(),
            },
            ..question
        }
    }

    /// Whether metadata that came as an answer to [`asking`](Self::asking) is believed: where digests alone are asked
    /// for, its digest must be right, or a key vouch by it for a manifest of digests. Whose key that is was not asked
    /// then. Other signatures were verified before.
    pub fn believes(&self, data: &Data, told: &Metadata) -> bool {
        !self.is_digest()
            || match data.signature_type() {
                signature_type::DIGEST_SHA256 => data.verify_digest(),
                _ => told.manifest_digest.is_some(),
            }
    }

    /// What is checked of each segment of an object whose metadata tells this. Where a key has signed the digest of a
    /// manifest, segments have digests, and those are to be held against the manifest.
    #[must_use]
    pub fn of_segments(&self, told: &Metadata) -> Self {
        match told.manifest_digest.is_some() && self.wants_key() {
            true => Self::default(),
            false => self.clone(),
        }
    }

    /// Whether this Data may be handed on. Takes one pass of the hash over the packet.
    pub fn holds(&self, data: &Data) -> bool {
        match self {
            Self::None => true,
            Self::Signed(verifier) => verifier.verify(data),
        }
    }
}
