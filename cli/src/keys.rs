//! Keys from files: what `--sign` and `--verify` name, and `trunkline keygen` that makes them.
//!
//! An HMAC secret is a line of hexadecimal digits; private keys are PKCS#8, public keys
//! SubjectPublicKeyInfo, both in PEM, as OpenSSL writes them.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ndn_endpoint::VerifyPolicy;
use ndn_packet::{SigningKey, Verifier};
use serde_json::json;

use crate::args::{KeyKind, KeygenArgs};
use crate::error::CliError;
use crate::output;

/// What `--sign` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignSpec {
    /// DigestSha256: tells corruption, not who signed.
    Digest,
    /// HMAC-SHA256 with the secret in this file.
    Hmac(PathBuf),
    /// ECDSA over P-256 with the private key in this file.
    Ecdsa(PathBuf),
    /// Ed25519 with the private key in this file.
    Ed25519(PathBuf),
}

/// What `--verify` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifySpec {
    /// DigestSha256.
    Digest,
    /// HMAC-SHA256 with the secret in this file.
    Hmac(PathBuf),
    /// The public key in this file.
    Public(PathBuf),
    /// Nothing is verified.
    None,
}

impl FromStr for SignSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "digest" => Ok(SignSpec::Digest),
            Some((_, "")) => Err(format!("`{text}` names no key file")),
            Some(("hmac", file)) => Ok(SignSpec::Hmac(file.into())),
            Some(("ecdsa", file)) => Ok(SignSpec::Ecdsa(file.into())),
            Some(("ed25519", file)) => Ok(SignSpec::Ed25519(file.into())),
            _ => Err(String::from(
                "write digest, hmac:KEYFILE, ecdsa:KEYFILE or ed25519:KEYFILE",
            )),
        }
    }
}

impl FromStr for VerifySpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "digest" => Ok(VerifySpec::Digest),
            "none" => Ok(VerifySpec::None),
            "" | "hmac:" => Err(format!("`{text}` names no key file")),
            _ => Ok(match text.strip_prefix("hmac:") {
                Some(file) => VerifySpec::Hmac(file.into()),
                None => VerifySpec::Public(text.into()),
            }),
        }
    }
}

impl SignSpec {
    /// The same with another place for its file.
    #[must_use]
    pub fn at(self, place: impl FnOnce(PathBuf) -> PathBuf) -> Self {
        match self {
            SignSpec::Digest => SignSpec::Digest,
            SignSpec::Hmac(file) => SignSpec::Hmac(place(file)),
            SignSpec::Ecdsa(file) => SignSpec::Ecdsa(place(file)),
            SignSpec::Ed25519(file) => SignSpec::Ed25519(place(file)),
        }
    }

    /// The key, read from its file.
    ///
    /// # Errors
    /// The file and what is wrong with it.
    pub fn load(&self) -> Result<SigningKey, CliError> {
        let bad = |path: &Path, e: &ndn_packet::KeyError| {
            CliError::usage(path.display().to_string(), e).or("make one with trunkline keygen")
        };
        match self {
            SignSpec::Digest => Ok(SigningKey::DigestSha256),
            SignSpec::Hmac(path) => Ok(SigningKey::hmac_sha256(&read_secret(path)?)),
            SignSpec::Ecdsa(path) => {
                SigningKey::ecdsa_p256_from_pkcs8(&read_pem(path, "PRIVATE KEY")?)
                    .map_err(|e| bad(path, &e))
            }
            SignSpec::Ed25519(path) => {
                SigningKey::ed25519_from_pkcs8(&read_pem(path, "PRIVATE KEY")?)
                    .map_err(|e| bad(path, &e))
            }
        }
    }
}

impl VerifySpec {
    /// What a consumer is told, its key read from its file.
    ///
    /// # Errors
    /// The file and what is wrong with it.
    pub fn load(&self) -> Result<VerifyPolicy, CliError> {
        match self {
            VerifySpec::Digest => Ok(VerifyPolicy::Signed(Verifier::DigestSha256)),
            VerifySpec::None => Ok(VerifyPolicy::None),
            VerifySpec::Hmac(path) => Ok(VerifyPolicy::Signed(Verifier::hmac_sha256(
                &read_secret(path)?,
            ))),
            VerifySpec::Public(path) => Verifier::from_spki(&read_pem(path, "PUBLIC KEY")?)
                .map(VerifyPolicy::Signed)
                .map_err(|e| {
                    CliError::usage(path.display().to_string(), e)
                        .or("give the public half that trunkline keygen wrote")
                }),
        }
    }
}

