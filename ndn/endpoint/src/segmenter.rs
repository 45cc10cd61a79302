//! Cuts a source of bytes into segments when they are asked for, so that a file is never held whole in memory.

use crate::naming::SegmentName;
use crate::rdr::Metadata;
use bytes::Bytes;
use ndn_packet::{Batch, ComponentBuf, Data, DataWriter, Interest, Name, Signer};
use std::ops::Range;
use std::time::Duration;

/// Names, sizes and makes the Data segments of an object of known size. Holds no bytes and does no I/O: the caller
/// fills each segment's content in place.
///
/// ```
/// use ndn_endpoint::Segmenter;
/// use ndn_packet::{Data, SigningKey};
/// let object = b"a file of some bytes";
/// let segmenter = Segmenter::new("/files/x/v=1".parse()?, object.len() as u64, 8);
/// assert_eq!(segmenter.last(), 2);
/// let wire = segmenter.segment(2, &SigningKey::DigestSha256, |offset, content| {
///     content.copy_from_slice(&object[offset as usize..][..content.len()]);
///     Ok::<(), std::io::Error>(())
/// })?;
/// let data = Data::parse(wire.expect("segment 2 exists"))?;
/// assert_eq!((data.content().as_ref(), data.is_final_block()), (&b"ytes"[..], true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Segmenter {
    prefix: Name,
    size: u64,
    segment_bytes: u64,
    freshness: Duration,
}

impl Segmenter {
    /// For an object of `size` bytes named `prefix` (version included), `segment_bytes` (at least 1) in each segment but
    /// the last. An empty object has one empty segment.
    pub fn new(prefix: Name, size: u64, segment_bytes: u32) -> Self {
        Self {
            prefix,
            size,
            segment_bytes: u64::from(segment_bytes.max(1)),
            freshness: Duration::from_secs(10),
        }
    }

    /// Sets the FreshnessPeriod of each segment; 10 s if never set.
    pub fn with_freshness(self, freshness: Duration) -> Self {
        Self { freshness, ..self }
    }

    /// Bytes of the object in each segment but the last.
    pub fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// Name of the object, version included.
    pub fn prefix(&self) -> &Name {
        &self.prefix
    }

    /// Size of the object in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Number of the last segment.
    pub fn last(&self) -> u64 {
        self.size.div_ceil(self.segment_bytes).saturating_sub(1)
    }

    /// Which bytes of the object segment `n` holds; `None` beyond the last.
    pub fn range(&self, n: u64) -> Option<Range<u64>> {
        (n <= self.last()).then(|| {
            let start = n * self.segment_bytes;
            start..self.size.min(start.saturating_add(self.segment_bytes))
        })
    }

    /// Which segment answers this Interest: the one it names, or the first if the name, with CanBePrefix, leads to
    /// the object. `None` when nothing here does.
    pub fn asked(&self, interest: &Interest) -> Option<u64> {
        match SegmentName::of(&self.prefix, interest.name()) {
            SegmentName::Segment(n) | SegmentName::Exact(n, _) if n <= self.last() => Some(n),
            SegmentName::Above if interest.can_be_prefix() => Some(0),
            _ => None,
        }
    }

    /// Makes segment `n`: `fill` is given the offset in the object and the place for the content. `None` beyond the last.
    ///
    /// # Errors
    /// Those of `fill`.
    pub fn segment<E>(
        &self,
        n: u64,
        signer: &(impl Signer + ?Sized),
        fill: impl FnOnce(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Option<Bytes>, E> {
        let Some(range) = self.range(n) else {
            return Ok(None);
        };
        let name = self.prefix.append_segment(n);
        self.begin(&name, range, fill).sign(signer).map(Some)
    }

    /// Puts segment `n` into a batch, as [`segment`](Self::segment) makes it; false beyond the last.
    ///
    /// # Errors
    /// Those of `fill`.
    pub fn join<E>(
        &self,
        n: u64,
        batch: &mut Batch<'_, impl Signer + ?Sized>,
        fill: impl FnOnce(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<bool, E> {
        let Some(range) = self.range(n) else {
            return Ok(false);
        };
        let name = self.prefix.append_segment(n);
        self.begin(&name, range, fill).join(batch).map(|()| true)
    }

    fn begin<'a, E>(
        &self,
        name: &'a Name,
        range: Range<u64>,
        fill: impl FnOnce(u64, &mut [u8]) -> Result<(), E>,
    ) -> DataWriter<'a, impl FnOnce(&mut [u8]) -> Result<(), E>> {
        let len = (range.end - range.start) as usize;
        Data::builder(name)
            .freshness(self.freshness)
            .final_block_id(ComponentBuf::segment(self.last()))
            .content_with(len, move |content| fill(range.start, content))
    }

    /// What RDR tells of the object.
    pub fn metadata(&self) -> Metadata {
        Metadata {
            last: Some(self.last()),
            segment_bytes: Some(self.segment_bytes),
            size: Some(self.size),
            ..Metadata::new(self.prefix.clone())
        }
    }
}
