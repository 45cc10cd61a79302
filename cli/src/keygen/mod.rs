//! `trunkline keygen`: keys made, each in a file of its own.

mod certificates;
mod file;

use std::path::{Path, PathBuf};

use ndn_packet::SigningKey;
use serde_json::json;

use crate::args::{KeyFileArgs, KeyKind, KeygenCommand};
use crate::error::CliError;
use crate::output;
use file::write_new;

/// Runs `trunkline keygen`.
///
/// # Errors
/// A file that is there already or can't be written, a CA that can't be used.
pub fn run(command: &KeygenCommand) -> Result<(), CliError> {
    match command {
        KeygenCommand::Hmac(args) => keygen(KeyKind::Hmac, args),
        KeygenCommand::Ecdsa(args) => keygen(KeyKind::Ecdsa, args),
        KeygenCommand::Ed25519(args) => keygen(KeyKind::Ed25519, args),
        KeygenCommand::Ca(args) => certificates::ca(args),
        KeygenCommand::Host(args) => certificates::host(args),
    }
}

fn keygen(kind: KeyKind, args: &KeyFileArgs) -> Result<(), CliError> {
    let public_path = make(kind, &args.file)?;
    if args.json.json {
        output::json(&json!({ "key": args.file, "public": public_path }));
    } else {
        output::line(&match public_path {
            Some(public) => format!(
                "{} (keep it), {} (give it away)",
                args.file.display(),
                public.display()
            ),
            None => format!(
                "{} (share it with those who verify, and no one else)",
                args.file.display()
            ),
        });
    }
    Ok(())
}

/// Makes a key in `file`, and beside it its public half if it has one, whose path is given back.
///
/// # Errors
/// A file that is there already or can't be written.
pub fn make(kind: KeyKind, file: &Path) -> Result<Option<PathBuf>, CliError> {
    let failed = |e: ndn_packet::KeyError| CliError::failed("key", e);
    let (private, public) = match kind {
        KeyKind::Hmac => {
            let secret = SigningKey::generate_secret().map_err(failed)?;
            (format!("{}\n", hex::encode(secret)), None)
        }
        KeyKind::Ecdsa => {
            let pkcs8 = SigningKey::generate_ecdsa_p256().map_err(failed)?;
            let key = SigningKey::ecdsa_p256_from_pkcs8(&pkcs8).map_err(failed)?;
            (pem_text("PRIVATE KEY", pkcs8), key.verifier().to_spki())
        }
        KeyKind::Ed25519 => {
            let pkcs8 = SigningKey::generate_ed25519().map_err(failed)?;
            let key = SigningKey::ed25519_from_pkcs8(&pkcs8).map_err(failed)?;
            (pem_text("PRIVATE KEY", pkcs8), key.verifier().to_spki())
        }
    };
    write_new(file, &private, 0o600)?;
    let Some(spki) = public else {
        return Ok(None);
    };
    let mut path = file.to_owned().into_os_string();
    path.push(".pub");
    let path = PathBuf::from(path);
    write_new(&path, &pem_text("PUBLIC KEY", spki), 0o644)?;
    Ok(Some(path))
}

fn pem_text(tag: &str, der: impl Into<Vec<u8>>) -> String {
    pem::encode_config(
        &pem::Pem::new(tag, der),
        pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{SignSpec, VerifySpec};
    use ndn_packet::{Data, Name};

    fn make(kind: KeyKind, folder: &Path) -> PathBuf {
        let file = folder.join("key");
        let args = KeyFileArgs {
            file: file.clone(),
            json: crate::args::JsonArg { json: true },
        };
        keygen(kind, &args).expect("a key");
        file
    }

    fn holds(sign: &SignSpec, verify: &VerifySpec) -> bool {
        let name: Name = "/a".parse().expect("a name");
        let wire = Data::builder(&name)
            .content(b"x")
            .sign(&sign.load().expect("a key"));
        let data = Data::parse(wire).expect("a packet");
        verify.load().expect("a key").holds(&data)
    }

    #[test]
    fn keys_made_here_sign_and_verify() {
        for kind in [KeyKind::Hmac, KeyKind::Ecdsa, KeyKind::Ed25519] {
            let folder = tempfile::tempdir().expect("a folder");
            let file = make(kind, folder.path());
            let public = folder.path().join("key.pub");
            let (sign, verify) = match kind {
                KeyKind::Hmac => (SignSpec::Hmac(file.clone()), VerifySpec::Hmac(file)),
                KeyKind::Ecdsa => (SignSpec::Ecdsa(file), VerifySpec::Public(public)),
                KeyKind::Ed25519 => (SignSpec::Ed25519(file), VerifySpec::Public(public)),
            };
            assert!(holds(&sign, &verify), "{kind:?}");
        }
    }

    #[test]
    fn a_key_is_never_overwritten_and_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let file = make(KeyKind::Hmac, folder.path());
        assert_eq!(
            std::fs::metadata(&file)
                .expect("a file")
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
        let again = KeyFileArgs {
            file,
            json: crate::args::JsonArg::default(),
        };
        assert!(
            keygen(KeyKind::Hmac, &again)
                .expect_err("overwritten")
                .to_string()
                .contains("already exists")
        );
    }
}
