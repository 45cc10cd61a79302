//! From an Interest to the Data that answers it.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use ndn_packet::{Interest, Name, NameRef, sha256};

use super::listing::asks_metadata;
use super::{Inner, Repo};
use crate::error::{RepoError, Result};

impl Repo {
    /// The packet that answers `interest`; `None` where nothing here does.
    ///
    /// | name | answer |
    /// |---|---|
    /// | `<file>/v=<n>/seg=<n>` | a segment |
    /// | `<file>/v=<n>/32=manifest/seg=<n>` | digests of its segments |
    /// | `<file>/32=metadata` | RDR: the newest version |
    /// | `<file>/32=metadata/v=<n>/seg=0` | the signed metadata of that version |
    /// | `<folder>/32=ls`, `<file>/32=versions` and `32=metadata` after them | listings, found by RDR, with manifests |
    /// | a prefix of a file's segments, with CanBePrefix | the first segment of the newest version |
    /// | any other | a packet that was inserted as it came |
    ///
    /// # Errors
    /// [`RepoError::Damaged`] when what would answer is damaged, else what the disk says. Nothing is to be sent then.
    pub fn answer(&self, interest: &Interest) -> Result<Option<Bytes>> {
        let answer = self.inner.answer(interest);
        if matches!(answer, Err(RepoError::Damaged { .. })) {
            self.inner.damaged.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }
}

impl Inner {
    fn answer(&self, interest: &Interest) -> Result<Option<Bytes>> {
        if let Some(object) = asks_metadata(interest)
            && let Some(metadata) = self.metadata(&object)?
        {
            return Ok(Some(metadata));
        }
        let name = interest.name();
        let (name, digest) = match name.last() {
            Some(last) if last.is_implicit_digest() => (name.parent(), Some(last.value)),
            _ => (name, None),
        };
        let found = match self.exact(name)? {
            None if interest.can_be_prefix() && digest.is_none() => self.first_under(name)?,
            found => found,
        };
        Ok(found.filter(|wire| digest.is_none_or(|d| sha256(wire) == d)))
    }

    /// RDR's answer for `object`.
    fn metadata(&self, object: &Name) -> Result<Option<Bytes>> {
        if is_listing(object) {
            let listing = self.listing(object)?;
            return Ok(listing.map(|listing| listing.metadata(&self.key)));
        }
        match self.reader(object, None)? {
            Some(reader) => reader.metadata().map(Some),
            None => Ok(None),
        }
    }

    /// The packet of this very name.
    fn exact(&self, name: NameRef<'_>) -> Result<Option<Bytes>> {
        if let Some(segment) = name.last().and_then(|c| c.as_segment()) {
            let versioned = name.parent();
            let found = self.segment(versioned, segment)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        self.packets.packet(name)
    }

    fn segment(&self, stream: NameRef<'_>, segment: u64) -> Result<Option<Bytes>> {
        let Some(last) = stream.last() else {
            return Ok(None);
        };
        let object = stream.parent();
        if last.as_keyword() == Some(b"manifest") {
            if is_listing(&object.parent().to_name()) {
                return Ok(self
                    .old_listing(&object.to_name())
                    .and_then(|listing| listing.manifest_packet(segment)));
            }
            return match self.versioned(object)? {
                Some(reader) => reader.manifest_packet(segment),
                None => Ok(None),
            };
        }
        let Some(version) = last.as_version() else {
            return Ok(None);
        };
        match object.last().and_then(|c| c.as_keyword()) {
            Some(b"ls" | b"versions") => Ok(self
                .old_listing(&stream.to_name())
                .and_then(|listing| listing.packet(segment))),
            Some(b"metadata") if segment == 0 => {
                let object = object.parent().to_name();
                if is_listing(&object) {
                    let listing = self.old_listing(&object.append_version(version));
                    return Ok(listing.map(|listing| listing.metadata(&self.key)));
                }
                match self.reader(&object, Some(version))? {
                    Some(reader) => reader.metadata().map(Some),
                    None => Ok(None),
                }
            }
            _ => match self.versioned(stream)? {
                Some(reader) => reader.packet(segment),
                None => Ok(None),
            },
        }
    }

    /// The reader of a name that ends in a version.
    fn versioned(
        &self,
        name: NameRef<'_>,
    ) -> Result<Option<std::sync::Arc<super::files::FileReader>>> {
        match name.last().and_then(|c| c.as_version()) {
            Some(version) => self.reader_of(name, version),
            None => Ok(None),
        }
    }

    /// What a name that is a prefix of a file's segments leads to.
    fn first_under(&self, name: NameRef<'_>) -> Result<Option<Bytes>> {
        let reader = match self.versioned(name)? {
            Some(reader) => Some(reader),
            None => self.reader(&name.to_name(), None)?,
        };
        match reader {
            Some(reader) => reader.packet(0),
            None => self.packets.first_under(name),
        }
    }
}

fn is_listing(object: &Name) -> bool {
    matches!(
        object.last().and_then(|c| c.as_keyword()),
        Some(b"ls" | b"versions")
    )
}
