//! What is in a folder, asked for by name: of a repository anywhere, or of the cluster behind one.

use ndn_endpoint::{Check, ConsumerConfig, FetchConfig};
use ndn_packet::{ComponentBuf, Name};
use ndn_repo::{MAX_LISTING_BYTES, listed};
use serde_json::{Value, json};

use crate::args::{self, LsArgs};
use crate::error::CliError;
use crate::forwarder;
use crate::transfer::{GatherError, fetch_error, gather};

/// The rows of a folder's listing, in the order in which it tells them.
///
/// # Errors
/// Why there is none; it can't be understood.
pub(super) fn fetch(args: &LsArgs) -> Result<Value, CliError> {
    let object = args.name.append_keyword("ls");
    let config = FetchConfig {
        check: Check::AtEnd,
        consumer: ConsumerConfig {
            give_up_after: args::timeout(),
            verify: args.verify.load()?,
            seed: forwarder::seed(),
            ..ConsumerConfig::new(object.clone())
        },
        ..FetchConfig::new(object.clone())
    };
    let mut client = forwarder::connect(&args.face)?;
    let content = gather(&mut client, config, MAX_LISTING_BYTES).map_err(|error| match error {
        GatherError::Client(error) => forwarder::client_error(client.uri(), &error),
        GatherError::Fetch(error) => fetch_error(&error),
        GatherError::TooLong(most) => CliError::failed(
            object.to_string(),
            format!("is longer than a listing may be, {most} bytes"),
        ),
    })?;
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
