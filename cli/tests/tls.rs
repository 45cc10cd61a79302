//! `tls://` from end to end: a CA and certificates by `keygen`, a router, hosts that publish and fetch, and who may
//! announce what.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Bench, Running, until};
use ndn_io::{App, Client, ClientOptions, FaceUri};
use ndn_packet::{Data, Interest, Name, NetKind, NetPacket, SigningKey};

/// A bench with a CA, certificates for these hosts, and no forwarder yet.
fn bench(hosts: &[&[&str]]) -> Bench {
    let bench = Bench::without_forwarder();
    bench.ok(&["keygen", "ca"]);
    for names in hosts {
        bench.ok(&[&["keygen", "host"], *names].concat());
    }
    bench
}

const ROUTER: &[&str] = &["router.test", "127.0.0.1"];

fn tls_table(host: &str) -> String {
    format!("[tls]\ncertificate = \"{host}.crt\"\nkey = \"{host}.key\"\nca = \"ca.crt\"\n")
}

/// Starts the router of a bench: over TLS, and for applications of its own host.
fn router(bench: &mut Bench, more: &str) -> String {
    let port = common::free_port();
    let config = format!(
        "[[face]]\nlisten = \"{}\"\n[[face]]\nlisten = \"tls://127.0.0.1:{port}\"\n{}{more}",
        bench.face(),
        tls_table("router.test"),
    );
    std::fs::write(bench.path("fwd.toml"), config).expect("a configuration");
    bench.restart();
    format!("tls://127.0.0.1:{port}")
}

/// Options of a command that goes to the router with the certificate of a host.
fn by(router: &str, host: &str) -> Vec<String> {
    [
        "--face",
        router,
        "--tls-certificate",
        &format!("{host}.crt"),
        "--tls-key",
        &format!("{host}.key"),
        "--tls-ca",
        "ca.crt",
    ]
    .map(String::from)
    .to_vec()
}

fn with<'a>(arguments: &[&'a str], options: &'a [String]) -> Vec<&'a str> {
    let options = options.iter().map(String::as_str);
    arguments.iter().copied().chain(options).collect()
}

#[test]
fn files_travel_between_hosts_that_have_certificates() {
    let mut bench = bench(&[ROUTER, &["host1.rack1"], &["host2.rack1"]]);
    let router = router(&mut bench, "[management]\nlocalhop = true\n");
    let source = bench.file("source", 3_000_000);
    let (one, two) = (by(&router, "host1.rack1"), by(&router, "host2.rack1"));
    let (_put, _) = bench.serve(&with(&["put", "/t/object", "source"], &one));
    bench.ok(&with(&["get", "/t/object", "-q", "-o", "copy"], &two));
    assert!(common::same(&source, &bench.path("copy")));
    let (_server, _) = bench.serve(&with(&["pingserver", "/t/host"], &one));
    let ping = ["ping", "/t/host", "-c", "2", "-i", "10ms", "--json"];
    let pinged = bench.json(&with(&ping, &two));
    assert_eq!(pinged["received"], 2, "{pinged}");

    // The router's own applications see who is there.
    let faces = bench.json(&["fwd", "face", "list", "--json"]);
    let names: Vec<_> = faces
        .as_array()
        .expect("a list")
        .iter()
        .filter(|face| {
            face["uri"]
                .as_str()
                .is_some_and(|uri| uri.starts_with("tls4://"))
        })
        .map(|face| face["peer_names"].clone())
        .collect();
    assert_eq!(names, vec![serde_json::json!(["host1.rack1"]); 2]);
    assert!(bench.ok(&["fwd", "face", "list"]).contains("(host1.rack1)"));

    // By the environment instead of options.
    let mut fetch = bench.command(&["get", "/t/object", "-q", "-o", "again", "--face", &router]);
    for (name, file) in [
        ("CERTIFICATE", "host2.rack1.crt"),
        ("KEY", "host2.rack1.key"),
        ("CA", "ca.crt"),
    ] {
        fetch.env(format!("TRUNKLINE_TLS_{name}"), file);
    }
    assert!(fetch.status().expect("a process").success());
}

