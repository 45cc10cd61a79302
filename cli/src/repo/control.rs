//! The control socket of a running repository: a Unix socket in its folder, for its owner alone. A line of JSON asks, with an open
//! file beside it where one is to be put; lines of JSON tell progress, and the last one the end.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ndn_repo::Repo;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Stopped;
use super::session::{Counters, Request, Session};
use crate::error::{CliError, Exit};

/// Longest request, in bytes.
const MAX_REQUEST: usize = 64 * 1024;
/// Connections at once; further ones are told to come back.
const MAX_CONNECTIONS: usize = 64;
/// How often progress is told.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// A line of an answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    /// So many bytes are done.
    Progress(u64),
    /// It is done.
    Done(Value),
    /// It failed.
    Failed {
        exit: u8,
        thing: String,
        cause: String,
        way_out: Option<String>,
    },
}

/// The listening socket; dropped, it is removed.
pub struct ControlSocket {
    path: PathBuf,
}

impl ControlSocket {
    /// Listens and answers on threads of its own for as long as the process runs.
    ///
    /// # Errors
    /// The socket can't be made.
    pub fn open(path: &Path, repo: &Repo, counters: &Counters) -> Result<Self, CliError> {
        let failed = |e: io::Error| CliError::file(path, &e);
        // The repository's lock is held, so nobody answers at a socket that is left over.
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        let (repo, counters) = (repo.clone(), counters.clone());
        std::thread::Builder::new()
            .name(String::from("control"))
            .spawn(move || listen(&listener, &repo, &counters))
            .map_err(|e| CliError::failed("control", e))?;
        Ok(Self {
            path: path.to_owned(),
        })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // The next start removes it, too.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn listen(listener: &UnixListener, repo: &Repo, counters: &Counters) {
    let connections = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(%error, "control socket: accept failed");
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        if connections.fetch_add(1, Ordering::AcqRel) >= MAX_CONNECTIONS {
            connections.fetch_sub(1, Ordering::AcqRel);
            let full = CliError::failed(
                "repository",
                format!("{MAX_CONNECTIONS} commands run on it already"),
            )
            .or("try again later");
            // The client may have closed the connection.
            let _ = say(&mut &stream, &failed_line(&full));
            continue;
        }
        let session = Session::new(repo.clone(), Some(counters.clone()));
        let ended = connections.clone();
        let started = std::thread::Builder::new()
            .name(String::from("control-client"))
            .spawn(move || {
                if let Err(error) = serve(&stream, session) {
                    tracing::debug!(%error, "control socket: connection lost");
                }
                ended.fetch_sub(1, Ordering::AcqRel);
            });
        if let Err(error) = started {
            connections.fetch_sub(1, Ordering::AcqRel);
            tracing::warn!(%error, "control socket: can't start a thread");
        }
    }
}

/// Answers one client's requests until it closes the connection.
fn serve(stream: &UnixStream, mut session: Session) -> io::Result<()> {
    let mut received = Received::default();
    while let Some((line, file)) = received.next(stream)? {
        let request: Request = match serde_json::from_slice(&line) {
            Ok(request) => request,
            Err(error) => {
                let wrong = CliError::usage("request", error)
                    .or("use the same version of trunkline as the repository");
                say(&mut &*stream, &failed_line(&wrong))?;
                continue;
            }
        };
        let mut told = Instant::now();
        let answer = session.answer(&request, file, &mut |bytes| {
            if told.elapsed() >= PROGRESS_EVERY {
                told = Instant::now();
                say(&mut &*stream, &Line::Progress(bytes)).map_err(|_| Stopped::error())?;
            }
            Ok(())
        });
        let line = match answer {
            Ok(value) => Line::Done(value),
            Err(error) => failed_line(&error),
        };
        say(&mut &*stream, &line)?;
    }
    Ok(())
}

fn failed_line(error: &CliError) -> Line {
    Line::Failed {
        exit: error.exit as u8,
        thing: error.thing.clone(),
        cause: error.cause.clone(),
        way_out: error.way_out.clone(),
    }
}

fn say(stream: &mut impl Write, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    stream.write_all(&text)
}

/// Lines and the files that came with them.
#[derive(Default)]
struct Received {
    bytes: Vec<u8>,
    file: Option<File>,
}

impl Received {
    /// The next line, and the file that came with it; `None` when the client has closed the connection.
    fn next(&mut self, stream: &UnixStream) -> io::Result<Option<(Vec<u8>, Option<File>)>> {
        loop {
            if let Some(end) = self.bytes.iter().position(|b| *b == b'\n') {
                let line = self.bytes.drain(..=end).collect();
                return Ok(Some((line, self.file.take())));
            }
            if self.bytes.len() > MAX_REQUEST {
                return Err(io::Error::other("a request is longer than 64 KiB"));
            }
            let mut part = [0; 4096];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let got = recvmsg(
                stream.as_fd(),
                &mut [IoSliceMut::new(&mut part)],
                &mut control,
                RecvFlags::CMSG_CLOEXEC,
            )?;
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(files) = message {
                    self.file = files.map(|fd: OwnedFd| File::from(fd)).next();
                }
            }
            if got.bytes == 0 {
                return Ok(None);
            }
            self.bytes.extend_from_slice(&part[..got.bytes]);
        }
    }
}

/// The other side: a command that asks a running repository.
pub struct ControlClient {
    stream: BufReader<UnixStream>,
    path: PathBuf,
}

impl ControlClient {
    /// Connects; `None` where no repository runs.
    pub fn connect(path: &Path) -> Option<Self> {
        let stream = UnixStream::connect(path).ok()?;
        Some(Self {
            stream: BufReader::new(stream),
            path: path.to_owned(),
        })
    }

    /// Asks, and tells `progress` bytes done.
    ///
    /// # Errors
    /// What the repository says, or that it went away.
    pub fn ask(
        &mut self,
        request: &Request,
        file: Option<&File>,
        progress: &mut dyn FnMut(u64) -> io::Result<()>,
    ) -> Result<Value, CliError> {
        self.send(request, file).map_err(|e| self.lost(&e))?;
        loop {
            let mut text = String::new();
            let n = self
                .stream
                .read_line(&mut text)
                .map_err(|e| self.lost(&e))?;
            if n == 0 {
                return Err(self.lost(&io::ErrorKind::UnexpectedEof.into()));
            }
            let line = serde_json::from_str(&text).map_err(|e| self.lost(&e.into()))?;
            match line {
                Line::Progress(bytes) => progress(bytes)
                    .map_err(|error| CliError::new(Exit::Interrupted, "repository", error))?,
                Line::Done(value) => return Ok(value),
                Line::Failed {
                    exit,
                    thing,
                    cause,
                    way_out,
                } => {
                    let error = CliError::new(Exit::from_code(exit), thing, cause);
                    return Err(CliError { way_out, ..error });
                }
            }
        }
    }

    fn send(&self, request: &Request, file: Option<&File>) -> io::Result<()> {
        let mut text = serde_json::to_vec(request)?;
        text.push(b'\n');
        let mut stream = self.stream.get_ref();
        let Some(file) = file else {
            return stream.write_all(&text);
        };
        let files = [file.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&files)) {
            return Err(io::Error::other("no room for a file beside the request"));
        }
        let sent = sendmsg(
            stream,
            &[IoSlice::new(&text)],
            &mut control,
            SendFlags::NOSIGNAL,
        )?;
        stream.write_all(&text[sent..])
    }

    fn lost(&self, error: &io::Error) -> CliError {
        CliError::failed(
            format!("repository at {}", self.path.display()),
            format!("connection lost ({error})"),
        )
        .or("see its log")
    }
}
