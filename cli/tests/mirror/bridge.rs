//! `trunkline mirror switch …` on a real bridge, whose hosts are the far ends of its ports' cables.

use std::io;
use std::mem::MaybeUninit;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::controller::end;
use crate::host::{Agent, Host, until};
use crate::server::{Asked, Server, fine};

/// A request waits no longer than that, so that tests don't.
const WAIT: Duration = Duration::from_millis(300);
pub const NOBODY: &str = "http://127.0.0.1:9";
/// What tells a switch's LLDP from others', and the switch and port that it names.
const ORIGIN: [u8; 16] = [0x02, 0x74, 0x72, 1, 0, 0, 2, 0, 0, 0, 0, 77, 0, 0, 0, 5];

/// A host with a bridge, `br0`, and ports p1, p2 and p3, whose cables end at h1, h2 and h3.
pub struct Bridge {
    pub host: Host,
}

/// The bridge, or the end of the test.
#[macro_export]
macro_rules! bridge_or_skip {
    () => {
        $crate::bridge::Bridge::new($crate::host_or_skip!())
    };
}

impl Bridge {
    pub fn new(host: Host) -> Self {
        // Nothing is to be said on a cable before a test says it.
        for which in ["all", "default"] {
            let path = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
            if std::path::Path::new(&path).exists() {
                std::fs::write(path, "1").expect("a parameter of this namespace");
            }
        }
        let bridge = Self { host };
        bridge.ip("link add br0 address 02:00:00:00:00:b0 type bridge");
        bridge.ip("link set br0 up");
        for number in 1..=3 {
            bridge.port("br0", number);
        }
        bridge
    }

    pub fn ip(&self, words: &str) {
        self.host.shell("ip", words);
    }

    /// Whether the kernel can.
    fn filters_vlans(&self, on: bool) -> bool {
        let words = format!("link set br0 type bridge vlan_filtering {}", u8::from(on));
        let mut ip = std::process::Command::new("ip");
        let done = ip.args(words.split(' ')).output().expect("ip");
        done.status.success()
    }

    pub fn port(&self, bridge: &str, number: u8) {
        self.ip(&format!("link add p{number} type veth peer name h{number}"));
        self.ip(&format!("link set p{number} master {bridge} up"));
        self.ip(&format!("link set h{number} up"));
    }

    pub fn index(&self, name: &str) -> u32 {
        let said = self.host.shell("ip", &format!("-o link show {name}"));
        let (index, _) = said.split_once(':').expect("a number");
        index.parse().expect("a number")
    }

    fn pins(&self) -> String {
        self.host.path("bpf/switch").display().to_string()
    }

    pub fn configure(&self, controller: &str, more: &str) {
        let text = format!(
            "[switch]\nbridge = \"br0\"\nname = \"rack-1\"\ncontroller = \"{controller}\"\npin = \"{}\"\n{more}\n\
             [log]\nlevel = \"info,trunkline_mirror=debug\"\n",
            self.pins()
        );
        std::fs::write(self.host.path("mirror.toml"), text).expect("a configuration");
    }

    fn start(&self) -> Agent {
        self.host
            .start_as(&["switch", "run", "--config", "mirror.toml"])
    }

    /// An agent, attached.
    pub fn agent(&self) -> Agent {
        let agent = self.start();
        until("attached", || agent.log().contains("until stopped"));
        agent
    }

    pub fn status(&self) -> Value {
        let pins = self.pins();
        let said = self
            .host
            .ok(&["switch", "status", "--json", "--pin", &pins]);
        serde_json::from_str(&said).expect("JSON")
    }

    pub fn off(&self) -> String {
        let pins = self.pins();
        self.host.ok(&["switch", "off", "--pin", &pins])
    }

    pub fn traffic_control(&self, port: &str) -> String {
        [
            "qdisc show dev",
            "filter show ingress dev",
            "filter show egress dev",
        ]
        .map(|words| self.host.shell("tc", &format!("{words} {port}")))
        .join("---\n")
    }