#[test]
fn without_a_right_certificate_there_is_no_face_and_it_is_said_why() {
    let mut bench = bench(&[ROUTER, &["host1"], &["other.test"]]);
    let router = router(&mut bench, "");
    for (arguments, code, words) in [
        (
            with(&["get", "/x", "--face", &router], &[]),
            2,
            ["TLS needs certificate, key and CA", "--tls-certificate"],
        ),
        (
            with(
                &["get", "/x"],
                &by(&router.replace("127.0.0.1", "localhost"), "host1"),
            ),
            3,
            ["is not for localhost but for", "certificates of one CA"],
        ),
        (
            with(
                &["get", "/x"],
                &by(&router.replace("tls://", "tcp://"), "host1"),
            ),
            3,
            ["forwarder at tcp", "closed by the peer"],
        ),
    ] {
        let arguments: Vec<&str> = arguments;
        let (status, said) = bench.fails(&arguments);
        assert_eq!(status, code, "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
    let stranger = self::bench(&[&["host1"]]);
    let (status, said) = stranger.fails(&with(&["get", "/x"], &by(&router, "host1")));
    assert_eq!(status, 3, "{said}");
    assert!(said.contains("is of another CA"), "{said}");

    let mut loose = std::fs::metadata(bench.path("host1.key"))
        .expect("a key")
        .permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut loose, 0o644);
    std::fs::set_permissions(bench.path("host1.key"), loose).expect("permissions");
    let (status, said) = bench.fails(&with(&["get", "/x"], &by(&router, "host1")));
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("chmod 600 host1.key"), "{said}");
}

#[test]
fn prefixes_are_registered_by_those_who_may() {
    let mut bench = bench(&[ROUTER, &["host1.rack1"], &["host1.rack2"], &["admin"]]);
    let router = router(
        &mut bench,
        "[[authorize]]\ncertificate = \"*.rack1\"\nprefixes = [\"/rack1\", \"/shared\"]\n\
         [[authorize]]\ncertificate = \"admin\"\nprefixes = [\"/\"]\n",
    );
    let as_host = |host: &str| by(&router, host);
    for (prefix, host) in [
        ("/rack1/a", "host1.rack1"),
        ("/shared", "host1.rack1"),
        ("/anything", "admin"),
    ] {
        let options = as_host(host);
        drop(bench.serve(&with(&["pingserver", prefix], &options)));
    }
    for (prefix, host) in [
        ("/rack10", "host1.rack1"),
        ("/", "host1.rack1"),
        ("/rack1", "host1.rack2"),
    ] {
        let options = as_host(host);
        let (status, said) = bench.fails(&with(&["pingserver", prefix], &options));
        assert_eq!(status, 1, "{said}");
        assert!(
            said.contains("403") && said.contains("rules of this forwarder"),
            "{said}"
        );
    }
    // Applications of the router's own host are not asked for a certificate.
    drop(bench.serve(&["pingserver", "/rack1/local"]));
}

/// The router of one host: its applications by a Unix socket, the rack's router by TLS.
fn host_router(bench: &Bench, host: &str, to: &str, more: &str) -> (Running, String) {
    let socket = bench.path(&format!("{host}.sock"));
    let config = format!(
        "[[face]]\nlisten = \"unix://{}\"\ndiscovery = true\n\
         [[face]]\nconnect = \"{to}\"\nserver_name = \"router.test\"\n{more}{}",
        socket.display(),
        tls_table(host),
    );
    let file = format!("{host}.toml");
    std::fs::write(bench.path(&file), config).expect("a configuration");
    let log = std::fs::File::create(bench.path(&format!("{host}.log"))).expect("a log");
    let child = bench
        .command(&["fwd", "run", "--config", &file])
        .stderr(log)
        .spawn()
        .expect("a process");
    let running = Running(child);
    until(|| {
        let log = std::fs::read_to_string(bench.path(&format!("{host}.log"))).unwrap_or_default();
        log.contains("face is up")
    });
    (running, format!("unix://{}", socket.display()))
}

#[test]
fn self_learning_asks_those_who_may_answer_and_no_others() {
    let mut bench = bench(&[ROUTER, &["host1.rack1"], &["host2.rack1"], &["stranger"]]);
    let router = router(
        &mut bench,
        "[[strategy]]\nprefix = \"/\"\nname = \"self-learning\"\n\
         [[authorize]]\ncertificate = \"*.rack1\"\nprefixes = [\"/blocks\"]\n",
    );
    let uplink = format!("[[route]]\nprefix = \"/\"\nnexthop = \"{router}\"\n");
    let start = |host| host_router(&bench, host, &router, &uplink);
    let (_one, one) = start("host1.rack1");
    let (_two, two) = start("host2.rack1");
    let (_three, three) = start("stranger");
    let serve = |face: &str, name: &str, file: &str| {
        bench
            .serve(&["put", name, file, "--version", "1", "--face", face])
            .0
    };
    let source = bench.file("source", 500_000);
    bench.file("forged", 400_000);
    // Both publish the same name, and each of them one that nobody may.
    let _forged = serve(&three, "/blocks/1", "forged");
    let _other = serve(&one, "/other/1", "source");
    let (status, said) = bench.fails(&[
        "get",
        "/blocks/1",
        "-q",
        "-o",
        "x",
        "--timeout",
        "1s",
        "--face",
        &two,
    ]);
    assert_eq!(status, 4, "{said}");
    let _right = serve(&one, "/blocks/1", "source");
    bench.ok(&["get", "/blocks/1", "-q", "-o", "copy", "--face", &two]);
    assert!(common::same(&source, &bench.path("copy")));
    let (status, said) = bench.fails(&[
        "get",
        "/other/1",
        "-q",
        "-o",
        "x",
        "--timeout",
        "1s",
        "--face",
        &two,
    ]);
    assert_eq!(status, 4, "{said}");
}

