//! A finalized replica on disk: the block file and its checksum file.
//!
//! The checksum file (HDFS `BlockMetadataHeader`, then `DataChecksum`) is a
//! version (u16, 1), a checksum type (u8) and the bytes a checksum covers
//! (u32), all big-endian; then one checksum a chunk in the order of the chunks.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use bytes::Bytes;
use thiserror::Error;

use crate::manifest::MAX_SEGMENTS;
use crate::segment::{ChecksumType, HEADER_LEN, SegmentDigest, SegmentHeader, max_body_bytes};

/// Bytes before the first checksum of a checksum file.
pub const META_HEADER_LEN: usize = 7;
/// The one version of checksum files that HDFS has written since 0.18.
const META_VERSION: u16 = 1;

/// Why a replica can't be served.
#[derive(Debug, Error)]
pub enum ReplicaError {
    /// A file did not open or read.
    #[error("{path}: {cause}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        cause: io::Error,
    },
    /// The checksum file has another layout than we know.
    #[error("{path}: checksum file of version {version}, type {kind}, {chunk} bytes a checksum")]
    Meta {
        /// The checksum file.
        path: String,
        /// Version it claims.
        version: u16,
        /// Checksum type id it claims.
        kind: u8,
        /// Bytes a checksum it claims.
        chunk: u32,
    },
    /// A chunk is larger than a segment may be, or so small that checksums take
    /// more than a segment has room for.
    #[error("{path}: {chunk} bytes a checksum do not fit into a segment of {segment}")]
    Chunk {
        /// The checksum file.
        path: String,
        /// Bytes a checksum.
        chunk: u32,
        /// Most data bytes of a segment.
        segment: u32,
    },
}

/// The open files of one replica, and how it is cut into segments. Reads are
/// positioned, so that many threads can share one.
#[derive(Debug)]
pub struct Replica {
    data: File,
    sums: File,
    checksum: ChecksumType,
    bytes_per_checksum: u32,
    segment_bytes: u32,
    length: u64,
    genstamp: u64,
    /// Where the checksum file lay, and what it was there: device and inode.
    meta: (PathBuf, u64, u64),
    manifest: OnceLock<Bytes>,
}

impl Replica {
    /// Opens both files. `max_segment_bytes` is rounded down to whole chunks,
    /// as a stock client cuts its packets.
    pub fn open(
        block: &Path,
        meta: &Path,
        length: u64,
        genstamp: u64,
        max_segment_bytes: u32,
    ) -> Result<Self, ReplicaError> {
        let io = |path: &Path, cause| ReplicaError::Io {
            path: path.display().to_string(),
            cause,
        };
        let data = File::open(block).map_err(|e| io(block, e))?;
        let sums = File::open(meta).map_err(|e| io(meta, e))?;
        let file = sums.metadata().map_err(|e| io(meta, e))?;
        let mut head = [0; META_HEADER_LEN];
        sums.read_exact_at(&mut head, 0).map_err(|e| io(meta, e))?;
        let version = u16::from_be_bytes([head[0], head[1]]);
        let chunk = u32::from_be_bytes([head[3], head[4], head[5], head[6]]);
        let path = || meta.display().to_string();
        let checksum = match ChecksumType::from_id(head[2]) {
            Some(checksum) if version == META_VERSION && chunk > 0 => checksum,
            _ => {
                return Err(ReplicaError::Meta {
                    path: path(),
                    version,
                    kind: head[2],
                    chunk,
                });
            }
        };
        if chunk > max_segment_bytes {
            return Err(ReplicaError::Chunk {
                path: path(),
                chunk,
                segment: max_segment_bytes,
            });
        }
        let segment_bytes = max_segment_bytes / chunk * chunk;
        let sums_len = u64::from(segment_bytes / chunk) * checksum.size() as u64;
        if u64::from(segment_bytes) + sums_len > max_body_bytes(segment_bytes as usize) as u64 {
            return Err(ReplicaError::Chunk {
                path: path(),
                chunk,
                segment: max_segment_bytes,
            });
        }
        Ok(Replica {
            data,
            sums,
            checksum,
            bytes_per_checksum: chunk,
            segment_bytes,
            length,
            genstamp,
            meta: (meta.to_path_buf(), file.dev(), file.ino()),
            manifest: OnceLock::new(),
        })
    }

    /// Whether the files still lie where they did. An append takes them away and
    /// changes them, whichever way it comes to the DataNode; so does a deletion.
    pub fn is_in_place(&self) -> bool {
        let (path, dev, ino) = &self.meta;
        std::fs::metadata(path).is_ok_and(|file| (file.dev(), file.ino()) == (*dev, *ino))
    }

