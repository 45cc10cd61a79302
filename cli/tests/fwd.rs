//! `trunkline fwd`: running, steering and refusing.

mod common;

use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{BIN, Bench, Running, signal, text, until, wait};
use ndn_io::{App, Client, ClientOptions, FaceUri};
use ndn_packet::{Data, NetKind, NetPacket, SigningKey};

#[test]
fn a_signal_shuts_down_and_removes_the_socket() {
    for name in ["TERM", "INT"] {
        let mut bench = Bench::start("");
        assert!(bench.socket().exists());
        signal(bench.forwarder(), name);
        assert_eq!(wait(bench.forwarder()), 0, "{name}: {}", bench.log());
        assert!(!bench.socket().exists(), "{name}");
        assert!(bench.log().contains("shutting down"), "{}", bench.log());
    }
}

#[test]
fn a_socket_left_by_a_killed_forwarder_is_taken_over() {
    let mut bench = Bench::start("");
    signal(bench.forwarder(), "KILL");
    wait(bench.forwarder());
    assert!(bench.socket().exists());
    let child = bench
        .command(&["fwd", "run", "--config", "fwd.toml"])
        .spawn()
        .expect("a process");
    let _again = Running(child);
    until(|| bench.run(&["fwd", "status"]).status.success());
}

#[test]
fn status_counts() {
    let bench = Bench::start("");
    let before = bench.json(&["fwd", "status", "--json"]);
    assert!(
        before["version"]
            .as_str()
            .expect("a version")
            .starts_with("trunkline"),
        "{before}"
    );
    let after = bench.json(&["fwd", "status", "--json"]);
    assert!(
        after["in_interests"].as_u64() > before["in_interests"].as_u64(),
        "{before} {after}"
    );
    let told = bench.ok(&["fwd", "status"]);
    for word in ["version", "uptime", "PIT", "content store"] {
        assert!(told.contains(word), "{told}");
    }
}

#[test]
fn faces_come_and_go() {
    let bench = Bench::start("");
    let peer = TcpListener::bind("127.0.0.1:0").expect("a port");
    let uri = format!("tcp4://{}", peer.local_addr().expect("an address"));
    let made = bench.json(&[
        "fwd",
        "face",
        "create",
        &uri,
        "--persistency",
        "permanent",
        "--json",
    ]);
    let id = made["face_id"].as_u64().expect("a number");
    assert_eq!(made["created"], true);
    let again = bench.json(&[
        "fwd",
        "face",
        "create",
        &uri,
        "--persistency",
        "permanent",
        "--json",
    ]);
    assert_eq!(
        (again["face_id"].as_u64(), again["created"].as_bool()),
        (Some(id), Some(false))
    );

    let faces = bench.json(&["fwd", "face", "list", "--json"]);
    let face = faces
        .as_array()
        .expect("a list")
        .iter()
        .find(|f| f["face_id"] == id)
        .expect("the face");
    assert_eq!(
        (face["uri"].as_str(), face["persistency"].as_str()),
        (Some(uri.as_str()), Some("permanent"))
    );
    assert_eq!(face["scope"], "local");
    assert!(bench.ok(&["fwd", "face", "list"]).contains(&uri));

    bench.ok(&["fwd", "face", "destroy", &uri]);
    let faces = bench.json(&["fwd", "face", "list", "--json"]);
    assert!(
        !faces
            .as_array()
            .expect("a list")
            .iter()
            .any(|f| f["face_id"] == id)
    );
    let (code, said) = bench.fails(&["fwd", "face", "destroy", "tcp4://127.0.0.1:9"]);
    assert_eq!(code, 1);
    assert!(said.contains("fwd face list"), "{said}");
}

