//! Certificates that expire and CAs that are replaced, while links go on. Both ends are nodes and clients as they are used.

mod common;

use std::path::PathBuf;

use common::authority::{Authority, Files};
use common::tls::{ROUTER, connects, connects_on, credentials, listener, options, refusal};
use common::{client, eventually, faces, fetch, node, serve};
use ndn_io::ClientOptions;

#[test]
fn a_certificate_expires_on_either_end_and_links_go_on() {
    let authority = Authority::new();
    let files = authority.host_for_seconds(&ROUTER, 12);
    let node = node(vec![listener(&files)]);
    let _source = serve(&node, 1000);
    let to = &node.listening()[0];
    let short = options(&authority.host_for_seconds(&["short"], 8));
    let long = options(&authority.host(&["long"]));
    let mut standing = [client(to, &short), client(to, &long)];

    // First that of who connects, which the router refuses; then the router's.
    eventually("expired here", || !connects(to, &short));
    let said = refusal(to, &short);
    assert!(
        said.contains("certificate_expired") || said.contains("certificate expired on"),
        "{said}"
    );
    eventually("expired there", || !connects(to, &long));
    let said = refusal(to, &long);
    assert!(said.contains("the peer's certificate expired on"), "{said}");

    for client in &mut standing {
        fetch(client, 100, 1000, 8);
    }
    // A new one, and all is well.
    authority.renew(&files, &ROUTER, -1, 1);
    eventually("renewed", || connects(to, &long));
    for client in &mut standing {
        fetch(client, 100, 1000, 8);
    }
}

/// A file with the certificates of these CAs.
fn trusts(file: PathBuf, authorities: &[&Authority]) -> PathBuf {
    let text: String = authorities
        .iter()
        .map(|a| std::fs::read_to_string(a.path("ca.crt")).expect("a certificate"))
        .collect();
    std::fs::write(&file, text).expect("a file");
    file
}

/// As docs/tls.md has it: both CAs in one file, then other certificates, then the new CA alone.
#[test]
fn another_ca_takes_the_place_of_one_while_links_go_on() {
    let (old, new) = (Authority::new(), Authority::new());
    let own_ca = |files: Files, name: &str| Files {
        ca: trusts(old.path(name), &[&old]),
        ..files
    };
    let router = own_ca(old.host(&ROUTER), "router.ca");
    let host = own_ca(old.host(&["host1"]), "host1.ca");
    let node = node(vec![listener(&router)]);
    let _source = serve(&node, 1000);
    let to = &node.listening()[0];
    let mut by_host = ClientOptions::default();
    by_host.link.tls = Some(credentials(&host));
    let mut standing = client(to, &by_host);
    let face = faces(&node)[0].id;

    let with_ca = |files: Files, ca: PathBuf| options(&Files { ca, ..files });
    let both = || trusts(old.path("both.ca"), &[&old, &new]);
    // Those who have not come as far, and those who have come farther.
    let late = with_ca(old.host(&["late"]), both());
    let early = with_ca(new.host(&["early"]), both());
    let last = with_ca(new.host(&["last"]), new.path("ca.crt"));
    assert!(connects(to, &late) && !connects(to, &early));

    for files in [&router, &host] {
        trusts(files.ca.clone(), &[&old, &new]);
    }
    eventually("both CAs are trusted", || connects(to, &early));
    assert!(connects(to, &by_host) && connects(to, &late) && !connects(to, &last));

    new.renew(&router, &ROUTER, -1, 1);
    eventually("the router has its new certificate", || connects(to, &last));
    // The host may not have read its file again yet: at its second look.
    eventually("the host trusts the new CA", || connects(to, &by_host));
    assert!(connects(to, &late));
    new.renew(&host, &["host1", "new.host1"], -1, 1);
    eventually("the host has its new certificate", || {
        let _client = connects_on(to, &by_host);
        let faces = faces(&node);
        faces.iter().any(|f| f.spec.peer_names.len() == 2)
    });

    for files in [&router, &host] {
        trusts(files.ca.clone(), &[&new]);
    }
    eventually("the old CA is trusted no more", || !connects(to, &late));
    assert!(connects(to, &by_host) && connects(to, &early) && connects(to, &last));

    // The first link is the same as ever.
    fetch(&mut standing, 100, 1000, 8);
    assert!(faces(&node).iter().any(|f| f.id == face));
}