/// Answers whatever it is asked, and registers nothing, as a DataNode.
struct Answers;

impl App for Answers {
    fn on_packet(&mut self, _: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let NetKind::Interest(interest) = &packet.packet else {
            return;
        };
        let wire = Data::builder(&interest.name_owned())
            .content(b"answer")
            .sign(&SigningKey::DigestSha256);
        let data = Data::parse(wire).expect("Data");
        out.push(NetPacket::data(data).with_pit_token(packet.pit_token));
    }
}

fn connect(face: &str) -> Client {
    let uri = FaceUri::parse(face).expect("a URI");
    Client::connect(&uri, &ClientOptions::default()).expect("a face")
}

#[test]
fn who_registers_nothing_is_found_through_the_routers_of_hosts() {
    const LEARNS: &str = "[[strategy]]\nprefix = \"/\"\nname = \"self-learning\"\n";
    let mut bench = bench(&[ROUTER, &["host1.rack1"], &["host2.rack1"]]);
    let router = router(
        &mut bench,
        &format!("{LEARNS}[[authorize]]\ncertificate = \"*.rack1\"\nprefixes = [\"/blocks\"]\n"),
    );
    let (_one, one) = host_router(&bench, "host1.rack1", &router, LEARNS);
    let (_two, two) = host_router(&bench, "host2.rack1", &router, LEARNS);
    let over = Arc::new(AtomicBool::new(false));
    let (mut producer, ends) = (connect(&one), over.clone());
    let answering =
        std::thread::spawn(move || producer.run(&mut Answers, |_| ends.load(Ordering::Relaxed)));
    let mut consumer = connect(&two);
    let mut ask = |uri: &str| {
        let name = uri.parse::<Name>().expect("a name");
        let interest = Interest::builder(&name).nonce(7).build();
        let interest = Interest::parse(interest).expect("an Interest");
        let answer = consumer
            .ask(interest, Duration::from_secs(2))
            .expect("a face");
        answer.is_some_and(|answer| matches!(answer.packet, NetKind::Data(_)))
    };
    assert!(ask("/blocks/1/seg=0"));
    assert!(ask("/blocks/1/seg=1"));
    assert!(!ask("/other/1/seg=0"), "nobody may answer for it");
    over.store(true, Ordering::Relaxed);
    answering.join().expect("no panic").expect("a face");
}

#[test]
fn a_server_is_served_on_with_a_certificate_that_was_replaced() {
    let mut bench = bench(&[ROUTER, &["host1"]]);
    let router = router(&mut bench, "[management]\nlocalhop = true\n");
    let options = by(&router, "host1");
    let (_server, _) = bench.serve(&with(&["pingserver", "/t"], &options));
    let before = bench.log();
    bench.ok(&["keygen", "host", "router.test", "127.0.0.1", "--force"]);
    until(|| bench.log().contains("were read again"));
    assert!(!before.contains("were read again"));
    bench.ok(&with(&["ping", "/t", "-c", "1"], &options));
}

/// One of the two can't be replaced: neither is, and nothing is left beside them.
#[test]
fn a_pair_is_replaced_whole_or_not_at_all() {
    let bench = bench(&[&["a"]]);
    let read = |file: &str| std::fs::read(bench.path(file)).expect("a file");
    let listed = || std::fs::read_dir(&bench.folder).expect("a folder").count();
    let before = [read("a.crt"), read("a.key")];
    for (file, other, kept) in [
        ("a.crt", "a.key", &before[1]),
        ("a.key", "a.crt", &before[0]),
    ] {
        std::fs::rename(bench.path(file), bench.path("aside")).expect("moved");
        std::fs::create_dir(bench.path(file)).expect("a folder in its place");
        let files = listed();
        let (_, said) = bench.fails(&["keygen", "host", "a", "--force"]);
        assert!(said.contains(file), "{said}");
        assert!(read(other) == *kept, "{other} was replaced");
        assert_eq!(listed(), files);
        std::fs::remove_dir(bench.path(file)).expect("removed");
        std::fs::rename(bench.path("aside"), bench.path(file)).expect("moved back");
    }
    bench.ok(&["keygen", "host", "a", "--force"]);
    assert!(read("a.crt") != before[0] && read("a.key") != before[1]);
}