#[test]
fn routes_come_and_go() {
    let bench = Bench::start("");
    let peer = TcpListener::bind("127.0.0.1:0").expect("a port");
    let uri = format!("tcp4://{}", peer.local_addr().expect("an address"));
    let added = bench.json(&[
        "fwd",
        "route",
        "add",
        "/far",
        &uri,
        "--cost",
        "7",
        "--capture",
        "--json",
    ]);
    assert_eq!(
        (added["prefix"].as_str(), added["cost"].as_u64()),
        (Some("/far"), Some(7))
    );
    let id = added["face_id"].as_u64().expect("a number");
    bench.ok(&[
        "fwd",
        "route",
        "add",
        "/far",
        &id.to_string(),
        "--origin",
        "0",
        "--no-inherit",
        "--expires",
        "1h",
    ]);

    let routes = bench.json(&["fwd", "route", "list", "--json"]);
    let mine: Vec<_> = routes
        .as_array()
        .expect("a list")
        .iter()
        .filter(|r| r["prefix"] == "/far")
        .collect();
    assert_eq!(mine.len(), 2, "{routes}");
    let by_hand = mine.iter().find(|r| r["origin"] == 255).expect("the route");
    assert_eq!(
        (
            by_hand["cost"].as_u64(),
            by_hand["inherit"].as_bool(),
            by_hand["capture"].as_bool()
        ),
        (Some(7), Some(true), Some(true))
    );
    assert_eq!(
        (by_hand["face_id"].as_u64(), by_hand["uri"].as_str()),
        (Some(id), Some(uri.as_str()))
    );
    let by_app = mine.iter().find(|r| r["origin"] == 0).expect("the route");
    assert_eq!(by_app["inherit"], false);
    let left = by_app["expires_ms"].as_u64().expect("a time");
    assert!((3_500_000..=3_600_000).contains(&left), "{left}");

    bench.ok(&["fwd", "route", "remove", "/far", &uri]);
    bench.ok(&[
        "fwd",
        "route",
        "remove",
        "/far",
        &id.to_string(),
        "--origin",
        "0",
    ]);
    assert!(!bench.ok(&["fwd", "route", "list"]).contains("/far"));
    let (code, said) = bench.fails(&["fwd", "route", "add", "/far", "999999"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("999999"), "{said}");
}

#[test]
fn strategies_are_chosen() {
    let bench = Bench::start("[[strategy]]\nprefix = \"/blocks\"\nname = \"self-learning\"\n");
    let chosen = |prefix: &str| {
        let list = bench.json(&["fwd", "strategy", "list", "--json"]);
        let entry = list
            .as_array()
            .expect("a list")
            .iter()
            .find(|e| e["prefix"] == prefix)
            .cloned();
        entry.map(|e| e["strategy"].as_str().expect("a name").to_owned())
    };
    assert!(chosen("/").expect("a default").contains("best-route"));
    assert!(
        chosen("/blocks")
            .expect("the configured one")
            .contains("self-learning")
    );
    bench.ok(&["fwd", "strategy", "set", "/m", "multicast"]);
    assert!(
        chosen("/m")
            .expect("the new one")
            .contains("/localhost/nfd/strategy/multicast")
    );
    bench.ok(&["fwd", "strategy", "unset", "/m"]);
    assert_eq!(chosen("/m"), None);
    let (code, said) = bench.fails(&["fwd", "strategy", "set", "/m", "fastest"]);
    assert_eq!(code, 1);
    assert!(said.contains("fastest"), "{said}");
}

#[test]
fn the_content_store_is_seen_and_emptied() {
    let bench = Bench::start("[content_store]\ncapacity = \"32MiB\"\n");
    bench.file("source", 400_000);
    let (put, _) = bench.serve(&["put", "/t/cached", "source", "--freshness", "1min"]);
    bench.ok(&["get", "/t/cached", "-o", "a", "-q"]);
    let info = bench.json(&["fwd", "cs", "info", "--json"]);
    assert_eq!(
        (
            info["capacity"].as_u64(),
            info["admit"].as_bool(),
            info["serve"].as_bool()
        ),
        (Some(32 << 20), Some(true), Some(true))
    );
    assert!(info["entries"].as_u64() >= Some(50), "{info}");
    let hits = info["hits"].as_u64().expect("a number");
    bench.ok(&["get", "/t/cached", "-o", "b", "-q"]);
    let info = bench.json(&["fwd", "cs", "info", "--json"]);
    assert!(info["hits"].as_u64() >= Some(hits + 50), "{info}");

    let erased = bench.json(&["fwd", "cs", "erase", "/t/cached", "--json"]);
    assert!(erased["erased"].as_u64() >= Some(50), "{erased}");
    bench.ok(&[
        "fwd",
        "cs",
        "config",
        "--capacity",
        "1MiB",
        "--admit",
        "off",
    ]);
    let info = bench.json(&["fwd", "cs", "info", "--json"]);
    assert_eq!(
        (
            info["capacity"].as_u64(),
            info["admit"].as_bool(),
            info["serve"].as_bool()
        ),
        (Some(1 << 20), Some(false), Some(true))
    );
    drop(put);
}

#[test]
fn two_forwarders_make_a_path() {
    let port = common::free_port();
    let far = Bench::start(&format!("[[face]]\nlisten = \"tcp://127.0.0.1:{port}\"\n"));
    let near = Bench::start(&format!(
        "[[face]]\nconnect = \"tcp://127.0.0.1:{port}\"\n[[route]]\nprefix = \"/far\"\nnexthop = \"tcp://127.0.0.1:{port}\"\n"
    ));
    let source = far.file("source", 2_000_000);
    let (_put, _) = far.serve(&["put", "/far/object", "source"]);
    near.ok(&["get", "/far/object", "-o", "copy"]);
    assert!(common::same(&source, &near.path("copy")));
}

/// Answers whatever it is asked with a digest that does not hold.
struct Liar;

impl App for Liar {
    fn on_packet(&mut self, _: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let NetKind::Interest(interest) = &packet.packet else {
            return;
        };
        let wire = Data::builder(&interest.name_owned())
            .content(b"a lie")
            .sign(&SigningKey::DigestSha256);
        let mut wire = wire.to_vec();
        *wire.last_mut().expect("a signature") ^= 1;
        let data = Data::parse(wire.into()).expect("Data");
        out.push(NetPacket::data(data).with_pit_token(packet.pit_token));
    }
}

#[test]
fn whose_data_does_not_verify_is_asked_past_and_shown() {
    let bench = Bench::start("");
    let source = bench.file("source", 300_000);
    let (_put, said) = bench.serve(&["put", "/t/object", "source", "--json"]);
    let facts: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let versioned = facts["versioned"].as_str().expect("a name");
    let leads = |prefix: &str| {
        let routes = bench.json(&["fwd", "route", "list", "--json"]);
        let routes = routes.as_array().expect("a list");
        let route = routes.iter().find(|route| route["prefix"] == prefix);
        route.expect("a route")["face_id"]
            .as_u64()
            .expect("a number")
    };
    let honest = leads("/t/object").to_string();
    let uri = FaceUri::parse(&bench.face()).expect("a URI");
    let mut lying = Client::connect(&uri, &ClientOptions::default()).expect("a face");
    lying
        .register(&versioned.parse().expect("a name"))
        .expect("a route");
    let liar = leads(versioned);
    bench.ok(&["fwd", "route", "add", versioned, &honest, "--cost", "10"]);
    let over = Arc::new(AtomicBool::new(false));
    let ends = over.clone();
    let lying = std::thread::spawn(move || lying.run(&mut Liar, |_| ends.load(Ordering::Relaxed)));

    let report = bench.json(&["get", "--no-metadata", versioned, "-o", "copy", "--json"]);
    assert_eq!(report["segments"].as_u64(), Some(38), "{report}");
    assert!(common::same(&source, &bench.path("copy")));
    let faces = bench.json(&["fwd", "face", "list", "--json"]);
    for face in faces.as_array().expect("a list") {
        let expected = if face["face_id"] == liar { 38 } else { 0 };
        assert_eq!(face["rejected"].as_u64(), Some(expected), "{face}");
    }
    let told = bench.ok(&["fwd", "face", "list"]);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].ends_with("rejected"), "{told}");
    let of_liar = lines
        .iter()
        .find(|line| line.trim_start().starts_with(&format!("{liar} ")));
    assert!(of_liar.is_some_and(|line| line.ends_with(" 38")), "{told}");
    assert!(bench.log().contains("did not verify"), "{}", bench.log());
    over.store(true, Ordering::Relaxed);
    drop(bench);
    let _ = lying.join();
}

