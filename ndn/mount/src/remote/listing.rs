//! What is in a folder, and which versions a file has, as a repository lists it by name. The metadata packet is signed; the
//! digest in it is over the SignatureValues of the listing's segments.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use ndn_endpoint::rdr::Metadata;
use ndn_endpoint::{Check, FetchConfig};
use ndn_packet::tlv::Reader;
use ndn_packet::{Data, Name};
use ndn_repo::{MAX_LISTING_BYTES, VERSION_ELEMENT, listed};

use super::listing_memory::Reservation;
use super::{Remote, RemoteError};
use crate::names;

/// Most bytes of memory that one listing takes: more than the longest honest one needs, whose words differ.
pub const MOST_BYTES: usize = 64 << 20;

/// One thing in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed<'a> {
    /// Its word, as paths have it.
    pub word: &'a OsStr,
    pub is_file: bool,
    /// A folder hides the file of its name.
    pub is_folder: bool,
}

/// What is in a folder, in the order of words.
#[derive(Debug)]
pub struct Listing {
    /// All words, one after the other.
    words: Box<[u8]>,
    entries: Box<[Entry]>,
    /// What it takes of the memory for listings.
    memory: Reservation,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Where its word begins; a listing is shorter than this can count.
    at: u32,
    /// Bytes of its word.
    len: u8,
    is_file: bool,
    is_folder: bool,
}

impl Entry {
    fn word<'a>(&self, words: &'a [u8]) -> &'a [u8] {
        &words[self.at as usize..][..usize::from(self.len)]
    }
}

impl Listing {
    /// Reads a listing's content. What no path can have is left out.
    ///
    /// # Errors
    /// It would take more memory than a listing may, or than there is for all listings.
    fn read(content: &[u8], mut memory: Reservation) -> Result<Self, RemoteError> {
        let most = content.iter().filter(|byte| **byte == 0).count();
        let bytes = content.len() + most * size_of::<Entry>();
        if bytes > MOST_BYTES {
            return Err(RemoteError::Malformed(format!(
                "a listing of {most} names would take {bytes} bytes of memory; one may take {MOST_BYTES}"
            )));
        }
        memory.grow(bytes)?;
        let mut words = Vec::with_capacity(content.len());
        let mut entries = Vec::with_capacity(most);
        for (component, is_folder) in listed(content).flatten() {
            let Some(word) = names::shown(component.as_component()) else {
                continue;
            };
            // Neither is longer than the content, or than a word may be.
            let (Ok(at), Ok(len)) = (words.len().try_into(), word.len().try_into()) else {
                continue;
            };
            words.extend_from_slice(word.as_bytes());
            entries.push(Entry {
                at,
                len,
                is_file: !is_folder,
                is_folder,
            });
        }
        entries.sort_unstable_by(|a, b| a.word(&words).cmp(b.word(&words)));
        entries.dedup_by(|next, kept| {
            let is_same = next.word(&words) == kept.word(&words);
            if is_same {
                kept.is_file |= next.is_file;
                kept.is_folder |= next.is_folder;
            }
            is_same
        });
        Ok(Self {
            words: words.into(),
            entries: entries.into(),
            memory,
        })
    }

    fn listed(&self, entry: &Entry) -> Listed<'_> {
        Listed {
            word: OsStr::from_bytes(entry.word(&self.words)),
            is_file: entry.is_file,
            is_folder: entry.is_folder,
        }
    }

    /// What is in it from place `from` on.
    pub fn from(&self, from: usize) -> impl Iterator<Item = Listed<'_>> {
        let rest = self.entries.get(from..).unwrap_or(&[]);
        rest.iter().map(|entry| self.listed(entry))
    }

    /// What `word` is here.
    pub fn find(&self, word: &[u8]) -> Option<Listed<'_>> {
        let place = self
            .entries
            .binary_search_by(|entry| entry.word(&self.words).cmp(word));
        place.ok().map(|place| self.listed(&self.entries[place]))
    }

    /// Bytes of memory that it takes: those that nobody can see are among them.
    pub fn bytes(&self) -> usize {
        self.memory.bytes()
    }
}

/// Reads a list of versions: their numbers, the newest first.
fn read_versions(name: &Name, content: &[u8]) -> Result<Vec<u64>, RemoteError> {
    let malformed = |e| RemoteError::Malformed(format!("{name}: its versions: {e}"));
    let mut reader = Reader::new(content);
    let mut versions = Vec::new();
    while let Some(element) = reader.next().map_err(malformed)? {
        if element.typ != VERSION_ELEMENT {
            continue;
        }
        let told = Metadata::decode(element.value).map_err(malformed)?;
        if told.name.parent() == *name {
            versions.extend(told.name.last().and_then(|c| c.as_version()));
        }
    }
    versions.sort_unstable_by(|a, b| b.cmp(a));
    Ok(versions)
}

impl Remote {
    /// Fetches what is in a folder.
    ///
    /// # Errors
    /// Why it is not known.
    pub(super) fn fetch_listing(&self, folder: &Name) -> Result<Listing, RemoteError> {
        let list = folder.append_keyword("ls");
        let fetch = || {
            let (content, _memory) = self.fetch_list(&list)?;
            Listing::read(&content, self.listing_memory.reserve())
        };
        fetch().or_else(|error| match error {
            // Those that are merely remembered make room.
            RemoteError::NoRoom(_) => {
                self.listings.forget();
                fetch()
            }
            error => Err(error),
        })
    }