    fn all_traffic_control(&self) -> Vec<String> {
        ["p1", "p2", "p3", "br0", "eth0"]
            .map(|port| self.traffic_control(port))
            .to_vec()
    }

    /// The far end of a port's cable.
    fn far(&self, number: u8) -> Cable {
        Cable::new(self.index(&format!("h{number}")))
    }
}

struct Cable(Socket);

impl Cable {
    fn new(index: u32) -> Self {
        const ALL: u16 = 3u16.to_be();
        let socket = Socket::new(
            Domain::PACKET,
            Type::RAW,
            Some(Protocol::from(i32::from(ALL))),
        );
        let socket = socket.expect("a packet socket");
        let mut at = [0u8; 20];
        at[..2].copy_from_slice(&17u16.to_ne_bytes());
        at[2..4].copy_from_slice(&ALL.to_ne_bytes());
        at[4..8].copy_from_slice(&index.to_ne_bytes());
        // SAFETY: struct sockaddr_ll, which is shorter than there is room for.
        let made = unsafe {
            SockAddr::try_init(|storage, length| {
                std::ptr::copy_nonoverlapping(at.as_ptr(), storage.cast(), at.len());
                *length = at.len() as _;
                Ok::<_, io::Error>(())
            })
        };
        let ((), address) = made.expect("an address");
        socket.bind(&address).expect("bound");
        socket.set_read_timeout(Some(WAIT)).expect("set");
        Self(socket)
    }

    fn send(&self, frame: &[u8]) {
        self.0.send(frame).expect("sent");
    }

    /// The next frame that is so, of those that come soon.
    fn hears(&self, is_so: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 2048];
        let end = Instant::now() + WAIT; // there is always LLDP
        while Instant::now() < end
            && let Ok(octets) = self.0.recv(&mut buffer)
        {
            // SAFETY: so many were written.
            let frame: Vec<u8> = buffer[..octets]
                .iter()
                .map(|o| unsafe { o.assume_init() })
                .collect();
            if is_so(&frame) {
                return Some(frame);
            }
        }
        None
    }
}

/// A controller that says what a test wants, all of it each time, and remembers what it was told.
pub struct Controller {
    pub url: String,
    shared: Arc<(Mutex<Said>, Condvar)>,
}

#[derive(Default)]
pub struct Said {
    seen: u64,
    admits: Vec<u32>,
    pub entries: Vec<Value>,
    send: Vec<Value>,
    ports: Vec<Value>,
    requests: Vec<Value>,
}

impl Controller {
    pub fn start() -> Self {
        let shared = Arc::new((Mutex::new(Said::default()), Condvar::new()));
        let answers = shared.clone();
        let server = Server::start(move |asked: &Asked| {
            assert_eq!(asked.line, "POST /v1/mirror-switches/rack-1 HTTP/1.1");
            let request: Value = serde_json::from_str(&asked.body).expect("JSON");
            let (said, changed) = &*answers;
            let mut said = said.lock().expect("a lock");
            said.requests.push(request.clone());
            if let Some(ports) = request["ports"].as_array() {
                said.ports.clone_from(ports);
            }
            if request["controller"] != "one" {
                said.seen += 1;
            }
            if request["wait_ms"] != 0 {
                let before = |said: &mut Said| request["seen"] == said.seen && said.send.is_empty();
                said = changed
                    .wait_timeout_while(said, WAIT, before)
                    .expect("a lock")
                    .0;
            }
            let lldp = |port: &Value| json!({"port": port["number"], "frame": hex(&lldp(9))});
            fine(&json!({
                "controller": "one", "seen": said.seen, "lease_s": 15.0, "base": null, "purge": true,
                "admits": said.admits, "entries": said.entries, "removed": [], "announce": said.ports.is_empty(),
                "lldp": said.ports.iter().map(lldp).collect::<Vec<_>>(), "send": std::mem::take(&mut said.send),
            }))
        });
        Self {
            url: server.url.clone(),
            shared,
        }
    }

    pub fn say(&self, change: impl FnOnce(&mut Said)) {
        let (said, changed) = &*self.shared;
        let mut said = said.lock().expect("a lock");
        change(&mut said);
        said.seen += 1;
        changed.notify_all();
    }

