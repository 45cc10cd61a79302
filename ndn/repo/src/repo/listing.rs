//! What is in a folder, and which versions a file has: as values, and as named objects that RDR finds.
//!
//! | asked for | its content |
//! |---|---|
//! | `<folder>/32=ls` | names of what is in the folder, each ended by a zero byte, a folder's with `/` before that, as ndn6-file-server lists |
//! | `<file>/32=versions` | for each version, the oldest first, an element 0xf590 that holds RDR metadata |

use std::sync::{Arc, PoisonError};

use bytes::{Bytes, BytesMut};
use ndn_endpoint::rdr::Metadata;
use ndn_endpoint::{Segmenter, rdr};
use redb::ReadTransaction;

use ndn_packet::{Component, ComponentBuf, Data, Interest, Name, SigningKey, sha256, tlv};

use super::files::{DIGEST_BYTES, manifest_digests, manifest_name};
use super::{FileInfo, Inner, METADATA_FRESHNESS, Repo};
use crate::cache::Cache;
use crate::error::Result;
use crate::ids::now_us;
use crate::index::{self, FILES, FOLDERS, failed, name_of, successor};

/// Type of the element around each version's metadata.
pub const VERSION_ELEMENT: u32 = 0xf590;
/// Bytes of content in a segment of a listing.
const SEGMENT_BYTES: u32 = 8000;
/// Greatest size of a listing in bytes; a folder with more in it is not listed by name.
pub const MAX_LISTING_BYTES: usize = 16 << 20;
/// Bytes of listings kept so that a reader gets all segments of the same one: eight of the greatest, or many of those that
/// folders mostly have, so that who asks for one drives nobody else's out.
const KEPT_BYTES: usize = 8 * MAX_LISTING_BYTES;

/// One thing in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Its last component.
    pub component: ComponentBuf,
    /// The newest version, where it is a file; a folder else.
    pub file: Option<FileInfo>,
}

impl Repo {
    /// What is in the folder `folder`, in the order of names, from the one after `after` on, at most `most` things. A name
    /// may be a file's and a folder's: then the file is first.
    ///
    /// # Errors
    /// What the index says.
    pub fn list(&self, folder: &Name, after: Option<&Child>, most: usize) -> Result<Vec<Child>> {
        self.inner.list(folder, after, most)
    }

    /// The folders that were made at or under `name`.
    ///
    /// # Errors
    /// What the index says.
    pub fn folders(&self, name: &Name) -> Result<Vec<Name>> {
        let tx = self.inner.index.read()?;
        let folders = tx.open_table(FOLDERS).map_err(failed)?;
        let mut found = Vec::new();
        for row in folders.range::<&[u8]>(name.value()..).map_err(failed)? {
            let (key, _) = row.map_err(failed)?;
            if !key.value().starts_with(name.value()) {
                break;
            }
            found.push(name_of(Bytes::copy_from_slice(key.value()))?);
        }
        Ok(found)
    }

    /// Whether `name` is a folder, and when it was made, in nanoseconds since the Unix epoch; 0 where nobody made it but
    /// there is something in it.
    ///
    /// # Errors
    /// What the index says.
    pub fn folder(&self, name: &Name) -> Result<Option<u64>> {
        // In this order: what gets into the tables meanwhile is found there.
        let has_new = self.inner.index.pending.is_folder(name.value());
        let tx = self.inner.index.read_tables()?;
        let folders = tx.open_table(FOLDERS).map_err(failed)?;
        if let Some(made) = folders.get(name.value()).map_err(failed)? {
            return Ok(Some(made.value()));
        }
        let is_there = name.is_empty() || has_new || has_children(&tx, name)?;
        Ok(is_there.then_some(0))
    }
}

/// Whether there is a file or a folder below `name`.
fn has_children(tx: &ReadTransaction, name: &Name) -> Result<bool> {
    // Longer names than its own.
    let from = [name.value(), &[0]].concat();
    let files = tx.open_table(FILES).map_err(failed)?;
    let mut files = files
        .range::<(&[u8], u64)>((&from[..], 0)..)
        .map_err(failed)?;
    let file = files.next().transpose().map_err(failed)?;
    if file.is_some_and(|(key, _)| key.value().0.starts_with(name.value())) {
        return Ok(true);
    }
    let folders = tx.open_table(FOLDERS).map_err(failed)?;
    let mut folders = folders.range::<&[u8]>(&from[..]..).map_err(failed)?;
    let folder = folders.next().transpose().map_err(failed)?;
    Ok(folder.is_some_and(|(key, _)| key.value().starts_with(name.value())))
}

