use super::*;
use std::os::unix::fs::PermissionsExt;

use crate::authority::{Authority, Files};

fn load(files: &Files) -> Result<Credentials, CredentialError> {
    Credentials::load(CredentialFiles {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        ca: files.ca.clone(),
    })
}

fn refusal(files: &Files) -> String {
    load(files).expect_err("accepted").to_string()
}

#[test]
fn good_ones_are_taken_with_their_names() {
    let authority = Authority::new();
    let files = authority.host(&["Host1.rack1", "alias", "192.0.2.1", "*.rack1"]);
    let credentials = load(&files).expect("credentials");
    assert_eq!(credentials.names(), ["host1.rack1", "alias"]);
    let shown = format!("{credentials:?}");
    assert!(shown.contains("Host1.rack1.crt") && !shown.contains("BEGIN"));
}

#[test]
fn what_is_wrong_is_said_with_the_file_and_the_way_out() {
    let authority = Authority::new();
    let files = authority.host(&["a"]);
    let with = |change: &dyn Fn(&mut Files)| {
        let mut files = files.clone();
        change(&mut files);
        refusal(&files)
    };
    let other = authority.host(&["b"]);
    let stranger = Authority::new();
    let foreign = stranger.host(&["c"]);
    let text = authority.path("text");
    std::fs::write(&text, "nothing").expect("a file");
    let cut = authority.path("cut");
    let whole = std::fs::read_to_string(&files.certificate).expect("a certificate");
    std::fs::write(&cut, &whole[..whole.len() / 2]).expect("a file");
    for (said, words) in [
        (
            with(&|f| f.key = other.key.clone()),
            ["a.crt; name the two", "is not the key of the certificate"],
        ),
        (
            with(&|f| f.certificate = text.clone()),
            ["text: ", "no certificate in PEM"],
        ),
        (
            with(&|f| f.certificate = cut.clone()),
            ["cut: ", "is not PEM"],
        ),
        (
            with(&|f| f.certificate = f.key.clone()),
            ["a.key: ", "no certificate in PEM"],
        ),
        (with(&|f| f.ca = text.clone()), ["text: ", "keygen ca"]),
        (
            with(&|f| f.ca = f.certificate.clone()),
            ["a.crt: ", "no CA's"],
        ),
        (
            with(&|f| f.ca = authority.path("none")),
            ["none: ", "check the path"],
        ),
        (
            with(&|f| f.ca = foreign.ca.clone()),
            ["a.crt: ", "is of another CA"],
        ),
        (
            refusal(&authority.host_valid(&["old"], -9, -1)),
            ["old.crt: expired on 20", "keygen host"],
        ),
        (
            refusal(&authority.host_valid(&["early"], 1, 9)),
            ["early.crt: is not valid before 20", "clock"],
        ),
    ] {
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    let authority = Authority::new();
    let files = authority.host(&["a"]);
    let set = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&files.key, mode).expect("permissions");
    };
    for mode in [0o644, 0o604, 0o620, 0o660] {
        set(mode);
        let said = refusal(&files);
        assert!(
            said.contains("chmod 600") && said.contains("a.key"),
            "{said}"
        );
    }
    set(0o400);
    load(&files).expect("its owner may");
    let text = std::fs::read_to_string(&files.key).expect("a key");
    set(0o600);
    std::fs::write(&files.key, text.replace("PRIVATE", "ENCRYPTED PRIVATE")).expect("a file");
    assert!(refusal(&files).contains("an encrypted one"));
}

#[test]
fn what_expires_soon_is_known() {
    let authority = Authority::new();
    let soon = load(&authority.host_valid(&["soon"], -9, 3)).expect("credentials");
    let within = |days: u64| {
        let checked = &soon.0.current().checked;
        checked.expires_within(std::time::Duration::from_secs(days * 86_400))
    };
    assert_eq!(within(2), None);
    assert!(within(4).is_some());
}

/// Each would cost checks of signatures, before anybody knows who the peer is.
#[test]
fn a_long_chain_is_not_verified() {
    use rustls::client::danger::ServerCertVerifier;
    use rustls::pki_types::{ServerName, UnixTime};

    let authority = Authority::new();
    let current = load(&authority.host(&["a"]))
        .expect("credentials")
        .0
        .current();
    let checked = &current.checked;
    let own = checked.certified_key().cert[0].clone();
    let name = ServerName::try_from("a").expect("a name");
    let servers = Few(checked.servers.clone());
    let now = UnixTime::now();
    for (count, taken) in [
        (0, true),
        (chain::MOST_BETWEEN, true),
        (chain::MOST_BETWEEN + 1, false),
    ] {
        let between = vec![own.clone(); count];
        let client = checked.clients.verify_client_cert(&own, &between, now);
        let server = servers.verify_server_cert(&own, &between, &name, &[], now);
        assert_eq!((client.is_ok(), server.is_ok()), (taken, taken), "{count}");
        if let Err(error) = client {
            assert!(
                error.to_string().contains("between its own and the CA's"),
                "{error}"
            );
        }
    }
}
