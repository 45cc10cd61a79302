//! A file version as it is read and served: every byte is checked against the manifest first.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use ndn_packet::{ComponentBuf, Data, Name, SigningKey};

use super::manifest::{Manifest, SegmentEntry};
use super::manifest_name;
use super::memory::ReadFile;
use super::segments::{DIGEST_BYTES, Shape};
use super::writer::Staged;
use crate::disk::DiskFile;
use crate::error::{At, RepoError, Result};
use crate::index::FileEntry;
use crate::layout::incoming;

/// Entries of the manifest that are read at once.
const WINDOW: usize = 256;
/// Entries of the manifest that are read at once where all of it is.
const MANIFEST_PART: usize = 4096;

/// One version of a file, open for reading. Any number of threads may read.
#[derive(Debug)]
pub struct FileReader {
    shape: Shape,
    entry: FileEntry,
    content: Arc<dyn DiskFile>,
    manifest: Manifest,
    /// The entries read last, and the segment of the first.
    window: Mutex<(u64, Arc<[SegmentEntry]>)>,
    end: OnceLock<([u8; DIGEST_BYTES], Bytes)>,
}

impl FileReader {
    pub(crate) fn new(
        name: &Name,
        version: u64,
        entry: FileEntry,
        content: Arc<dyn DiskFile>,
        manifest: Arc<dyn DiskFile>,
    ) -> Result<Self> {
        Ok(Self {
            shape: Shape::of(name.append_version(version), &entry),
            manifest: Manifest::open(manifest, name, version, &entry)?,
            entry,
            content,
            window: Mutex::new((0, Arc::new([]))),
            end: OnceLock::new(),
        })
    }

    /// The name, version included.
    pub fn versioned(&self) -> &Name {
        &self.shape.versioned
    }

    /// What the index knows of it.
    pub fn entry(&self) -> &FileEntry {
        &self.entry
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.entry.size
    }

