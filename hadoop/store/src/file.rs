//! A version of a file, and which bytes of which block segments a segment of it has.

mod batch;

use std::ops::Range;

use bytes::Bytes;
use ndn_endpoint::{Segmenter, rdr};
use ndn_packet::{Name, SigningKey, sha256};
use ndn_repo::METADATA_FRESHNESS;
use trunkline_native::{HEADER_LEN, SegmentHeader};

use crate::cut::Cut;
use crate::webhdfs::{LocatedBlock, Status};

/// Blocks of a file, 32 bytes each. So many blocks of 128 MiB hold 32 TiB.
const MAX_BLOCKS: usize = 1 << 18;

/// Bytes of a block pool's name, which is a folder's on DataNodes. It stands in the name of each block segment.
const MAX_POOL: usize = 255;

/// Blocks that a segment of a file may have bytes of: all it is cut from has to be at hand at once.
const MAX_SPANNED: usize = 32;

/// Why a file has no version that can be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unserved {
    /// A writer has it open: its bytes are not the last.
    #[error("it is being written; it is published when its writer closes it")]
    Open,
    /// Its blocks hold something else than its bytes.
    #[error("it is in an encryption zone, and DataNodes have no plain bytes of it")]
    Encrypted,
    /// Its blocks hold parts of its bytes.
    #[error("it is erasure-coded, and DataNodes serve replicated blocks only by name")]
    ErasureCoded,
    /// The NameNode contradicts itself.
    #[error("its blocks do not follow each other")]
    Blocks,
    /// It has more blocks than are kept.
    #[error("it has more than {MAX_BLOCKS} blocks")]
    TooLong,
    /// A segment would need more block segments than are kept at hand.
    #[error("a segment of it has bytes of more than {MAX_SPANNED} blocks")]
    TooFine,
    /// The NameNode says nothing that can be understood of it.
    #[error("the NameNode does not tell what it is: {0}")]
    Untold(String),
}

impl Unserved {
    /// Whether what was told before may still hold: the file is there, as far as is known.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Open | Self::Blocks | Self::Untold(_))
    }
}

/// A version of a file.
#[derive(Debug)]
pub(crate) struct File {
    segmenter: Segmenter,
    mode: u64,
    mtime_ns: u64,
    blocks_prefix: Name,
    blocks: Vec<Part>,
    block_segment_bytes: u64,
}

#[derive(Debug)]
struct Part {
    start: u64,
    len: u64,
    block: u64,
    generation_stamp: u64,
}

/// Bytes of a block segment that belong to a segment of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Name of the block segment.
    pub name: Name,
    /// Where its data begins in the block.
    pub offset_in_block: u64,
    /// All data bytes it has.
    pub data_len: u64,
    /// First of the bytes wanted.
    pub from: usize,
    /// How many are wanted.
    pub len: usize,
}

/// A file whose blocks are told part after part.
pub(crate) struct Draft {
    pool: String,
    blocks: Vec<Part>,
    /// First byte that no block told so far has.
    pub end: u64,
}

impl Draft {
    /// No block is known yet.
    pub fn new() -> Self {
        Self {
            pool: String::new(),
            blocks: Vec::new(),
            end: 0,
        }
    }

    /// Takes the next blocks.
    pub fn extend(&mut self, located: &[LocatedBlock]) -> Result<(), Unserved> {
        for LocatedBlock {
            start_offset,
            block,
        } in located
        {
            let id = u64::try_from(block.block_id).map_err(|_| Unserved::ErasureCoded)?;
            if *start_offset != self.end
                || (!self.pool.is_empty() && self.pool != block.block_pool_id)
            {
                return Err(Unserved::Blocks);
            }
            if self.blocks.len() == MAX_BLOCKS {
                return Err(Unserved::TooLong);
            }
            if block.block_pool_id.len() > MAX_POOL {
                let why = format!("the name of its block pool is longer than {MAX_POOL} bytes");
                return Err(Unserved::Untold(why));
            }
            if block.num_bytes == 0 {
                continue;
            }
            self.pool.clone_from(&block.block_pool_id);
            self.blocks.push(Part {
                start: self.end,
                len: block.num_bytes,
                block: id,
                generation_stamp: block.generation_stamp,
            });
            self.end = self
                .end
                .checked_add(block.num_bytes)
                .ok_or(Unserved::Blocks)?;
        }
        Ok(())
    }