#[test]
fn no_forwarder_is_said_with_the_way_out() {
    let bench = Bench::without_forwarder();
    for arguments in [
        &["get", "/x"][..],
        &["put", "/x", "fwd"],
        &["ping", "/x"],
        &["pingserver", "/x"],
        &["fwd", "status"],
        &["fwd", "face", "list"],
    ] {
        std::fs::write(bench.path("fwd"), "x").expect("a file");
        let (code, said) = bench.fails(arguments);
        assert_eq!(code, 3, "{arguments:?}: {said}");
        assert!(said.contains(&bench.face()), "{arguments:?}: {said}");
        assert!(
            said.contains("trunkline fwd run") && said.contains("--face"),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn client_conf_names_the_forwarder() {
    let bench = Bench::start("");
    let home = bench.path("home");
    std::fs::create_dir_all(home.join(".ndn")).expect("a folder");
    std::fs::write(
        home.join(".ndn/client.conf"),
        format!("; comment\ntransport={}\n", bench.face()),
    )
    .expect("a file");
    let done = Command::new(BIN)
        .args(["fwd", "status"])
        .env_remove("TRUNKLINE_FACE")
        .env("HOME", &home)
        .output()
        .expect("a process");
    assert!(done.status.success(), "{}", text(&done.stderr));
}

#[test]
fn configurations_are_checked() {
    let bench = Bench::without_forwarder();
    let good = format!("[[face]]\nlisten = \"{}\"\n", bench.face());
    std::fs::write(bench.path("good.toml"), &good).expect("a file");
    bench.ok(&["fwd", "run", "--check", "--config", "good.toml"]);
    assert!(!bench.socket().exists(), "--check opened the socket");
    for (name, content, words) in [
        (
            "key.toml",
            format!("{good}[pit]\ncapasity = 3\n"),
            ["key.toml:4", "did you mean `capacity`"],
        ),
        (
            "uri.toml",
            String::from("[[face]]\nlisten = \"smoke:signals\"\n"),
            ["uri.toml:2", "smoke"],
        ),
        (
            "toml.toml",
            String::from("[[face\n"),
            ["toml.toml:1", "not TOML"],
        ),
        ("face.toml", String::new(), ["face.toml", "no [[face]]"]),
        (
            "memory.toml",
            format!("{good}[memory]\ncapacity = \"1GiB\"\n[send_queues]\ncapacity = \"1GiB\"\n"),
            ["memory.toml", "capacity"],
        ),
    ] {
        std::fs::write(bench.path(name), content).expect("a file");
        for arguments in [
            &["fwd", "run", "--config", name][..],
            &["fwd", "run", "--check", "--config", name],
        ] {
            let (code, said) = bench.fails(arguments);
            assert_eq!(code, 2, "{said}");
            for word in words {
                assert!(said.contains(word), "{said}");
            }
        }
    }
    let (code, said) = bench.fails(&["fwd", "run", "--config", "missing.toml"]);
    assert_eq!(code, 2);
    assert!(
        said.contains("missing.toml") && said.contains("fwd.sample.toml"),
        "{said}"
    );
}

#[test]
fn a_listener_that_is_taken_is_named() {
    let bench = Bench::start("");
    let (code, said) = bench.fails(&["fwd", "run", "--config", "fwd.toml"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains(&bench.face()), "{said}");
    bench.ok(&["fwd", "status"]);
}

#[test]
fn who_has_the_management_key_commands_and_nobody_else() {
    let mut bench = Bench::start("");
    bench.ok(&["keygen", "ed25519", "admin"]);
    bench.ok(&["keygen", "ed25519", "mallory"]);
    let config = std::fs::read_to_string(bench.path("fwd.toml")).expect("a configuration");
    let config = format!("{config}\n[management]\nkey = \"admin.pub\"\nlocalhop = true\n");
    std::fs::write(bench.path("fwd.toml"), config).expect("written");
    bench.restart();
    let change = ["fwd", "cs", "config", "--capacity", "1MiB"];
    for wrong in [&[][..], &["--command-key", "ed25519:mallory"]] {
        let (code, said) = bench.fails(&[&change[..], wrong].concat());
        assert_eq!(code, 1);
        assert!(
            said.contains("403") && said.contains("--command-key"),
            "{said}"
        );
    }
    bench.ok(&[&change[..], &["--command-key", "ed25519:admin"]].concat());
    assert_eq!(
        bench.json(&["fwd", "cs", "info", "--json"])["capacity"],
        1 << 20,
        "anybody reads"
    );

    // Programs of this host register by the key as well.
    bench.file("source", 1000);
    let (_, said) = bench.fails(&["put", "/t/object", "source"]);
    assert!(said.contains("403"), "{said}");
    let (_put, _) = bench.serve(&[
        "put",
        "/t/object",
        "source",
        "--command-key",
        "ed25519:admin",
    ]);
    bench.ok(&["get", "/t/object", "-o", "copy"]);

    std::fs::remove_file(bench.path("admin.pub")).expect("removed");
    let (code, said) = bench.fails(&["fwd", "run", "--check", "--config", "fwd.toml"]);
    assert_eq!(code, 2);
    assert!(
        said.contains("management.key") && said.contains("admin.pub"),
        "{said}"
    );
}