    /// Fills `buffer` from `offset` on, as far as the file goes, and tells how many bytes those are.
    ///
    /// # Errors
    /// [`RepoError::Damaged`] when the bytes are not those that were put, else what the disk says.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let whole = u64::from(self.entry.segment_bytes);
        let end = self.size().min(offset.saturating_add(buffer.len() as u64));
        let mut at = offset;
        let mut aside = Vec::new();
        while at < end {
            let segment = at / whole;
            let (start, len) = self.range(segment);
            let place = &mut buffer[(at - offset) as usize..(end - offset) as usize];
            if at == start && place.len() >= len {
                self.read_segment(segment, &mut place[..len])?;
                at += len as u64;
            } else {
                aside.resize(len, 0);
                self.read_segment(segment, &mut aside)?;
                let part = &aside[(at - start) as usize..];
                let n = part.len().min(place.len());
                place[..n].copy_from_slice(&part[..n]);
                at += n as u64;
            }
        }
        Ok(at.saturating_sub(offset) as usize)
    }

    /// Fills `place`, which has room for it, with segment `n`, and tells how many bytes those are. Its digest is checked,
    /// too: whoever has checked [`FileReader::verify_manifest`] has the bytes that were signed.
    ///
    /// # Errors
    /// As [`FileReader::read_at`].
    pub fn read_verified(&self, n: u64, place: &mut [u8]) -> Result<usize> {
        let last = self.entry.last_segment();
        if n > last {
            return Ok(0);
        }
        let entry = self.manifest_entry(n)?;
        let (start, len) = self.range(n);
        let place = &mut place[..len];
        self.read_checked(n, start, &entry, place)?;
        if self.shape.digest(n, n == last, place) != entry.digest {
            return Err(self.damaged(&format!("segment {n} does not have its digest")));
        }
        Ok(len)
    }

    /// Reads the manifest, checks that the metadata packet tells its digest, and gives that packet: whoever checks its
    /// signature knows who made the file.
    ///
    /// # Errors
    /// [`RepoError::Damaged`] when the manifest is not the one that was signed, else what the disk says.
    pub fn verify_manifest(&self) -> Result<Data> {
        let mut digests = ring::digest::Context::new(&ring::digest::SHA256);
        let segments = self.entry.last_segment() + 1;
        let mut first = 0;
        while first < segments {
            for entry in self.manifest.entries(first, MANIFEST_PART)? {
                digests.update(&entry.digest);
            }
            first += MANIFEST_PART as u64;
        }
        self.signed_manifest(digests.finish().as_ref())
    }

    /// The metadata packet, which must tell the digest `root`.
    fn signed_manifest(&self, root: &[u8]) -> Result<Data> {
        let (kept, metadata) = self.end()?;
        let told = Data::parse(metadata.clone()).ok().and_then(|data| {
            let metadata = ndn_endpoint::rdr::Metadata::from_data(&data).ok()?;
            Some((data, metadata.manifest_digest?, metadata.name))
        });
        match told {
            Some((data, digest, name))
                if digest == root && kept == root && name == self.shape.versioned =>
            {
                Ok(data)
            }
            _ => Err(self.damaged("its manifest is not the one that was signed")),
        }
    }

    /// The Data packet of segment `n`, the same bytes each time; `None` beyond the last.
    ///
    /// # Errors
    /// As [`FileReader::read_at`].
    pub fn packet(&self, n: u64) -> Result<Option<Bytes>> {
        let last = self.entry.last_segment();
        if n > last {
            return Ok(None);
        }
        let entry = self.manifest_entry(n)?;
        let (start, len) = self.range(n);
        self.shape
            .packet(n, n == last, entry.digest, len, |place| {
                self.read_checked(n, start, &entry, place)
            })
            .map(Some)
    }

    /// Segment `n` of the manifest as it is published: digests of the content's segments one after the other, as many
    /// whole ones as a segment has room for; `None` beyond the last.
    ///
    /// # Errors
    /// What the disk says.
    pub fn manifest_packet(&self, n: u64) -> Result<Option<Bytes>> {
        let each = u64::from(manifest_digests(self.entry.segment_bytes));
        let last = self.entry.last_segment() / each;
        if n > last {
            return Ok(None);
        }
        let entries = self.manifest.entries(n * each, each as usize)?;
        let content: Vec<u8> = entries.iter().flat_map(|e| e.digest).collect();
        let name = manifest_name(&self.shape.versioned).append_segment(n);
        let wire = Data::builder(&name)
            .freshness(self.shape.freshness)
            .final_block_id(ComponentBuf::segment(last))
            .content(&content)
            .sign(&SigningKey::DigestSha256);
        Ok(Some(wire))
    }

    /// The signed metadata packet, as it was made when the file came in.
    ///
    /// # Errors
    /// [`RepoError::Damaged`] when it is damaged, else what the disk says.
    pub fn metadata(&self) -> Result<Bytes> {
        Ok(self.end()?.1.clone())
    }

    fn end(&self) -> Result<&([u8; DIGEST_BYTES], Bytes)> {
        if self.end.get().is_none() {
            // Two that come here at once read the same.
            let _ = self.end.set(self.manifest.end()?);
        }
        self.end
            .get()
            .ok_or_else(|| self.damaged("its manifest has no end"))
    }

    /// Checks every byte, digests included. `progress` is told bytes checked since its last call, and ends the work by
    /// `false`.
    ///
    /// # Errors
    /// [`RepoError::Damaged`] at the first segment that is not what was put, else what the disk says.
    pub fn verify(&self, progress: &mut dyn FnMut(u64) -> bool) -> Result<()> {
        let last = self.entry.last_segment();
        let mut digests = ring::digest::Context::new(&ring::digest::SHA256);
        let mut content = Vec::new();
        for n in 0..=last {
            let entry = self.manifest_entry(n)?;
            let (start, len) = self.range(n);
            content.resize(len, 0);
            self.read_checked(n, start, &entry, &mut content)?;
            if self.shape.digest(n, n == last, &content) != entry.digest {
                return Err(self.damaged(&format!("segment {n} does not have its digest")));
            }
            digests.update(&entry.digest);
            if !progress(len as u64) {
                return Ok(());
            }
        }
        self.signed_manifest(digests.finish().as_ref())?;
        if self.content.size().at(Path::new("content"))? != self.size() {
            return Err(self.damaged("its content file has another size"));
        }
        Ok(())
    }

    fn range(&self, n: u64) -> (u64, usize) {
        let whole = u64::from(self.entry.segment_bytes);
        let start = n * whole;
        (start, self.size().saturating_sub(start).min(whole) as usize)
    }

    fn read_segment(&self, n: u64, place: &mut [u8]) -> Result<()> {
        let entry = self.manifest_entry(n)?;
        self.read_checked(n, self.range(n).0, &entry, place)
    }

    fn read_checked(
        &self,
        n: u64,
        start: u64,
        entry: &SegmentEntry,
        place: &mut [u8],
    ) -> Result<()> {
        match self.content.read_at(start, place) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                return Err(self.damaged(&format!("its content ends before segment {n} does")));
            }
            other => other.at(Path::new("content"))?,
        }
        if entry.holds(place) {
            Ok(())
        } else {
            Err(self.damaged(&format!("segment {n} is not what was put there")))
        }
    }

    fn manifest_entry(&self, n: u64) -> Result<SegmentEntry> {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let index = n.wrapping_sub(window.0) as usize;
        if let Some(entry) = window.1.get(index) {
            return Ok(*entry);
        }
        let first = n - n % WINDOW as u64;
        *window = (first, self.manifest.entries(first, WINDOW)?.into());
        window
            .1
            .get((n - first) as usize)
            .copied()
            .ok_or_else(|| self.damaged("its manifest is cut short"))
    }

    fn damaged(&self, cause: &str) -> RepoError {
        RepoError::Damaged {
            name: self.shape.versioned.clone(),
            cause: cause.to_owned(),
        }
    }
}

impl Staged {
    /// What reads the version once it is published: opened before, so that it stays readable whatever becomes of it.
    ///
    /// # Errors
    /// What is wrong with its files.
    pub fn reader(&self) -> Result<Arc<FileReader>> {
        let facts = &self.facts;
        if let Some(small) = &self.small {
            let part = |bytes: &Bytes| Arc::new(ReadFile(bytes.clone()));
            let (content, manifest) = (part(&small.content), part(&small.manifest));
            let reader =
                FileReader::new(&facts.name, facts.version, facts.entry, content, manifest);
            return Ok(Arc::new(reader?));
        }
        let paths = incoming(facts.entry.content);
        let open = |path: &Path| self.repo.disk.open(path).at(path);
        let (content, manifest) = (open(&paths.0)?, open(&paths.1)?);
        let reader = FileReader::new(&facts.name, facts.version, facts.entry, content, manifest);
        Ok(Arc::new(reader?))
    }
}

/// Digests in a segment of a manifest, where content has so many bytes a segment.
pub fn manifest_digests(segment_bytes: u32) -> u32 {
    (segment_bytes / DIGEST_BYTES as u32).max(1)
}
