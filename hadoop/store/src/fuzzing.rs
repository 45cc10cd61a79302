//! What the fuzz targets of `hadoop/store/fuzz` drive: what a NameNode answers, or whoever speaks for it, and what is made
//! of that.

mod file;
mod place;

use bytes::BytesMut;
use ndn_packet::Component;
use ndn_repo::listed;
use serde::Deserialize;

use crate::namenode::{Failed, understood};
use crate::questions::list;
use crate::webhdfs::{Batch, BlockLocations, FileStatus, LocatedBlock, Status};

pub use file::file;
pub use place::location;

/// Bytes of what a log is told of a question without an answer.
const MAX_SAID: usize = 1250;

/// An answer to any question: three digits of an HTTP status, and the body. It takes a small multiple of what came.
pub fn answer(bytes: &[u8]) {
    let Some((status, body)) = bytes.split_at_checked(3) else {
        return;
    };
    let status = std::str::from_utf8(status)
        .ok()
        .and_then(|s| s.parse().ok());
    let status: u16 = status.unwrap_or(200);
    let most = 8 * body.len();
    if let Some(told) = told::<FileStatus>(status, body) {
        assert!(text_of(&told.status) <= most);
    }
    if let Some(Batch { listing }) = told(status, body) {
        let all = listing.partial_listing.statuses.all;
        assert!(size_of_val(&*all) <= most);
        assert!(all.iter().map(text_of).sum::<usize>() <= most);
    }
    if let Some(BlockLocations { blocks }) = told(status, body) {
        let all = blocks.located_blocks;
        let text = |located: &LocatedBlock| located.block.block_pool_id.len();
        assert!(size_of_val(&*all) <= most);
        assert!(all.iter().map(text).sum::<usize>() <= most);
    }
}

fn told<T: for<'a> Deserialize<'a>>(status: u16, body: &[u8]) -> Option<T> {
    match understood(status, body) {
        Ok(told) => {
            assert_eq!(status, 200);
            Some(told)
        }
        Err(Failed::Nothing(why)) => {
            // Only a NameNode says that there is nothing: what was published is withdrawn then.
            assert!(![200, 401].contains(&status) && why.len() <= MAX_SAID);
            None
        }
        Err(Failed::Login) => {
            assert_eq!(status, 401);
            None
        }
        Err(Failed::Path(why) | Failed::Silent(why)) => {
            assert!(why.len() <= MAX_SAID);
            None
        }
    }
}

fn text_of(status: &Status) -> usize {
    status.kind.len() + status.path_suffix.len() + status.permission.len()
}

/// Answers, one a line, to what is in a folder: its listing tells all of that, in its order, and nothing else.
pub fn folder(bytes: &[u8]) {
    let (mut content, mut all) = (BytesMut::new(), Vec::new());
    for line in bytes.split(|b| *b == b'\n') {
        let Ok(Batch { listing }) = understood(200, line) else {
            return;
        };
        let found = listing.partial_listing.statuses.all;
        let before = content.len();
        if !list(&mut content, &found) {
            assert_eq!(content.len(), before);
            return;
        }
        all.extend(found);
    }
    let listing: Vec<_> = listed(&content).collect();
    assert_eq!(listing.len(), all.len());
    for (told, status) in listing.into_iter().zip(&all) {
        let (component, is_folder) = told.expect("an entry");
        let name = Component::generic(status.path_suffix.as_bytes());
        assert_eq!(component.as_component(), name);
        assert_eq!(is_folder, status.kind == "DIRECTORY");
    }
    // Each byte is three at most.
    assert!(content.len() <= 3 * bytes.len());
}