    pub fn was_told(&self, is_so: impl Fn(&Value) -> bool) -> bool {
        let said = self.shared.0.lock().expect("a lock");
        said.requests.iter().any(is_so)
    }

    fn was_told_of_host(&self, port: u32, mac: &str, address: Option<&str>) -> bool {
        let wanted = |host: &Value| {
            host["port"] == port && host["mac"] == mac && host["address"].as_str() == address
        };
        self.was_told(|request| {
            request["hosts"]
                .as_array()
                .is_some_and(|hosts| hosts.iter().any(wanted))
        })
    }

    pub fn forget(&self) {
        self.shared.0.lock().expect("a lock").requests.clear();
    }

    /// The bridge has made what was said last.
    pub fn is_followed(&self) -> bool {
        let said = self.shared.0.lock().expect("a lock");
        let last = said.requests.last();
        last.is_some_and(|request| request["seen"] == said.seen)
    }
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn mac(host: u8) -> [u8; 6] {
    [2, 0, 0, 0, 7, host]
}

fn mac_text(host: u8) -> String {
    mac(host).map(|octet| format!("{octet:02x}")).join(":")
}

/// As of another switch, from a port with this address.
fn lldp(from: u8) -> Vec<u8> {
    let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 0x0e];
    frame.extend(mac(from));
    frame.extend([0x88, 0xcc]);
    frame.extend((127u16 << 9 | ORIGIN.len() as u16).to_be_bytes());
    frame.extend(ORIGIN);
    frame.extend([0, 0]);
    frame
}

/// A host asks who has 10.7.0.1.
fn arp(host: u8) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend(mac(host));
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend(mac(host));
    frame.extend([10, 7, 0, host, 0, 0, 0, 0, 0, 0, 10, 7, 0, 1]);
    frame
}

/// Data from a host to another; what sums it up is left out.
fn segment(from: u8, to: u8, data: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(mac(to));
    frame.extend(mac(from));
    frame.extend([8, 0, 0x45, 0]);
    frame.extend((40 + data.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 7, 0, from, 10, 7, 0, to]);
    // Right, as netfilter drops others at a bridge.
    let sum: u32 = frame[14..34]
        .chunks_exact(2)
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame.extend(40_000u16.to_be_bytes());
    frame.extend(9866u16.to_be_bytes());
    frame.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    frame.extend(data);
    frame
}

/// What host 1 sends to host 2 is copied by port `to` to host 3, as if host 2 had sent it there.
pub fn copies(from: u32, onward: u32, to: u32) -> Value {
    let copy = json!({"source": end("10.7.0.2", 41_000), "destination": end("10.7.0.3", 9866)});
    json!({
        "port": from, "marked": false,
        "source": end("10.7.0.1", 40_000), "destination": end("10.7.0.2", 9866),
        "copies": [
            {"port": onward, "position": 0, "to": null, "connection": null},
            {"port": to, "position": 2, "to": mac_text(3), "connection": copy},
        ],
    })
}

/// Whether it is host 3's copy of data.
fn is_copy(frame: &[u8], data: &[u8]) -> bool {
    frame.ends_with(data)
        && frame[..6] == mac(3)
        && frame[6..12] == [0x02, 0x4d, 0x52, 0, 0, 2]
        && frame[26..34] == [10, 7, 0, 2, 10, 7, 0, 3]
        && frame[34..38] == [0xa0, 0x28, 0x26, 0x8a]
}

