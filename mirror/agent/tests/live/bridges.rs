//! Two Linux bridges with a cable between them, whose ports have the switch's program: the client and D_1 at the first, all
//! others at the second. Copies are in transit from one to the other.

use aya::programs::{
    TcAttachType,
    tc::{self, NlOptions, TcAttachOptions},
};
use trunkline_mirror::{
    layout::Key as Flow,
    switch::{
        SwitchProgram,
        layout::{Copy, Counter, Entry, Key, Port},
    },
};

use crate::hosts::{Host, Namespace, cabled, index, ip, mac, port};

const CABLE: &str = "cable";

pub struct Bridges {
    first: Bridge,
    second: Bridge,
}

struct Bridge {
    namespace: Namespace,
    program: Option<SwitchProgram>,
}

/// The bridges, and as many hosts.
pub fn two(count: u8) -> (Bridges, Vec<Host>) {
    let (first, second) = (Namespace::new(), Namespace::new());
    let at = |number: u8| if number < 2 { &first } else { &second };
    let hosts = cabled(&(0..count).map(at).collect::<Vec<_>>());
    let inside = second.path();
    first.run(|| {
        ip(&format!(
            "link add {CABLE} mtu 1500 type veth peer name {CABLE} mtu 1500 netns {inside}"
        ));
    });
    let of = |namespace: Namespace, numbers: std::ops::Range<u8>| {
        let mut ports: Vec<_> = numbers.map(port).collect();
        ports.push(CABLE.to_owned());
        let program = namespace.run(|| bridged(&ports));
        Bridge {
            namespace,
            program: Some(program),
        }
    };
    let bridges = Bridges {
        first: of(first, 0..2),
        second: of(second, 2..count),
    };
    (bridges, hosts)
}

/// A bridge over ports of this namespace.
fn bridged(ports: &[String]) -> SwitchProgram {
    ip("link add br0 type bridge");
    ip("link set br0 up");
    let mut program = SwitchProgram::load().expect("the kernel takes the program");
    for port in ports {
        ip(&format!("link set {port} master br0 up"));
        tc::qdisc_add_clsact(port).expect("clsact");
        let classifier = program.classifier().expect("a program");
        let options = TcAttachOptions::Netlink(NlOptions::default());
        let done = classifier.attach_with_options(port, TcAttachType::Ingress, options);
        done.expect("attached");
    }
    let mut admitted = program.ports().expect("map");
    let cable = Port { admits: 1 };
    admitted.insert(index(CABLE), cable, 0).expect("room");
    program
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // Where it is attached: interfaces are known by numbers, which mean others elsewhere.
        let program = self.program.take();
        self.namespace.run(|| drop(program));
    }
}

impl Bridge {
    fn announce(&mut self, flow: Flow, by: &str, marked: bool, copies: &[Copy]) {
        let port = self.namespace.run(|| index(by));
        let key = Key {
            flow,
            port,
            marked: marked.into(),
            pad: [0; 3],
        };
        let entry = Entry::new(copies).expect("few enough");
        let mut entries = self.program().entries().expect("map");
        entries.insert(key, entry, 0).expect("room");
    }

    fn program(&mut self) -> &mut SwitchProgram {
        self.program.as_mut().expect("not ended")
    }
}

impl Bridges {
    /// What goes by the first of these connections is copied into all others.
    pub fn copy(&mut self, hops: &[Flow]) {
        let to_host = |number: u8, flow: &Flow, at: &Bridge| Copy {
            flow: *flow,
            port: at.namespace.run(|| index(&port(number))),
            to: mac(number),
            position: number,
            pad: 0,
        };
        let replicas = (2..).zip(&hops[1..]);
        let second = &self.second;
        let copies: Vec<_> = replicas
            .map(|(number, hop)| to_host(number, hop, second))
            .collect();
        let onward = Copy {
            port: self.first.namespace.run(|| index(CABLE)),
            position: 0,
            ..copies[0]
        };
        self.second.announce(hops[0], CABLE, true, &copies);
        self.first.announce(hops[0], &port(0), false, &[onward]);
    }

    /// Copies that came out at replicas, and those that a port did not take; super-segments counted once.
    pub fn copied(&mut self) -> (u64, u64) {
        let all =
            [&mut self.first, &mut self.second].map(|of| of.program().totals().expect("totals"));
        let lost = all
            .iter()
            .map(|totals| totals[Counter::Lost as usize])
            .sum();
        (all[1][Counter::Copied as usize], lost)
    }
}
