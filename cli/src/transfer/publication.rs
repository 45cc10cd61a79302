//! The serving side as a machine without I/O of its own but the file's: an Interest in, the
//! segment or the metadata that answers it out.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use ndn_endpoint::{Segmenter, rdr};
use ndn_packet::{Interest, Name, SigningKey};
use ndn_repo::now_us;

use super::source::Source;

/// How long caches may answer with a metadata packet: versions change while names stay.
const METADATA_FRESHNESS: Duration = Duration::from_millis(10);

/// A file under a versioned name.
pub struct Publication {
    object: Name,
    segmenter: Segmenter,
    source: Source,
    key: SigningKey,
    /// Segments given so far.
    pub segments: u64,
    /// Bytes of content in them.
    pub bytes: u64,
    /// Interests that nothing here answers.
    pub unanswered: u64,
}

impl Publication {
    /// `source` under `object`, in `version`.
    pub fn new(
        object: Name,
        version: u64,
        segment_bytes: u32,
        freshness: Duration,
        source: Source,
        key: SigningKey,
    ) -> Self {
        let prefix = object.append_version(version);
        let segmenter =
            Segmenter::new(prefix, source.bytes(), segment_bytes).with_freshness(freshness);
        Publication {
            object,
            segmenter,
            source,
            key,
            segments: 0,
            bytes: 0,
            unanswered: 0,
        }
    }

    /// The name without version, which is registered.
    pub fn object(&self) -> &Name {
        &self.object
    }

    /// The name with version.
    pub fn versioned(&self) -> &Name {
        self.segmenter.prefix()
    }

    /// Number of segments.
    pub fn segment_count(&self) -> u64 {
        self.segmenter.last() + 1
    }

    /// Size of the object in bytes.
    pub fn size(&self) -> u64 {
        self.segmenter.size()
    }

    /// The packet that answers `interest`, if any does.
    ///
    /// # Errors
    /// The file can't be read any more, or has changed: what was published under this version
    /// must not become something else.
    pub fn answer(&mut self, interest: &Interest) -> io::Result<Option<Bytes>> {
        if interest.can_be_prefix() && rdr::asks_metadata(&self.object, interest.name()) {
            return Ok(Some(self.metadata()));
        }
        let Some(n) = self.segmenter.asked(interest) else {
            self.unanswered += 1;
            return Ok(None);
        };
        let source = &self.source;
        let wire = self
            .segmenter
            .segment(n, &self.key, |offset, content| source.read(offset, content))?;
        if !source.is_unchanged() {
            return Err(io::Error::other(
                "the file has changed since it was published",
            ));
        }
        if let Some(range) = self.segmenter.range(n) {
            self.segments += 1;
            self.bytes += range.end - range.start;
        }
        Ok(wire)
    }

    /// Bytes of the largest packet: that of the first segment, some bytes more for larger
    /// segment numbers and signatures of other lengths.
    ///
    /// # Errors
    /// The file can't be read.
    pub fn largest(&self) -> io::Result<usize> {
        let first = self.segmenter.segment(0, &self.key, |offset, content| {
            self.source.read(offset, content)
        })?;
        Ok(first.map_or(0, |wire| wire.len()) + 16)
    }

    fn metadata(&self) -> Bytes {
        let mut metadata = self.segmenter.metadata();
        metadata.mtime_ns = self.source.modified_ns();
        metadata.packet(&self.object, now_us(), METADATA_FRESHNESS, &self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndn_packet::Data;
    use std::io::Write;

    fn publication(content: &[u8]) -> (tempfile::NamedTempFile, Publication) {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(content).expect("written");
        let source = Source::open(file.path()).expect("a source");
        let name: Name = "/o".parse().expect("a name");
        (
            file,
            Publication::new(
                name,
                5,
                4,
                Duration::from_secs(1),
                source,
                SigningKey::DigestSha256,
            ),
        )
    }

    fn ask(p: &mut Publication, name: &str, prefix: bool) -> io::Result<Option<Data>> {
        let name: Name = name.parse().expect("a name");
        let wire = Interest::builder(&name)
            .can_be_prefix(prefix)
            .must_be_fresh(prefix)
            .nonce(1)
            .build();
        let answer = p.answer(&Interest::parse(wire).expect("an Interest"))?;
        Ok(answer.map(|wire| Data::parse(wire).expect("a packet")))
    }

    #[test]
    fn answers_segments_and_metadata() {
        let (_file, mut p) = publication(b"0123456789");
        let data = ask(&mut p, "/o/v=5/seg=2", false)
            .expect("read")
            .expect("a segment");
        assert_eq!(
            (
                data.content_slice(),
                data.is_final_block(),
                data.verify_digest()
            ),
            (&b"89"[..], true, true)
        );
        let data = ask(&mut p, "/o", true)
            .expect("read")
            .expect("the first segment");
        assert_eq!(data.name().to_string(), "/o/v=5/seg=0");
        let data = ask(&mut p, "/o/32=metadata", true)
            .expect("read")
            .expect("metadata");
        let metadata = rdr::Metadata::decode(&data.content()).expect("metadata");
        assert_eq!(
            (
                metadata.name.to_string().as_str(),
                metadata.last,
                metadata.size
            ),
            ("/o/v=5", Some(2), Some(10))
        );
        for name in ["/o/v=5/seg=3", "/o/v=6/seg=0", "/other"] {
            assert!(ask(&mut p, name, false).expect("read").is_none(), "{name}");
        }
        assert_eq!((p.segments, p.bytes, p.unanswered), (2, 6, 3));
    }

    #[test]
    fn a_changed_file_is_no_longer_served() {
        let (mut file, mut p) = publication(b"0123456789");
        file.write_all(b"more").expect("written");
        assert!(ask(&mut p, "/o/v=5/seg=0", false).is_err());
    }
}
