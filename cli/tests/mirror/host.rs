//! A host of a test's own: namespaces for network and mounts that are this thread's, and go with it.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::Value;
use trunkline_mirror::Program;

const BIN: &str = env!("CARGO_BIN_EXE_trunkline");
/// More than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// This thread, as a host with one interface, `eth0`, that leads to `far`.
pub struct Host {
    folder: tempfile::TempDir,
}

impl Drop for Host {
    fn drop(&mut self) {
        // Or its folder could not be removed.
        let _ = unmount(self.path("bpf"), UnmountFlags::DETACH);
    }
}

/// An agent, ended with the test.
pub struct Agent {
    process: Child,
    log: PathBuf,
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Fails only where it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The host, or the end of the test.
#[macro_export]
macro_rules! host_or_skip {
    () => {
        match $crate::host::Host::new() {
            Some(host) => host,
            None => return,
        }
    };
}

impl Host {
    /// `None`, with the reason printed, where there can be none.
    pub fn new() -> Option<Self> {
        let lack = if !geteuid().is_root() {
            "not root"
        } else if Program::object().is_none() {
            "built without clang or libbpf's headers"
        } else if !Path::new("/sys/kernel/btf/vmlinux").exists() {
            "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)"
        } else if Command::new("tc").arg("-V").output().is_err() {
            "no tc; install iproute2"
        } else {
            ""
        };
        if !lack.is_empty() {
            println!("skipped: trunkline mirror: {lack}");
            return None;
        }
        unshare().expect("namespaces");
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).expect("mounts of our own");
        let folder = tempfile::tempdir().expect("a folder");
        let host = Host { folder };
        let bpf = host.path("bpf");
        std::fs::create_dir(&bpf).expect("a folder");
        let none = None::<&std::ffi::CStr>;
        mount("bpf", &bpf, "bpf", MountFlags::empty(), none).expect("a BPF filesystem");
        for words in [
            "link set lo up",
            "link add eth0 type veth peer name far",
            "address add 10.9.0.1/24 dev eth0",
            "link set eth0 up",
            "link set far up",
        ] {
            host.shell("ip", words);
        }
        Some(host)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn pins(&self) -> PathBuf {
        self.path("bpf/mirror")
    }