    /// The digests of all segments, one after the other; `None` for a block
    /// without checksums, and for one of more segments than readers take. Reads the
    /// whole checksum file the first time.
    pub fn manifest(&self) -> io::Result<Option<Bytes>> {
        if self.checksum.size() == 0 || self.segments() > MAX_SEGMENTS {
            return Ok(None);
        }
        if let Some(made) = self.manifest.get() {
            return Ok(Some(made.clone()));
        }
        let mut manifest = Vec::new();
        let mut covered = Vec::new();
        for n in 0..=self.last_segment() {
            let Some(header) = self.header(n) else {
                break;
            };
            covered.resize(HEADER_LEN + header.checksums_len(), 0);
            covered[..HEADER_LEN].copy_from_slice(&header.encode());
            self.read_sums(&header, &mut covered[HEADER_LEN..])?;
            let digest = SegmentDigest::of(&covered)
                .ok_or_else(|| io::Error::other("no digest of a header of our own"))?;
            manifest.extend_from_slice(&digest.0);
        }
        Ok(Some(self.manifest.get_or_init(|| manifest.into()).clone()))
    }

    /// Generation stamp that was answered with the paths.
    pub fn genstamp(&self) -> u64 {
        self.genstamp
    }

    /// Length of the replica in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Data bytes of every segment but the last.
    pub fn segment_bytes(&self) -> u32 {
        self.segment_bytes
    }

    /// How the chunks are summed.
    pub fn checksum(&self) -> ChecksumType {
        self.checksum
    }

    /// Data bytes a checksum covers.
    pub fn bytes_per_checksum(&self) -> u32 {
        self.bytes_per_checksum
    }

    /// How many segments there are, 1 at least.
    pub fn segments(&self) -> u64 {
        self.last_segment() + 1
    }

    /// Number of the last segment. An empty replica has one segment, with a
    /// header and nothing else.
    pub fn last_segment(&self) -> u64 {
        self.length.div_ceil(u64::from(self.segment_bytes)).max(1) - 1
    }

    /// The header of segment `n`, `None` past the end.
    pub fn header(&self, n: u64) -> Option<SegmentHeader> {
        if n > self.last_segment() {
            return None;
        }
        let offset = n * u64::from(self.segment_bytes);
        Some(SegmentHeader {
            checksum: self.checksum,
            bytes_per_checksum: self.bytes_per_checksum,
            data_len: u64::from(self.segment_bytes).min(self.length - offset) as u32,
            offset_in_block: offset,
        })
    }

    /// Writes header, checksums and data of a segment into `content`, which
    /// has exactly that length.
    pub fn read(&self, header: &SegmentHeader, content: &mut [u8]) -> io::Result<()> {
        let (head, body) = content.split_at_mut(HEADER_LEN);
        head.copy_from_slice(&header.encode());
        let (sums, data) = body.split_at_mut(header.checksums_len());
        self.read_sums(header, sums)?;
        self.data.read_exact_at(data, header.offset_in_block)
    }

