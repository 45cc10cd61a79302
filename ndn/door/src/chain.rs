//! Who made a version, as far as it can be known: the manifest's digest against the signed metadata, and that signature
//! against the owner's key. Done once for each version, kept for the last few.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use ndn_packet::{Data, Name, Verifier, signature_type};
use ndn_repo::{FileReader, RepoError};

/// Versions whose check is remembered.
const KEPT: usize = 256;

/// What vouches for a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voucher {
    /// Whether a key stands behind it: without one the bytes are whole, whoever made them.
    pub is_signed: bool,
    /// The kind of signature, in NDN's words.
    pub algorithm: &'static str,
    /// The key, as the packet names it.
    pub key: Option<String>,
}

/// Why a version is not served.
#[derive(Debug, thiserror::Error)]
pub enum Distrust {
    /// What the repository says.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// Another key, or a wrong signature.
    #[error(
        "{name}: {algorithm} signature{by} is not one of the owner's key; put it again under this key, or open the repository with the key that signed it"
    )]
    Signature {
        /// The version.
        name: Name,
        /// The kind of signature.
        algorithm: &'static str,
        /// Whose it says it is.
        by: String,
    },
}

/// Checks versions.
pub struct Chain {
    owner: Verifier,
    /// Versions by name and content: one that was removed may come again with other content.
    checked: Mutex<VecDeque<(Name, u64, Arc<Voucher>)>>,
}

impl Chain {
    /// For what the key of `owner` has signed.
    pub fn new(owner: Verifier) -> Self {
        Self {
            owner,
            checked: Mutex::default(),
        }
    }

    /// Checks the version up to its manifest. Reads all of that the first time: 36 bytes for each segment.
    ///
    /// # Errors
    /// It does not verify, or can't be read.
    pub fn check(&self, reader: &FileReader) -> Result<Arc<Voucher>, Distrust> {
        let name = reader.versioned();
        if let Some(voucher) = self.known(name, reader.entry().content) {
            return Ok(voucher);
        }
        let metadata = reader.verify_manifest()?;
        let voucher = voucher(&metadata);
        if !self.owner.verify(&metadata) {
            return Err(Distrust::Signature {
                name: name.clone(),
                algorithm: voucher.algorithm,
                by: voucher.key.map(|k| format!(" by {k}")).unwrap_or_default(),
            });
        }
        let voucher = Arc::new(voucher);
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if checked.len() == KEPT {
            checked.pop_front();
        }
        checked.push_back((name.clone(), reader.entry().content, voucher.clone()));
        Ok(voucher)
    }

    fn known(&self, name: &Name, content: u64) -> Option<Arc<Voucher>> {
        let checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        checked
            .iter()
            .find(|(known, id, _)| known == name && *id == content)
            .map(|(_, _, voucher)| voucher.clone())
    }
}

fn voucher(metadata: &Data) -> Voucher {
    let (is_signed, algorithm) = match metadata.signature_type() {
        signature_type::DIGEST_SHA256 => (false, "DigestSha256"),
        signature_type::HMAC_WITH_SHA256 => (true, "HmacWithSha256"),
        signature_type::SHA256_WITH_ECDSA => (true, "Sha256WithEcdsa"),
        signature_type::ED25519 => (true, "Ed25519"),
        signature_type::NULL => (false, "Null"),
        _ => (false, "unknown"),
    };
    let key = metadata.key_locator().map(|locator| locator.to_string());
    Voucher {
        is_signed,
        algorithm,
        key,
    }
}
