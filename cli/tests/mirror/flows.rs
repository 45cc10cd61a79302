//! Entries follow what the controller lists, on real connections.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::thread;

use serde_json::{Value, json};
use trunkline_mirror::layout::FLOWS;

use crate::controller::{Controller, end, second};
use crate::host::{Agent, Host, until};
use crate::host_or_skip;

fn pairs(flows: &[(&str, &str)]) -> Vec<(String, String)> {
    flows
        .iter()
        .map(|(a, b)| ((*a).into(), (*b).into()))
        .collect()
}

#[test]
fn entries_are_made_when_listed_and_forgotten_when_not() {
    let host = host_or_skip!();
    let controller = Controller::start();
    host.configure(&controller.url, "forget = \"1s\"");
    let agent = host.agent();
    assert_eq!(host.flows(), []);
    controller.list(vec![second("a")]);
    until("entries", || {
        host.flows() == pairs(&[("receive", "new"), ("send", "new")])
    });
    until("seen", || {
        controller
            .last()
            .is_some_and(|request| request["seen"] == 1)
    });
    let last = controller.last().expect("a request");
    assert_eq!(
        (&last["addresses"], &last["controller"]),
        (&json!(["10.9.0.1"]), &json!("one"))
    );
    controller.list(vec![]);
    until("forgotten", || host.flows().is_empty());
    drop(agent);
    host.off();
}

#[test]
fn an_entry_goes_soon_after_its_connection() {
    let host = host_or_skip!();
    let controller = Controller::start();
    host.configure(&controller.url, "forget = \"3600s\"");
    let agent = host.agent();
    let (up, down, port, _keeps) = connected(&host);
    controller.list(vec![json!({
        "id": "led", "position": 1, "lead": true, "head": null, "send": null,
        "receive": {"source": end("10.9.0.2", port), "destination": end("10.9.0.1", 9866)},
    })]);
    until("an entry", || host.flows().len() == 1);
    controller.list(vec![]);
    until("seen", || {
        controller
            .last()
            .is_some_and(|request| request["seen"] == 2)
    });
    assert_eq!(host.flows().len(), 1, "its connection is there");
    drop((up, down));
    until("forgotten", || host.flows().is_empty());
    agent.stop();
    host.off();
}

/// More connections than the maps have room for: the last one is not served, and the controller hears why.
#[test]
fn a_full_map_is_told() {
    let host = host_or_skip!();
    let controller = Controller::start();
    host.configure(&controller.url, "[http]\nlisten = \"127.0.0.1:0\"");
    let agent = host.agent();
    let flows = (0..=FLOWS).map(|n| {
        let (mut flow, port) = (second(&format!("{n:05}")), 20_000 + n as u16);
        flow["receive"]["source"]["port"] = port.into();
        flow["send"]["source"]["port"] = port.into();
        flow
    });
    controller.list(flows.collect());
    let last = format!("{FLOWS:05}");
    until("told", || {
        controller.was_told(|request| {
            request["failed"][0]["id"] == last.as_str()
                && request["failed"][0]["why"]
                    .as_str()
                    .is_some_and(|why| why.contains("map mr_snd_flows is full"))
        })
    });
    assert!(agent.log().contains("is full"), "{}", agent.log());
    assert!(page(&agent).contains("trunkline_mirror_host_refused_total 1\n"));
    let told = controller.last().expect("a request");
    assert_eq!(told["failed"].as_array().expect("a list").len(), 1);
    agent.stop();
    host.off();
}

/// Of what has fallen back the next replica drops all copies, so no more are to be made.
#[test]
fn a_flow_that_falls_back_is_told() {
    let host = host_or_skip!();
    let controller = Controller::start();
    host.configure(&controller.url, "[http]\nlisten = \"127.0.0.1:0\"");
    let agent = host.agent();
    let (_up, down, port, _keeps) = connected(&host);
    let mut flow = second("falls");
    flow["send"] = json!({"source": end("10.9.0.1", 9866), "destination": end("10.9.0.2", port)});
    controller.list(vec![flow, second("stays")]);
    until("entries", || host.flows().len() >= 3);
    // Urgent data can't be told of by copies.
    rustix::net::send(&down, b"!", rustix::net::SendFlags::OOB).expect("an octet");
    let why = format!("10.9.0.1:9866 to 10.9.0.2:{port}, fell back to real sending: urgent");
    until("told", || {
        controller.was_told(|request| {
            let failed = &request["failed"][0];
            failed["id"] == "falls"
                && failed["why"]
                    .as_str()
                    .is_some_and(|text| text.contains(&why))
        })
    });
    let told = controller.last().expect("a request");
    assert_eq!(told["failed"].as_array().expect("a list").len(), 1);
    assert!(page(&agent).contains("trunkline_mirror_host_refused_total 1\n"));
    let log = agent.stop();
    let lines: Vec<_> = log.lines().filter(|line| line.contains(&why)).collect();
    assert!(lines.len() == 1 && lines[0].contains("falls"), "{log}");
    host.off();
}

