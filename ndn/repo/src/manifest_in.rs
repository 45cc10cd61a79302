//! The manifest of a file version as readers elsewhere have it: the SignatureValues of all segments. Whoever trusts the
//! metadata's signature knows the manifest's digest by it, and by the manifest each segment.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use ring::digest;

use crate::repo::files::DIGEST_BYTES;

/// A manifest on its way here. It lies in a file without a name, however large it is.
pub struct ManifestIn {
    file: File,
    bytes: u64,
    most: u64,
    hash: digest::Context,
}

/// A manifest that is the one which was signed.
#[derive(Debug)]
pub struct SignedManifest {
    file: File,
    segments: u64,
}

impl ManifestIn {
    /// Nothing has come yet, of a file of at most so many segments.
    ///
    /// # Errors
    /// There is no room for temporary files.
    pub fn new(segments: u64) -> io::Result<Self> {
        Ok(Self {
            file: tempfile::tempfile()?,
            bytes: 0,
            most: segments.saturating_mul(DIGEST_BYTES as u64),
            hash: digest::Context::new(&digest::SHA256),
        })
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// `InvalidData` where there is nothing in it or more comes than there can be, so that no peer goes on for ever or
    /// fills a disk; else what the disk says.
    pub fn push(&mut self, content: &[u8]) -> io::Result<()> {
        let bytes = self.bytes.saturating_add(content.len() as u64);
        if content.is_empty() || bytes > self.most {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the manifest that comes is not the one of this file",
            ));
        }
        self.hash.update(content);
        self.bytes = bytes;
        self.file.write_all(content)
    }

    /// All has come; `None` when it is not what was signed.
    pub fn finish(self, signed: &[u8; 32]) -> Option<SignedManifest> {
        let whole = self.bytes.is_multiple_of(DIGEST_BYTES as u64);
        (whole && self.hash.finish().as_ref() == signed).then_some(SignedManifest {
            file: self.file,
            segments: self.bytes / DIGEST_BYTES as u64,
        })
    }
}

impl SignedManifest {
    /// Whether this is the SignatureValue of that segment.
    pub fn holds(&self, segment: u64, signature: &[u8]) -> bool {
        let mut digest = [0; DIGEST_BYTES];
        segment < self.segments
            && self
                .file
                .read_exact_at(&mut digest, segment * DIGEST_BYTES as u64)
                .is_ok()
            && digest == signature
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vouches_for_each_segment_once_it_is_the_signed_one() {
        let content = [[1; 32], [2; 32]].concat();
        let mut signed = [0; 32];
        signed.copy_from_slice(digest::digest(&digest::SHA256, &content).as_ref());
        let come = || {
            let mut manifest = ManifestIn::new(2).expect("a file");
            manifest.push(&content[..40]).expect("written");
            manifest.push(&content[40..]).expect("written");
            manifest
        };
        let manifest = come().finish(&signed).expect("the signed one");
        assert!(manifest.holds(0, &[1; 32]) && manifest.holds(1, &[2; 32]));
        assert!(!manifest.holds(0, &[2; 32]) && !manifest.holds(2, &[2; 32]));
        assert!(come().finish(&[0; 32]).is_none());
        for wrong in [&[][..], &[0; 1]] {
            let error = come().push(wrong).expect_err("no more, and no less");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }
}
