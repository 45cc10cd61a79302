//! The manifest of a file version while it is needed by a reader elsewhere: on the disk, however large it is.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use ndn_endpoint::ManifestStore;

use crate::repo::files::DIGEST_BYTES;

/// A manifest in a file without a name, which is made when the first of it comes.
#[derive(Debug, Default)]
pub struct ManifestFile {
    file: Option<File>,
}

impl ManifestStore for ManifestFile {
    fn append(&mut self, digests: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        file.write_all(digests)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.file = None;
        Ok(())
    }

    fn digest(&self, segment: u64) -> Option<[u8; DIGEST_BYTES]> {
        let mut digest = [0; DIGEST_BYTES];
        let at = segment.checked_mul(DIGEST_BYTES as u64)?;
        let read = self.file.as_ref()?.read_exact_at(&mut digest, at);
        read.ok().map(|()| digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_each_digest_that_came() {
        let mut manifest = ManifestFile::default();
        assert_eq!(manifest.digest(0), None);
        let content = [[1; 32], [2; 32]].concat();
        manifest.append(&content[..40]).expect("room");
        manifest.append(&content[40..]).expect("room");
        assert_eq!(manifest.digest(0), Some([1; 32]));
        assert_eq!(manifest.digest(1), Some([2; 32]));
        assert_eq!(
            (manifest.digest(2), manifest.digest(u64::MAX)),
            (None, None)
        );
        manifest.clear().expect("empty");
        assert_eq!(manifest.digest(0), None);
        manifest.append(&[3; 32]).expect("room");
        assert_eq!(manifest.digest(0), Some([3; 32]));
    }
}