#[test]
fn off_puts_a_bridge_s_host_back_as_it_was() {
    let bridge = bridge_or_skip!();
    let before = bridge.all_traffic_control();
    bridge.configure(NOBODY, "");
    let agent = bridge.agent();
    let attached = bridge.all_traffic_control();
    for (port, (now, was)) in attached.iter().zip(&before).enumerate() {
        if port < 3 {
            for expected in ["clsact", "mr_switch", "pref 1 bpf", "direct-action"] {
                assert!(now.contains(expected), "{expected}: {now}");
            }
        } else {
            assert_eq!(now, was, "neither the bridge itself nor other interfaces");
        }
    }
    let status = bridge.status();
    let named = |name| json!({"name": name, "link": false});
    assert_eq!(
        status["ports"],
        json!([named("p1"), named("p2"), named("p3")])
    );
    assert_eq!(
        (&status["agent"], &status["entries"]),
        (&json!(true), &json!([]))
    );
    agent.stop();
    assert_eq!(
        bridge.all_traffic_control(),
        attached,
        "it stays when the agent does not"
    );
    assert_eq!(bridge.status()["agent"], false);
    assert_eq!(bridge.off(), "program taken off p1, p2, p3; pins removed\n");
    assert_eq!(bridge.all_traffic_control(), before);
    assert_eq!(
        bridge.off(),
        "the program was at no port; there were no pins\n"
    );
}

#[test]
fn what_a_bridge_knows_is_told() {
    let bridge = bridge_or_skip!();
    let controller = Controller::start();
    let (one, two, three) = (bridge.far(1), bridge.far(2), bridge.far(3));
    let [p1, p2, p3] = ["p1", "p2", "p3"].map(|name| bridge.index(name));
    bridge.configure(&controller.url, "");
    let agent = bridge.agent();
    let is_port = |port: &Value, number: u32, name: &str| {
        port["number"] == number && port["name"] == name && port["up"] == true
    };
    until("ports", || {
        controller.was_told(|request| {
            request["dpid"] == "00000200000000b0"
                && request["ports"].as_array().is_some_and(|ports| {
                    ports.len() == 3 && is_port(&ports[0], p1, "p1") && is_port(&ports[2], p3, "p3")
                })
        })
    });
    // Others know it by what the controller has it send.
    let is_lldp = |frame: &[u8]| frame[12..14] == [0x88, 0xcc];
    until("LLDP", || one.hears(is_lldp).is_some());
    one.send(&arp(1));
    until("a host, as the bridge has learned it", || {
        controller.was_told_of_host(p1, &mac_text(1), None)
    });
    until("and as it says itself", || {
        controller.was_told_of_host(p1, &mac_text(1), Some("10.7.0.1"))
    });
    two.send(&lldp(8));
    until("another switch", || {
        controller.was_told(|request| {
            request["heard"][0]["port"] == p2 && request["heard"][0]["frame"] == hex(&lldp(8))
        })
    });
    // What is said of hosts is said once, unless they were asked.
    controller.forget();
    one.send(&arp(1));
    controller.say(|said| {
        said.send
            .push(json!({"ports": [p1, p3], "frame": hex(&arp(9))}))
    });
    let is_question = |frame: &[u8]| frame == arp(9);
    until("a question", || three.hears(is_question).is_some());
    assert!(
        two.hears(is_question).is_none(),
        "by the ports that are named alone"
    );
    one.send(&arp(1));
    until("told again", || {
        controller.was_told_of_host(p1, &mac_text(1), Some("10.7.0.1"))
    });
    bridge.ip("link set h3 down");
    until("a port is down", || {
        controller.was_told(|request| request["ports"][2]["up"] == false)
    });
    agent.stop();
    bridge.off();
}

