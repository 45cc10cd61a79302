//! Keys from files: what `--sign` and `--verify` name.
//!
//! An HMAC secret is a line of hexadecimal digits; private keys are PKCS#8, public keys
//! SubjectPublicKeyInfo, both in PEM, as OpenSSL writes them.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use ndn_endpoint::VerifyPolicy;
use ndn_packet::{SigningKey, Verifier};

use crate::error::CliError;

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
            VerifySpec::Public(path) => Ok(VerifyPolicy::Signed(public_key(path)?)),
        }
    }
}

/// What a public key verifies.
///
/// # Errors
/// The file and what is wrong with it.
pub fn public_key(path: &Path) -> Result<Verifier, CliError> {
    Verifier::from_spki(&read_pem(path, "PUBLIC KEY")?).map_err(|e| {
        CliError::usage(path.display().to_string(), e)
            .or("give the public half that trunkline keygen wrote")
    })
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
    hex::decode(text.trim())
        .ok()
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

#[cfg(test)]
mod tests {
    use super::*;

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