    /// The version of `name` that `status` and the blocks are.
    pub fn finish(mut self, name: &Name, status: &Status, cut: &Cut) -> Result<File, Unserved> {
        if self.end != status.length {
            return Err(Unserved::Blocks);
        }
        let segment = |at: u64| at / u64::from(cut.segment_bytes.max(1));
        let is_too_fine = |(first, beyond): (&Part, &Part)| {
            segment(first.start + first.len - 1) == segment(beyond.start)
        };
        if self
            .blocks
            .iter()
            .zip(self.blocks.iter().skip(MAX_SPANNED))
            .any(is_too_fine)
        {
            return Err(Unserved::TooFine);
        }
        let version = version(status, &self.blocks, cut);
        let versioned = name.append_version(version);
        self.blocks.shrink_to_fit();
        Ok(File {
            segmenter: Segmenter::new(versioned, self.end, cut.segment_bytes)
                .with_freshness(cut.freshness),
            mode: mode(status),
            mtime_ns: mtime_ns(status),
            blocks_prefix: cut.root.append_generic("blocks").append_generic(&self.pool),
            blocks: self.blocks,
            block_segment_bytes: u64::from(cut.block_segment_bytes.max(1)),
        })
    }
}

/// `st_mode` of a plain file with these permissions, whatever else the NameNode says.
fn mode(status: &Status) -> u64 {
    0o100_000 | (u64::from_str_radix(&status.permission, 8).unwrap_or(0) & 0o7777)
}

/// The time of change in nanoseconds since the Unix epoch; one before it is taken for it.
fn mtime_ns(status: &Status) -> u64 {
    u64::try_from(status.modification_time)
        .unwrap_or(0)
        .saturating_mul(1_000_000)
}

/// The version: the time of change in nanoseconds. HDFS knows milliseconds and lets users set them, so the digits below
/// are drawn from all that the version stands for: what differs in any of it differs in its name, but for one in a million
/// of those that have the same millisecond.
fn version(status: &Status, blocks: &[Part], cut: &Cut) -> u64 {
    let mut all = status.permission.clone().into_bytes();
    all.extend(status.file_id.to_be_bytes());
    all.extend(u64::from(cut.segment_bytes).to_be_bytes());
    for part in blocks {
        for number in [part.block, part.generation_stamp, part.len] {
            all.extend(number.to_be_bytes());
        }
    }
    let drawn = sha256(&all)
        .first_chunk()
        .map_or(0, |first| u64::from_be_bytes(*first));
    mtime_ns(status).saturating_add(drawn % 1_000_000)
}

impl File {
    /// Why `status` is none of a file that can be served, if it isn't.
    pub fn refuse(status: &Status) -> Result<(), Unserved> {
        match status {
            _ if status.is_encrypted => Err(Unserved::Encrypted),
            _ if status.is_erasure_coded => Err(Unserved::ErasureCoded),
            _ => Ok(()),
        }
    }

    /// Its name, version included.
    pub fn versioned(&self) -> &Name {
        self.segmenter.prefix()
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        let names = self.versioned().wire_len() + self.blocks_prefix.wire_len();
        size_of::<Self>() + size_of_val(&*self.blocks) + names
    }

    /// The metadata packet: the same each time.
    pub fn metadata(&self, key: &SigningKey) -> Bytes {
        let versioned = self.versioned();
        let metadata = rdr::Metadata {
            mode: Some(self.mode),
            mtime_ns: Some(self.mtime_ns),
            ..self.segmenter.metadata()
        };
        let version = versioned.last().and_then(|c| c.as_version()).unwrap_or(0);
        metadata.packet(&versioned.parent(), version, METADATA_FRESHNESS, key)
    }

