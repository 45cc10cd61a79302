//! Whether this host can do mirrored replication, and what to change. The checks are pure; they go by [`Facts`].

mod facts;
mod fix;
mod routes;

use serde::Serialize;

pub use facts::{Clsact, Facts, InterfaceFacts};
pub use fix::fix;
pub use routes::Route;

use crate::layout::MARK;

/// The first kernel that takes the program.
const KERNEL: (u32, u32) = (5, 15);
/// What a receiver's window must be able to grow to, in bytes, for copies to be within it.
const WINDOW: u64 = 8 << 20;
/// What a connection's receive buffer must begin with, in bytes: half of it is window, and with two packets of 512 KiB in it
/// nearly no copy comes beyond it, although a DataNode passes on whole packets only.
const FIRST_BUFFER: u64 = 2 << 20;
/// Longest super-segment but for BIG TCP's, in bytes.
const SUPER_SEGMENT: u32 = 65_536;
const MTU: u32 = 1500;
/// Least, default and most of a receive buffer. A connection that a DataNode takes has the default of when it began to listen.
const RECEIVE_BUFFER: &str = "net.ipv4.tcp_rmem";
const CAP_NET_ADMIN: u64 = 1 << 12;
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;
/// Interfaces that hide from their own filters what passes the cable.
const STACKED: [&str; 6] = ["bond", "team", "bridge", "vlan", "macvlan", "ipvlan"];

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Not looked at.
    Note,
    /// Works, and slower or with less saved.
    Warning,
    /// Does not work.
    Error,
}

/// What was found of one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub check: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub found: String,
    /// What to do, where there is something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// What `--fix` would do.
    #[serde(skip)]
    pub fix: Option<Fix>,
}

/// A change that `--fix` makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// Mount a BPF filesystem at /sys/fs/bpf.
    MountBpf,
    /// Write a kernel parameter.
    Sysctl {
        /// Its name, with dots.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// Have connections use another congestion control: all, or, where that is refused, those by these routes.
    Congestion {
        /// Its name.
        algorithm: String,
        /// The routes.
        routes: Vec<Route>,
    },
    /// Lower the size of an interface's super-segments.
    SuperSegments {
        /// Its name.
        interface: String,
    },
}

fn ok(check: &'static str, found: impl Into<String>) -> Finding {
    Finding {
        check,
        level: Level::Ok,
        found: found.into(),
        remedy: None,
        fix: None,
    }
}

impl Finding {
    fn level(mut self, level: Level, remedy: impl Into<String>) -> Self {
        self.level = level;
        self.remedy = Some(remedy.into());
        self
    }

    fn fixed_by(mut self, fix: Fix) -> Self {
        self.fix = Some(fix);
        self
    }
}

/// What is right and wrong on a host.
#[must_use]
pub fn check(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![
        kernel(facts),
        btf(facts),
        capabilities(facts),
        pins(facts),
        clsact(facts),
        program(facts),
        congestion(facts),
        window(facts),
        autotuning(facts),
        frto(facts),
        timestamps(facts),
    ];
    if facts.interfaces.is_empty() {
        findings.push(ok("interfaces", "none was named or is up").level(
            Level::Error,
            "name one with --interface, or the agent's file with --config",
        ));
    }
    findings.extend(facts.interfaces.iter().flat_map(interface));
    findings
}

