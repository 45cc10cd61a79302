//! Reading certificate, key and CA from their files, and finding out before anybody connects that they won't do.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error, InconsistentKeys, RootCertStore};

use super::chain::Few;
use super::words;

/// More than any chain of certificates takes.
const MAX_FILE: u64 = 1 << 20;

/// Where certificate, key and CA lie, each in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialFiles {
    /// The certificate of this host; those between it and the CA's behind it, where there are any.
    pub certificate: PathBuf,
    /// Its private key. Nobody but its owner may read it; of a file of root, the file's group may as well.
    pub key: PathBuf,
    /// The certificates of the CA: of the old one and the new one, while it is being replaced.
    pub ca: PathBuf,
}

/// A file that can't be used for TLS.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {cause}; {way_out}", file.display())]
pub struct CredentialError {
    /// Which.
    pub file: PathBuf,
    /// Why.
    pub cause: String,
    /// What to do about it.
    pub way_out: String,
}

impl CredentialError {
    fn new(file: &Path, cause: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            cause: cause.into(),
            way_out: way_out.into(),
        }
    }
}

/// What the files hold, found to be right.
pub(super) struct Checked {
    pub provider: Arc<CryptoProvider>,
    pub roots: Arc<RootCertStore>,
    /// Checks the certificates of those who connect.
    pub clients: Arc<dyn ClientCertVerifier>,
    /// Checks those of whom we connect to.
    pub servers: Arc<WebPkiServerVerifier>,
    certificate: PathBuf,
    key: CertifiedKey,
}

const MAKE_ONE: &str = "make one with trunkline keygen host NAME";

impl Checked {
    /// Reads and checks all three.
    pub fn read(
        files: &CredentialFiles,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, CredentialError> {
        let roots = Arc::new(read_roots(&files.ca)?);
        let chain = read_certificates(&files.certificate, MAKE_ONE)?;
        let key = read_key(&files.key)?;
        let key = CertifiedKey::from_der(chain, key, &provider).map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => CredentialError::new(
                &files.key,
                format!(
                    "is not the key of the certificate {}",
                    files.certificate.display()
                ),
                "name the two that were made together",
            ),
            Error::InvalidCertificate(_) => bad_certificate(&files.certificate, &error),
            other => CredentialError::new(
                &files.key,
                format!("can't be used: {other}"),
                "use a key of ECDSA P-256 or P-384, Ed25519, or RSA of 2048 bits and more",
            ),
        })?;
        let clients =
            WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone()).build();
        let clients = clients.map_err(|error| {
            CredentialError::new(&files.ca, error.to_string(), "name the CA's certificate")
        })?;
        let servers =
            WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone()).build();
        let servers = servers.map_err(|error| {
            CredentialError::new(&files.ca, error.to_string(), "name the CA's certificate")
        })?;
        let checked = Self {
            provider,
            roots,
            servers,
            clients: Arc::new(Few(clients)),
            certificate: files.certificate.clone(),
            key,
        };
        checked
            .verify(UnixTime::now())
            .map_err(|error| checked.error(&error))?;
        Ok(checked)
    }

    /// Whether the certificate is of this CA, and may be shown by who listens and by who connects, at that time.
    fn verify(&self, at: UnixTime) -> Result<(), Error> {
        let Some((own, between)) = self.key.cert.split_first() else {
            return Err(Error::NoCertificatesPresented);
        };
        self.clients.verify_client_cert(own, between, at)?;
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(own)?,
            &self.roots,
            between,
            at,
            self.provider.signature_verification_algorithms.all,
        )
    }

    /// When the certificate expires, in seconds since 1970, if that is within `time`.
    pub fn expires_within(&self, time: Duration) -> Option<u64> {
        let then = UnixTime::since_unix_epoch(Duration::from_secs(
            UnixTime::now().as_secs().saturating_add(time.as_secs()),
        ));
        match self.verify(then) {
            Err(Error::InvalidCertificate(CertificateError::ExpiredContext {
                not_after, ..
            })) => Some(not_after.as_secs()),
            _ => None,
        }
    }

    /// Names in the certificate.
    pub fn names(&self) -> Vec<String> {
        words::names(self.key.cert.first())
    }

    pub fn certified_key(&self) -> CertifiedKey {
        CertifiedKey::new(self.key.cert.clone(), self.key.key.clone())
    }

    /// What is wrong with the certificate.
    pub fn error(&self, error: &Error) -> CredentialError {
        bad_certificate(&self.certificate, error)
    }
}

