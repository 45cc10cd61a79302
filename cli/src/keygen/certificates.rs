//! `trunkline keygen ca` and `host`: the CA of a cluster, and the certificates that its hosts and routers show each other.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData,
};
use serde_json::json;
use time::{Duration, OffsetDateTime};

use super::file::{PRIVATE, PUBLIC, Pair, Written, exists};
use super::pem_text;
use crate::args::{CaArgs, HostArgs};
use crate::error::CliError;
use crate::keys::read_pem;
use crate::output;

/// Certificates are valid from a little earlier on: hosts' clocks differ.
const EARLIER: Duration = Duration::hours(1);

/// Makes a CA.
///
/// # Errors
/// A file that is there already or can't be written.
pub fn ca(args: &CaArgs) -> Result<(), CliError> {
    let files = Files::new(&args.directory, "ca", args.force)?;
    let key = KeyPair::generate().map_err(|e| failed(&e))?;
    let mut params = valid_for(args.days);
    params.distinguished_name = called(&args.name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = params.self_signed(&key).map_err(|e| failed(&e))?;
    files.write(&key, certificate.der())?;
    if args.json.json {
        output::json(&json!({
            "certificate": files.certificate,
            "key": files.key,
            "not_after": rfc3339(params.not_after),
        }));
    } else {
        output::line(&format!(
            "{} (for all hosts), {} (keep it, best off the network); valid until {}",
            files.certificate.display(),
            files.key.display(),
            params.not_after.date()
        ));
    }
    Ok(())
}

/// Makes a host's certificate.
///
/// # Errors
/// A name that is none, a CA that can't be used, a file that is there already or can't be written.
pub fn host(args: &HostArgs) -> Result<(), CliError> {
    let names = checked(&args.names)?;
    let issuer = Ca::read(&args.ca)?;
    let files = Files::new(&args.directory, &names[0], args.force)?;
    let key = KeyPair::generate().map_err(|e| failed(&e))?;
    let mut params = valid_for(args.days);
    params.subject_alt_names = CertificateParams::new(names.clone())
        .map_err(|e| failed(&e))?
        .subject_alt_names;
    params.not_after = params.not_after.min(issuer.not_after);
    params.distinguished_name = called(&names[0]);
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let certificate = params
        .signed_by(&key, &issuer.issuer)
        .map_err(|e| failed(&e))?;
    files.write(&key, certificate.der())?;
    if args.json.json {
        output::json(&json!({
            "certificate": files.certificate,
            "key": files.key,
            "names": names,
            "not_after": rfc3339(params.not_after),
        }));
    } else {
        output::line(&format!(
            "{}, {} (for this host alone): {}; valid until {}",
            files.certificate.display(),
            files.key.display(),
            names.join(", "),
            params.not_after.date()
        ));
    }
    Ok(())
}

/// A CA that signs.
struct Ca {
    issuer: Issuer<'static, KeyPair>,
    not_after: OffsetDateTime,
}

impl Ca {
    fn read(folder: &Path) -> Result<Self, CliError> {
        let (certificate, key) = (folder.join("ca.crt"), folder.join("ca.key"));
        let wrong = |file: &Path, cause: &str| {
            CliError::usage(file.display().to_string(), cause)
                .or("make a CA with trunkline keygen ca")
        };
        let der = read_pem(&certificate, "CERTIFICATE")?;
        let (_, parsed) = x509_parser::parse_x509_certificate(&der)
            .map_err(|_| wrong(&certificate, "is no certificate"))?;
        if !parsed.is_ca() {
            return Err(wrong(&certificate, "is no CA's certificate"));
        }
        let not_after = parsed.validity().not_after.to_datetime();
        if not_after <= OffsetDateTime::now_utc() {
            return Err(wrong(&certificate, "has expired"));
        }
        let pair = KeyPair::try_from(read_pem(&key, "PRIVATE KEY")?.as_slice())
            .map_err(|_| wrong(&key, "is no key that can sign certificates"))?;
        if pair.subject_public_key_info() != parsed.public_key().raw {
            return Err(wrong(&key, "is not the key of ca.crt"));
        }
        let issuer = Issuer::from_ca_cert_der(&der.as_slice().into(), pair)
            .map_err(|_| wrong(&certificate, "can't be used"))?;
        Ok(Self { issuer, not_after })
    }
}

/// Where a certificate and its key go.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    force: bool,
}