    fn read_sums(&self, header: &SegmentHeader, sums: &mut [u8]) -> io::Result<()> {
        let chunk = header.offset_in_block / u64::from(header.bytes_per_checksum);
        let at = META_HEADER_LEN as u64 + chunk * self.checksum.size() as u64;
        self.sums.read_exact_at(sums, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::DIGEST_LEN;

    struct Pair {
        dir: PathBuf,
        block: PathBuf,
        meta: PathBuf,
    }

    impl Drop for Pair {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }

    fn pair(name: &str, data: &[u8], meta: &[u8]) -> Pair {
        let dir =
            std::env::temp_dir().join(format!("trunkline-replica-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (block, sums) = (dir.join("blk_7"), dir.join("blk_7_1001.meta"));
        std::fs::write(&block, data).unwrap();
        std::fs::write(&sums, meta).unwrap();
        Pair {
            dir,
            block,
            meta: sums,
        }
    }

    fn meta(chunk: u32, sums: usize) -> Vec<u8> {
        let mut out = vec![0, 1, 2];
        out.extend_from_slice(&chunk.to_be_bytes());
        (0..sums as u32).for_each(|n| out.extend_from_slice(&(n | 0xab00_0000).to_be_bytes()));
        out
    }

    #[test]
    fn cuts_on_chunks_and_reads_both_files() {
        let data: Vec<u8> = (0..2500u32).map(|n| (n * 7) as u8).collect();
        let files = pair("cut", &data, &meta(512, 5));
        let replica = Replica::open(&files.block, &files.meta, 2500, 1001, 1100).unwrap();
        assert_eq!(replica.segment_bytes(), 1024);
        assert_eq!(replica.last_segment(), 2);
        let mut whole = Vec::new();
        for n in 0..=2 {
            let header = replica.header(n).unwrap();
            assert_eq!(header.offset_in_block, n * 1024);
            let mut content = vec![0; HEADER_LEN + header.body_len()];
            replica.read(&header, &mut content).unwrap();
            assert_eq!(SegmentHeader::decode(&content), Ok(header));
            let sums = &content[HEADER_LEN..HEADER_LEN + header.checksums_len()];
            for (k, sum) in sums.chunks(4).enumerate() {
                let at = (n as u32 * 2 + k as u32) | 0xab00_0000;
                assert_eq!(sum, at.to_be_bytes());
            }
            whole.extend_from_slice(&content[HEADER_LEN + header.checksums_len()..]);
        }
        assert_eq!(whole, data);
        assert_eq!(replica.header(3), None);
    }

    #[test]
    fn the_manifest_has_each_segments_digest() {
        let data: Vec<u8> = (0..2500u32).map(|n| (n * 7) as u8).collect();
        let files = pair("manifest", &data, &meta(512, 5));
        let replica = Replica::open(&files.block, &files.meta, 2500, 1001, 1100).unwrap();
        let manifest = replica.manifest().unwrap().unwrap();
        assert_eq!(manifest.len(), 3 * DIGEST_LEN);
        for (n, digest) in manifest.chunks(DIGEST_LEN).enumerate() {
            let header = replica.header(n as u64).unwrap();
            let mut content = vec![0; HEADER_LEN + header.body_len()];
            replica.read(&header, &mut content).unwrap();
            assert_eq!(SegmentDigest::of(&content).unwrap().0, digest);
        }
        let none = pair("bare", b"x", &[0, 1, 0, 0, 0, 2, 0]);
        let replica = Replica::open(&none.block, &none.meta, 1, 1, 1100).unwrap();
        assert_eq!(replica.manifest().unwrap(), None);
    }

    #[test]
    fn a_block_in_more_segments_than_readers_take_has_no_manifest() {
        let length = 512 * MAX_SEGMENTS;
        let files = pair("long", b"", &meta(512, 0));
        // Nobody reads a checksum to see that: there is none.
        let open = |length| Replica::open(&files.block, &files.meta, length, 1, 512).unwrap();
        assert_eq!(open(length + 1).manifest().unwrap(), None);
        assert!(open(length).manifest().is_err());
    }

    #[test]
    fn checksums_have_room_beside_the_data() {
        let files = pair("chunks", &[1; 600], &meta(16, 38));
        let open = |max| Replica::open(&files.block, &files.meta, 600, 1, max);
        assert!(matches!(
            open(64_512),
            Err(ReplicaError::Chunk { chunk: 16, .. })
        ));
        assert_eq!(open(8_192).unwrap().segment_bytes(), 8_192);
    }

    #[test]
    fn files_that_were_moved_are_not_in_place() {
        let files = pair("moved", &[1; 600], &meta(512, 2));
        let replica = Replica::open(&files.block, &files.meta, 600, 1, 64_512).unwrap();
        assert!(replica.is_in_place());
        let away = files.dir.join("away");
        std::fs::rename(&files.meta, &away).unwrap();
        assert!(!replica.is_in_place());
        std::fs::write(&files.meta, meta(512, 2)).unwrap();
        assert!(!replica.is_in_place(), "another file under the name");
        std::fs::rename(&away, &files.meta).unwrap();
        assert!(replica.is_in_place());
    }

    #[test]
    fn an_empty_replica_has_one_segment_of_nothing() {
        let files = pair("empty", b"", &meta(512, 0));
        let replica = Replica::open(&files.block, &files.meta, 0, 1, 64_512).unwrap();
        assert_eq!(replica.last_segment(), 0);
        let header = replica.header(0).unwrap();
        assert_eq!(header.body_len(), 0);
        let mut content = [0; HEADER_LEN];
        replica.read(&header, &mut content).unwrap();
    }

    #[test]
    fn a_file_that_is_too_short_is_an_error_of_the_read() {
        let files = pair("short", &[1; 600], &meta(512, 2));
        let replica = Replica::open(&files.block, &files.meta, 1000, 1, 64_512).unwrap();
        let header = replica.header(0).unwrap();
        let mut content = vec![0; HEADER_LEN + header.body_len()];
        let error = replica.read(&header, &mut content).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn other_layouts_are_refused() {
        for (name, bytes) in [
            ("version", vec![0, 2, 2, 0, 0, 2, 0]),
            ("kind", vec![0, 1, 3, 0, 0, 2, 0]),
            ("chunk", vec![0, 1, 2, 0, 0, 0, 0]),
        ] {
            let files = pair(name, b"x", &bytes);
            let error = Replica::open(&files.block, &files.meta, 1, 1, 64_512).unwrap_err();
            assert!(
                matches!(error, ReplicaError::Meta { .. }),
                "{name}: {error}"
            );
        }
        let files = pair("large", b"x", &meta(1 << 20, 1));
        let error = Replica::open(&files.block, &files.meta, 1, 1, 64_512).unwrap_err();
        assert!(matches!(error, ReplicaError::Chunk { .. }));
        let error = Replica::open(&files.dir.join("none"), &files.meta, 1, 1, 64_512).unwrap_err();
        assert!(matches!(error, ReplicaError::Io { .. }));
    }
}
