//! What the fuzz targets of `ndn/door/fuzz` drive: what strangers ask.

mod path;
mod request;

use crate::range::{Wanted, wanted};

pub use path::path;
pub use request::Door;

/// A file's size, and on the next line a Range header: what is asked for is in the file, and is the same when it is asked
/// for in other words.
pub fn range(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let Some((size, header)) = text.split_once('\n') else {
        return;
    };
    let Ok(size) = size.parse::<u64>() else {
        return;
    };
    let asked = wanted(Some(header), size);
    // What is passed over is so for any file.
    let is_range = asked != Wanted::Whole;
    for other in [0, 1, u64::MAX] {
        assert_eq!(wanted(Some(header), other) != Wanted::Whole, is_range);
    }
    match asked {
        Wanted::Whole => {}
        Wanted::Part(from, to) => {
            assert!(from < to && to <= size && header.starts_with("bytes="));
            let again = format!("bytes={from}-{}", to - 1);
            assert_eq!(wanted(Some(&again), size), asked);
        }
        Wanted::Outside => match wanted(Some(header), u64::MAX) {
            // The last bytes of an empty file.
            Wanted::Part(_, u64::MAX) if size == 0 => {}
            Wanted::Part(from, _) => assert!(from >= size),
            // None of the last bytes, or from the last place of all on.
            other => assert_eq!(other, Wanted::Outside),
        },
    }
}