#[test]
fn flows_stay_while_the_controller_is_away() {
    let host = host_or_skip!();
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let nobody = format!("http://{}", free.local_addr().expect("an address"));
    drop(free);
    let controller = Controller::start();
    controller.list(vec![second("a")]);
    host.configure(&controller.url, "forget = \"1s\"");
    let agent = host.agent();
    until("entries", || host.flows().len() == 2);
    agent.crash();
    // It knows nothing of what is listed, and these connections have no sockets: they go, but only they would.
    host.configure(&nobody, "forget = \"3600s\"");
    let agent = host.agent();
    until("a complaint", || agent.log().contains("connection refused"));
    assert_eq!(host.flows().len(), 2);
    let log = agent.stop();
    let complaints = log
        .lines()
        .filter(|line| line.contains("flows go on as they are"))
        .count();
    assert!(
        (1..=2).contains(&complaints),
        "once, and once more when it leaves: {log}"
    );
    host.off();
}

#[test]
fn a_flow_of_another_host_is_refused_and_told() {
    let host = host_or_skip!();
    let controller = Controller::start();
    let mut elsewhere = second("wrong");
    elsewhere["receive"]["destination"] = end("10.9.0.77", 9866);
    controller.list(vec![elsewhere]);
    host.configure(&controller.url, "");
    let agent = host.agent();
    until("told", || {
        controller.was_told(|request| {
            request["failed"][0]["id"] == "wrong"
                && request["failed"][0]["why"]
                    .as_str()
                    .is_some_and(|why| why.contains("10.9.0.77 is no address"))
        })
    });
    assert_eq!(host.flows(), []);
    agent.stop();
    host.off();
}

/// The far end of eth0, in a network namespace of its own.
fn far_away<T: Send + 'static>(host: &Host, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let (moved, is_moved) = std::sync::mpsc::channel();
    let far = thread::spawn(move || {
        let flags = rustix::thread::UnshareFlags::NEWNET;
        // SAFETY: this thread alone leaves for a new network namespace.
        unsafe { rustix::thread::unshare_unsafe(flags) }.expect("a network namespace");
        ready.send(rustix::thread::gettid()).expect("sent");
        is_moved.recv().expect("moved");
        for words in ["address add 10.9.0.2/24 dev far", "link set far up"] {
            let done = Command::new("ip").args(words.split(' ')).status();
            assert!(done.expect("ip").success(), "{words}");
        }
        work()
    });
    let there = is_ready.recv().expect("ready");
    host.shell(
        "ip",
        &format!("link set far netns {}", there.as_raw_nonzero()),
    );
    moved.send(()).expect("sent");
    far.join().expect("the far end")
}

/// A client's connection to this host's DataNode after its set-up: the client's end, the DataNode's, and the client's
/// port. Last what keeps the far end's namespace, and with it the interface, when the connection is gone.
pub fn connected(host: &Host) -> (TcpStream, TcpStream, u16, UdpSocket) {
    let listener = TcpListener::bind("10.9.0.1:9866").expect("the data port");
    let served = thread::spawn(move || {
        let (mut client, from) = listener.accept().expect("a connection");
        let mut header = [0; 100];
        client.read_exact(&mut header).expect("the header");
        client.write_all(&[1; 40]).expect("the set-up response");
        (client, from)
    });
    let (up, keeps) = far_away(host, || {
        let keeps = UdpSocket::bind("10.9.0.2:0").expect("a socket");
        let mut up = TcpStream::connect("10.9.0.1:9866").expect("a connection");
        up.write_all(&[2; 100]).expect("the header");
        up.read_exact(&mut [0; 40]).expect("the set-up response");
        (up, keeps)
    });
    let (down, from) = served.join().expect("served");
    (up, down, from.port(), keeps)
}

