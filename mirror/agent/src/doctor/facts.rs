//! What the checks go by, read from this host.

use std::path::{Path, PathBuf};
use std::{fs, io};

use aya::programs::tc::qdisc_add_clsact;
use rustix::system::uname;

use super::routes::{self, Route};
use crate::interfaces::{Interface, interfaces};
use crate::pins::is_bpf;
use crate::program::Program;
use crate::tc::{self, Hook, PRIORITY};

const SYSCTL: &str = "/proc/sys/net/ipv4";

/// Of this host, in this network namespace.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The kernel's release.
    pub kernel: String,
    /// The machine's architecture.
    pub machine: String,
    /// Whether the kernel tells of its types.
    pub btf: bool,
    /// Effective capabilities, one bit for each.
    pub capabilities: u64,
    /// Where programs and maps would be pinned.
    pub pin: PathBuf,
    /// Whether that is in a BPF filesystem.
    pub bpf_filesystem: bool,
    /// Whether there can be a clsact.
    pub clsact: Clsact,
    /// Why the kernel does not take the program.
    pub program: Option<String>,
    /// The congestion control of connections whose route says none.
    pub congestion: String,
    /// The one to use in its place.
    pub other_congestion: String,
    /// Routes by the interfaces.
    pub routes: Vec<Route>,
    /// Least, default and most of a receive buffer, in bytes.
    pub receive_buffer: [u64; 3],
    /// Whether receive buffers grow.
    pub autotuning: bool,
    /// `tcp_frto`.
    pub frto: u32,
    /// Whether connections have timestamps.
    pub timestamps: bool,
    /// The interfaces that were named, or all that are up.
    pub interfaces: Vec<InterfaceFacts>,
}

/// What came of an attempt to make a clsact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clsact {
    /// The kernel has it.
    There,
    /// The kernel refuses it, for this reason.
    Refused(String),
    /// This user may not make the network namespace to try it in. An agent needs none.
    NotProbed,
}

/// Of one interface.
#[derive(Clone, Debug)]
pub struct InterfaceFacts {
    /// As it was named.
    pub name: String,
    /// None where there is no such interface.
    pub interface: Option<Interface>,
    /// Filters that see packets before ours would.
    pub filters_before: Vec<String>,
}

impl Facts {
    /// Reads them. Without names, of all interfaces that are up but the loopback.
    #[must_use]
    pub fn read(pin: &Path, names: &[String]) -> Self {
        let all = interfaces().unwrap_or_default();
        let up = all.iter().filter(|i| i.up && !i.loopback);
        let names: Vec<String> = match names {
            [] => up.map(|interface| interface.name.clone()).collect(),
            names => names.to_vec(),
        };
        let interfaces: Vec<_> = names.into_iter().map(|name| of(name, &all)).collect();
        let indices: Vec<u32> = interfaces
            .iter()
            .filter_map(|i| i.interface.as_ref().map(|i| i.index))
            .collect();
        let system = uname();
        let there = pin.ancestors().find(|path| path.exists());
        let available = sysctl("tcp_available_congestion_control");
        let other = match available.split_whitespace().any(|name| name == "cubic") {
            true => "cubic",
            false => "reno",
        };
        Self {
            kernel: system.release().to_string_lossy().into_owned(),
            machine: system.machine().to_string_lossy().into_owned(),
            btf: Path::new("/sys/kernel/btf/vmlinux").exists(),
            capabilities: capabilities(),
            pin: pin.to_owned(),
            bpf_filesystem: is_bpf(there.unwrap_or(Path::new("/"))),
            clsact: probe_clsact(),
            program: Program::load().err().map(|error| error.to_string()),
            congestion: sysctl("tcp_congestion_control"),
            other_congestion: other.to_owned(),
            routes: routes::routes(&indices).unwrap_or_default(),
            receive_buffer: receive_buffer(),
            autotuning: sysctl("tcp_moderate_rcvbuf") == "1",
            frto: sysctl("tcp_frto").parse().unwrap_or(0),
            timestamps: sysctl("tcp_timestamps") != "0",
            interfaces,
        }
    }
}

fn of(name: String, all: &[Interface]) -> InterfaceFacts {
    let interface = all.iter().find(|interface| interface.name == name).cloned();
    let mut filters_before = Vec::new();
    if let Some(interface) = &interface {
        for hook in Hook::ALL {
            let filters = tc::filters(interface.index, hook).unwrap_or_default();
            let before = filters
                .iter()
                .take_while(|filter| filter.priority <= PRIORITY && !filter.is_ours(hook));
            filters_before.extend(before.map(|filter| {
                let direction = match hook {
                    Hook::Ingress | Hook::Port => "ingress",
                    Hook::Egress => "egress",
                };
                format!(
                    "{direction} pref {} {} {}",
                    filter.priority, filter.kind, filter.name
                )
                .trim_end()
                .to_owned()
            }));
        }
    }
    InterfaceFacts {
        name,
        interface,
        filters_before,
    }
}

fn sysctl(name: &str) -> String {
    let text = fs::read_to_string(Path::new(SYSCTL).join(name));
    text.unwrap_or_default().trim().to_owned()
}

fn receive_buffer() -> [u64; 3] {
    let text = sysctl("tcp_rmem");
    let mut numbers = text.split_whitespace().map(|n| n.parse().unwrap_or(0));
    [(); 3].map(|()| numbers.next().unwrap_or(0))
}

fn capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0)
}

/// Tries a clsact in a network namespace of its own, so that nothing changes here.
fn probe_clsact() -> Clsact {
    let tried = std::thread::spawn(|| {
        // SAFETY: this thread alone leaves for a new network namespace, and ends.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            return without_namespace(&io::Error::last_os_error());
        }
        match qdisc_add_clsact("lo") {
            Ok(()) => Clsact::There,
            Err(error) => Clsact::Refused(error.to_string()),
        }
    });
    let failed = |_| Clsact::Refused(String::from("the attempt failed"));
    tried.join().unwrap_or_else(failed)
}

/// Why there is no network namespace to try it in. That takes CAP_SYS_ADMIN, which nothing else here does.
fn without_namespace(error: &io::Error) -> Clsact {
    match error.raw_os_error() {
        Some(libc::EPERM) => Clsact::NotProbed,
        _ => Clsact::Refused(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_who_may_make_no_namespace_has_no_clsact_refused() {
        let of = |number| without_namespace(&io::Error::from_raw_os_error(number));
        assert_eq!(of(libc::EPERM), Clsact::NotProbed);
        assert!(matches!(of(libc::ENOSPC), Clsact::Refused(why) if why.contains("No space")));
    }
}
