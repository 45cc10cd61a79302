//! A real disk that refuses some writes.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ndn_repo::disk::{Disk, DiskFile, RealDisk};

/// What is refused of files on their way into the repository.
#[derive(Debug)]
pub struct Refused {
    /// The place of their content that can't be written.
    pub content_at: AtomicU64,
    /// Whether manifests find no room, as by a quota.
    pub manifests: AtomicBool,
}

/// The disk.
#[derive(Debug)]
pub struct BadDisk {
    disk: RealDisk,
    pub refused: Arc<Refused>,
}

#[derive(Debug)]
struct BadFile {
    file: Arc<dyn DiskFile>,
    is_content: bool,
    is_manifest: bool,
    /// Small versions lie in it with their manifests.
    is_bundle: bool,
    refused: Arc<Refused>,
}

impl BadDisk {
    /// Refuses nothing at first.
    pub fn open(root: &Path) -> Self {
        let refused = Refused {
            content_at: AtomicU64::new(u64::MAX),
            manifests: AtomicBool::new(false),
        };
        Self {
            disk: RealDisk::open(root).expect("a disk"),
            refused: Arc::new(refused),
        }
    }

    fn file(&self, path: &Path, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        let is_new = path.starts_with("incoming");
        let is_manifest = is_new && path.extension().is_some();
        Arc::new(BadFile {
            file,
            is_content: is_new && !is_manifest,
            is_manifest,
            is_bundle: path.starts_with("bundles"),
            refused: self.refused.clone(),
        })
    }
}

impl Disk for BadDisk {
    fn make_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.make_dir(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.file(path, self.disk.create(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.file(path, self.disk.open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_dir(path)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.disk.sync_all()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes()
    }
}

impl DiskFile for BadFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let bad = self.refused.content_at.load(Ordering::Relaxed);
        if self.is_content && (offset..offset + bytes.len() as u64).contains(&bad) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let tells_digests = self.is_manifest && offset > 0 || self.is_bundle;
        if tells_digests && self.refused.manifests.load(Ordering::Relaxed) {
            return Err(io::Error::from_raw_os_error(libc::EDQUOT));
        }
        self.file.write_at(offset, bytes)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.file.set_size(size)
    }

    fn reserve(&self, bytes: Range<u64>) -> io::Result<()> {
        self.file.reserve(bytes)
    }

    fn begin_stream(&self, bytes: Range<u64>) -> io::Result<bool> {
        self.file.begin_stream(bytes)
    }

    fn end_stream(&self) {
        self.file.end_stream();
    }

    fn begin_writeback(&self, offset: u64, len: u64) {
        self.file.begin_writeback(offset, len);
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}
