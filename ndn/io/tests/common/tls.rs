//! Faces over TLS as tests make them, and rustls as it comes at the other end.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use ndn_io::{
    Client, ClientError, ClientOptions, CredentialFiles, Credentials, FaceConfig, FaceUri,
    ListenConfig, Node, NodeConfig,
};
use ndn_packet::Interest;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::authority::{Authority, Files};
use super::{listen, node, prefix};

pub fn credentials(files: &Files) -> Credentials {
    Credentials::load(CredentialFiles {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        ca: files.ca.clone(),
    })
    .expect("credentials")
}

pub fn listener(files: &Files) -> ListenConfig {
    let mut listener = listen("tls://127.0.0.1:0");
    listener.link.tls = Some(credentials(files));
    listener
}

pub fn options(files: &Files) -> ClientOptions {
    let mut options = ClientOptions::default();
    options.link.tls = Some(credentials(files));
    options
}

pub const ROUTER: [&str; 2] = ["router.test", "127.0.0.1"];

/// An authority and a node that listens with a certificate of it.
pub fn router() -> (Authority, Node) {
    let authority = Authority::new();
    let node = node(vec![listener(&authority.host(&ROUTER))]);
    (authority, node)
}

pub fn address(node: &Node) -> SocketAddr {
    let endpoint = node.listening()[0].endpoint().expect("an address");
    endpoint.resolve().expect("an address")
}

pub fn unproven(node: &Node) -> u64 {
    node.status().expect("a running node").listeners[0].unproven
}

pub fn connecting(face: FaceConfig) -> Node {
    Node::start(NodeConfig {
        faces: vec![face],
        ..NodeConfig::default()
    })
    .expect("a node")
}

pub fn refusal(uri: &FaceUri, options: &ClientOptions) -> String {
    let refused = Client::connect(uri, options).and_then(|mut client| {
        client.settle(Duration::from_secs(20))?;
        Ok(client)
    });
    match refused {
        Ok(_) => panic!("connected"),
        Err(error @ (ClientError::Connect { .. } | ClientError::Lost { .. })) => error.to_string(),
        Err(error) => panic!("{error}"),
    }
}

/// A client, if it comes to a face.
pub fn connects_on(uri: &FaceUri, options: &ClientOptions) -> Option<Client> {
    let mut client = Client::connect(uri, options).ok()?;
    client.settle(Duration::from_secs(20)).ok()?;
    Some(client)
}

/// Whether a client comes to a face.
pub fn connects(uri: &FaceUri, options: &ClientOptions) -> bool {
    connects_on(uri, options).is_some()
}

/// rustls as it comes, over a socket that waits.
pub struct Plain<T> {
    pub tls: T,
    pub tcp: TcpStream,
}

pub fn certificates(file: &std::path::Path) -> Vec<CertificateDer<'static>> {
    let all = CertificateDer::pem_file_iter(file).expect("a file");
    all.collect::<Result<_, _>>().expect("certificates")
}

pub fn roots(files: &Files) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&files.ca) {
        roots.add(certificate).expect("a CA");
    }
    roots
}

pub fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Connects with the certificate in these files, or with none.
pub fn plain_client(files: &Files, shown: bool, to: SocketAddr) -> Plain<ClientConnection> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots(files));
    let config = if shown {
        let key = PrivateKeyDer::from_pem_file(&files.key).expect("a key");
        let chain = certificates(&files.certificate);
        config.with_client_auth_cert(chain, key).expect("a pair")
    } else {
        config.with_no_client_auth()
    };
    let name = ServerName::try_from("router.test").expect("a name");
    let tcp = TcpStream::connect(to).expect("a connection");
    tcp.set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a timeout");
    Plain {
        tls: ClientConnection::new(Arc::new(config), name).expect("a client"),
        tcp,
    }
}

impl Plain<ClientConnection> {
    pub fn finish(&mut self) -> io::Result<()> {
        while self.tls.is_handshaking() {
            self.tls.complete_io(&mut self.tcp)?;
        }
        Ok(())
    }

    /// Shakes hands up to what it sends last; the bytes of that, and of what `more` adds behind it.
    pub fn last_flight(
        &mut self,
        more: impl FnOnce(&mut ClientConnection) -> Result<(), rustls::Error>,
    ) -> io::Result<Vec<u8>> {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.tcp)?;
        }
        while self.tls.is_handshaking() {
            self.tls.read_tls(&mut self.tcp)?;
            self.tls.process_new_packets().map_err(io::Error::other)?;
        }
        more(&mut self.tls).map_err(io::Error::other)?;
        let mut bytes = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut bytes)?;
        }
        Ok(bytes)
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.tls.writer().write_all(bytes)?;
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.tcp)?;
        }
        Ok(())
    }

    pub fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        rustls::Stream::new(&mut self.tls, &mut self.tcp).read(buf)
    }
}

pub fn interest(segment: u64) -> Vec<u8> {
    Interest::builder(&prefix().append_segment(segment))
        .nonce(segment as u32)
        .build()
        .to_vec()
}

/// Reads until some Data has come whole, or the connection ends.
pub fn hears(peer: &mut Plain<ClientConnection>, bytes: usize) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    let mut part = [0; 4096];
    while all.len() < bytes {
        match peer.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => all.extend_from_slice(&part[..n]),
        }
    }
    Ok(all)
}