impl Files {
    fn new(folder: &Path, name: &str, force: bool) -> Result<Self, CliError> {
        let files = Files {
            certificate: folder.join(format!("{name}.crt")),
            key: folder.join(format!("{name}.key")),
            force,
        };
        // Both are looked at before one is written: a key without its certificate helps nobody.
        let there = [&files.key, &files.certificate]
            .into_iter()
            .find(|file| file.exists());
        match there {
            Some(file) if !force => Err(exists(file)
                .or("name another --directory, or replace certificate and key with --force")),
            _ => Ok(files),
        }
    }

    /// A full disk, or a file that can't be replaced, leaves the old pair as it was. The certificate goes first: where the
    /// machine stops in between, another certificate can be made for the CA's old key, and none for one that is lost.
    fn write(&self, key: &KeyPair, certificate: &[u8]) -> Result<(), CliError> {
        let key = pem_text("PRIVATE KEY", key.serialize_der());
        let key = Written::new(&self.key, key, PRIVATE)?;
        let certificate = pem_text("CERTIFICATE", certificate);
        let certificate = Written::new(&self.certificate, certificate, PUBLIC)?;
        let pair = Pair::new(certificate, key);
        if self.force {
            pair.replace()
        } else {
            pair.put_new()
        }
    }
}

/// The names in lower case, the first of which must be one and no address. No others than TLS takes (RFC 5890, RFC 3696):
/// with a certificate of such a name no handshake would ever come to its end.
fn checked(names: &[String]) -> Result<Vec<String>, CliError> {
    let is_label = |label: &str| {
        let mut bytes = label.bytes();
        (1..=63).contains(&label.len())
            && bytes.all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_number = |label: &str| label.bytes().all(|b| b.is_ascii_digit());
    let is_name = |name: &str| {
        name.len() <= 253
            && name.split('.').all(is_label)
            && !name.split('.').next_back().is_some_and(is_number)
    };
    let is_address = |name: &str| name.parse::<IpAddr>().is_ok();
    for (i, name) in names.iter().enumerate() {
        let right = if i == 0 {
            is_name(name) && !is_address(name)
        } else {
            is_name(name) || is_address(name)
        };
        if !right {
            return Err(
                CliError::usage(format!("name {name}"), "is no name of a host").or(match i {
                    0 => {
                        "the first is its name, such as host1.rack1; addresses come behind it. A name has letters, digits, \
                         '-' and '_', no '-' at the end of a part, and a last part that is no number"
                    }
                    _ => "give names such as host1.rack1, and addresses",
                }),
            );
        }
    }
    Ok(names.iter().map(|name| name.to_ascii_lowercase()).collect())
}

fn valid_for(days: u32) -> CertificateParams {
    let now = OffsetDateTime::now_utc();
    let mut params = CertificateParams::default();
    params.not_before = now - EARLIER;
    params.not_after = now + Duration::days(i64::from(days));
    params
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

fn rfc3339(at: OffsetDateTime) -> String {
    let (date, hour, minute, second) = (at.date(), at.hour(), at.minute(), at.second());
    format!("{date}T{hour:02}:{minute:02}:{second:02}Z")
}

fn failed(error: &rcgen::Error) -> CliError {
    CliError::failed("certificate", error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::JsonArg;
    use ndn_io::{CredentialFiles, Credentials};
    use std::os::unix::fs::PermissionsExt;

    fn make_ca(folder: &Path, force: bool) -> Result<(), CliError> {
        ca(&CaArgs {
            directory: folder.to_owned(),
            name: String::from("Test"),
            days: 10,
            force,
            json: JsonArg { json: true },
        })
    }

    fn make_host(folder: &Path, names: &[&str], days: u32, force: bool) -> Result<(), CliError> {
        host(&HostArgs {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            ca: folder.to_owned(),
            directory: folder.to_owned(),
            days,
            force,
            json: JsonArg::default(),
        })
    }

    fn load(folder: &Path, name: &str) -> Result<Credentials, ndn_io::CredentialError> {
        Credentials::load(CredentialFiles {
            certificate: folder.join(format!("{name}.crt")),
            key: folder.join(format!("{name}.key")),
            ca: folder.join("ca.crt"),
        })
    }

    fn mode(file: PathBuf) -> u32 {
        std::fs::metadata(file)
            .expect("a file")
            .permissions()
            .mode()
            & 0o777
    }

    #[test]
    fn what_is_made_here_is_taken_by_faces() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        make_ca(folder, false).expect("a CA");
        make_host(folder, &["Host1.rack1", "alias", "192.0.2.1"], 365, false).expect("a host");
        let credentials = load(folder, "host1.rack1").expect("credentials");
        assert_eq!(credentials.names(), ["host1.rack1", "alias"]);
        for (file, expected) in [("ca.key", 0o600), ("ca.crt", 0o644)] {
            assert_eq!(mode(folder.join(file)), expected, "{file}");
        }
        assert_eq!(mode(folder.join("host1.rack1.key")), 0o600);

        // It ends with its CA.
        let der = read_pem(&folder.join("host1.rack1.crt"), "CERTIFICATE").expect("PEM");
        let (_, parsed) = x509_parser::parse_x509_certificate(&der).expect("a certificate");
        let left = parsed.validity().not_after.to_datetime() - OffsetDateTime::now_utc();
        assert!(left <= Duration::days(10), "{left}");
    }

    #[test]
    fn nothing_is_overwritten_but_by_force() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        make_ca(folder, false).expect("a CA");
        make_host(folder, &["a"], 1, false).expect("a host");
        let files = ["ca.crt", "ca.key", "a.crt", "a.key"].map(|file| folder.join(file));
        let read = || {
            files
                .clone()
                .map(|file| std::fs::read(file).expect("a file"))
        };
        let before = read();
        for refused in [make_ca(folder, false), make_host(folder, &["a"], 1, false)] {
            let said = refused.expect_err("overwritten").to_string();
            assert!(
                said.contains("already exists") && said.contains("--force"),
                "{said}"
            );
        }
        std::fs::remove_file(folder.join("a.key")).expect("removed");
        make_host(folder, &["a"], 1, false).expect_err("its certificate is there");
        assert!(!folder.join("a.key").exists());
        make_host(folder, &["a"], 1, true).expect("replaced");
        load(folder, "a").expect("credentials");
        // One of the two can't be replaced: the key is still there.
        let (key, certificate) = (folder.join("a.key"), folder.join("a.crt"));
        let kept = std::fs::read(&key).expect("a file");
        std::fs::rename(&certificate, folder.join("aside")).expect("moved");
        std::fs::create_dir(&certificate).expect("a folder in its place");
        make_host(folder, &["a"], 1, true).expect_err("a folder is replaced");
        assert_eq!(std::fs::read(&key).expect("a file"), kept);
        std::fs::remove_dir(&certificate).expect("removed");
        std::fs::rename(folder.join("aside"), &certificate).expect("moved back");
        make_ca(folder, true).expect("replaced");
        assert!(before.iter().zip(read()).all(|(old, new)| *old != new));
        load(folder, "a").expect_err("of the CA that was there");
    }

    #[test]
    fn wrong_names_and_wrong_cas_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let refused = |names: &[&str]| {
            let refused = make_host(folder, names, 1, false);
            refused.expect_err("accepted").to_string()
        };
        assert!(refused(&["a"]).contains("ca.crt"));
        make_ca(folder, false).expect("a CA");
        for names in [
            &["10.0.0.1"][..],
            &["*.rack"],
            &["a", ""],
            &["a..b"],
            &["a/b"],
            &["a", "ö"],
            &["-a"],
            &["rack-.a"],
            &["rack.1"],
            &["7"],
        ] {
            assert!(refused(names).contains("no name of a host"), "{names:?}");
        }
        make_host(folder, &["a"], 1, false).expect("a host");
        std::fs::copy(folder.join("a.key"), folder.join("ca.key")).expect("copied");
        assert!(refused(&["b"]).contains("not the key of ca.crt"));
        std::fs::copy(folder.join("a.crt"), folder.join("ca.crt")).expect("copied");
        assert!(refused(&["b"]).contains("no CA's certificate"));
    }
}