#[test]
fn segments_are_copied_as_the_controller_says_and_on_while_no_agent_runs() {
    let bridge = bridge_or_skip!();
    let controller = Controller::start();
    let (one, two, three) = (bridge.far(1), bridge.far(2), bridge.far(3));
    let [p1, p2, p3] = ["p1", "p2", "p3"].map(|name| bridge.index(name));
    bridge.configure(&controller.url, "");
    let agent = bridge.agent();
    two.send(&arp(2)); // so that the bridge knows where it is
    controller.say(|said| {
        said.entries = vec![copies(p1, p2, p3)];
        said.admits = vec![p2];
    });
    until("followed", || controller.is_followed());
    let arrives = |data: &[u8]| {
        one.send(&segment(1, 2, data));
        let own = two.hears(|frame| frame.ends_with(data) && frame[6..12] == mac(1));
        assert_eq!(
            own,
            Some(segment(1, 2, data)),
            "the client's own goes on as it came"
        );
        three.hears(|frame| frame.ends_with(data))
    };
    let copy = arrives(b"first").expect("a copy");
    assert!(is_copy(&copy, b"first"), "{}", hex(&copy));
    one.send(&segment(1, 2, b"again"));
    let transit =
        two.hears(|frame| frame.ends_with(b"again") && frame[6..12] == [2, 0x4d, 0x52, 0, 0, 0]);
    assert_eq!(
        transit.map(|frame| frame[..6].to_vec()),
        Some(mac(2).to_vec()),
        "in transit"
    );
    let status = bridge.status();
    assert_eq!(
        status["entries"][0]["copies"][1]["destination"],
        "10.7.0.3:9866"
    );
    assert_eq!(status["ports"][1], json!({"name": "p2", "link": true}));
    let shown = bridge
        .host
        .ok(&["switch", "status", "--pin", &bridge.pins()]);
    assert!(
        shown.contains("p2 (another switch)") && shown.contains("p3 10.7.0.3 (2)"),
        "{shown}"
    );
    // A mark counts from another switch alone.
    let mut forged = segment(1, 2, b"forged");
    forged[6..12].copy_from_slice(&[2, 0x4d, 0x52, 0, 0, 0]);
    one.send(&forged);
    assert!(two.hears(|frame| frame.ends_with(b"forged")).is_none());
    until("counted", || bridge.status()["counters"]["forged"] == 1);
    agent.crash();
    assert!(is_copy(&arrives(b"alone").expect("a copy"), b"alone"));
    let agent = bridge.agent();
    until("followed", || controller.is_followed());
    assert!(
        agent
            .log()
            .contains("took over what an agent before has left"),
        "{}",
        agent.log()
    );
    assert!(!agent.log().contains("replaced on"), "{}", agent.log());
    assert!(is_copy(
        &arrives(b"taken over").expect("a copy"),
        b"taken over"
    ));
    controller.say(|said| said.entries.clear());
    until("followed", || controller.is_followed());
    assert_eq!(arrives(b"ended"), None);
    assert_eq!(bridge.status()["entries"], json!([]));
    agent.stop();
    bridge.off();
}

#[test]
fn an_entry_that_can_not_be_made_is_told() {
    let bridge = bridge_or_skip!();
    let controller = Controller::start();
    bridge.configure(&controller.url, "");
    let agent = bridge.agent();
    let mut wrong = copies(bridge.index("p1"), 2, 3);
    wrong["copies"][1]["to"] = json!("nobody");
    controller.say(|said| said.entries = vec![wrong]);
    until("told", || {
        controller.was_told(|request| {
            request["failed"][0]["source"]["port"] == 40_000
                && request["failed"][0]["why"]
                    .as_str()
                    .is_some_and(|why| why.contains("no Ethernet"))
        })
    });
    controller.say(|said| said.entries.clear());
    until("it is not wanted any more", || controller.is_followed());
    controller.forget();
    until("nothing is wrong", || {
        controller.was_told(|request| request["failed"].is_null())
    });
    agent.stop();
    bridge.off();
}

#[test]
fn ports_come_and_go() {
    let bridge = bridge_or_skip!();
    let controller = Controller::start();
    bridge.configure(&controller.url, "");
    let without = bridge.traffic_control("p1");
    let agent = bridge.agent();
    bridge.port("br0", 4);
    until("told", || {
        controller.was_told(|request| {
            request["ports"][3]["name"] == "p4" && request["ports"][3]["up"] == true
        })
    });
    assert!(
        bridge.traffic_control("p4").contains("mr_switch"),
        "before it is told of"
    );
    bridge.ip("link set p1 nomaster");
    until("taken off", || bridge.traffic_control("p1") == without);
    bridge.host.shell("tc", "qdisc del dev p2 clsact");
    until("attached again", || {
        bridge.traffic_control("p2").contains("mr_switch")
    });
    let log = agent.stop();
    assert!(
        log.contains("mr_switch attached to p2: it was not as it should be"),
        "{log}"
    );
    assert_eq!(bridge.off(), "program taken off p2, p3, p4; pins removed\n");
}

