//! What goes wrong in TLS, in its own words.

use rustls::pki_types::CertificateDer;
use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};

/// The DNS names in a certificate; not those with a wildcard, which name no host.
pub(crate) fn names(certificate: Option<&CertificateDer<'_>>) -> Vec<String> {
    let parsed = certificate.map(webpki::EndEntityCert::try_from);
    let Some(Ok(parsed)) = parsed else {
        return Vec::new();
    };
    let names = parsed.valid_dns_names();
    names
        .filter(|name| !name.contains('*'))
        .map(str::to_ascii_lowercase)
        .collect()
}

/// What is wrong with a certificate of our own.
pub(crate) fn of_certificate(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(problem) => of_problem(problem),
        other => format!("is no certificate that can be used: {other}"),
    }
}

fn of_problem(problem: &CertificateError) -> String {
    match problem {
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("expired on {}", utc(not_after.as_secs()))
        }
        CertificateError::Expired => "has expired".to_owned(),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("is not valid before {}", utc(not_before.as_secs()))
        }
        CertificateError::NotValidYet => "is not valid yet".to_owned(),
        CertificateError::UnknownIssuer => "is of another CA".to_owned(),
        // Two CAs of one name: that of `keygen ca` is the same unless another is given.
        CertificateError::BadSignature => {
            "is of another CA (of the same name), or its signature is wrong".to_owned()
        }
        CertificateError::BadEncoding => "is no X.509 certificate".to_owned(),
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => format!(
            "is not for {} but for {}",
            expected.to_str(),
            presented.join(", ")
        ),
        other => format!("is refused: {other}"),
    }
}

/// Why a handshake, or a connection, failed.
pub(crate) fn of_connection(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(problem) => {
            format!("the peer's certificate {}", of_problem(problem))
        }
        Error::NoCertificatesPresented => {
            "the peer has no certificate; give it one of this CA".to_owned()
        }
        Error::AlertReceived(alert) => of_alert(*alert),
        Error::InvalidMessage(_) | Error::InappropriateMessage { .. } => {
            "the peer does not speak TLS".to_owned()
        }
        Error::PeerIncompatible(
            PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled
            | PeerIncompatible::Tls13RequiredForQuic,
        ) => "the peer does not offer TLS 1.3".to_owned(),
        other => format!("TLS: {other}"),
    }
}

/// What the peer has said as it ended the connection.
pub(crate) fn of_alert(alert: AlertDescription) -> String {
    let said = match alert {
        AlertDescription::BadCertificate => "bad_certificate: it does not accept ours",
        AlertDescription::UnsupportedCertificate => {
            "unsupported_certificate: it does not accept ours"
        }
        AlertDescription::CertificateRevoked => "certificate_revoked: ours is revoked",
        AlertDescription::CertificateExpired => "certificate_expired: ours has expired",
        AlertDescription::CertificateUnknown => "certificate_unknown: it does not accept ours",
        AlertDescription::UnknownCA => "unknown_ca: ours is of another CA than the peer's",
        // What rustls tells of a signature that is wrong.
        AlertDescription::DecryptError => {
            "decrypt_error: ours is of another CA of the same name, or its signature is wrong"
        }
        AlertDescription::AccessDenied => "access_denied",
        AlertDescription::CertificateRequired => "certificate_required: we have shown none",
        AlertDescription::HandshakeFailure => "handshake_failure",
        AlertDescription::ProtocolVersion => "protocol_version: it does not offer TLS 1.3",
        AlertDescription::UnrecognisedName => "unrecognized_name",
        AlertDescription::BadRecordMac => "bad_record_mac",
        other => return format!("the peer refused with alert {}", u8::from(other)),
    };
    format!("the peer refused with alert {said}")
}

/// A time in seconds since 1970, as people write it.
pub(crate) fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Howard Hinnant's civil_from_days: eras of 400 years that begin on the first of March.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (rest / 3600, rest / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_people_write_them() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59 UTC"),
            (4_102_444_799, "2099-12-31 23:59 UTC"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }
}
