//! Extended attributes of what is in a repository elsewhere.

use fuser::Errno;
use ndn_endpoint::VerifyPolicy;
use ndn_packet::Verifier;

use super::Remote;
use crate::nodes::Kind;
use crate::xattr::{NAME, SIGNATURE, VERIFIED, VERSION, VERSIONS, versions_text};

impl Remote {
    /// The attributes that an inode has.
    ///
    /// # Errors
    /// `ENOENT`.
    pub(super) fn xattrs(&self, number: u64) -> Result<Vec<&'static str>, Errno> {
        Ok(match self.kind(number)? {
            Kind::Folder => vec![NAME],
            Kind::Version(_) => vec![NAME, VERSION, SIGNATURE, VERIFIED],
            _ => vec![NAME, VERSION, VERSIONS, SIGNATURE, VERIFIED],
        })
    }

    /// The value of an attribute.
    ///
    /// # Errors
    /// `ENODATA`, or why it is not known.
    pub(super) fn xattr(&self, number: u64, attribute: &str) -> Result<Vec<u8>, Errno> {
        if !self.xattrs(number)?.contains(&attribute) {
            return Err(Errno::ENODATA);
        }
        let name = self.name(number)?;
        Ok(match attribute {
            NAME => name.to_string().into_bytes(),
            VERSIONS => {
                let versions = self.versions(&name).map_err(|e| e.errno())?;
                versions_text(versions.iter().copied())
            }
            VERSION => self.version_of(number)?.version.to_string().into_bytes(),
            SIGNATURE => self.version_of(number)?.signature.clone().into_bytes(),
            _ => match &self.options.verify {
                VerifyPolicy::None => &b"none"[..],
                VerifyPolicy::Signed(Verifier::DigestSha256 | Verifier::Null) => b"digest",
                VerifyPolicy::Signed(Verifier::HmacSha256(_)) => b"hmac",
                VerifyPolicy::Signed(_) => b"key",
            }
            .to_vec(),
        })
    }
}