impl Inner {
    fn list(&self, folder: &Name, after: Option<&Child>, most: usize) -> Result<Vec<Child>> {
        let tx = self.index.read()?;
        let files = tx.open_table(FILES).map_err(failed)?;
        let folders = tx.open_table(FOLDERS).map_err(failed)?;
        let mut children = Vec::new();
        let mut next = Some(match after {
            None => folder.value().to_vec(),
            Some(child) => {
                let name = folder.append(&child.component);
                match &child.file {
                    Some(_) => {
                        if most > 0 && folders.get(name.value()).map_err(failed)?.is_some() {
                            children.push(Child {
                                component: child.component.clone(),
                                file: None,
                            });
                            successor(name.value()).unwrap_or_default()
                        } else {
                            // Longer names than the file's come next: those in the folder of the same name.
                            [name.value(), &[0]].concat()
                        }
                    }
                    None => match successor(name.value()) {
                        Some(next) => next,
                        None => return Ok(Vec::new()),
                    },
                }
            }
        });
        while children.len() < most
            && let Some(from) = next
        {
            let file = files
                .range::<(&[u8], u64)>((&from[..], 0)..)
                .map_err(failed)?
                .next()
                .transpose()
                .map_err(failed)?
                .map(|(key, _)| Bytes::copy_from_slice(key.value().0));
            let made = folders
                .range::<&[u8]>(&from[..]..)
                .map_err(failed)?
                .next()
                .transpose()
                .map_err(failed)?
                .map(|(key, _)| Bytes::copy_from_slice(key.value()));
            let Some(found) = [file, made].into_iter().flatten().min() else {
                break;
            };
            if !found.starts_with(folder.value()) {
                break;
            }
            let found = name_of(found)?;
            let Some(component) = found.get(folder.len()) else {
                // The folder's own entry, or a file of its name.
                next = Some([folder.value(), &[0]].concat());
                continue;
            };
            let child = found.prefix(folder.len() + 1);
            let newest = match child == found {
                true => index::newest(&files, child.value())?,
                false => None,
            };
            next = match newest {
                // A folder made by hand has the same key as a file of its name: it is met again only if it is longer.
                Some(_) if folders.get(child.value()).map_err(failed)?.is_none() => {
                    Some([child.value(), &[0]].concat())
                }
                _ => successor(child.value()),
            };
            let component = component.to_owned();
            if let Some((version, entry)) = newest {
                let file = FileInfo {
                    name: child.clone(),
                    version,
                    entry,
                };
                children.push(Child {
                    component: component.clone(),
                    file: Some(file),
                });
                if folders.get(child.value()).map_err(failed)?.is_none() || children.len() == most {
                    continue;
                }
            }
            children.push(Child {
                component,
                file: None,
            });
        }
        Ok(children)
    }
}

/// A listing under a version: what was true at one moment.
#[derive(Debug)]
pub struct Listing {
    segmenter: Segmenter,
    content: Bytes,
    /// Digests of its segments.
    manifest: Bytes,
}

/// Listings made lately.
#[derive(Debug)]
pub(crate) struct Listings {
    recent: Cache<Name, Arc<Listing>>,
    /// Nothing has changed since this version; it grows with each change.
    version: u64,
}

impl Default for Listings {
    fn default() -> Self {
        Self {
            recent: Cache::new(KEPT_BYTES),
            version: now_us(),
        }
    }
}

impl Listings {
    /// Something was published or removed: from now on there are listings of a new version.
    pub fn changed(&mut self) {
        self.version = now_us().max(self.version + 1);
    }
}

impl Inner {
    /// The listing of `object` (which ends in `32=ls` or `32=versions`) as it is now; `None` where there is nothing.
    pub fn listing(&self, object: &Name) -> Result<Option<Arc<Listing>>> {
        let version = {
            let mut listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
            let versioned = object.append_version(listings.version);
            if let Some(listing) = listings.recent.get(&versioned) {
                return Ok(Some(listing.clone()));
            }
            listings.version
        };
        let subject = object.parent();
        let content = match object.last().and_then(|c| c.as_keyword()) {
            Some(b"ls") => self.folder_listing(&subject)?,
            Some(b"versions") => self.version_listing(&subject)?,
            _ => None,
        };
        let Some(content) = content else {
            return Ok(None);
        };
        let listing = Arc::new(Listing::new(object.append_version(version), content));
        let mut listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        let name = listing.segmenter.prefix().clone();
        let bytes = listing.content.len() + listing.manifest.len() + 2 * name.value().len();
        listings.recent.insert(name, listing.clone(), bytes);
        Ok(Some(listing))
    }

