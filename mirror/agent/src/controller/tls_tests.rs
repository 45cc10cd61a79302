//! A controller that speaks TLS, with a certificate of an authority of its own.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::tests::http;
use super::*;

/// Who signs certificates.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new([]).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        let issuer = Issuer::new(params, key);
        Self { pem, issuer }
    }

    /// A server's certificate for a name or an address, made by `change` other than it should be.
    fn sign(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> ServerConfig {
        let mut params = CertificateParams::new([name.to_owned()]).expect("parameters");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        let secret = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], secret)
            .expect("a certificate with its key")
    }
}

/// A controller that answers one request, and what it was asked; nothing if the client hung up before.
fn serve(config: ServerConfig) -> (String, JoinHandle<Option<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        let connection = ServerConnection::new(Arc::new(config)).expect("a server");
        let mut stream = StreamOwned::new(connection, stream);
        let mut asked = vec![0; 4096];
        let octets = stream.read(&mut asked).ok()?;
        let body = r#"{"controller": "c", "seen": 1, "lease_s": 15, "flows": []}"#;
        // Who has read enough hangs up.
        let _ = stream.write_all(http("200 OK", body).as_bytes());
        Some(String::from_utf8_lossy(&asked[..octets]).into_owned())
    });
    (format!("https://{at}"), server)
}

fn ask(url: &str, authority: &Authority) -> Result<Answer, ControllerError> {
    let place = Place {
        url: url.to_owned(),
        token: Some("secret".to_owned()),
        authorities: Some(authority.pem.clone().into_bytes()),
    };
    let client = Client::new(&place, "dn1").expect("a client");
    client.ask(&Request::default())
}

#[test]
fn a_certificate_of_the_named_authority_is_taken() {
    let authority = Authority::new();
    let (url, server) = serve(authority.sign("127.0.0.1", |_| {}));
    assert_eq!(ask(&url, &authority).expect("an answer").controller, "c");
    let asked = server.join().expect("a server").expect("a request");
    assert!(
        asked
            .to_lowercase()
            .contains("authorization: bearer secret\r\n"),
        "{asked}"
    );
}

/// And nothing is said to who has one, the token least of all.
#[test]
fn a_wrong_certificate_is_refused_with_the_way_out() {
    let (ours, another) = (Authority::new(), Authority::new());
    let past = |params: &mut CertificateParams| params.not_after = date_time_ymd(2001, 1, 1);
    let future = |params: &mut CertificateParams| params.not_before = date_time_ymd(3001, 1, 1);
    for (certificate, said) in [
        (
            another.sign("127.0.0.1", |_| {}),
            "; agent.ca_file is to name the authority",
        ),
        (ours.sign("127.0.0.1", past), "; renew its certificate"),
        (
            ours.sign("127.0.0.1", future),
            "; set this host's clock right",
        ),
        (
            ours.sign("other.example", |_| {}),
            "; agent.controller is to name it as its certificate does",
        ),
    ] {
        let (url, server) = serve(certificate);
        let error = ask(&url, &ours).expect_err("refused");
        assert!(error.to_string().contains(said), "{error}: {said}");
        assert!(!error.counts, "{error}");
        assert_eq!(server.join().expect("a server"), None, "{said}");
    }
}

#[test]
fn one_that_does_not_speak_tls_is_told_so() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        assert_ne!(stream.read(&mut [0; 4096]).expect("a greeting"), 0);
        stream
            .write_all(http("400 Bad Request", "").as_bytes())
            .expect("answered");
    });
    let error = ask(&url, &Authority::new()).expect_err("refused");
    assert!(
        error
            .to_string()
            .contains("; write http:// in agent.controller"),
        "{error}"
    );
    server.join().expect("a server");
}
