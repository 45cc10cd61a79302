//! What is in a folder, asked for by name: of a repository anywhere, or of the cluster behind one.

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use ndn_packet::{ComponentBuf, Name};
use ndn_repo::{MAX_LISTING_BYTES, listed};
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
    let row = |entry: Option<(ComponentBuf, bool)>| {
        let (component, is_folder) = entry?;
        let kind = if is_folder { "folder" } else { "name" };
        Some(json!({ kind: folder.append(&component).to_string() }))
    };
    listed(content).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_for_each_name() {
        let folder: Name = "/f".parse().expect("a name");
        assert_eq!(rows(&folder, b""), Some(json!([])));
        assert_eq!(
            rows(&folder, b"a b\0d/\0"),
            Some(json!([{"name": "/f/a%20b"}, {"folder": "/f/d"}]))
        );
        assert_eq!(rows(&folder, b"a\0b"), None);
    }
}