/// The first replica of a pipeline tells where the block starts: what its set-up response acknowledges.
#[test]
fn the_start_of_a_stream_is_read_and_told() {
    let host = host_or_skip!();
    let controller = Controller::start();
    host.configure(&controller.url, "");
    let agent = host.agent();
    let (mut up, mut down, port, _keeps) = connected(&host);
    // Announced late, as the controller hears of it when the pipeline is set up.
    controller.list(vec![json!({
        "id": "led", "position": 1, "lead": true, "head": null, "send": null,
        "receive": {"source": end("10.9.0.2", port), "destination": end("10.9.0.1", 9866)},
    })]);
    until("an entry", || host.flows().len() == 1);
    // Data, which is acknowledged: a segment of this host's is what the start is learnt with.
    let mut carry = |octets: usize| {
        thread::scope(|scope| {
            scope.spawn(|| up.write_all(&vec![3; octets]).expect("data"));
            down.read_exact(&mut vec![0; octets]).expect("data");
        });
    };
    carry(10_000);
    let told = |request: &Value| {
        let head = &request["heads"][0];
        head["id"] == "led"
            && head["zero"].is_u64()
            && head["source"] == end("10.9.0.2", port)
            && head["destination"] == end("10.9.0.1", 9866)
    };
    until("told", || controller.was_told(told));
    assert_eq!(host.flows(), pairs(&[("receive", "started")]));
    let first = controller.last().expect("a request");
    agent.crash();
    carry(1_000_000);
    let agent = host.agent();
    let again =
        |request: &Value| request["run"] != first["run"] && request["heads"] == first["heads"];
    until("told again, by the next one", || controller.was_told(again));
    carry(10_000);
    agent.stop();
    host.off();
    carry(10_000);
}

/// Handles of the programs at eth0's ingress, in the order in which they see a frame.
fn handles(host: &Host) -> Vec<String> {
    let filters = host.shell("tc", "filter show dev eth0 ingress");
    let programs = filters.lines().filter(|line| line.contains("mr_ingress"));
    programs
        .filter_map(|line| Some(line.split_once("handle ")?.1.split(' ').next()?.to_owned()))
        .collect()
}

/// One that is announced when the older release's program has others.
fn new_flow() -> Value {
    let mut flow = second("new");
    flow["send"]["source"]["port"] = 42_000.into();
    flow
}

/// An agent has crashed whose layout this one does not know, and one of its connections is there. The ends of that, and
/// what keeps the interface.
fn aged(host: &Host, controller: &Controller) -> (TcpStream, TcpStream, UdpSocket) {
    host.configure(&controller.url, "");
    let agent = host.agent();
    let (up, down, port, keeps) = connected(host);
    let mut flow = second("old");
    flow["receive"]["source"] = end("10.9.0.2", port);
    controller.list(vec![flow.clone()]);
    until("entries", || host.flows().len() == 2);
    agent.crash();
    host.age();
    controller.list(vec![flow, new_flow()]);
    (up, down, keeps)
}

#[test]
fn another_release_keeps_its_connections_and_new_ones_are_this_ones() {
    let host = host_or_skip!();
    let controller = Controller::start();
    let (mut up, mut down, _keeps) = aged(&host, &controller);
    let old = host.layouts();
    let before = handles(&host);
    assert_eq!(before.len(), 1);
    let said = host.fails(&host.off_words(&["--wait", "0s"]));
    assert!(
        said.contains("1 connections of an agent of another release can't be looked at"),
        "{said}"
    );
    let agent = host.agent();
    assert!(
        agent.log().contains("programs of another release keep"),
        "{}",
        agent.log()
    );
    let both = handles(&host);
    assert_eq!((both.len(), &both[1]), (2, &before[0]), "the new one first");
    // The old connection is not announced to both of them.
    until("entries", || host.flows().len() == 2);
    let status = host.status();
    assert_eq!(status["other_release"], 1);
    let new = status["flows"].as_array().expect("flows").iter();
    let ends: Vec<_> = new.map(|flow| flow["source"].clone()).collect();
    assert!(
        ends.contains(&json!("10.9.0.2:40000")) && ends.contains(&json!("10.9.0.1:42000")),
        "{ends:?}"
    );
    // Whatever somebody took off is there again, and the new one first.
    let attached = host.traffic_control();
    host.shell("tc", "qdisc del dev eth0 clsact");
    until("attached again", || host.traffic_control() == attached);
    assert_eq!(handles(&host), both);
    thread::scope(|scope| {
        scope.spawn(|| up.write_all(&[3; 100_000]).expect("data"));
        down.read_exact(&mut [0; 100_000]).expect("data");
    });
    controller.list(vec![new_flow()]);
    drop((up, down));
    until("the old one is off", || handles(&host) == both[..1]);
    assert_eq!(host.layouts().len(), 1);
    assert_ne!(host.layouts(), old);
    assert_eq!(host.flows().len(), 2);
    let log = agent.stop();
    assert!(log.contains("its last connection has ended"), "{log}");
    host.off();
}

