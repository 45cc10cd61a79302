//! Who this end is over TLS, and whom it believes: a certificate, its key, and the certificates of the cluster's own CA.
//!
//! They come from files, are checked whole before anything uses them, and are read again when the files have changed:
//! connections made from then on have the new ones, those that stand keep theirs.

mod chain;
mod files;
mod watch;
pub(crate) mod words;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::{self, cipher_suite};
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};

use chain::Few;
use files::Checked;
pub use files::{CredentialError, CredentialFiles};

/// A certificate, its key and the CA, for all faces of a program that go by TLS. Clones are the same ones.
#[derive(Clone)]
pub struct Credentials(Arc<Shared>);

pub(crate) struct Shared {
    files: CredentialFiles,
    current: Mutex<Arc<Current>>,
}

/// What the files held when they were last read.
struct Current {
    checked: Checked,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Credentials {
    /// Reads and checks the files, and looks every second from now on whether they have changed.
    ///
    /// # Errors
    /// The first file that can't be used: not there, not PEM, a key that others may read or that does not belong to the
    /// certificate, a certificate that has expired, is not valid yet, or is not of this CA.
    pub fn load(files: CredentialFiles) -> Result<Self, CredentialError> {
        let seen = watch::stamps(&files);
        let current = Arc::new(Current::read(&files)?);
        let shared = Arc::new(Shared {
            files,
            current: Mutex::new(current),
        });
        watch::start(&shared, seen);
        Ok(Self(shared))
    }

    /// The names in the certificate, the host's own first.
    pub fn names(&self) -> Vec<String> {
        self.0.current().checked.names()
    }

    pub(crate) fn client(&self) -> Arc<ClientConfig> {
        self.0.current().client.clone()
    }

    pub(crate) fn server(&self) -> Arc<ServerConfig> {
        self.0.current().server.clone()
    }
}

impl PartialEq for Credentials {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Credentials {}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Credentials").field(&self.0.files).finish()
    }
}

impl Shared {
    fn current(&self) -> Arc<Current> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }

    /// Takes what the files hold now, or leaves all as it is.
    fn read_again(&self) -> Result<Arc<Current>, CredentialError> {
        let new = Arc::new(Current::read(&self.files)?);
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        *current = new.clone();
        Ok(new)
    }
}

impl Current {
    fn read(files: &CredentialFiles) -> Result<Self, CredentialError> {
        let checked = Checked::read(files, provider())?;
        let (client, server) = configs(&checked).map_err(|error| checked.error(&error))?;
        Ok(Self {
            checked,
            client: Arc::new(client),
            server: Arc::new(server),
        })
    }
}

/// What TLS computes with. AES-128 goes first: it costs less than AES-256, and is not what would be broken.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        ..ring::default_provider()
    })
}

/// TLS 1.3 alone, both ends with a certificate, and nothing that is carried over from one connection to the next: no
/// tickets, no early data.
fn configs(checked: &Checked) -> Result<(ClientConfig, ServerConfig), rustls::Error> {
    let own = Arc::new(SingleCertAndKey::from(checked.certified_key()));
    let mut client = ClientConfig::builder_with_provider(checked.provider.clone())
        .with_protocol_versions(&[&TLS13])?
        .dangerous() // it asks the library's own verifier, once the chain is short
        .with_custom_certificate_verifier(Arc::new(Few(checked.servers.clone())))
        .with_client_cert_resolver(own.clone());
    client.resumption = Resumption::disabled();
    client.enable_secret_extraction = true;
    let mut server = ServerConfig::builder_with_provider(checked.provider.clone())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(checked.clients.clone())
        .with_cert_resolver(own);
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    server.enable_secret_extraction = true;
    Ok((client, server))
}

#[cfg(test)]
mod tests;