    /// Where the bytes of segment `n` are; `None` beyond the last.
    pub fn pieces(&self, n: u64) -> Option<Vec<Piece>> {
        self.pieces_in(self.segmenter.range(n)?)
    }

    /// Where these bytes of the file are.
    fn pieces_in(&self, range: Range<u64>) -> Option<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut at = range.start;
        let mut block = self.blocks.partition_point(|b| b.start + b.len <= at);
        while at < range.end {
            let part = self.blocks.get(block)?;
            let inside = at - part.start;
            let segment = inside / self.block_segment_bytes;
            let offset_in_block = segment * self.block_segment_bytes;
            let data_len = self.block_segment_bytes.min(part.len - offset_in_block);
            let len = (offset_in_block + data_len - inside).min(range.end - at);
            pieces.push(Piece {
                name: self
                    .blocks_prefix
                    .append_generic(part.block.to_string())
                    .append_version(part.generation_stamp)
                    .append_segment(segment),
                offset_in_block,
                data_len,
                from: (inside - offset_in_block) as usize,
                len: len as usize,
            });
            at += len;
            if at >= part.start + part.len {
                block += 1;
            }
        }
        Some(pieces)
    }

    /// Segment `n` with the bytes of its `pieces`, whose block segments `content` has; `None` beyond the last.
    ///
    /// # Errors
    /// The name of a block segment that does not have the bytes it should.
    pub fn segment<'a>(
        &self,
        n: u64,
        pieces: &[Piece],
        content: impl Fn(&Name) -> Option<&'a Bytes>,
        key: &SigningKey,
    ) -> Result<Option<Bytes>, Name> {
        self.segmenter.segment(n, key, |_, mut place| {
            for piece in pieces {
                let Some(bytes) = content(&piece.name).and_then(|c| piece.of(c)) else {
                    return Err(piece.name.clone());
                };
                let (this, rest) = place.split_at_mut(piece.len);
                this.copy_from_slice(bytes);
                place = rest;
            }
            Ok(())
        })
    }
}