    /// A listing that was made before.
    pub fn old_listing(&self, versioned: &Name) -> Option<Arc<Listing>> {
        let mut listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        listings.recent.get(versioned).cloned()
    }

    fn folder_listing(&self, folder: &Name) -> Result<Option<Bytes>> {
        let mut content = BytesMut::new();
        let mut after: Option<Child> = None;
        loop {
            let children = self.list(folder, after.as_ref(), 1000)?;
            let Some(last) = children.last() else {
                break;
            };
            for child in &children {
                let component = child.component.as_component();
                list_component(&mut content, component, child.file.is_none());
            }
            if content.len() > MAX_LISTING_BYTES {
                tracing::warn!(%folder, "folder has too many entries for a listing");
                return Ok(None);
            }
            after = Some(last.clone());
        }
        let is_there = !content.is_empty() || folder.is_empty() || {
            let tx = self.index.read()?;
            let folders = tx.open_table(FOLDERS).map_err(failed)?;
            folders.get(folder.value()).map_err(failed)?.is_some()
        };
        Ok(is_there.then(|| content.freeze()))
    }

    fn version_listing(&self, name: &Name) -> Result<Option<Bytes>> {
        let tx = self.index.read()?;
        let files = tx.open_table(FILES).map_err(failed)?;
        let mut content = BytesMut::new();
        let key = name.value();
        let rows = files
            .range::<(&[u8], u64)>((key, 0)..=(key, u64::MAX))
            .map_err(failed)?;
        for row in rows {
            let (key, value) = row.map_err(failed)?;
            let entry = index::file_entry(value.value())?;
            let metadata = entry.metadata(name.append_version(key.value().1));
            tlv::write_tlv(&mut content, VERSION_ELEMENT, &metadata.encode());
            if content.len() > MAX_LISTING_BYTES {
                tracing::warn!(%name, "file has too many versions for a listing");
                return Ok(None);
            }
        }
        Ok((!content.is_empty()).then(|| content.freeze()))
    }
}

/// Whether bytes can stand in a listing as they are: a file's name in UTF-8, without `/` and zero bytes.
fn is_plain(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && !bytes.iter().any(|b| [b'/', 0, b'%'].contains(b))
        && std::str::from_utf8(bytes).is_ok()
        && !bytes.iter().all(|b| *b == b'.')
}

/// Appends to a listing of a folder what is in it.
pub fn list_component(listing: &mut BytesMut, component: Component<'_>, is_folder: bool) {
    match component.as_generic() {
        // As a file's name where it can be one, else as names are written.
        Some(bytes) if is_plain(bytes) => listing.extend_from_slice(bytes),
        Some(_) => listing.extend_from_slice(component.to_string().as_bytes()),
        // `v=7` may be a file's name: what is of another kind has a `%`, which none has that stands there as it is.
        None if component.value.is_empty() => return,
        None => {
            let escaped: String = component
                .value
                .iter()
                .map(|byte| format!("%{byte:02X}"))
                .collect();
            listing.extend_from_slice(format!("{}={escaped}", component.typ).as_bytes());
        }
    }
    listing.extend_from_slice(if is_folder { b"/\0" } else { b"\0" });
}

/// What a listing of a folder tells, in its order: components, and whether each is a folder. The inverse of
/// [`list_component`]; `None` in the place of what can't be read.
pub fn listed(listing: &[u8]) -> impl Iterator<Item = Option<(ComponentBuf, bool)>> {
    listing.split_inclusive(|byte| *byte == 0).map(|entry| {
        let text = std::str::from_utf8(entry.strip_suffix(b"\0")?).ok()?;
        let (text, is_folder) = match text.strip_suffix('/') {
            Some(text) => (text, true),
            None => (text, false),
        };
        Some((listed_component(text)?, is_folder))
    })
}

/// The component that a listing tells by `text`, without the `/` of folders.
fn listed_component(text: &str) -> Option<ComponentBuf> {
    if is_plain(text.as_bytes()) {
        return Some(Component::generic(text.as_bytes()).to_owned());
    }
    let name: Name = format!("/{text}").parse().ok()?;
    (name.len() == 1 && !text.contains('/')).then(|| name.get(0).map(|c| c.to_owned()))?
}

