//! Face URIs: where a face leads to, or where a listener waits.
//!
//! The schemes are those of NFD's face management: `unix:///path`, `tcp://host:port`,
//! `udp://host:port` (also with an IP version in the scheme, `tcp4`, `tcp6`, `udp4`, `udp6`), and
//! `tls://host:port`, which is Trunkline's own.
//! Canonical forms, as management reports them, always carry the IP version and a port.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// The port of NDN over TCP and UDP where a URI names none.
pub const DEFAULT_PORT: u16 = 6363;
/// The port of NDN over TLS where a URI names none.
pub const DEFAULT_TLS_PORT: u16 = 6364;
/// The UDP port of NDN multicast groups where a URI names none.
pub const DEFAULT_MULTICAST_PORT: u16 = 56363;

/// A face's or a listener's address: which face type, and where.
///
/// Which face types there are, and how their URIs are read, `transport` knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FaceUri {
    face_type: &'static str,
    address: Address,
}

/// Where a face leads to, or where a listener waits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// A path in the file system.
    Path(PathBuf),
    /// A host and a port.
    Endpoint(Endpoint),
}

/// Host, port and IP version of a TCP, TLS or UDP address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// A literal address or a name to be resolved.
    pub host: Host,
    /// The port; the scheme's default, such as [`DEFAULT_PORT`], where the URI named none.
    pub port: u16,
    /// The IP version asked for by the scheme, where it asked for one.
    pub version: Option<IpVersion>,
}

/// A host, as written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A literal address.
    Ip(IpAddr),
    /// A name.
    Name(String),
}

/// The IP version that a scheme such as `udp6` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IpVersion {
    /// `tcp4`, `udp4`.
    V4,
    /// `tcp6`, `udp6`.
    V6,
}

/// Why a text is no face URI.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no face URI: {reason}; write {}", .examples.join(" or "))]
pub struct FaceUriError {
    text: String,
    reason: String,
    examples: Vec<&'static str>,
}

impl FaceUriError {
    pub(crate) fn new(text: &str, reason: String, examples: Vec<&'static str>) -> Self {
        Self {
            text: text.to_owned(),
            reason,
            examples,
        }
    }
}

impl FaceUri {
    pub(crate) fn new(face_type: &'static str, address: Address) -> Self {
        Self { face_type, address }
    }

    /// The URI of a Unix socket at this path.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self::new("unix", Address::Path(path.into()))
    }

    /// The canonical URI of a TCP peer or listener at a resolved address.
    pub fn tcp(addr: SocketAddr) -> Self {
        Self::new("tcp", Address::Endpoint(addr.into()))
    }

    /// The canonical URI of a TLS peer or listener at a resolved address.
    pub fn tls(addr: SocketAddr) -> Self {
        Self::new("tls", Address::Endpoint(addr.into()))
    }

    /// The canonical URI of a UDP peer or listener at a resolved address.
    pub fn udp(addr: SocketAddr) -> Self {
        Self::new("udp", Address::Endpoint(addr.into()))
    }

    /// The name of the face type, such as `tcp`: the scheme without an IP version.
    pub fn face_type(&self) -> &'static str {
        self.face_type
    }

    /// Where it leads to.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The path, where the address is one.
    pub fn path(&self) -> Option<&Path> {
        match &self.address {
            Address::Path(path) => Some(path),
            Address::Endpoint(_) => None,
        }
    }

    /// Host and port, where the address has them.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        self.address.endpoint()
    }

    /// The host, where it is given by name.
    pub fn host_name(&self) -> Option<&str> {
        match &self.endpoint()?.host {
            Host::Name(name) => Some(name),
            Host::Ip(_) => None,
        }
    }

    /// Whether the address is a multicast group.
    pub fn is_multicast(&self) -> bool {
        self.endpoint().is_some_and(Endpoint::is_multicast)
    }

    /// Whether the host is a name that a resolver must be asked for.
    pub(crate) fn needs_resolving(&self) -> bool {
        self.endpoint().is_some_and(|e| e.literal().is_none())
    }

    /// The same address with its host looked up (blocking) where that is a name.
    ///
    /// # Errors
    /// Where the name does not resolve, or not to the IP version asked for.
    pub fn resolve(&self) -> io::Result<Self> {
        let address = match &self.address {
            Address::Endpoint(endpoint) => Address::Endpoint(endpoint.resolve()?.into()),
            other => other.clone(),
        };
        Ok(Self::new(self.face_type, address))
    }
}