fn read_text(path: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(path).map_err(|e| CliError {
        exit: crate::error::Exit::Usage,
        ..CliError::file(path, &e)
    })
}

/// A secret in hexadecimal digits.
///
/// # Errors
/// The file and what is wrong with it.
pub fn read_secret(path: &Path) -> Result<Vec<u8>, CliError> {
    let text = read_text(path)?;
    decode_hex(text.trim())
        .filter(|secret| secret.len() >= 16)
        .ok_or_else(|| {
            CliError::usage(
                path.display().to_string(),
                "not a secret of at least 32 hexadecimal digits",
            )
            .or("make one with trunkline keygen hmac FILE")
        })
}

/// The content of a PEM file of that kind.
///
/// # Errors
/// The file and what is wrong with it.
pub fn read_pem(path: &Path, tag: &str) -> Result<Vec<u8>, CliError> {
    let text = read_text(path)?;
    let wrong = |cause: String| {
        CliError::usage(path.display().to_string(), cause).or("make one with trunkline keygen")
    };
    let block = pem::parse(&text).map_err(|e| wrong(format!("not PEM: {e}")))?;
    if block.tag() != tag {
        return Err(wrong(format!("holds a {}, not a {tag}", block.tag())));
    }
    Ok(block.into_contents())
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).ok())
        .collect()
}

fn encode_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Runs `trunkline keygen`.
///
/// # Errors
/// A file that is there already or can't be written.
pub fn keygen(args: &KeygenArgs) -> Result<(), CliError> {
    let public_path = make(args.kind, &args.file)?;
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
            (format!("{}\n", encode_hex(&secret)), None)
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

fn pem_text(tag: &str, der: Vec<u8>) -> String {
    pem::encode_config(
        &pem::Pem::new(tag, der),
        pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF),
    )
}

/// Writes a file that must not be there yet: a key is never overwritten.
fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), CliError> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => {
                CliError::usage(path.display().to_string(), "is there already")
                    .or("name another file; a key is never overwritten")
            }
            _ => CliError::file(path, &e),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndn_packet::{Data, Name};

    fn make(kind: KeyKind, folder: &Path) -> PathBuf {
        let file = folder.join("key");
        keygen(&KeygenArgs {
            kind,
            file: file.clone(),
            json: crate::args::JsonArg { json: true },
        })
        .expect("a key");
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
        let again = KeygenArgs {
            kind: KeyKind::Hmac,
            file,
            json: crate::args::JsonArg::default(),
        };
        assert!(
            keygen(&again)
                .expect_err("overwritten")
                .to_string()
                .contains("is there already")
        );
    }

    #[test]
    fn wrong_files_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("key");
        std::fs::write(&file, "nothing").expect("written");
        for said in [
            SignSpec::Hmac(file.clone()).load().map(drop),
            SignSpec::Ecdsa(file.clone()).load().map(drop),
            VerifySpec::Public(file.clone()).load().map(drop),
        ] {
            assert!(said.expect_err("accepted").to_string().contains("key: not"));
        }
        assert!(SignSpec::Hmac(folder.path().join("none")).load().is_err());
    }

    #[test]
    fn specs() {
        assert_eq!("hmac:/k".parse(), Ok(SignSpec::Hmac("/k".into())));
        assert_eq!("ed25519:k:1".parse(), Ok(SignSpec::Ed25519("k:1".into())));
        assert!("rsa:k".parse::<SignSpec>().is_err());
        assert!("hmac:".parse::<SignSpec>().is_err());
        assert_eq!("k.pub".parse(), Ok(VerifySpec::Public("k.pub".into())));
        assert_eq!("none".parse(), Ok(VerifySpec::None));
    }
}