impl Listing {
    /// The listing of this name (`32=ls` or `32=versions`, then a version), which has this content.
    pub fn new(versioned: Name, content: Bytes) -> Self {
        let segmenter = Segmenter::new(versioned, content.len() as u64, SEGMENT_BYTES);
        let mut listing = Self {
            segmenter,
            content,
            manifest: Bytes::new(),
        };
        let digests: BytesMut = (0..=listing.segmenter.last())
            .filter_map(|n| Data::parse(listing.packet(n)?).ok())
            .flat_map(|data| Bytes::copy_from_slice(data.signature_value()))
            .collect();
        listing.manifest = digests.freeze();
        listing
    }

    /// Its name, version included.
    pub fn versioned(&self) -> &Name {
        self.segmenter.prefix()
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.versioned().wire_len() + self.content.len() + self.manifest.len()
    }

    /// What it tells, as [`list_component`] writes it.
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// Segment `n`; `None` beyond the last.
    pub fn packet(&self, n: u64) -> Option<Bytes> {
        packet(&self.segmenter, &self.content, n)
    }

    /// Segment `n` of the digests of its segments, as of a file's; `None` beyond the last.
    pub fn manifest_packet(&self, n: u64) -> Option<Bytes> {
        let segment_bytes = manifest_digests(SEGMENT_BYTES) * DIGEST_BYTES as u32;
        let name = manifest_name(self.versioned());
        let segmenter = Segmenter::new(name, self.manifest.len() as u64, segment_bytes);
        packet(&segmenter, &self.manifest, n)
    }

    /// The signed metadata packet.
    pub fn metadata(&self, key: &SigningKey) -> Bytes {
        let versioned = self.segmenter.prefix();
        let version = versioned.last().and_then(|c| c.as_version()).unwrap_or(0);
        let metadata = Metadata {
            manifest_digest: Some(sha256(&self.manifest)),
            ..self.segmenter.metadata()
        };
        metadata.packet(&versioned.parent(), version, METADATA_FRESHNESS, key)
    }
}

/// Segment `n` of what has this content.
fn packet(segmenter: &Segmenter, content: &Bytes, n: u64) -> Option<Bytes> {
    segmenter
        .segment(n, &SigningKey::DigestSha256, |offset, place| {
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            place.copy_from_slice(&content[from..from + place.len()]);
            Ok::<(), std::convert::Infallible>(())
        })
        .unwrap_or_else(|never| match never {})
}

/// Whether `interest` asks for the metadata of something, and of what.
pub(crate) fn asks_metadata(interest: &Interest) -> Option<Name> {
    let object = interest.name().parent();
    (interest.can_be_prefix() && interest.name().last()?.as_keyword()? == b"metadata")
        .then(|| object.to_name())
        .filter(|object| rdr::asks_metadata(object, interest.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(listing: &[u8]) -> Option<Vec<(String, bool)>> {
        listed(listing)
            .map(|entry| entry.map(|(component, is_folder)| (component.to_string(), is_folder)))
            .collect()
    }

    #[test]
    fn listings_are_read_and_other_things_are_not() {
        assert_eq!(read(b""), Some(vec![]));
        let told = ["a%20b", "d", "x%2Fy"].map(String::from);
        let [a, d, x] = told;
        assert_eq!(
            read(b"a b\0d/\0x%2Fy\0"),
            Some(vec![(a, false), (d, true), (x, false)])
        );
        for wrong in [
            &b"a"[..],
            b"\0",
            b"a\0\0",
            b"\xff\0",
            b"/\0",
            b"a//\0",
            b"a%zz\0",
        ] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }

    /// Of any kind; what could be read as one of another kind, too.
    fn component() -> impl Strategy<Value = ComponentBuf> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..20);
        let other = (3..=u16::MAX, prop::collection::vec(any::<u8>(), 1..20));
        prop_oneof![
            bytes().prop_map(|bytes| ComponentBuf::generic(&bytes)),
            "(v|seg|32|8|54|x|)=[0-9a-z.%]{0,3}".prop_map(ComponentBuf::generic),
            other.prop_map(|(typ, value)| ComponentBuf::new(typ, &value)),
            any::<u64>().prop_map(ComponentBuf::version),
        ]
    }

    proptest! {
        #[test]
        fn what_is_listed_is_read_again(
            told in prop::collection::vec((component(), any::<bool>()), 0..20),
        ) {
            let mut listing = BytesMut::new();
            for (component, is_folder) in &told {
                list_component(&mut listing, component.as_component(), *is_folder);
            }
            let read: Option<Vec<_>> = listed(&listing).collect();
            prop_assert_eq!(read, Some(told));
        }
    }
}