impl Address {
    /// Host and port, where it has them.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Self::Endpoint(endpoint) => Some(endpoint),
            Self::Path(_) => None,
        }
    }

    /// The socket address of a literal host and port.
    pub(crate) fn socket_addr(&self) -> io::Result<SocketAddr> {
        self.endpoint()
            .and_then(Endpoint::literal)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "this is no IP address"))
    }
}

impl fmt::Display for FaceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Path(path) => write!(f, "{}://{}", self.face_type, path.display()),
            Address::Endpoint(endpoint) => write!(f, "{}{endpoint}", self.face_type),
        }
    }
}

impl Endpoint {
    /// Reads what stands behind `<scheme>://`: a host, and a port where it is not `default_port`.
    pub(crate) fn parse(scheme: &str, text: &str, default_port: u16) -> Result<Self, String> {
        let version = match scheme.as_bytes().last() {
            Some(b'4') => Some(IpVersion::V4),
            Some(b'6') => Some(IpVersion::V6),
            _ => None,
        };
        let text = text.strip_suffix('/').unwrap_or(text);
        let (host, port) = split_port(text)?;
        let port = match port {
            Some(port) => port.parse().map_err(|_| format!("`{port}` is no port"))?,
            None => default_port,
        };
        if host.is_empty() {
            return Err("it names no host".to_owned());
        }
        let host = match host.parse::<IpAddr>() {
            Ok(ip) => Host::Ip(ip),
            Err(_)
                if host
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) =>
            {
                Host::Name(host.to_owned())
            }
            Err(_) => return Err(format!("`{host}` is no host")),
        };
        match (&host, version) {
            (Host::Ip(IpAddr::V6(_)), Some(IpVersion::V4)) => {
                Err("the scheme asks for IPv4, the address is IPv6".to_owned())
            }
            (Host::Ip(IpAddr::V4(_)), Some(IpVersion::V6)) => {
                Err("the scheme asks for IPv6, the address is IPv4".to_owned())
            }
            _ => Ok(Self {
                host,
                port,
                version,
            }),
        }
    }

    /// The socket address, looked up (blocking) where the host is a name.
    ///
    /// # Errors
    /// Where the name does not resolve, or not to the IP version asked for.
    pub fn resolve(&self) -> std::io::Result<SocketAddr> {
        match &self.host {
            Host::Ip(ip) => Ok(SocketAddr::new(*ip, self.port)),
            Host::Name(name) => (name.as_str(), self.port)
                .to_socket_addrs()?
                .find(|addr| match self.version {
                    None => true,
                    Some(IpVersion::V4) => addr.is_ipv4(),
                    Some(IpVersion::V6) => addr.is_ipv6(),
                })
                .ok_or_else(|| {
                    std::io::Error::new(
                        std::io::ErrorKind::NotFound,
                        format!("`{name}` has no address of that IP version"),
                    )
                }),
        }
    }

    /// Whether the host is this one for itself, by its address or as `localhost`.
    pub(crate) fn is_loopback(&self) -> bool {
        match &self.host {
            Host::Ip(ip) => ip.to_canonical().is_loopback(),
            Host::Name(name) => name == "localhost",
        }
    }

    pub(crate) fn is_multicast(&self) -> bool {
        matches!(self.host, Host::Ip(ip) if ip.is_multicast())
    }

    /// The socket address where the host is a literal one; never asks a resolver.
    pub fn literal(&self) -> Option<SocketAddr> {
        match &self.host {
            Host::Ip(ip) => Some(SocketAddr::new(*ip, self.port)),
            Host::Name(_) => None,
        }
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(addr: SocketAddr) -> Self {
        // An IPv4 peer seen through an IPv6 socket is an IPv4 peer.
        let ip = addr.ip().to_canonical();
        let version = if ip.is_ipv4() {
            IpVersion::V4
        } else {
            IpVersion::V6
        };
        Self {
            host: Host::Ip(ip),
            port: addr.port(),
            version: Some(version),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = match (self.version, &self.host) {
            (Some(IpVersion::V4), _) | (None, Host::Ip(IpAddr::V4(_))) => "4",
            (Some(IpVersion::V6), _) | (None, Host::Ip(IpAddr::V6(_))) => "6",
            (None, Host::Name(_)) => "",
        };
        match &self.host {
            Host::Ip(IpAddr::V6(ip)) => write!(f, "{digit}://[{ip}]:{}", self.port),
            Host::Ip(IpAddr::V4(ip)) => write!(f, "{digit}://{ip}:{}", self.port),
            Host::Name(name) => write!(f, "{digit}://{name}:{}", self.port),
        }
    }
}

/// Whether an address is one of this host's own for itself.
pub(crate) fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// The address that a socket talking to `peer` binds to where none is asked for.
pub(crate) fn unspecified(peer: &SocketAddr) -> SocketAddr {
    let ip: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(ip, 0)
}

fn split_port(text: &str) -> Result<(&str, Option<&str>), String> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, after) = rest
            .split_once(']')
            .ok_or_else(|| "an IPv6 address lacks its `]`".to_owned())?;
        return match after.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if after.is_empty() => Ok((host, None)),
            None => Err(format!("`{after}` after the address")),
        };
    }
    match text.rsplit_once(':') {
        Some((host, _)) if host.contains(':') => {
            Err("an IPv6 address is written in brackets".to_owned())
        }
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((text, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_forms() {
        for (text, canonical) in [
            ("unix:///run/nfd/nfd.sock", "unix:///run/nfd/nfd.sock"),
            ("tcp://127.0.0.1:7000", "tcp4://127.0.0.1:7000"),
            ("tcp4://127.0.0.1", "tcp4://127.0.0.1:6363"),
            ("udp://[::1]", "udp6://[::1]:6363"),
            ("udp6://[fe80::1]:9/", "udp6://[fe80::1]:9"),
            ("udp4://224.0.23.170", "udp4://224.0.23.170:56363"),
            ("tcp://router.example:6363", "tcp://router.example:6363"),
            ("udp4://router", "udp4://router:6363"),
            ("udp://127.0.0.1:0", "udp4://127.0.0.1:0"),
            ("tls://router.example", "tls://router.example:6364"),
            ("tls6://[::1]:7", "tls6://[::1]:7"),
        ] {
            assert_eq!(
                FaceUri::parse(text).unwrap().to_string(),
                canonical,
                "{text}"
            );
        }
    }

    #[test]
    fn refused_with_reason() {
        for text in [
            "",
            "unix://relative",
            "tcp://",
            "tcp://:1",
            "tcp://h:99999",
            "tcp6://1.2.3.4",
            "udp4://[::1]",
            "tcp://::1",
            "tcp://[::1",
            "tcp://a b",
            "ether://x",
            "udp://[::1]x",
        ] {
            let error = FaceUri::parse(text).unwrap_err().to_string();
            assert!(error.contains("is no face URI"), "{error}");
        }
        let long = format!("unix:///{}", "x".repeat(107));
        assert!(
            FaceUri::parse(&long)
                .unwrap_err()
                .to_string()
                .contains("107 bytes")
        );
    }

    #[test]
    fn resolves_by_version() {
        let any = FaceUri::parse("tcp4://localhost:80").unwrap();
        let endpoint = any.endpoint().unwrap();
        assert!(endpoint.resolve().unwrap().is_ipv4());
        assert_eq!(endpoint.literal(), None);
    }

    #[test]
    fn faces_on_this_host() {
        for (text, local) in [
            ("unix:///a", true),
            ("tcp://127.0.0.9", true),
            ("tcp://[::1]:6363", true),
            ("tcp://localhost", true),
            ("udp://localhost", false),
            ("tls://127.0.0.1", false),
            ("tcp://192.0.2.1", false),
            ("udp://router.example.org", false),
        ] {
            let uri = FaceUri::parse(text).expect("a URI");
            assert_eq!(uri.is_on_this_host(), local, "{text}");
        }
    }
}
