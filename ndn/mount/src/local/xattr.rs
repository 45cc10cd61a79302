//! Extended attributes of what is in a repository.

use fuser::Errno;
use ndn_packet::Data;
use ndn_repo::{FileReader, RepoError};

use super::{Local, lock, told};
use crate::nodes::Kind;
use crate::xattr::{NAME, SIGNATURE, VERSION, VERSIONS, signature_text, versions_text};

impl Local {
    /// The attributes that an inode has.
    ///
    /// # Errors
    /// `ENOENT`.
    pub fn xattrs(&self, number: u64) -> Result<Vec<&'static str>, Errno> {
        Ok(match self.kind(number)? {
            Kind::Folder => vec![NAME],
            Kind::Version(_) | Kind::Newest(_) => vec![NAME, VERSION, SIGNATURE],
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
            return Ok(versions_text(versions.iter().rev().map(|v| v.version)));
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
            Err(RepoError::Damaged { .. }) => return Ok(b"damaged".to_vec()),
            Err(error) => return Err(told(&error)),
        };
        signature(&reader).map(String::into_bytes)
    }
}

fn signature(reader: &FileReader) -> Result<String, Errno> {
    let wire = match reader.metadata() {
        Ok(wire) => wire,
        Err(RepoError::Damaged { .. }) => return Ok(String::from("damaged")),
        Err(error) => return Err(told(&error)),
    };
    Ok(Data::parse(wire).map_or_else(|_| String::from("damaged"), |data| signature_text(&data)))
}
