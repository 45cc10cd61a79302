//! A certificate authority for tests, with its certificates in files.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use time::{Duration, OffsetDateTime};

/// A CA that has its certificate, and those that it makes, in a folder.
pub struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

/// Where a host's certificate, its key, and the CA's certificate lie.
#[derive(Debug, Clone)]
pub struct Files {
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub ca: PathBuf,
}

impl Authority {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        let name = folder.path().display().to_string();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let own = params.self_signed(&key).expect("a certificate");
        write(&folder.path().join("ca.crt"), "CERTIFICATE", own.der());
        let issuer = Issuer::new(params, key);
        Self { folder, issuer }
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// A certificate for these names that is valid now.
    pub fn host(&self, names: &[&str]) -> Files {
        self.host_valid(names, -1, 1)
    }

    /// A certificate for these names, valid between two times in days from now.
    pub fn host_valid(&self, names: &[&str], from: i64, to: i64) -> Files {
        let files = Files {
            certificate: self.path(&format!("{}.crt", names[0])),
            key: self.path(&format!("{}.key", names[0])),
            ca: self.path("ca.crt"),
        };
        self.renew(&files, names, from, to);
        files
    }

    /// Puts another certificate, with another key, in the place of one.
    pub fn renew(&self, files: &Files, names: &[&str], from: i64, to: i64) {
        self.renew_between(files, names, Duration::days(from), Duration::days(to));
    }

    /// A certificate for these names that expires so many seconds from now.
    pub fn host_for_seconds(&self, names: &[&str], seconds: i64) -> Files {
        let files = self.host(names);
        let to = Duration::seconds(seconds);
        self.renew_between(&files, names, Duration::days(-1), to);
        files
    }

    fn renew_between(&self, files: &Files, names: &[&str], from: Duration, to: Duration) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.not_before = OffsetDateTime::now_utc() + from;
        params.not_after = OffsetDateTime::now_utc() + to;
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        write(&files.key, "PRIVATE KEY", &key.serialize_der());
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&files.key, private).expect("permissions");
        write(&files.certificate, "CERTIFICATE", certificate.der());
    }
}

fn write(path: &Path, tag: &str, der: &[u8]) {
    let text = pem::encode(&pem::Pem::new(tag, der));
    std::fs::write(path, text).expect("a file");
}
