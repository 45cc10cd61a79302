//! What a policy for signatures means for an object's metadata, and for the segments below it.

use ndn_packet::{Data, signature_type};

use crate::rdr::Metadata;
use crate::{Distrust, ExchangeConfig, VerifyPolicy};

impl VerifyPolicy {
    /// Asks for an object's metadata. Where digests are all that is asked for, it does not matter whose signature the
    /// answer has: it is looked at by [`check_metadata`](Self::check_metadata) alone.
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
    ///
    /// # Errors
    /// Why it is not.
    pub fn check_metadata(&self, data: &Data, metadata: &Metadata) -> Result<(), Distrust> {
        let vouches = data.signature_type() != signature_type::DIGEST_SHA256
            && metadata.manifest_digest.is_some();
        match self.is_digest() && !vouches {
            true => self.check(data),
            false => Ok(()),
        }
    }

    /// What is checked of each segment of an object whose metadata tells this. Where a key has signed the digest of a
    /// manifest, segments have digests, and those are to be held against the manifest.
    #[must_use]
    pub fn of_segments(&self, metadata: &Metadata) -> Self {
        match metadata.manifest_digest.is_some() && self.wants_key() {
            true => Self::default(),
            false => self.clone(),
        }
    }
}
