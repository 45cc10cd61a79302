//! A forwarder process for a test, and ways to run the command beside it.

#![allow(dead_code)] // each test file uses its part

pub mod mounts;

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The built command.
pub const BIN: &str = env!("CARGO_BIN_EXE_trunkline");
/// More than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A folder with a forwarder that listens on a Unix socket in it.
pub struct Bench {
    pub folder: tempfile::TempDir,
    forwarder: Option<Running>,
}

/// A process that is ended with the test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Fails only where it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Bench {
    /// Starts a forwarder with a Unix socket and what else `more` says.
    pub fn start(more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut bench = Bench {
            folder,
            forwarder: None,
        };
        let config = format!("[[face]]\nlisten = \"{}\"\n{more}", bench.face());
        std::fs::write(bench.path("fwd.toml"), config).expect("a configuration");
        bench.forwarder = Some(bench.start_forwarder());
        bench
    }

    /// A folder without a forwarder.
    pub fn without_forwarder() -> Self {
        Bench {
            folder: tempfile::tempdir().expect("a folder"),
            forwarder: None,
        }
    }

    fn start_forwarder(&self) -> Running {
        let log = std::fs::File::create(self.path("fwd.log")).expect("a log");
        let child = Command::new(BIN)
            .args(["fwd", "run", "--config"])
            .arg(self.path("fwd.toml"))
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("a process");
        let mut running = Running(child);
        until(|| {
            assert!(
                running.0.try_wait().expect("a status").is_none(),
                "the forwarder ended: {}",
                self.log()
            );
            UnixStream::connect(self.socket()).is_ok()
        });
        running
    }

    /// Ends the forwarder and starts it again.
    pub fn restart(&mut self) {
        self.stop();
        self.forwarder = Some(self.start_forwarder());
    }

    /// Ends the forwarder.
    pub fn stop(&mut self) {
        self.forwarder = None;
    }

    /// The forwarder's process.
    pub fn forwarder(&mut self) -> &mut Child {
        &mut self.forwarder.as_mut().expect("a forwarder").0
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn socket(&self) -> PathBuf {
        self.path("fwd.sock")
    }

    pub fn face(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("fwd.log")).unwrap_or_default()
    }

    /// The command with this forwarder in its environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BIN);
        command
            .args(arguments)
            .env("TRUNKLINE_FACE", self.face())
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("a process")
    }

    /// Runs it to a good end and gives its standard output.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let done = self.run(arguments);
        assert!(
            done.status.success(),
            "{arguments:?}: {}\n{}",
            text(&done.stderr),
            self.log()
        );
        text(&done.stdout)
    }

    /// Runs it to a good end and reads its standard output as JSON.
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let said = self.ok(arguments);
        serde_json::from_str(&said).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {said}"))
    }

    /// Runs it to a bad end and gives exit status and standard error.
    pub fn fails(&self, arguments: &[&str]) -> (i32, String) {
        let done = self.run(arguments);
        assert!(
            !done.status.success(),
            "{arguments:?} went well: {}",
            text(&done.stdout)
        );
        (
            done.status.code().expect("an exit status"),
            text(&done.stderr),
        )
    }

    /// Starts a server and waits for its first line, which it prints when its prefix is registered.
    pub fn serve(&self, arguments: &[&str]) -> (Running, String) {
        let child = self
            .command(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut running = Running(child);
        let mut line = String::new();
        let output = running.0.stdout.as_mut().expect("an output");
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert!(!line.is_empty(), "{arguments:?} ended: {}", self.log());
        (running, line)
    }

    /// The entries of the folder.
    pub fn entries(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.folder.path())
            .expect("the folder")
            .map(|e| {
                e.expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }

    /// A file of `bytes` bytes that do not repeat.
    pub fn file(&self, name: &str, bytes: usize) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, noise(bytes)).expect("a file");
        path
    }
}

/// Bytes without order.
pub fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ bytes as u64;
    let mut content = Vec::with_capacity(bytes + 8);
    while content.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        content.extend_from_slice(&state.to_le_bytes());
    }
    content.truncate(bytes);
    content
}

/// Sends a signal to a process that this test started.
pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args(["-s", name, &child.id().to_string()])
        .status()
        .expect("kill");
    assert!(sent.success());
}

/// Waits for a process to end.
pub fn wait(child: &mut Child) -> i32 {
    let mut status = None;
    until(|| {
        status = child.try_wait().expect("a status");
        status.is_some()
    });
    status.and_then(|s| s.code()).unwrap_or(-1)
}

/// Waits until something is so.
pub fn until(mut so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < end, "waited too long");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn same(a: &Path, b: &Path) -> bool {
    std::fs::read(a).expect("a file") == std::fs::read(b).expect("a file")
}

/// A port that nobody listens on now, by TCP or UDP.
pub fn free_port() -> u16 {
    loop {
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = tcp.local_addr().expect("an address");
        if std::net::UdpSocket::bind(address).is_ok() {
            return address.port();
        }
    }
}
