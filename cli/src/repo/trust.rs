//! The trust policy of a repository: from a TOML file to keys and what they may do.

use std::path::Path;

use ndn_packet::{SigningKey, Verifier};
use ndn_repo::protocol::{Believed, MAX_KEYS, Right, Trust, TrustedKey};

use crate::error::{CliError, Exit};
use crate::keys::{read_pem, read_secret};
use crate::settings::{Document, Kind, Schema, Section, Setting, Table};

/// All that a trust policy may say.
pub const SCHEMA: Schema = Schema {
    sections: &[Section {
        name: "key",
        many: true,
        help: "A key and what it may do under one prefix; as many tables as are needed.",
    }],
    settings: &[
        Setting {
            section: "key",
            key: "public",
            kind: Kind::Path,
            default: None,
            help: "The public key, as trunkline keygen makes it. One of public and hmac is needed.",
        },
        Setting {
            section: "key",
            key: "hmac",
            kind: Kind::Path,
            default: None,
            help: "A shared secret, as trunkline keygen makes it.",
        },
        Setting {
            section: "key",
            key: "prefix",
            kind: Kind::Name,
            default: None,
            help: "Under what it may do it. Needed.",
        },
        Setting {
            section: "key",
            key: "insert",
            kind: Kind::Switch,
            default: Some("true"),
            help: "Whether it may insert.",
        },
        Setting {
            section: "key",
            key: "delete",
            kind: Kind::Switch,
            default: Some("false"),
            help: "Whether it may delete.",
        },
        Setting {
            section: "key",
            key: "data",
            kind: Kind::Choice(&["sound", "signed", "any"]),
            default: Some("sound"),
            help: "Which packets its insertions may bring: sound (a right digest, or signed by any key here), signed (by this key) or any.",
        },
    ],
};

/// The policy: the owner may do everything, others what the file at `path` says.
///
/// # Errors
/// A usage error that names file, line, key and what would be right.
pub fn load(path: Option<&Path>, owner: &SigningKey) -> Result<Trust, CliError> {
    let mut trust = Trust::owner(owner);
    let Some(path) = path else {
        return Ok(trust);
    };
    let text = std::fs::read_to_string(path).map_err(|e| {
        let error = CliError::file(path, &e);
        CliError {
            exit: Exit::Usage,
            ..error
        }
    })?;
    let document = Document::parse(path, &text, &SCHEMA)?;
    for table in document.tables("key") {
        trust.keys.push(key(&table)?);
    }
    if trust.keys.len() > MAX_KEYS {
        let cause = format!("has {} keys; {MAX_KEYS} are the most", trust.keys.len());
        return Err(CliError::usage(path.display().to_string(), cause));
    }
    Ok(trust)
}

fn key(table: &Table<'_>) -> Result<TrustedKey, CliError> {
    let Some(prefix) = table.name("prefix")? else {
        return Err(table
            .error("no `prefix` is given")
            .or("add prefix = \"/the/prefix\""));
    };
    let right = Right {
        prefix,
        insert: table.switch("insert")?.unwrap_or(true),
        delete: table.switch("delete")?.unwrap_or(false),
        believed: match table.choice("data")? {
            Some("signed") => Believed::Signed,
            Some("any") => Believed::Any,
            _ => Believed::Sound,
        },
    };
    match (table.path("public")?, table.path("hmac")?) {
        (Some(file), None) => {
            let verifier = Verifier::from_spki(&read_pem(&file, "PUBLIC KEY")?)
                .map_err(|e| table.error_at("public", e))?;
            Ok(TrustedKey::public(verifier, vec![right]))
        }
        (None, Some(file)) => Ok(TrustedKey::secret(&read_secret(&file)?, vec![right])),
        _ => Err(table
            .error("one of `public` and `hmac` is needed")
            .or("give the public half that trunkline keygen wrote")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::KeyKind;

    fn read(folder: &Path, text: &str) -> Result<Trust, String> {
        let path = folder.join("trust.toml");
        std::fs::write(&path, text).expect("written");
        load(Some(&path), &SigningKey::hmac_sha256(b"owner")).map_err(|e| e.to_string())
    }

    #[test]
    fn keys_have_what_the_file_gives_them() {
        let folder = tempfile::tempdir().expect("a folder");
        crate::keygen::make(KeyKind::Ed25519, &folder.path().join("alice")).expect("a key");
        let text = "[[key]]\npublic = \"alice.pub\"\nprefix = \"/alice\"\ndata = \"any\"\n";
        let trust = read(folder.path(), text).expect("right");
        assert_eq!(trust.keys.len(), 2);
        let right = &trust.keys[1].rights[0];
        assert_eq!(right.prefix.to_string(), "/alice");
        assert!(right.insert && !right.delete && right.believed == Believed::Any);
        for (wrong, said) in [
            ("[[key]]\nprefix = \"/a\"\n", "one of `public` and `hmac`"),
            ("[[key]]\npublic = \"alice.pub\"\n", "no `prefix`"),
            ("[[key]]\npublic = \"none\"\nprefix = \"/a\"\n", "none"),
            (
                "[[key]]\npublic = \"alice\"\nprefix = \"/a\"\n",
                "not a PUBLIC KEY",
            ),
            ("[[key]]\nprefx = \"/a\"\n", "did you mean `prefix`"),
        ] {
            let error = read(folder.path(), wrong).err().unwrap_or_default();
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }

    #[test]
    fn nobody_else_without_a_file() {
        let trust = load(None, &SigningKey::hmac_sha256(b"owner")).expect("right");
        assert_eq!(trust.keys.len(), 1);
        let trust = load(None, &SigningKey::DigestSha256).expect("right");
        assert!(trust.keys.is_empty(), "a digest is nobody's signature");
    }
}
