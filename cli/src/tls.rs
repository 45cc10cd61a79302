//! Certificate, key and CA of `tls://` faces: from options, the environment or a configuration's `[tls]`.

use std::path::PathBuf;

use ndn_io::{CredentialFiles, Credentials, FaceUri, LinkOptions};

use crate::args::TlsArgs;
use crate::error::{CliError, Exit};
use crate::settings::{Kind, Section, Setting, Table};

/// The section of a configuration that names them.
pub const SECTION: Section = Section {
    name: "tls",
    many: false,
    help: "Certificate, key and CA for tls:// links, each in PEM; trunkline keygen makes them. They are read again when the files have changed.",
};

/// `tls.certificate`
pub const CERTIFICATE: Setting = Setting {
    section: SECTION.name,
    key: "certificate",
    kind: Kind::Path,
    default: None,
    help: "The certificate of this host; those between it and the CA's behind it, where there are any.",
};

/// `tls.key`
pub const KEY: Setting = Setting {
    section: SECTION.name,
    key: "key",
    kind: Kind::Path,
    default: None,
    help: "Its private key. A file that others than its owner may read is refused (chmod 600).",
};

/// `tls.ca`
pub const CA: Setting = Setting {
    section: SECTION.name,
    key: "ca",
    kind: Kind::Path,
    default: None,
    help: "The certificates of the cluster's own CA. Whoever has none that it has signed gets no link.",
};

/// What `[tls]` says, if it is there.
///
/// # Errors
/// It names some of the three and not all.
pub fn files(table: &Table<'_>) -> Result<TlsArgs, CliError> {
    let files = TlsArgs {
        certificate: table.path(CERTIFICATE.key)?,
        key: table.path(KEY.key)?,
        ca: table.path(CA.key)?,
    };
    match files.missing() {
        Some(missing) => Err(table
            .error(format!("no {missing}"))
            .or(format!("give `{missing}` too: the three go together"))),
        None => Ok(files),
    }
}

impl TlsArgs {
    /// Which is not given although another one is.
    fn missing(&self) -> Option<&'static str> {
        let given: [(&Option<PathBuf>, _); 3] = [
            (&self.certificate, CERTIFICATE.key),
            (&self.key, KEY.key),
            (&self.ca, CA.key),
        ];
        let any = given.iter().any(|(file, _)| file.is_some());
        let missing = given.iter().find(|(file, _)| file.is_none());
        missing.filter(|_| any).map(|(_, key)| *key)
    }

    /// The three, where they are given.
    pub fn all(&self) -> Option<CredentialFiles> {
        Some(CredentialFiles {
            certificate: self.certificate.clone()?,
            key: self.key.clone()?,
            ca: self.ca.clone()?,
        })
    }

    /// Settings of a face to `uri`, with what these files hold where it goes by TLS.
    ///
    /// # Errors
    /// It does, and they are not given or can't be used.
    pub fn link(&self, uri: &FaceUri) -> Result<LinkOptions, CliError> {
        let mut link = LinkOptions::default();
        if uri.needs_certificate() {
            let files = self.all().ok_or_else(|| self.not_given(uri))?;
            link.tls = Some(load(files)?);
        }
        Ok(link)
    }

    fn not_given(&self, uri: &FaceUri) -> CliError {
        let missing = self.missing().unwrap_or("certificate, key and CA");
        CliError::usage(format!("face {uri}"), format!("TLS needs {missing}")).or(
            "give --tls-certificate, --tls-key and --tls-ca, or TRUNKLINE_TLS_CERTIFICATE, TRUNKLINE_TLS_KEY and TRUNKLINE_TLS_CA in the environment",
        )
    }
}

/// Reads and checks the three.
///
/// # Errors
/// A usage error that names the file.
pub fn load(files: CredentialFiles) -> Result<Credentials, CliError> {
    Credentials::load(files).map_err(|error| CliError::said(Exit::Usage, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_or_none() {
        let uri = FaceUri::parse("tls://router.test").expect("a URI");
        let some = TlsArgs {
            key: Some("k".into()),
            ..TlsArgs::default()
        };
        for (args, word) in [
            (some, "TLS needs certificate;"),
            (TlsArgs::default(), "and CA"),
        ] {
            let said = args.link(&uri).expect_err("refused").to_string();
            assert!(said.contains(word) && said.contains("--tls-ca"), "{said}");
        }
        let plain = FaceUri::parse("tcp://router.test").expect("a URI");
        assert!(
            TlsArgs::default()
                .link(&plain)
                .expect("needs none")
                .tls
                .is_none()
        );
    }
}
