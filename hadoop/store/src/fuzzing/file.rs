//! What a NameNode tells of a file, and the version that is made of it.

use std::time::Duration;

use bytes::Bytes;
use ndn_endpoint::rdr::Metadata;
use ndn_packet::{Data, Name, SigningKey};

use crate::cut::Cut;
use crate::file::{Draft, File, Piece};
use crate::namenode::understood;
use crate::webhdfs::{BlockLocations, FileStatus, LocatedBlock, Status};

/// Bytes of the longest name of a block segment.
const MAX_NAME: usize = 400;
/// Blocks whose edges are looked at.
const LOOKED_AT: usize = 16;

/// A file's status and its blocks, one answer a line; the first two bytes say how it is cut. Every byte of the file is one
/// of one block, at its place.
pub fn file(bytes: &[u8]) {
    let Some(([segment, block_segment], told)) = bytes.split_first_chunk() else {
        return;
    };
    let cut = Cut {
        root: "/hadoop".parse().expect("a name"),
        block_segment_bytes: 512 + 16 * u32::from(*block_segment),
        segment_bytes: 1 + 64 * u32::from(*segment),
        freshness: Duration::from_secs(1),
    };
    let mut lines = told.split(|b| *b == b'\n');
    let Ok(FileStatus { status }) = understood(200, lines.next().unwrap_or_default()) else {
        return;
    };
    let (mut draft, mut all) = (Draft::new(), Vec::new());
    for line in lines {
        let Ok(BlockLocations { blocks }) = understood(200, line) else {
            return;
        };
        if draft.extend(&blocks.located_blocks).is_err() {
            return;
        }
        all.extend(blocks.located_blocks);
    }
    all.retain(|located| located.block.num_bytes > 0);
    let name: Name = "/a".parse().expect("a name");
    let Ok(file) = draft.finish(&name, &status, &cut) else {
        return;
    };
    assert!(file.memory() <= 1000 + 4 * bytes.len());
    check_metadata(&file, &status);
    let key = SigningKey::DigestSha256;
    let each = u64::from(cut.segment_bytes);
    let last = status.length.div_ceil(each).saturating_sub(1);
    let edges = all.iter().take(LOOKED_AT);
    let edges = edges.map(|l| (l.start_offset + l.block.num_bytes - 1) / each);
    for n in edges.chain([0, last / 2, last]) {
        let range = n * each..status.length.min((n * each).saturating_add(each));
        let pieces = file.pieces(n).expect("a segment");
        let spanned = check_pieces(&pieces, range.clone(), &all, &cut);
        assert!(spanned <= 32);
        let empty = Bytes::new();
        let made = file.segment(n, &pieces, |_| Some(&empty), &key);
        assert_eq!(made.is_ok(), range.is_empty());
        if let Some(batch) = file.batch(n, &key) {
            assert!(batch.contains(&n) && batch.end <= last.saturating_add(1));
            let to = status.length.min(batch.end.saturating_mul(each));
            let pieces = file.batch_pieces(&batch).expect("its segments");
            check_pieces(&pieces, batch.start * each..to, &all, &cut);
        }
    }
    if let Some(beyond) = last.checked_add(1) {
        assert_eq!(file.pieces(beyond), None);
        assert_eq!(file.batch(beyond, &key), None);
    }
}

/// It tells of a plain file, of that time and size.
fn check_metadata(file: &File, status: &Status) {
    let wire = file.metadata(&SigningKey::DigestSha256);
    let data = Data::parse(wire).expect("a packet");
    let metadata = Metadata::from_data(&data).expect("metadata");
    assert_eq!(metadata.size, Some(status.length));
    assert_eq!(metadata.mode.map(|mode| mode & !0o7777), Some(0o100_000));
    assert_eq!(&metadata.name, file.versioned());
    let version = metadata.name.last().and_then(|c| c.as_version());
    let version = version.expect("a version");
    let mtime_ns = metadata.mtime_ns.expect("a time");
    assert!(version >= mtime_ns && version - mtime_ns < 1_000_000);
    assert_eq!(
        mtime_ns,
        u64::try_from(status.modification_time).map_or(0, |ms| ms.saturating_mul(1_000_000))
    );
}

/// The pieces are those bytes of the file, one after the other. Tells how many blocks they are of.
fn check_pieces(
    pieces: &[Piece],
    range: std::ops::Range<u64>,
    all: &[LocatedBlock],
    cut: &Cut,
) -> usize {
    let most = u64::from(cut.block_segment_bytes);
    let (mut at, mut blocks) = (range.start, Vec::new());
    for piece in pieces {
        assert!(piece.len > 0 && (piece.from + piece.len) as u64 <= piece.data_len);
        assert!(piece.data_len <= most && piece.offset_in_block % most == 0);
        let is_in =
            |l: &&LocatedBlock| (l.start_offset..l.start_offset + l.block.num_bytes).contains(&at);
        let located = all.iter().find(is_in).expect("a block");
        assert_eq!(
            piece.offset_in_block + piece.from as u64,
            at - located.start_offset
        );
        assert!(piece.offset_in_block + piece.data_len <= located.block.num_bytes);
        let block = &located.block;
        let id = block.block_id.to_string();
        let name = cut.root.append_generic("blocks");
        let name = name
            .append_generic(&block.block_pool_id)
            .append_generic(&id);
        let name = name.append_version(block.generation_stamp);
        assert_eq!(
            piece.name,
            name.append_segment(piece.offset_in_block / most)
        );
        assert!(piece.name.wire_len() <= MAX_NAME);
        blocks.push(located.start_offset);
        at += piece.len as u64;
    }
    assert_eq!(at, range.end);
    blocks.dedup();
    blocks.len()
}