#[test]
fn another_release_is_taken_off_at_once_where_it_has_no_connections_or_is_to() {
    let host = host_or_skip!();
    let controller = Controller::start();
    let (up, down, _keeps) = aged(&host, &controller);
    let agent = host.start_with(&["--replace"]);
    until("attached", || {
        agent.log().contains("attached to eth0; agent")
    });
    assert_eq!((handles(&host).len(), host.layouts().len()), (1, 1));
    until("entries", || host.flows().len() == 4);
    agent.crash();
    host.age();
    drop((up, down));
    let agent = host.agent();
    assert_eq!((handles(&host).len(), host.layouts().len()), (1, 1));
    agent.stop();
    host.off();
}

/// What an agent serves to Prometheus.
fn page(agent: &Agent) -> String {
    let log = agent.log();
    let at = log
        .split("http://")
        .find_map(|rest| rest.split_once("/metrics"))
        .expect("an address")
        .0;
    let mut stream = TcpStream::connect(at).expect("a connection");
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    .expect("sent");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("a page");
    page
}

#[test]
fn numbers_are_served_to_prometheus() {
    let host = host_or_skip!();
    let controller = Controller::start();
    controller.list(vec![second("a")]);
    host.configure(&controller.url, "[http]\nlisten = \"127.0.0.1:0\"");
    let agent = host.agent();
    until("entries", || host.flows().len() == 2);
    let page = || page(&agent);
    until("counted", || {
        page().contains("trunkline_mirror_host_flows{side=\"send\",state=\"new\"} 1\n")
    });
    for expected in [
        "trunkline_mirror_host_controller_up 1\n",
        "trunkline_mirror_host_flows_listed 1\n",
    ] {
        assert!(page().contains(expected), "{expected}{}", page());
    }
    agent.stop();
    host.off();
}

/// The kernel counts what programs take, as long as this is there.
struct Counting(String);

const COUNTS: &str = "/proc/sys/kernel/bpf_stats_enabled";

impl Counting {
    fn on() -> Self {
        let before = std::fs::read_to_string(COUNTS).expect("the setting");
        std::fs::write(COUNTS, "1").expect("set");
        Self(before)
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        let _ = std::fs::write(COUNTS, &self.0);
    }
}

#[test]
fn what_the_programs_cost_is_told_where_the_kernel_counts() {
    let host = host_or_skip!();
    let controller = Controller::start();
    host.configure(&controller.url, "[http]\nlisten = \"127.0.0.1:0\"");
    let agent = host.agent();
    let counting = Counting::on();
    let _ends = connected(&host);
    drop(counting);
    let cost = host.status()["cost"].clone();
    for hook in ["ingress", "egress"] {
        let n = |name: &str| cost[hook][name].as_u64().unwrap_or(0);
        assert!(n("frames") > 2 && n("ns") > n("frames"), "{cost}");
    }
    let pins = host.pins();
    let said = host.ok(&["status", "--pin", pins.to_str().expect("text")]);
    let line = said.lines().find(|line| line.starts_with("cost  "));
    assert!(line.is_some_and(|line| line.contains(" ns a frame, in ")));
    let page = page(&agent);
    for name in ["program_frames_total", "program_seconds_total"] {
        let line = format!("trunkline_mirror_host_{name}{{hook=\"egress\"}} ");
        let value = page.lines().find_map(|l| l.strip_prefix(&line));
        assert!(
            value.is_some_and(|v| v.parse::<f64>().is_ok_and(|v| v > 0.0)),
            "{page}"
        );
    }
    agent.stop();
    host.off();
}