fn kernel(facts: &Facts) -> Finding {
    let found = ok(
        "kernel",
        format!("Linux {} on {}", facts.kernel, facts.machine),
    );
    let mut numbers = facts.kernel.split(['.', '-']).map_while(|n| n.parse().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if facts.machine != "x86_64" {
        return found.level(Level::Warning, "the program is tested on x86-64 alone");
    }
    match version >= KERNEL {
        true => found,
        false => found.level(Level::Error, "it takes Linux 5.15 or newer"),
    }
}

fn btf(facts: &Facts) -> Finding {
    match facts.btf {
        true => ok("btf", "the kernel tells of its types"),
        false => ok("btf", "no /sys/kernel/btf/vmlinux").level(
            Level::Error,
            "use a kernel with CONFIG_DEBUG_INFO_BTF, as distributions' are",
        ),
    }
}

fn capabilities(facts: &Facts) -> Finding {
    let has = |capability: u64| facts.capabilities & capability != 0;
    let may_load = has(CAP_SYS_ADMIN) || (has(CAP_BPF) && has(CAP_PERFMON));
    match may_load && has(CAP_NET_ADMIN) {
        true => ok(
            "capabilities",
            "this user may load and attach eBPF programs",
        ),
        false => ok(
            "capabilities",
            "this user may not load and attach eBPF programs",
        )
        .level(
            Level::Error,
            "run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN",
        ),
    }
}

fn pins(facts: &Facts) -> Finding {
    let pin = facts.pin.display();
    match facts.bpf_filesystem {
        true => ok("bpffs", format!("{pin} is in a BPF filesystem")),
        false => {
            let finding = ok("bpffs", format!("{pin} is in no BPF filesystem")).level(
                Level::Error,
                "mount -t bpf bpf /sys/fs/bpf, and name a folder there with agent.pin",
            );
            match facts.pin.starts_with(fix::BPF_FILESYSTEM) {
                true => finding.fixed_by(Fix::MountBpf),
                false => finding,
            }
        }
    }
}

fn clsact(facts: &Facts) -> Finding {
    match &facts.clsact {
        Clsact::There => ok("clsact", "the kernel has it"),
        Clsact::NotProbed => Finding {
            level: Level::Note,
            ..ok("clsact", "not probed (needs CAP_SYS_ADMIN)")
        },
        Clsact::Refused(error) => ok("clsact", format!("the kernel refuses it: {error}")).level(
            Level::Error,
            "use a kernel with CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_BPF (modprobe sch_ingress cls_bpf)",
        ),
    }
}

fn program(facts: &Facts) -> Finding {
    match &facts.program {
        None => ok("program", "the kernel takes the eBPF program"),
        Some(error) => ok("program", error.clone()).level(
            Level::Error,
            "see the checks above, or report the kernel's words",
        ),
    }
}

fn congestion(facts: &Facts) -> Finding {
    let slow = |algorithm: &str| algorithm.starts_with("bbr");
    let routes: Vec<&Route> = facts
        .routes
        .iter()
        .filter(|route| slow(route.congestion.as_deref().unwrap_or(&facts.congestion)))
        .collect();
    if routes.is_empty() {
        let found = match slow(&facts.congestion) {
            true => format!(
                "{}, and another on the routes of these interfaces",
                facts.congestion
            ),
            false => facts.congestion.clone(),
        };
        return ok("congestion_control", found);
    }
    let by = routes
        .iter()
        .map(|route| route.text.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let found = format!(
        "{} by {by}: it takes virtual sending for a fast path, and halves the rate",
        facts.congestion
    );
    let algorithm = facts.other_congestion.clone();
    let remedy = format!(
        "sysctl -w net.ipv4.tcp_congestion_control={algorithm}, or `ip route change … congctl {algorithm}` for these routes"
    );
    ok("congestion_control", found)
        .level(Level::Warning, remedy)
        .fixed_by(Fix::Congestion {
            algorithm,
            routes: routes.into_iter().cloned().collect(),
        })
}

fn window(facts: &Facts) -> Finding {
    let [least, default, most] = facts.receive_buffer;
    let found = ok("tcp_rmem", format!("{least} {default} {most}"));
    if default >= FIRST_BUFFER && default.max(most) >= WINDOW {
        return found;
    }
    let value = format!("{least} {} {}", default.max(FIRST_BUFFER), most.max(WINDOW));
    let remedy = format!(
        "copies beyond a receiver's window are dropped, and packets of 512 KiB are to fit it twice; sysctl -w net.ipv4.tcp_rmem=\"{value}\", then start the DataNode again"
    );
    found.level(Level::Warning, remedy).fixed_by(Fix::Sysctl {
        name: RECEIVE_BUFFER,
        value,
    })
}

fn autotuning(facts: &Facts) -> Finding {
    let [_, default, _] = facts.receive_buffer;
    let check = "tcp_moderate_rcvbuf";
    if facts.autotuning || default >= WINDOW {
        let found = match facts.autotuning {
            true => "on: receive buffers grow",
            false => "off, and receive buffers are large from the beginning",
        };
        return ok(check, found);
    }
    ok(check, "off: receive buffers do not grow")
        .level(
            Level::Warning,
            "copies beyond a receiver's window are dropped; sysctl -w net.ipv4.tcp_moderate_rcvbuf=1",
        )
        .fixed_by(Fix::Sysctl {
            name: "net.ipv4.tcp_moderate_rcvbuf",
            value: String::from("1"),
        })
}

fn timestamps(facts: &Facts) -> Finding {
    match facts.timestamps {
        true => ok("tcp_timestamps", "on"),
        false => ok(
            "tcp_timestamps",
            "off: where many ACKs are lost at a stretch, a write can stand still",
        )
        .level(Level::Error, "sysctl -w net.ipv4.tcp_timestamps=1")
        .fixed_by(Fix::Sysctl {
            name: "net.ipv4.tcp_timestamps",
            value: String::from("1"),
        }),
    }
}

fn frto(facts: &Facts) -> Finding {
    match facts.frto {
        0 => ok("tcp_frto", "off"),
        _ => ok(
            "tcp_frto",
            "on: an ACK of a copy passes for one of what was sent before, and undoes a recovery",
        )
        .level(Level::Warning, "sysctl -w net.ipv4.tcp_frto=0")
        .fixed_by(Fix::Sysctl {
            name: "net.ipv4.tcp_frto",
            value: String::from("0"),
        }),
    }
}

fn interface(facts: &InterfaceFacts) -> Vec<Finding> {
    let Some(interface) = &facts.interface else {
        let missing = ok("interface", format!("{}: no such interface", facts.name));
        return vec![missing.level(
            Level::Error,
            "name another with agent.interfaces or --interface",
        )];
    };
    let name = &facts.name;
    let mut findings = Vec::new();
    let what = interface.kind.as_deref().unwrap_or("NIC");
    let there = ok(
        "interface",
        format!("{name}: {what}, MTU {}", interface.mtu),
    );
    findings.push(if !interface.up {
        there.level(Level::Error, format!("ip link set {name} up"))
    } else if STACKED.contains(&what) || interface.master.is_some() {
        let remedy = "use an interface that is no bond, bridge, VLAN, or port of one: what passes another port is not seen";
        there.level(Level::Error, remedy)
    } else if interface.addresses.is_empty() {
        there.level(Level::Error, format!("{name} has no address by which DataNodes are reached"))
    } else if interface.mtu < MTU {
        let remedy = "all hosts need one MTU: copies of larger segments do not fit";
        there.level(Level::Warning, remedy)
    } else {
        there
    });
    if interface.mac.starts_with(&MARK) {
        let mac: Vec<_> = interface.mac.iter().map(|b| format!("{b:02x}")).collect();
        let found = format!("{name}: {} has the mark of copies", mac.join(":"));
        findings.push(ok("address", found).level(
            Level::Error,
            format!("give {name} another Ethernet address"),
        ));
    }
    let size = interface
        .gso_max_size
        .max(interface.gso_ipv4_max_size.unwrap_or(0));
    let segments = ok("gso_max_size", format!("{name}: {size} bytes"));
    findings.push(match size > SUPER_SEGMENT {
        false => segments,
        true => segments
            .level(
                Level::Warning,
                format!("of longer ones one hole makes a whole one go, and over IPv6 they carry a header that is not read, so that flows fall back (over IPv4 beyond 621,568 bytes alone); ip link set dev {name} gso_max_size {SUPER_SEGMENT}"),
            )
            .fixed_by(Fix::SuperSegments {
                interface: name.clone(),
            }),
    });
    if !facts.filters_before.is_empty() {
        let found = format!(
            "{name}: before mirrored replication's: {}",
            facts.filters_before.join(", ")
        );
        let remedy =
            "what these let pass or drop by themselves is not seen; give them a preference above 1";
        findings.push(ok("filters", found).level(Level::Warning, remedy));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interfaces::Interface;
    use std::net::IpAddr;
    use std::path::PathBuf;

    fn nic() -> Interface {
        Interface {
            index: 2,
            name: "eth0".into(),
            up: true,
            mtu: 1500,
            gso_max_size: 65_536,
            mac: vec![2, 0, 0, 0, 0, 1],
            addresses: vec![IpAddr::from([10, 0, 0, 1])],
            ..Interface::default()
        }
    }

    fn fine() -> Facts {
        Facts {
            kernel: "6.1.0-18-amd64".into(),
            machine: "x86_64".into(),
            btf: true,
            capabilities: u64::MAX,
            pin: PathBuf::from("/sys/fs/bpf/trunkline-mirror"),
            bpf_filesystem: true,
            clsact: Clsact::There,
            program: None,
            congestion: "cubic".into(),
            other_congestion: "cubic".into(),
            routes: vec![Route::default()],
            receive_buffer: [4096, 2 << 20, 8 << 20],
            autotuning: true,
            frto: 0,
            timestamps: true,
            interfaces: vec![InterfaceFacts {
                name: "eth0".into(),
                interface: Some(nic()),
                filters_before: vec![],
            }],
        }
    }

    fn of(facts: &Facts, what: &str) -> Finding {
        let all = check(facts);
        all.iter()
            .find(|f| f.check == what)
            .unwrap_or_else(|| panic!("{what}: {all:?}"))
            .clone()
    }

    #[test]
    fn a_host_as_it_should_be_has_nothing_to_change() {
        let all = check(&fine());
        assert!(
            all.iter().all(|f| f.level == Level::Ok && f.fix.is_none()),
            "{all:?}"
        );
    }

    #[test]
    fn kernels_are_told_by_their_number() {
        for (kernel, level) in [
            ("5.15.0-25-generic", Level::Ok),
            ("5.14.9", Level::Error),
            ("6.1.0", Level::Ok),
            ("10.0", Level::Ok),
            ("4.19.0", Level::Error),
            ("strange", Level::Error),
        ] {
            let mut facts = fine();
            facts.kernel = kernel.into();
            assert_eq!(of(&facts, "kernel").level, level, "{kernel}");
        }
    }

    #[test]
    fn a_user_needs_all_capabilities_or_the_old_one() {
        for (capabilities, level) in [
            (CAP_BPF | CAP_PERFMON | CAP_NET_ADMIN, Level::Ok),
            (CAP_SYS_ADMIN | CAP_NET_ADMIN, Level::Ok),
            (CAP_BPF | CAP_PERFMON, Level::Error),
            (CAP_BPF | CAP_NET_ADMIN, Level::Error),
            (0, Level::Error),
        ] {
            let mut facts = fine();
            facts.capabilities = capabilities;
            assert_eq!(of(&facts, "capabilities").level, level, "{capabilities:x}");
        }
    }

    #[test]
    fn bbr_is_found_by_route() {
        let mut facts = fine();
        facts.congestion = "bbr".into();
        let finding = of(&facts, "congestion_control");
        assert_eq!(finding.level, Level::Warning);
        assert!(
            matches!(finding.fix, Some(Fix::Congestion { algorithm, routes }) if algorithm == "cubic" && routes.len() == 1)
        );
        facts.routes[0].congestion = Some("cubic".into());
        assert_eq!(of(&facts, "congestion_control").level, Level::Ok);
        facts.congestion = "cubic".into();
        facts.routes[0].congestion = Some("bbr".into());
        assert_eq!(of(&facts, "congestion_control").level, Level::Warning);
    }

    fn sysctls(facts: &Facts) -> Vec<(&'static str, String)> {
        let fixes = check(facts).into_iter().filter_map(|finding| finding.fix);
        fixes
            .map(|fix| match fix {
                Fix::Sysctl { name, value } => (name, value),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn windows_must_be_able_to_grow_and_begin_with_room_for_packets() {
        const SIZES: &str = "net.ipv4.tcp_rmem";
        const GROW: (&str, &str) = ("net.ipv4.tcp_moderate_rcvbuf", "1");
        for (buffer, autotuning, fixes) in [
            ([4096, 2 << 20, 8 << 20], true, vec![]),
            ([4096, 8 << 20, 8 << 20], false, vec![]),
            ([4096, 8 << 20, 6 << 20], true, vec![]),
            ([4096, 2 << 20, 8 << 20], false, vec![GROW]),
            (
                [4096, 131_072, 6_291_456],
                true,
                vec![(SIZES, "4096 2097152 8388608")],
            ),
            (
                [4096, 131_072, 32 << 20],
                true,
                vec![(SIZES, "4096 2097152 33554432")],
            ),
            (
                [4096, 4 << 20, 6 << 20],
                true,
                vec![(SIZES, "4096 4194304 8388608")],
            ),
            (
                [4096, 131_072, 6_291_456],
                false,
                vec![(SIZES, "4096 2097152 8388608"), GROW],
            ),
        ] {
            let mut facts = fine();
            (facts.receive_buffer, facts.autotuning) = (buffer, autotuning);
            let found = sysctls(&facts);
            let found: Vec<_> = found
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect();
            assert_eq!(found, fixes, "{buffer:?} {autotuning}");
        }
    }

    #[test]
    fn connections_without_timestamps_are_an_error() {
        let mut facts = fine();
        facts.timestamps = false;
        assert_eq!(of(&facts, "tcp_timestamps").level, Level::Error);
        let wanted = ("net.ipv4.tcp_timestamps", String::from("1"));
        assert_eq!(sysctls(&facts), [wanted]);
    }

    #[test]
    fn what_could_not_be_looked_at_is_no_error() {
        let mut facts = fine();
        facts.clsact = Clsact::NotProbed;
        let finding = of(&facts, "clsact");
        assert_eq!((finding.level, finding.fix), (Level::Note, None));
        assert!(finding.found.contains("CAP_SYS_ADMIN"), "{}", finding.found);
        facts.clsact = Clsact::Refused("No such file".into());
        assert_eq!(of(&facts, "clsact").level, Level::Error);
    }

    #[test]
    fn interfaces_that_do_not_do_are_named() {
        type Change = fn(&mut Interface);
        let bad: [(Change, &str, Level); 7] = [
            (|i| i.up = false, "interface", Level::Error),
            (|i| i.kind = Some("bond".into()), "interface", Level::Error),
            (|i| i.master = Some(4), "interface", Level::Error),
            (|i| i.addresses.clear(), "interface", Level::Error),
            (|i| i.mtu = 1400, "interface", Level::Warning),
            (
                |i| i.mac = vec![0x02, 0x4d, 0x52, 0, 0, 1],
                "address",
                Level::Error,
            ),
            (|i| i.gso_max_size = 524_280, "gso_max_size", Level::Warning),
        ];
        for (change, what, level) in bad {
            let mut facts = fine();
            let interface = facts.interfaces[0].interface.as_mut().expect("one");
            change(interface);
            let finding = of(&facts, what);
            assert_eq!(finding.level, level, "{finding:?}");
            assert!(
                finding.found.starts_with("eth0") && finding.remedy.is_some(),
                "{finding:?}"
            );
        }
        let mut facts = fine();
        facts.interfaces[0].interface = None;
        assert!(of(&facts, "interface").found.contains("no such interface"));
        facts.interfaces.clear();
        assert_eq!(of(&facts, "interfaces").level, Level::Error);
    }

    #[test]
    fn only_what_is_in_the_usual_place_is_mounted() {
        let mut facts = fine();
        facts.bpf_filesystem = false;
        assert_eq!(of(&facts, "bpffs").fix, Some(Fix::MountBpf));
        facts.pin = PathBuf::from("/run/elsewhere");
        let finding = of(&facts, "bpffs");
        assert_eq!((finding.level, finding.fix), (Level::Error, None));
    }
}
