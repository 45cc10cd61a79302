//! The manifest of a version: the SignatureValues of all its segments, one after the other, each a SHA-256. Whoever trusts
//! the metadata's signature knows the manifest's digest by it, and by the manifest each segment.

use std::fmt::Debug;
use std::io;

use ndn_packet::Data;
use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};

use super::FetchError;

/// Where a manifest is kept: it has 32 bytes for each segment of an object of any size.
pub trait ManifestStore: Debug + Send + Sync {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// There is no room for them.
    fn append(&mut self, digests: &[u8]) -> io::Result<()>;

    /// Forgets all, to be filled anew.
    ///
    /// # Errors
    /// The store can't be emptied.
    fn clear(&mut self) -> io::Result<()>;

    /// The digest of a segment; `None` where it can't be read.
    fn digest(&self, segment: u64) -> Option<[u8; SHA256_OUTPUT_LEN]>;
}

/// A manifest in memory.
#[derive(Debug)]
pub struct InMemory {
    digests: Vec<u8>,
    most: usize,
}

impl InMemory {
    /// Room for `most` bytes.
    pub fn new(most: usize) -> Self {
        Self {
            digests: Vec::new(),
            most,
        }
    }
}

impl ManifestStore for InMemory {
    fn append(&mut self, digests: &[u8]) -> io::Result<()> {
        if digests.len() > self.most - self.digests.len() {
            return Err(io::Error::other(format!("it may have {} bytes", self.most)));
        }
        self.digests.extend_from_slice(digests);
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.digests.clear();
        Ok(())
    }

    fn digest(&self, segment: u64) -> Option<[u8; SHA256_OUTPUT_LEN]> {
        let at = usize::try_from(segment).ok()?;
        self.digests.as_chunks().0.get(at).copied()
    }
}

/// A manifest that is the one which was signed.
#[derive(Debug)]
pub struct Manifest {
    store: Box<dyn ManifestStore>,
    segments: u64,
}

impl Manifest {
    /// Whether this is the SignatureValue of that segment.
    pub fn holds(&self, segment: u64, signature_value: &[u8]) -> bool {
        segment < self.segments
            && self
                .store
                .digest(segment)
                .is_some_and(|digest| digest == signature_value)
    }
}

/// A manifest on its way here.
#[derive(Debug)]
pub(super) struct IncomingManifest {
    store: Box<dyn ManifestStore>,
    hash: Hash,
    bytes: u64,
    most: u64,
    signed: [u8; SHA256_OUTPUT_LEN],
}

/// A digest in the making.
pub(super) struct Hash(pub(super) Context);

impl Hash {
    pub(super) fn new() -> Self {
        Self(Context::new(&SHA256))
    }
}

impl Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hash")
    }
}

impl IncomingManifest {
    /// Nothing has come yet, of an object of at most so many segments; `signed` is what its digest is to be.
    pub(super) fn new(
        store: Box<dyn ManifestStore>,
        segments: u64,
        signed: [u8; SHA256_OUTPUT_LEN],
    ) -> Self {
        Self {
            store,
            hash: Hash::new(),
            bytes: 0,
            most: segments.saturating_mul(SHA256_OUTPUT_LEN as u64),
            signed,
        }
    }

    /// Takes its next segment. One without content, or beyond what the object can have, ends it: no peer goes on for ever
    /// or fills a disk.
    pub(super) fn push(&mut self, data: &Data) -> Result<(), FetchError> {
        let content = data.content_slice();
        let bytes = self.bytes.saturating_add(content.len() as u64);
        if content.is_empty() || bytes > self.most {
            return Err(FetchError::NotTheSigned {
                name: data.name().to_name(),
            });
        }
        self.hash.0.update(content);
        self.bytes = bytes;
        self.store
            .append(content)
            .map_err(|error| FetchError::NoRoom {
                name: data.name().to_name(),
                cause: error.to_string(),
            })
    }

    /// All has come.
    ///
    /// # Errors
    /// It is not what was signed: the store, to be filled anew.
    pub(super) fn finish(self) -> Result<Manifest, Box<dyn ManifestStore>> {
        let is_whole = self.bytes.is_multiple_of(SHA256_OUTPUT_LEN as u64);
        if !is_whole || self.hash.0.finish().as_ref() != self.signed {
            return Err(self.store);
        }
        Ok(Manifest {
            store: self.store,
            segments: self.bytes / SHA256_OUTPUT_LEN as u64,
        })
    }

    /// What its digest is to be.
    pub(super) fn signed(&self) -> [u8; SHA256_OUTPUT_LEN] {
        self.signed
    }

    /// The store, to be filled anew.
    pub(super) fn into_store(self) -> Box<dyn ManifestStore> {
        self.store
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndn_packet::{Name, SigningKey};

    fn part(content: &[u8]) -> Data {
        let name: Name = "/o/v=1/32=manifest/seg=0".parse().expect("a name");
        let wire = Data::builder(&name)
            .content(content)
            .sign(&SigningKey::DigestSha256);
        Data::parse(wire).expect("well formed")
    }

    #[test]
    fn vouches_for_each_segment_once_it_is_the_signed_one() {
        let content = [[1; 32], [2; 32]].concat();
        let come = |signed| {
            let store = Box::new(InMemory::new(100));
            let mut manifest = IncomingManifest::new(store, 2, signed);
            manifest.push(&part(&content[..40])).expect("room");
            manifest.push(&part(&content[40..])).expect("room");
            manifest
        };
        let signed = ndn_packet::sha256(&content);
        let manifest = come(signed).finish().expect("the signed one");
        assert!(manifest.holds(0, &[1; 32]) && manifest.holds(1, &[2; 32]));
        assert!(!manifest.holds(0, &[2; 32]) && !manifest.holds(2, &[2; 32]));
        assert!(come([0; 32]).finish().is_err());
        for wrong in [&[][..], &[0; 1]] {
            let refused = come(signed).push(&part(wrong));
            assert!(matches!(refused, Err(FetchError::NotTheSigned { .. })));
        }
    }

    #[test]
    fn no_more_is_kept_than_there_is_room() {
        let mut manifest = IncomingManifest::new(Box::new(InMemory::new(64)), u64::MAX, [0; 32]);
        manifest.push(&part(&[0; 64])).expect("room");
        let refused = manifest.push(&part(&[0; 32]));
        assert!(matches!(refused, Err(FetchError::NoRoom { .. })));
    }
}