    /// Runs a tool of the system, and gives what it said.
    pub fn shell(&self, tool: &str, words: &str) -> String {
        let done = Command::new(tool)
            .args(words.split(' '))
            .output()
            .expect("the tool");
        assert!(done.status.success(), "{tool} {words}: {done:?}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// What traffic control has at eth0.
    pub fn traffic_control(&self) -> String {
        [
            "qdisc show dev eth0",
            "filter show dev eth0 ingress",
            "filter show dev eth0 egress",
        ]
        .map(|words| self.shell("tc", words))
        .join("---\n")
    }

    /// Writes a configuration for a controller.
    pub fn configure(&self, controller: &str, more: &str) -> PathBuf {
        let file = self.path("mirror.toml");
        let text = format!(
            "[agent]\ninterfaces = [\"eth0\"]\nname = \"test\"\ncontroller = \"{controller}\"\npin = \"{}\"\n{more}\n\
             [log]\nlevel = \"info,trunkline_mirror=debug\"\n",
            self.pins().display()
        );
        std::fs::write(&file, text).expect("a configuration");
        file
    }

    pub fn command<S: AsRef<OsStr>>(&self, words: &[S]) -> Command {
        let mut command = Command::new(BIN);
        command
            .arg("mirror")
            .args(words)
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, words: &[S]) -> Output {
        self.command(words).output().expect("a process")
    }

    /// Runs it to a good end and gives its standard output.
    pub fn ok<S: AsRef<OsStr> + Debug>(&self, words: &[S]) -> String {
        let done = self.run(words);
        assert!(done.status.success(), "{words:?}: {done:?}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Runs it to a bad end and gives its standard error.
    pub fn fails<S: AsRef<OsStr> + Debug>(&self, words: &[S]) -> String {
        let done = self.run(words);
        assert!(!done.status.success(), "{words:?}: {done:?}");
        String::from_utf8_lossy(&done.stderr).into_owned()
    }

    pub fn off(&self) -> String {
        self.ok(&self.off_words(&[]))
    }

    /// The words of `off`, with more of them.
    pub fn off_words(&self, more: &[&str]) -> Vec<String> {
        let pins = self.pins().display().to_string();
        let words = [&["off", "--pin", &pins], more].concat();
        words.into_iter().map(str::to_owned).collect()
    }

    /// Folders of maps and programs, by name.
    pub fn layouts(&self) -> Vec<String> {
        let folder = std::fs::read_dir(self.pins()).expect("pins").flatten();
        let names = folder.map(|entry| entry.file_name().into_string().expect("text"));
        names.filter(|name| name.starts_with("layout-")).collect()
    }

    /// Has what is pinned look like another release's.
    pub fn age(&self) {
        let [ours] = &self.layouts()[..] else {
            panic!("one layout: {:?}", self.layouts());
        };
        let other = self.pins().join("layout-0123456789abcdef");
        std::fs::rename(self.pins().join(ours), other).expect("renamed");
    }

    pub fn status(&self) -> Value {
        let pins = self.pins();
        let said = self.ok(&["status", "--json", "--pin", pins.to_str().expect("text")]);
        serde_json::from_str(&said).expect("JSON")
    }

    /// Connections with an entry: side and state.
    pub fn flows(&self) -> Vec<(String, String)> {
        let status = self.status();
        let flows = status["flows"].as_array().expect("flows").iter();
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let mut flows: Vec<_> = flows
            .map(|f| (text(&f["side"]), text(&f["state"])))
            .collect();
        flows.sort();
        flows
    }

    /// An agent, attached.
    pub fn agent(&self) -> Agent {
        let agent = self.start();
        until("attached", || {
            agent.log().contains("addresses of this host")
        });
        until("running", || self.status()["agent"] == true);
        agent
    }

    /// An agent that may not get far.
    pub fn start(&self) -> Agent {
        self.start_with(&[])
    }

    /// The same, with more words.
    pub fn start_with(&self, more: &[&str]) -> Agent {
        self.start_as(&[&["run", "--config", "mirror.toml"], more].concat())
    }

    /// Whatever agent these words start.
    pub fn start_as(&self, words: &[&str]) -> Agent {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let log = self.path(&format!("agent-{number}.log"));
        let file = std::fs::File::create(&log).expect("a log");
        let process = self
            .command(words)
            .stdout(file.try_clone().expect("a log"))
            .stderr(file)
            .spawn()
            .expect("a process");
        Agent { process, log }
    }
}

impl Agent {
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.process);
        kill_process(pid, signal).expect("a signal");
    }

    /// Ends it as an operator does.
    pub fn stop(mut self) -> String {
        self.signal(Signal::TERM);
        let status = self.process.wait().expect("a status");
        assert!(status.success(), "{status}: {}", self.log());
        self.log()
    }

    /// Ends it as a crash does.
    pub fn crash(mut self) {
        self.signal(Signal::KILL);
        let status = self.process.wait().expect("a status");
        assert_eq!(status.signal(), Some(9));
    }

    /// Waits until it has ended by itself.
    pub fn ended(&mut self) -> bool {
        let mut status = None;
        until("ended", || {
            status = self.process.try_wait().expect("a status");
            status.is_some()
        });
        status.expect("a status").success()
    }
}

/// Waits for something that comes in a moment.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Namespaces of this thread's own, which its processes and threads share.
fn unshare() -> io::Result<()> {
    let flags = rustix::thread::UnshareFlags::NEWNET | rustix::thread::UnshareFlags::NEWNS;
    // SAFETY: the thread gives up its share of the file system's root, which nothing here changes.
    unsafe { rustix::thread::unshare_unsafe(flags) }?;
    Ok(())
}
