//! What is in a folder, and which versions a file has, as a repository tells it by name. The metadata packet is signed; the
//! digest in it is over the SignatureValues of the listing's segments.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use ndn_endpoint::ConsumerConfig;
use ndn_endpoint::rdr::{self, Metadata};
use ndn_packet::Name;
use ndn_packet::tlv::Reader;
use ndn_repo::{MAX_LISTING_BYTES, VERSION_ELEMENT, listed_component};

use super::told::metadata;
use super::{Remote, RemoteError};
use crate::names;

/// One thing in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its word.
    pub word: Box<[u8]>,
    pub is_file: bool,
    /// A folder hides the file of its name.
    pub is_folder: bool,
}

impl Listed {
    /// The word, as paths have it.
    pub fn word(&self) -> &OsStr {
        OsStr::from_bytes(&self.word)
    }
}

/// What is in a folder, in the order of words.
#[derive(Debug, Default)]
pub struct Listing(pub Vec<Listed>);

impl Listing {
    /// Reads a listing's content. What no path can have is left out.
    fn read(content: &[u8]) -> Self {
        let mut entries: Vec<Listed> = content
            .split(|byte| *byte == 0)
            .filter_map(|text| {
                let is_folder = text.ends_with(b"/");
                let text = text.strip_suffix(b"/").unwrap_or(text);
                let component = listed_component(std::str::from_utf8(text).ok()?)?;
                let word = names::shown(component.as_component())?.as_bytes();
                Some(Listed {
                    word: word.into(),
                    is_file: !is_folder,
                    is_folder,
                })
            })
            .collect();
        entries.sort_by(|a, b| a.word.cmp(&b.word));
        entries.dedup_by(|next, kept| {
            let is_same = next.word == kept.word;
            if is_same {
                kept.is_file |= next.is_file;
                kept.is_folder |= next.is_folder;
            }
            is_same
        });
        Self(entries)
    }

    /// What `word` is here.
    pub fn find(&self, word: &[u8]) -> Option<&Listed> {
        let place = self.0.binary_search_by(|entry| (*entry.word).cmp(word));
        place.ok().map(|place| &self.0[place])
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.0
            .iter()
            .map(|e| e.word.len() + size_of::<Listed>())
            .sum()
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
        let content = self.fetch_list(&folder.append_keyword("ls"))?;
        Ok(Listing::read(&content))
    }

    /// Fetches which versions a file has.
    ///
    /// # Errors
    /// Why it is not known.
    pub(super) fn fetch_versions(&self, name: &Name) -> Result<Vec<u64>, RemoteError> {
        let content = self.fetch_list(&name.append_keyword("versions"))?;
        read_versions(name, &content)
    }

    /// The content of a list, verified.
    fn fetch_list(&self, list: &Name) -> Result<Vec<u8>, RemoteError> {
        let verify = &self.options.verify;
        let data = self.ask_one(verify.asking(rdr::discovery(list)))?;
        let told = metadata(&data, verify)?;
        if told.name.parent() != *list {
            return Err(RemoteError::Malformed(format!(
                "{}: tells of another list than was asked for",
                data.name()
            )));
        }
        let config = ConsumerConfig {
            last: told.last,
            verify: verify.of_segments(&told),
            ..self.consumer(told.name.clone())
        };
        let hash = ring::digest::Context::new(&ring::digest::SHA256);
        let (content, hash) = self.network.read_all(
            config,
            (Vec::new(), hash),
            |(content, hash), data| {
                hash.update(data.signature_value());
                content.extend_from_slice(data.content_slice());
                let segment = data.name().last().and_then(|c| c.as_segment());
                // One of nothing but empty segments would never end.
                let goes_on = segment == Some(0) || !data.content_slice().is_empty();
                match goes_on && content.len() <= MAX_LISTING_BYTES {
                    true => Ok(()),
                    false => Err(RemoteError::Malformed(format!(
                        "{}: a list of empty segments, or of more than {MAX_LISTING_BYTES} bytes",
                        data.name()
                    ))),
                }
            },
        )?;
        let signed = told.manifest_digest.filter(|_| verify.wants_key());
        match signed.is_none_or(|signed| hash.finish().as_ref() == signed) {
            true => Ok(content),
            false => Err(RemoteError::Unverified(format!(
                "{}: is not the list that was signed",
                told.name
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use ndn_packet::tlv::write_tlv;

    #[test]
    fn a_folder_as_it_is_told() {
        let told = b"b\0a/\0c d\0a\0..%2Fx\0%00\0\xff\0/\0";
        let listing = Listing::read(told);
        let words: Vec<_> = listing
            .0
            .iter()
            .map(|e| (String::from_utf8_lossy(&e.word), e.is_file, e.is_folder))
            .collect();
        let wanted = [("a", true, true), ("b", true, false), ("c d", true, false)];
        assert_eq!(words, wanted.map(|(w, f, d)| (w.into(), f, d)));
        assert!(listing.find(b"b").is_some() && listing.find(b"c").is_none());
        assert_eq!(Listing::read(b"").0, []);
    }

    #[test]
    fn versions_as_they_are_told() {
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
