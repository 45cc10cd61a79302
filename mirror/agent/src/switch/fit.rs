//! Has a request be one that the controller takes: it reads so many octets, and so many of each kind.

use super::wire::Request;

/// Octets of a request.
const BODY: usize = 256 << 10;
/// Ports of a bridge: a Linux bridge has 1023 at most.
pub const MOST_PORTS: usize = 1024;
/// Switches that are heard.
pub const MOST_HEARD: usize = 128;
/// Replicas that are named, as a rule and where there is little room.
pub const MOST_REPLICAS: usize = 1024;
const FEW_REPLICAS: usize = 256;
/// Characters of a reason where there is little room.
const SHORT: usize = 40;

/// Leaves out what is missed least, until the controller takes it. Whether hosts are in it still: otherwise they go with
/// the next one.
pub fn fit(request: &mut Request) -> bool {
    let steps: [fn(&mut Request); 3] = [
        |request| request.hosts.clear(),
        |request| {
            for failed in &mut request.failed {
                failed.why = failed.why.chars().take(SHORT).collect();
            }
        },
        |request| request.copies_to.truncate(FEW_REPLICAS),
    ];
    let mut untouched = true;
    for step in steps {
        if octets(request) <= BODY {
            break;
        }
        step(request);
        untouched = false;
    }
    untouched
}

fn octets(request: &Request) -> usize {
    // What can't be written is not sent either.
    serde_json::to_vec(request).map_or(0, |text| text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::wire::{Failed, HeardAt, HostAt, Segments, hex, port_says};
    use crate::wire::{Connection, Place};
    use std::net::IpAddr;

    const NUMBER: u32 = i32::MAX as u32;

    fn address() -> IpAddr {
        "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"
            .parse()
            .expect("one")
    }

    /// All that the session puts into one, each as long as it may be.
    fn longest() -> Request {
        let place = Place {
            address: address(),
            port: 60_000,
        };
        let failed = Failed {
            of: Segments {
                port: NUMBER,
                marked: false,
                connection: Connection {
                    source: place,
                    destination: place,
                },
            },
            why: "y".repeat(255),
        };
        let heard = HeardAt {
            port: NUMBER,
            frame: hex(&[0xff; 256]),
        };
        let host = HostAt {
            port: NUMBER,
            mac: "02:00:00:00:00:01".into(),
            address: Some(address()),
        };
        // The longest name that Linux allows, of what JSON needs six characters for.
        let port = port_says(NUMBER, &"\u{1}".repeat(15), &[2, 0, 0, 0, 0, 1], false);
        Request {
            run: "r".repeat(64),
            dpid: "0".repeat(16),
            seen: u64::MAX >> 1,
            controller: "c".repeat(64),
            wait_ms: 30_000,
            ports: Some(vec![port; MOST_PORTS]),
            heard: Some(vec![heard; MOST_HEARD]),
            hosts: vec![host; 512],
            copies_to: vec![address(); MOST_REPLICAS],
            failed: vec![failed; 256],
            leaving: false,
        }
    }

    #[test]
    fn the_longest_request_is_one_that_the_controller_takes() {
        let mut request = longest();
        assert!(octets(&request) > BODY);
        assert!(!fit(&mut request), "hosts wait");
        assert!(octets(&request) <= BODY, "{} octets", octets(&request));
        let counts = (request.ports.map(|all| all.len()), request.failed.len());
        assert_eq!(
            counts,
            (Some(MOST_PORTS), 256),
            "none that failed is left out"
        );
    }

    #[test]
    fn a_bridge_with_all_the_ports_that_it_can_have_is_told_whole() {
        let mut request = Request {
            heard: Some(vec![]),
            failed: vec![],
            copies_to: vec![],
            ..longest()
        };
        let whole = request.clone();
        assert!(fit(&mut request));
        assert_eq!(request, whole);
    }
}
