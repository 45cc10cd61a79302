//! What is in a folder, asked for by name: of a repository anywhere, or of the cluster behind one.

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use ndn_packet::Name;
use ndn_repo::{MAX_LISTING_BYTES, listed_component};
use serde_json::{Value, json};

use crate::args::LsArgs;
use crate::error::CliError;
use crate::transfer::{self, Job, WindowSpec};

/// How long nothing may come.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The rows of a folder's listing, in the order in which it tells them.
///
/// # Errors
/// Why there is none; it can't be understood.
pub(super) fn fetch(args: &LsArgs) -> Result<Value, CliError> {
    let failed = |e| CliError::file(&std::env::temp_dir(), &e);
    let folder = tempfile::tempdir().map_err(failed)?;
    let output = folder.path().join("listing");
    let object = args.name.append_keyword("ls");
    transfer::run(&Job {
        name: &object,
        version: None,
        output: &output,
        resume: false,
        metadata: true,
        window: WindowSpec::Cubic,
        verify: &args.verify,
        timeout: TIMEOUT,
        quiet: true,
        face: args.face.face.as_deref(),
        json: false,
    })?;
    let mut content = Vec::new();
    File::open(&output)
        .and_then(|file| {
            file.take(MAX_LISTING_BYTES as u64)
                .read_to_end(&mut content)
        })
        .map_err(failed)?;
    rows(&args.name, &content)
        .ok_or_else(|| CliError::failed(object.to_string(), "is no listing of a folder"))
}

fn rows(folder: &Name, content: &[u8]) -> Option<Value> {
    let Some(content) = content.strip_suffix(b"\0") else {
        return content.is_empty().then(|| json!([]));
    };
    let row = |text: &[u8]| {
        let text = std::str::from_utf8(text).ok()?;
        let (text, kind) = match text.strip_suffix('/') {
            Some(text) => (text, "folder"),
            None => (text, "name"),
        };
        let name = folder.append(&listed_component(text)?);
        Some(json!({ kind: name.to_string() }))
    };
    content.split(|b| *b == 0).map(row).collect::<Option<_>>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_are_read_and_other_things_refused() {
        let folder: Name = "/f".parse().expect("a name");
        let read = |content: &[u8]| rows(&folder, content);
        assert_eq!(read(b""), Some(json!([])));
        assert_eq!(
            read(b"a b\0d/\0x%2Fy\0"),
            Some(json!([{"name": "/f/a%20b"}, {"folder": "/f/d"}, {"name": "/f/x%2Fy"}]))
        );
        for wrong in [&b"a"[..], b"\0", b"a\0\0", b"\xff\0", b"/\0", b"a%zz\0"] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }
}
