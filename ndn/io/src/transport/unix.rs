//! Unix stream sockets: `unix:///path`. Two Trunkline processes move their bytes into shared memory.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::config::{FaceConfig, LinkOptions, ListenConfig};
use crate::face::io::StreamIo;
use crate::transport::conn::Conn;
use crate::transport::socket::{self, set_buffers};
use crate::transport::{Accepted, Acceptor, Scheme, StreamTransport};
use crate::uri::{Address, FaceUri};

/// The face type.
pub(crate) struct Unix;

impl Scheme for Unix {
    fn schemes(&self) -> &'static [&'static str] {
        &["unix"]
    }

    fn example(&self) -> &'static str {
        "unix:///path"
    }

    fn parse(&self, _: &str, rest: &str) -> Result<Address, String> {
        if !rest.starts_with('/') {
            return Err("the path of a Unix socket must be absolute".to_owned());
        }
        // sockaddr_un holds 108 bytes, the last of them NUL.
        if rest.len() > 107 {
            return Err("the path of a Unix socket is at most 107 bytes".to_owned());
        }
        if rest.contains('\0') {
            return Err("the path holds a NUL".to_owned());
        }
        Ok(Address::Path(PathBuf::from(rest)))
    }

    fn is_local(&self, _: &Address) -> bool {
        true
    }
}

impl StreamTransport for Unix {
    fn connect(&self, address: &Address, config: &FaceConfig) -> io::Result<Box<dyn StreamIo>> {
        let socket = new_socket()?;
        tune(&socket, &config.link)?;
        socket::connect(&socket, &SockAddr::unix(path_of(address)?)?)?;
        Ok(Box::new(Conn::new(socket, true)))
    }

    fn listen(&self, config: &ListenConfig) -> io::Result<Box<dyn Acceptor>> {
        let path = path_of(config.uri.address())?;
        let socket = new_socket()?;
        remove_stale(path)?;
        socket.bind(&SockAddr::unix(path)?)?;
        let listener = UnixListener {
            socket,
            uri: config.uri.clone(),
            path: path.to_owned(),
            link: config.link.clone(),
        };
        if let Some(mode) = config.unix_mode {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
        }
        socket::listen(&listener.socket)?;
        Ok(Box::new(listener))
    }
}

struct UnixListener {
    socket: Socket,
    uri: FaceUri,
    path: PathBuf,
    link: LinkOptions,
}

impl Acceptor for UnixListener {
    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn uri(&self) -> FaceUri {
        self.uri.clone()
    }

    fn accept(&mut self) -> io::Result<Accepted> {
        let (socket, _) = self.socket.accept()?;
        let remote_uri = format!("fd://{}", socket.as_raw_fd());
        tune(&socket, &self.link).map_err(|_| io::Error::from(io::ErrorKind::ConnectionAborted))?;
        Ok(Accepted {
            io: Box::new(Conn::new(socket, true)),
            is_up: true,
            address: None,
            remote_uri,
            local_uri: self.uri.to_string(),
            is_local: true,
        })
    }
}

impl Drop for UnixListener {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove the socket");
        }
    }
}

fn new_socket() -> io::Result<Socket> {
    Socket::new(Domain::UNIX, Type::STREAM, None)
}

fn tune(socket: &Socket, link: &LinkOptions) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    set_buffers(socket, link.socket_buffer_bytes, "a Unix face");
    Ok(())
}

fn path_of(address: &Address) -> io::Result<&Path> {
    match address {
        Address::Path(path) => Ok(path),
        Address::Endpoint(_) => Err(io::Error::from(io::ErrorKind::InvalidInput)),
    }
}

/// A socket file at `path` that nobody listens on is removed; a live one is an error.
fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "something that is no socket has this path; move it away, or choose another path",
        ));
    }
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    probe.set_nonblocking(true)?;
    match probe.connect(&SockAddr::unix(path)?) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            tracing::info!(path = %path.display(), "removed a socket that a dead process left");
            std::fs::remove_file(path)
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        // Connected, or would have to wait: somebody is alive there.
        _ => Err(io::Error::from(io::ErrorKind::AddrInUse)),
    }
}
