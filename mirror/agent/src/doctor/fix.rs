//! Makes the changes that the checks ask for.

use std::path::Path;
use std::{fs, io};

use rustix::mount::{MountFlags, mount};

use super::Fix;
use crate::interfaces::{interface, set_gso_max_size};

/// Where the BPF filesystem is, by custom.
pub const BPF_FILESYSTEM: &str = "/sys/fs/bpf";

/// Makes a change; what was done, for people.
///
/// # Errors
/// The system refuses.
pub fn fix(fix: &Fix) -> io::Result<String> {
    match fix {
        Fix::MountBpf => {
            let none = None::<&std::ffi::CStr>;
            mount("bpf", BPF_FILESYSTEM, "bpf", MountFlags::empty(), none)?;
            Ok(format!(
                "mounted a BPF filesystem at {BPF_FILESYSTEM}; put it into /etc/fstab"
            ))
        }
        Fix::Sysctl { name, value } => {
            sysctl(name, value)?;
            let more = match *name {
                super::RECEIVE_BUFFER => ", and start the DataNode again",
                _ => "",
            };
            Ok(format!(
                "set {name} to {value}; put it into /etc/sysctl.d{more}"
            ))
        }
        Fix::Congestion { algorithm, routes } => {
            let name = "net.ipv4.tcp_congestion_control";
            let all_routes = routes.iter().all(|route| route.congestion.is_none());
            if all_routes && sysctl(name, algorithm).is_ok() {
                return Ok(format!(
                    "set {name} to {algorithm}; put it into /etc/sysctl.d"
                ));
            }
            for route in routes {
                route.set_congestion(algorithm)?;
            }
            let names: Vec<_> = routes.iter().map(|route| route.text.as_str()).collect();
            Ok(format!(
                "set congctl {algorithm} for {}; put it where routes are set",
                names.join(", ")
            ))
        }
        Fix::SuperSegments { interface: name } => {
            let there = interface(name)?;
            set_gso_max_size(&there, super::SUPER_SEGMENT)?;
            Ok(format!(
                "set gso_max_size of {name} to {}",
                super::SUPER_SEGMENT
            ))
        }
    }
}

fn sysctl(name: &str, value: &str) -> io::Result<()> {
    fs::write(Path::new("/proc/sys").join(name.replace('.', "/")), value)
}