fn bad_certificate(file: &Path, error: &Error) -> CredentialError {
    let way_out = match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "name the CA that has signed it, or have one made by this CA"
        }
        Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        ) => "set this host's clock",
        Error::InvalidCertificate(
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. },
        ) => "it must be for both serverAuth and clientAuth, or for any use",
        _ => MAKE_ONE,
    };
    CredentialError::new(file, words::of_certificate(error), way_out)
}

fn read_roots(file: &Path) -> Result<RootCertStore, CredentialError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(file, "make a CA with trunkline keygen ca")? {
        if !is_ca(&certificate) {
            return Err(CredentialError::new(
                file,
                "holds a certificate that is no CA's, so who has its key could sign for others",
                "name the file with the CA's certificate alone",
            ));
        }
        roots.add(certificate).map_err(|error| {
            CredentialError::new(
                file,
                words::of_certificate(&error),
                "name the CA's certificate",
            )
        })?;
    }
    Ok(roots)
}

/// Whether it may sign others (RFC 5280, basic constraints). What makes anchors of certificates doesn't ask.
fn is_ca(certificate: &CertificateDer<'_>) -> bool {
    x509_parser::parse_x509_certificate(certificate).is_ok_and(|(_, parsed)| parsed.is_ca())
}

fn read_certificates(
    file: &Path,
    way_out: &str,
) -> Result<Vec<CertificateDer<'static>>, CredentialError> {
    let bytes = read(file, &open(file)?)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match all {
        Ok(all) if all.is_empty() => Err(CredentialError::new(
            file,
            "holds no certificate in PEM",
            way_out,
        )),
        Ok(all) => Ok(all),
        Err(error) => Err(not_pem(file, &error, way_out)),
    }
}

fn read_key(file: &Path) -> Result<PrivateKeyDer<'static>, CredentialError> {
    let opened = open(file)?;
    let about = opened
        .metadata()
        .map_err(|error| unreadable(file, &error))?;
    // As sshd and PostgreSQL have it: of root's files, those of a group may be read by services in it.
    let too_wide = if about.uid() == 0 { 0o037 } else { 0o077 };
    let mode = about.mode() & 0o777;
    if mode & too_wide != 0 {
        return Err(CredentialError::new(
            file,
            format!("a private key that others may read (its mode is {mode:04o})"),
            format!("chmod 600 {}", file.display()),
        ));
    }
    if about.uid() != 0 && about.uid() != rustix::process::geteuid().as_raw() {
        return Err(CredentialError::new(
            file,
            format!(
                "a private key that user {} owns, who could put another in its place",
                about.uid()
            ),
            "have root or this process's user own it",
        ));
    }
    PrivateKeyDer::from_pem_slice(&read(file, &opened)?).map_err(|error| match error {
        pem::Error::NoItemsFound => CredentialError::new(
            file,
            "holds no private key in PEM, or an encrypted one",
            MAKE_ONE,
        ),
        error => not_pem(file, &error, MAKE_ONE),
    })
}

fn open(file: &Path) -> Result<File, CredentialError> {
    File::open(file).map_err(|error| unreadable(file, &error))
}

fn read(file: &Path, opened: &File) -> Result<Vec<u8>, CredentialError> {
    let mut bytes = Vec::new();
    opened
        .take(MAX_FILE)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(file, &error))?;
    Ok(bytes)
}

fn unreadable(file: &Path, error: &std::io::Error) -> CredentialError {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            CredentialError::new(file, "there is no such file", "check the path")
        }
        std::io::ErrorKind::PermissionDenied => {
            CredentialError::new(file, "permission denied", "run as a user who may read it")
        }
        _ => CredentialError::new(file, error.to_string(), "check the file"),
    }
}

fn not_pem(file: &Path, error: &pem::Error, way_out: &str) -> CredentialError {
    CredentialError::new(file, format!("is not PEM: {error}"), way_out)
}
