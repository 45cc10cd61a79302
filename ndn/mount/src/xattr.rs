//! Extended attributes: what a file is in named data.
//!
//! | attribute | value |
//! |---|---|
//! | `user.ndn.name` | name without version |
//! | `user.ndn.version` | version; not there while the file is being written |
//! | `user.ndn.versions` | all versions, the newest first, a line each, as many as have room |
//! | `user.ndn.signature` | `unpublished`, `damaged`, or how the version is signed and by which key |
//! | `user.ndn.verified` | of what comes over the network: what is checked of it, `key`, `hmac`, `digest` or `none` |

use ndn_packet::{Data, KeyLocatorRef, signature_type};

pub const NAME: &str = "user.ndn.name";
pub const VERSION: &str = "user.ndn.version";
pub const VERSIONS: &str = "user.ndn.versions";
pub const SIGNATURE: &str = "user.ndn.signature";
pub const VERIFIED: &str = "user.ndn.verified";
/// Begins all of them.
pub const PREFIX: &str = "user.ndn.";
/// Most bytes of a value that the system takes.
const MAX_VALUE: usize = 64 * 1024;

/// Most bytes of a key's name that are told.
const MAX_KEY: usize = 1024;

/// The value that tells versions, given the newest first.
pub fn versions_text(versions: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut text = String::new();
    for version in versions {
        let line = format!("{version}\n");
        if text.len() + line.len() > MAX_VALUE {
            break;
        }
        text.push_str(&line);
    }
    text.into_bytes()
}

/// How the metadata packet is signed, which vouches for the whole version.
pub fn signature_text(metadata: &Data) -> String {
    let how = match metadata.signature_type() {
        signature_type::DIGEST_SHA256 => return String::from("digest"),
        signature_type::HMAC_WITH_SHA256 => "hmac",
        signature_type::SHA256_WITH_ECDSA => "ecdsa",
        signature_type::ED25519 => "ed25519",
        _ => "signed",
    };
    match metadata.key_locator() {
        Some(KeyLocatorRef::Name(name)) if name.value().len() <= MAX_KEY => {
            format!("{how} {}", name.to_name())
        }
        Some(KeyLocatorRef::Name(_)) => format!("{how} (a key whose name is too long to be told)"),
        _ => how.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndn_packet::{Name, SigningKey};

    #[test]
    fn names_of_keys_are_told_up_to_a_length() {
        let told = |key: &Name| {
            let signing = SigningKey::hmac_sha256(b"secret").with_key_name(key.clone());
            let wire = Data::builder(&Name::new()).sign(&signing);
            signature_text(&Data::parse(wire).expect("well formed"))
        };
        let key: Name = "/owner/KEY/1".parse().expect("a name");
        assert_eq!(told(&key), "hmac /owner/KEY/1");
        let long = told(&key.append_keyword([0xff; 8000]));
        assert!(long.starts_with("hmac (") && long.len() < 100, "{long}");
    }
}
