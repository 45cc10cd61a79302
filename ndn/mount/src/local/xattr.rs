//! Extended attributes: what a file is in named data.
//!
//! | attribute | value |
//! |---|---|
//! | `user.ndn.name` | name without version |
//! | `user.ndn.version` | version; not there while the file is being written |
//! | `user.ndn.versions` | all versions, the newest first, a line each, as many as have room |
//! | `user.ndn.signature` | `unpublished`, `damaged`, or how the version is signed and by which key |

use fuser::Errno;
use ndn_packet::{Data, KeyLocatorRef, signature_type};
use ndn_repo::{FileReader, RepoError};

use super::{Local, lock, told};
use crate::nodes::Kind;

const NAME: &str = "user.ndn.name";
const VERSION: &str = "user.ndn.version";
const VERSIONS: &str = "user.ndn.versions";
const SIGNATURE: &str = "user.ndn.signature";
/// Begins all of them.
pub const PREFIX: &str = "user.ndn.";
/// Most bytes of a value that the system takes.
const MAX_VALUE: usize = 64 * 1024;

impl Local {
    /// The attributes that an inode has.
    ///
    /// # Errors
    /// `ENOENT`.
    pub fn xattrs(&self, number: u64) -> Result<Vec<&'static str>, Errno> {
        Ok(match self.kind(number)? {
            Kind::Folder => vec![NAME],
            Kind::Version(_) => vec![NAME, VERSION, SIGNATURE],
            Kind::File if self.is_written(number) => vec![NAME, VERSIONS, SIGNATURE],
            Kind::File => vec![NAME, VERSION, VERSIONS, SIGNATURE],
        })
    }

    fn is_written(&self, number: u64) -> bool {
        self.open_file(number)
            .is_some_and(|opened| lock(&opened.file).version().is_none())
    }

    /// The value of an attribute.
    ///
    /// # Errors
    /// `ENODATA`, or what the repository says.
    pub fn xattr(&self, number: u64, attribute: &str) -> Result<Vec<u8>, Errno> {
        if !self.xattrs(number)?.contains(&attribute) {
            return Err(Errno::ENODATA);
        }
        let name = self.name(number)?;
        if attribute == NAME {
            return Ok(name.to_string().into_bytes());
        }
        if attribute == VERSIONS {
            let versions = self.repo.versions(&name).map_err(|e| told(&e))?;
            let mut text = String::new();
            for info in versions.iter().rev() {
                let line = format!("{}\n", info.version);
                if text.len() + line.len() > MAX_VALUE {
                    break;
                }
                text.push_str(&line);
            }
            return Ok(text.into_bytes());
        }
        if self.is_written(number) {
            return Ok(b"unpublished".to_vec());
        }
        let version = match self.kind(number)? {
            Kind::Version(version) => Some(version),
            _ => None,
        };
        let found = self.repo.find(&name, version).map_err(|e| told(&e))?;
        let info = found.ok_or(Errno::ENOENT)?;
        if attribute == VERSION {
            return Ok(info.version.to_string().into_bytes());
        }
        let reader = match self.repo.open_file(&name, Some(info.version)) {
            Ok(reader) => reader,
            Err(RepoError::Rotten { .. }) => return Ok(b"damaged".to_vec()),
            Err(error) => return Err(told(&error)),
        };
        signature(&reader).map(String::into_bytes)
    }
}

/// How the metadata packet is signed, which vouches for the whole version.
fn signature(reader: &FileReader) -> Result<String, Errno> {
    let wire = match reader.metadata() {
        Ok(wire) => wire,
        Err(RepoError::Rotten { .. }) => return Ok(String::from("damaged")),
        Err(error) => return Err(told(&error)),
    };
    let Ok(data) = Data::parse(wire) else {
        return Ok(String::from("damaged"));
    };
    let how = match data.signature_type() {
        signature_type::DIGEST_SHA256 => return Ok(String::from("digest")),
        signature_type::HMAC_WITH_SHA256 => "hmac",
        signature_type::SHA256_WITH_ECDSA => "ecdsa",
        signature_type::ED25519 => "ed25519",
        _ => "signed",
    };
    Ok(match data.key_locator() {
        Some(KeyLocatorRef::Name(name)) => format!("{how} {}", name.to_name()),
        _ => how.to_owned(),
    })
}