#[test]
fn off_ends_the_agent_and_leaves_other_bridges_alone() {
    let bridge = bridge_or_skip!();
    let controller = Controller::start();
    bridge.ip("link add br1 type bridge");
    bridge.port("br1", 4);
    let other = bridge.host.path("bpf/other").display().to_string();
    let text =
        format!("[switch]\nbridge = \"br1\"\ncontroller = \"{NOBODY}\"\npin = \"{other}\"\n");
    std::fs::write(bridge.host.path("other.toml"), text).expect("a configuration");
    let others = bridge
        .host
        .start_as(&["switch", "run", "--config", "other.toml"]);
    until("attached", || others.log().contains("until stopped"));
    let attached = bridge.traffic_control("p4");
    bridge.configure(&controller.url, "");
    let mut agent = bridge.agent();
    until("polled", || {
        controller.was_told(|request| request["seen"] == 1)
    });
    assert_eq!(bridge.off(), "program taken off p1, p2, p3; pins removed\n");
    assert!(agent.ended());
    assert!(
        agent.log().contains("no copies are made here any more"),
        "{}",
        agent.log()
    );
    assert!(controller.was_told(|request| request["leaving"] == true));
    assert_eq!(bridge.traffic_control("p4"), attached);
    others.stop();
    bridge.host.ok(&["switch", "off", "--pin", &other]);
    assert!(!bridge.traffic_control("p4").contains("clsact"));
}

#[test]
fn what_can_not_be_served_is_said() {
    let bridge = bridge_or_skip!();
    bridge.configure(NOBODY, "");
    let run = ["switch", "run", "--config", "mirror.toml"];
    let check = [&run[..], &["--check"]].concat();
    assert_eq!(
        bridge.host.ok(&check),
        "mirror.toml: configuration is valid\n"
    );
    let of_a_host = bridge.host.path("bpf/mirror/layout-0123456789abcdef");
    std::fs::create_dir_all(&of_a_host).expect("a folder");
    let pins = bridge.host.pins().display().to_string();
    let said = bridge.host.fails(&["switch", "off", "--pin", &pins]);
    assert!(
        said.contains("not of a bridge's") && of_a_host.exists(),
        "{said}"
    );
    if bridge.filters_vlans(true) {
        let said = bridge.host.fails(&run);
        assert!(said.contains("bridge br0: it filters VLANs"), "{said}");
        bridge.filters_vlans(false);
    } else {
        println!("skipped: a bridge that filters VLANs, which this kernel has not");
    }
    let agent = bridge.agent();
    let said = bridge.host.fails(&run);
    assert!(
        said.contains("another agent runs with these pins"),
        "{said}"
    );
    bridge.ip("link del br0");
    until("a complaint", || {
        agent.log().contains("bridge br0: no such interface")
    });
    agent.stop();
    let said = bridge.host.fails(&run);
    assert!(
        said.contains("bridge br0: no such interface; there is no bridge here"),
        "{said}"
    );
    bridge.off();
}

#[test]
fn a_bridge_s_numbers_are_served_to_prometheus() {
    use std::io::{Read as _, Write as _};
    let bridge = bridge_or_skip!();
    let controller = Controller::start();
    bridge.configure(&controller.url, "listen = \"127.0.0.1:0\"");
    let agent = bridge.agent();
    let log = agent.log();
    let rest = log
        .split("http://")
        .find_map(|rest| rest.split_once("/metrics"));
    let at = rest.expect("an address").0.to_owned();
    let page = || {
        let mut stream = std::net::TcpStream::connect(&at).expect("a connection");
        let head = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).expect("sent");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("a page");
        page
    };
    until("counted", || {
        let page = page();
        [
            "trunkline_mirror_switch_ports 3\n",
            "trunkline_mirror_switch_controller_up 1\n",
        ]
        .iter()
        .all(|expected| page.contains(expected))
    });
    agent.stop();
    bridge.off();
}
