//! Where a file is: in the setting, in an Interest, in a URL.

use ndn_packet::{Name, SigningKey};
use percent_encoding::percent_decode_str;

use crate::cluster::{Cluster, Signatures, StoreOptions};
use crate::location::{Location, is_part};
use crate::namenode::escaped_path;
use crate::questions::Topic;

/// Any text as the folder that is published, and as the name in an Interest of what is in it: the NameNode is asked about
/// nothing outside of the folder.
pub fn location(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(location) = text.parse::<Location>() {
        let again = format!("hdfs://{}{}", location.web(), location.path);
        assert_eq!(again.parse().as_ref(), Ok(&location));
        assert!(location.path.split('/').skip(1).all(is_part));
        check_url(&location.path);
    }
    if let Ok(name) = text.parse::<Name>() {
        for folder in ["", "/data"] {
            check_path(folder, &name);
        }
    }
}

fn check_path(folder: &str, name: &Name) {
    let prefix: Name = "/cluster".parse().expect("a name");
    let options = StoreOptions {
        prefix: prefix.clone(),
        path: folder.to_owned(),
        key: SigningKey::DigestSha256,
        signatures: Signatures::Each,
    };
    let mut below = prefix;
    for component in name.components() {
        below = below.append(component);
    }
    let Some(path) = Cluster::new(options).path(&Topic::File(below)) else {
        return;
    };
    let parts = path.strip_prefix(folder).expect("in the folder");
    let parts: Vec<&str> = parts.split('/').collect();
    assert!(parts[0].is_empty() && parts.len() == 1 + name.len());
    for (part, component) in parts[1..].iter().zip(name.components()) {
        assert!(is_part(part) && *part != ".snapshot");
        assert_eq!(Some(part.as_bytes()), component.as_generic());
    }
    check_url(&path);
}

/// A path ends in a URL where it ends, and is read there as the same.
fn check_url(path: &str) {
    let escaped = escaped_path(path);
    assert!(!escaped.contains(['?', '#', '&', ' ', '\\']) && escaped.is_ascii());
    let again = percent_decode_str(&escaped).decode_utf8().expect("text");
    assert_eq!(again, path.strip_prefix('/').unwrap_or(path));
}
