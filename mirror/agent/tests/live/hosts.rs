//! Hosts as network namespaces without names, each with one cable to a switch: gone when the test ends, however it ends.

use std::{
    ffi::CString,
    fs::{self, File},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    process::{Command, id},
    thread::{self, JoinHandle},
};

/// A network namespace.
pub struct Namespace(File);

impl Namespace {
    pub fn new() -> Self {
        thread::spawn(|| {
            // SAFETY: a plain system call, for this thread alone.
            succeeded(unsafe { libc::unshare(libc::CLONE_NEWNET) });
            // Nothing is to be said on a cable before a test says it.
            for (name, value) in [
                ("accept_dad", "0"),
                ("addr_gen_mode", "1"),
                ("router_solicitations", "0"),
            ] {
                set(&format!("ipv6/conf/default/{name}"), value);
            }
            Self(File::open("/proc/thread-self/ns/net").expect("this thread's namespace"))
        })
        .join()
        .expect("a namespace")
    }

    /// As `ip` takes it.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", id(), self.0.as_raw_fd())
    }

    /// Runs `work` inside, in a thread of its own, as do those that it starts.
    pub fn start<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let inside = self.0.try_clone().expect("a descriptor");
        thread::spawn(move || {
            enter(&inside);
            work()
        })
    }

    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                enter(&self.0);
                work()
            });
            inside.join().expect("work in a namespace")
        })
    }
}

fn enter(namespace: &File) {
    // SAFETY: a plain system call, for this thread alone.
    succeeded(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) });
}

pub fn succeeded(outcome: i32) -> i32 {
    assert!(outcome >= 0, "{}", io::Error::last_os_error());
    outcome
}

fn set(name: &str, value: &str) {
    let path = format!("/proc/sys/net/{name}");
    fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {error}"));
}

pub fn ip(words: &str) {
    command("ip", words);
}

/// The number of an interface of this thread's namespace.
pub fn index(interface: &str) -> u32 {
    let name = CString::new(interface).expect("a name");
    // SAFETY: a plain call; the name lives through it.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    assert_ne!(index, 0, "{interface}: {}", io::Error::last_os_error());
    index
}

fn command(name: &str, words: &str) {
    let said = Command::new(name)
        .args(words.split(' '))
        .output()
        .expect("it runs");
    let errors = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{name} {words}: {errors}");
}

/// A host at the switch's port of the same number; the client has 0, D_j j.
pub struct Host {
    pub namespace: Namespace,
    pub number: u8,
}

pub fn address(number: u8, v6: bool) -> IpAddr {
    let last = 1 + number;
    if v6 {
        Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, last.into()).into()
    } else {
        Ipv4Addr::new(10, 9, 0, last).into()
    }
}

pub fn mac(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, 1 + number]
}

fn mac_text(number: u8) -> String {
    mac(number).map(|octet| format!("{octet:02x}")).join(":")
}

/// The switch's end of a host's cable.
pub fn port(number: u8) -> String {
    format!("port{number}")
}

/// `count` hosts that know one another, cabled to ports in `switch`, which reads frames as they are.
pub fn hosts(switch: &Namespace, count: u8) -> Vec<Host> {
    let hosts = cabled(&vec![switch; count.into()]);
    for host in &hosts {
        host.namespace.run(|| no_checksum_offload("eth0"));
    }
    hosts
}

/// Hosts that know one another, each cabled to a port in the namespace of its switch.
pub fn cabled(switches: &[&Namespace]) -> Vec<Host> {
    let count = switches.len() as u8;
    let hosts = (0..count).zip(switches).map(|(number, switch)| {
        let namespace = Namespace::new();
        let (port, inside) = (port(number), namespace.path());
        switch.run(|| {
            ip(&format!(
                "link add {port} mtu 1500 type veth peer name eth0 address {} mtu 1500 netns {inside}",
                mac_text(number)
            ));
            ip(&format!("link set {port} up"));
        });
        namespace.run(|| {
            ip("link set lo up");
            ip(&format!(
                "address add {}/24 dev eth0",
                address(number, false)
            ));
            ip(&format!("address add {}/64 dev eth0", address(number, true)));
            ip("link set eth0 up");
            for other in (0..count).filter(|other| *other != number) {
                for v6 in [false, true] {
                    ip(&format!(
                        "neighbour add {} lladdr {} dev eth0 nud permanent",
                        address(other, v6),
                        mac_text(other)
                    ));
                }
            }
        });
        Host { namespace, number }
    });
    hosts.collect()
}

impl Host {
    /// What it sends goes at this rate.
    pub fn slow_down(&self, rate: &str) {
        let words = format!("qdisc add dev eth0 root tbf rate {rate} burst 64kb latency 50ms");
        self.namespace.run(|| command("tc", &words));
    }
}

/// As `ethtool -K … tx off`: the switch reads frames, and can't hand on checksums that are still to be computed.
fn no_checksum_offload(interface: &str) {
    const SET_TRANSMIT_CHECKSUMS: u32 = 0x17;
    let mut value = [SET_TRANSMIT_CHECKSUMS, 0];
    // SAFETY: plain system calls; the request is filled in as its kind wants, and what it points at outlives it.
    unsafe {
        let socket = succeeded(libc::socket(
            libc::AF_INET,
            libc::SOCK_DGRAM | libc::SOCK_CLOEXEC,
            0,
        ));
        let socket = OwnedFd::from_raw_fd(socket);
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        succeeded(libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &request));
    }
}