/// `keygen` takes no name with which no handshake would come to its end.
#[test]
fn names_that_tls_does_not_take_are_refused() {
    let bench = bench(&[]);
    for name in [
        "rack-.a", "-a", "rack.1", "*.rack1", "a..b", "a b", "", "10.0.0.1",
    ] {
        let (status, said) = bench.fails(&["keygen", "host", "--", name]);
        assert_eq!(status, 2, "{name}: {said}");
        assert!(said.contains("is no name of a host"), "{name}: {said}");
    }
}

/// As docs/tls.md has it: both CAs in one file, then other certificates, then the new CA alone.
#[test]
fn another_ca_takes_the_place_of_one_while_a_server_goes_on() {
    let mut bench = bench(&[ROUTER, &["host1"], &["late"]]);
    let router = router(&mut bench, "[management]\nlocalhop = true\n");
    let options = by(&router, "host1");
    let (_server, _) = bench.serve(&with(&["pingserver", "/t"], &options));
    let ping = ["ping", "/t", "-c", "1"];
    let read = |file: &str| std::fs::read_to_string(bench.path(file)).expect("a file");
    // Changes something, and waits until the router has noticed.
    let change = |change: &dyn Fn()| {
        let times = || bench.log().matches("were read again").count();
        let before = times();
        change();
        until(|| times() > before);
    };
    let trust = |text: &str| std::fs::write(bench.path("ca.crt"), text).expect("a file");

    std::fs::create_dir(bench.path("new")).expect("a folder");
    bench.ok(&["keygen", "ca", "--directory", "new"]);
    let both = [read("ca.crt"), read("new/ca.crt")].concat();
    std::fs::write(bench.path("both.crt"), &both).expect("a file");
    change(&|| trust(&both));
    bench.ok(&with(&ping, &options));
    let renew = |names: &[&str]| {
        let from_new = ["--ca", "new", "--force"];
        bench.ok(&[&["keygen", "host"], names, &from_new].concat());
    };
    change(&|| renew(ROUTER));
    bench.ok(&with(&ping, &options));
    renew(&["host1"]);
    bench.ok(&with(&ping, &options));
    change(&|| trust(&read("new/ca.crt")));
    // The server's link stands since before all that.
    bench.ok(&with(&ping, &options));
    let late = by(&router, "late").into_iter();
    let late: Vec<_> = late.map(|o| o.replace("ca.crt", "both.crt")).collect();
    let (status, said) = bench.fails(&with(&ping, &late));
    assert_eq!(status, 3, "{said}");
    assert!(said.contains("of another CA of the same name"), "{said}");
}

#[test]
fn an_open_router_says_so_once() {
    let told = |listen: &str, more: &str| {
        let bench = Bench::start(&format!("[[face]]\nlisten = \"{listen}\"\n{more}"));
        bench.log().matches("there is no TLS").count()
    };
    let port = common::free_port();
    assert_eq!(told(&format!("tcp://0.0.0.0:{port}"), ""), 1);
    assert_eq!(told(&format!("tcp://127.0.0.1:{port}"), ""), 0);
    let nobody = "[[authorize]]\ncertificate = \"admin\"\nprefixes = [\"/\"]\n";
    assert_eq!(told(&format!("udp://0.0.0.0:{port}"), nobody), 0);
}

#[test]
fn a_repository_goes_by_tls_as_its_configuration_says() {
    let mut bench = bench(&[ROUTER, &["store"], &["reader"]]);
    let router = router(
        &mut bench,
        "[[authorize]]\ncertificate = \"store\"\nprefixes = [\"/data\"]\n",
    );
    let config = format!(
        "[repo]\ndirectory = \"store\"\nface = \"{router}\"\n[[serve]]\nprefix = \"/data\"\n{}",
        tls_table("store")
    );
    std::fs::write(bench.path("repo.toml"), config).expect("a configuration");
    let source = bench.file("source", 100_000);
    bench.ok(&["repo", "put", "-c", "repo.toml", "/data/file", "source"]);
    let (_repo, _) = bench.serve(&["repo", "run", "--config", "repo.toml"]);
    let options = by(&router, "reader");
    bench.ok(&with(
        &["get", "/data/file", "-q", "-o", "copy", "--verify", "none"],
        &options,
    ));
    assert!(common::same(&source, &bench.path("copy")));
}
