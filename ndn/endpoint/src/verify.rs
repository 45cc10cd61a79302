//! Which signatures a reader believes.

use ndn_packet::{Data, Verifier};

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
    /// Whether this Data may be handed on. Takes one pass of the hash over the packet.
    pub fn holds(&self, data: &Data) -> bool {
        match self {
            Self::None => true,
            Self::Signed(verifier) => verifier.verify(data),
        }
    }
}