impl Piece {
    /// The bytes wanted, out of the block segment's content.
    fn of<'a>(&self, content: &'a [u8]) -> Option<&'a [u8]> {
        let header = SegmentHeader::decode(content).ok()?;
        if header.offset_in_block != self.offset_in_block
            || u64::from(header.data_len) != self.data_len
        {
            return None;
        }
        let data = content.get(HEADER_LEN + header.checksums_len()..)?;
        data.get(self.from..self.from + self.len)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::webhdfs::Block;

    fn cut() -> Cut {
        Cut {
            root: "/hadoop".parse().expect("a name"),
            block_segment_bytes: 10,
            segment_bytes: 8,
            freshness: Duration::from_secs(1),
        }
    }

    fn located(lens: &[u64]) -> Vec<LocatedBlock> {
        let mut at = 0;
        let one = |(n, len): (usize, &u64)| {
            at += len;
            LocatedBlock {
                start_offset: at - len,
                block: Block {
                    block_pool_id: String::from("BP-1"),
                    block_id: n as i64,
                    generation_stamp: 5,
                    num_bytes: *len,
                },
            }
        };
        lens.iter().enumerate().map(one).collect()
    }

    fn status(length: u64) -> Status {
        serde_json::from_str(&format!(
            r#"{{"type":"FILE","length":{length},"blockSize":100,"modificationTime":1700000000123,"fileId":16389,
                "permission":"644"}}"#
        ))
        .expect("a status")
    }

    fn file(status: &Status, blocks: &[LocatedBlock]) -> Result<File, Unserved> {
        let mut draft = Draft::new();
        draft.extend(blocks)?;
        draft.finish(&"/a".parse().expect("a name"), status, &cut())
    }

    #[test]
    fn all_bytes_are_found_in_their_order() {
        for lens in [&[1][..], &[25], &[25, 25, 3], &[1, 1, 0, 1, 1, 40, 0], &[]] {
            let file = file(&status(lens.iter().sum()), &located(lens)).expect("served");
            let mut found = Vec::new();
            for n in 0..=file.segmenter.last() {
                for piece in file.pieces(n).expect("there") {
                    assert!(piece.from as u64 + piece.len as u64 <= piece.data_len);
                    let block = piece.name.get(3).expect("a block").value.to_vec();
                    for byte in 0..piece.len as u64 {
                        let inside = piece.offset_in_block + piece.from as u64 + byte;
                        let segment = piece.name.last().and_then(|c| c.as_segment());
                        assert_eq!(segment, Some(inside / 10));
                        found.push((block.clone(), inside));
                    }
                }
            }
            let right: Vec<(Vec<u8>, u64)> = lens
                .iter()
                .enumerate()
                .flat_map(|(n, len)| (0..*len).map(move |at| (n.to_string().into_bytes(), at)))
                .collect();
            assert_eq!(found, right, "{lens:?}");
            assert_eq!(file.pieces(file.segmenter.last() + 1), None);
        }
    }

    #[test]
    fn what_stands_for_other_bytes_has_another_version() {
        let version = |status: &Status, blocks: &[LocatedBlock]| {
            let file = file(status, blocks).expect("served");
            file.versioned()
                .last()
                .and_then(|c| c.as_version())
                .expect("a version")
        };
        let first = version(&status(5), &located(&[5]));
        assert_eq!(first, version(&status(5), &located(&[5])));
        assert_eq!(first / 1_000_000, 1_700_000_000_123);
        let other = Status {
            file_id: 7,
            ..status(5)
        };
        assert_ne!(
            first,
            version(&other, &located(&[5])),
            "another file, as old"
        );
        let mut appended = located(&[5]);
        appended[0].block.generation_stamp = 6;
        assert_ne!(
            first,
            version(&status(5), &appended),
            "changed, and its time set back"
        );
    }

    #[test]
    fn a_file_is_told_as_a_plain_one_whatever_its_permissions() {
        for (permission, right) in [
            ("1640", 0o101_640),
            ("40755", 0o100_755),
            ("1777777777777777777777", 0o107_777),
            ("x", 0o100_000),
        ] {
            let permission = permission.to_owned();
            let status = Status {
                permission,
                ..status(1)
            };
            assert_eq!(mode(&status), right);
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let mut gap = located(&[5, 5]);
        gap[1].start_offset = 6;
        let mut group = located(&[5]);
        group[0].block.block_id = -7;
        let mut pools = located(&[5, 5]);
        pools[1].block.block_pool_id = String::from("BP-2");
        let mut long = located(&[5]);
        long[0].block.block_pool_id = "x".repeat(MAX_POOL + 1);
        let file_of_long = file(&status(5), &long);
        assert!(matches!(file_of_long, Err(Unserved::Untold(_))));
        for (length, blocks, why) in [
            (10, gap, Unserved::Blocks),
            (5, group, Unserved::ErasureCoded),
            (10, pools, Unserved::Blocks),
            (6, located(&[5]), Unserved::Blocks),
        ] {
            assert_eq!(file(&status(length), &blocks).map(drop), Err(why));
        }
        // Blocks of a byte: a segment may have those of 32 and no more.
        let segments_of = |segment_bytes| {
            let mut draft = Draft::new();
            draft.extend(&located(&[1; 100])).expect("in order");
            let cut = Cut {
                segment_bytes,
                ..cut()
            };
            let name = "/a".parse().expect("a name");
            draft.finish(&name, &status(100), &cut).map(drop)
        };
        assert_eq!(segments_of(32), Ok(()));
        assert_eq!(segments_of(33), Err(Unserved::TooFine));
        let secret = Status {
            is_encrypted: true,
            ..status(1)
        };
        assert_eq!(File::refuse(&secret), Err(Unserved::Encrypted));
        let coded = Status {
            is_erasure_coded: true,
            ..status(1)
        };
        assert_eq!(File::refuse(&coded), Err(Unserved::ErasureCoded));
    }
}