    /// Fetches which versions a file has.
    ///
    /// # Errors
    /// Why it is not known.
    pub(super) fn fetch_versions(&self, name: &Name) -> Result<Vec<u64>, RemoteError> {
        let (content, _memory) = self.fetch_list(&name.append_keyword("versions"))?;
        read_versions(name, &content)
    }

    /// The content of a list, verified, and the memory that it takes.
    fn fetch_list(&self, list: &Name) -> Result<(Vec<u8>, Reservation), RemoteError> {
        let coming = Coming {
            content: Vec::new(),
            memory: self.listing_memory.reserve(),
        };
        let config = FetchConfig {
            check: Check::AtEnd,
            ..self.fetch(list.clone())
        };
        let (came, fetched) = self.network.read_all(config, coming, Coming::push)?;
        let versioned = fetched.metadata.map(|metadata| metadata.name);
        match versioned.is_some_and(|versioned| versioned.parent() == *list) {
            true => Ok((came.content, came.memory)),
            false => Err(RemoteError::Malformed(format!(
                "{list}: its metadata are of another list"
            ))),
        }
    }
}

/// A list on its way here.
struct Coming {
    content: Vec<u8>,
    memory: Reservation,
}

impl Coming {
    fn push(&mut self, data: &Data) -> Result<(), RemoteError> {
        let content = data.content_slice();
        let segment = data.name().last().and_then(|c| c.as_segment());
        // One of nothing but empty segments would never end.
        let goes_on = segment == Some(0) || !content.is_empty();
        if !goes_on || self.content.len() + content.len() > MAX_LISTING_BYTES {
            return Err(RemoteError::Malformed(format!(
                "{}: a list of empty segments, or of more than {MAX_LISTING_BYTES} bytes",
                data.name()
            )));
        }
        let missing = (self.content.len() + content.len()).saturating_sub(self.content.capacity());
        if missing > 0 {
            // As much again, so that it is not copied for each segment.
            let more = missing.max(self.content.len());
            self.memory.grow(more)?;
            self.content
                .reserve_exact(self.content.capacity() - self.content.len() + more);
        }
        self.content.extend_from_slice(content);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::listing_memory::ListingMemory;
    use super::*;
    use bytes::BytesMut;
    use ndn_packet::tlv::write_tlv;

    #[test]
    fn a_folder_as_it_is_listed() {
        let told = b"b\0a/\0c d\0a\0..%2Fx\0%00\0\xff\0/\0";
        let memory = ListingMemory::new(MOST_BYTES);
        let read = |content| Listing::read(content, memory.reserve()).expect("room");
        let listing = read(told);
        let words: Vec<_> = listing
            .from(0)
            .map(|e| {
                (
                    e.word.to_string_lossy().into_owned(),
                    e.is_file,
                    e.is_folder,
                )
            })
            .collect();
        let wanted = [("a", true, true), ("b", true, false), ("c d", true, false)];
        assert_eq!(words, wanted.map(|(w, f, d)| (w.into(), f, d)));
        assert_eq!(listing.from(2).count(), 1);
        assert_eq!(listing.from(usize::MAX).count(), 0);
        assert!(listing.find(b"b").is_some() && listing.find(b"c").is_none());
        assert_eq!(read(b"").from(0).count(), 0);
    }

    #[test]
    fn a_listing_takes_no_more_than_is_counted_and_allowed() {
        let memory = ListingMemory::new(MOST_BYTES);
        // As long as one may be, of words of three letters.
        let honest: Vec<u8> = (0..MAX_LISTING_BYTES as u32 / 4)
            .flat_map(|n| {
                let letter = |at: u32| 0x30 + (n >> at & 0x3f) as u8;
                [letter(0), letter(6), letter(12), 0]
            })
            .collect();
        let listing = Listing::read(&honest, memory.reserve()).expect("room");
        assert!(listing.from(0).count() > 250_000);
        assert!(listing.bytes() <= MOST_BYTES);
        // Another beside it has none.
        let beside = Listing::read(&honest, memory.reserve());
        assert!(matches!(beside, Err(RemoteError::NoRoom(_))));
        drop(listing);
        let letters = b"a\0".repeat(MAX_LISTING_BYTES / 2);
        let refused = Listing::read(&letters, memory.reserve());
        assert!(matches!(refused, Err(RemoteError::Malformed(_))));
        assert!(Listing::read(&honest, memory.reserve()).is_ok());
    }

    #[test]
    fn versions_as_they_are_listed() {
        let name: Name = "/a/f".parse().expect("a name");
        let mut content = BytesMut::new();
        for told in ["/a/f/v=3", "/a/f/v=9", "/a/other/v=5", "/a/f/seg=1"] {
            let told = Metadata::new(told.parse().expect("a name"));
            write_tlv(&mut content, VERSION_ELEMENT, &told.encode());
        }
        assert_eq!(read_versions(&name, &content), Ok(vec![9, 3]));
        assert!(read_versions(&name, &content[1..]).is_err());
    }
}
