//! A bridge of this network namespace as rtnetlink(7) has it: its ports, and which hosts it has learned behind them.

use std::io;

use super::frames::{Mac, is_host};
use crate::netlink::{Body, Socket, attribute, i32_at, text, u16_at, u32_at};

const LINK_HEADER: usize = 16;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_INFO_SLAVE_DATA: u16 = 5;
const IFLA_BR_VLAN_FILTERING: u16 = 7;
const IFLA_BRPORT_STATE: u16 = 1;
const FORWARDING: u8 = 3;
const IFF_LOWER_UP: u32 = 0x1_0000;
const NEIGHBOUR_HEADER: usize = 12;
const NDA_LLADDR: u16 = 2;
const NDA_MASTER: u16 = 9;
/// Of a bridge's own addresses.
const NUD_PERMANENT: u16 = 0x80;

/// A bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bridge {
    /// Its interface's number.
    pub index: u32,
    /// Its Ethernet address.
    pub mac: Mac,
    /// Whether it tells VLANs apart.
    pub vlan_filtering: bool,
    /// In the order of their numbers.
    pub ports: Vec<BridgePort>,
}

/// A port of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgePort {
    /// The interface's number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Its Ethernet address.
    pub mac: Mac,
    /// Whether the bridge forwards there, and there is somebody at the other end.
    pub up: bool,
}

/// Why there is nothing of a bridge.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// There is no such bridge.
    #[error("{0}")]
    Missing(String),
    /// The kernel does not say what there is.
    #[error("its ports can't be read: {0}")]
    Unread(#[from] io::Error),
}

impl BridgeError {
    /// What is known of the bridge now: only one that is missing has no ports.
    #[must_use]
    pub fn leaves(&self, before: &Bridge) -> Bridge {
        match self {
            Self::Missing(_) => Bridge::default(),
            Self::Unread(_) => before.clone(),
        }
    }
}

struct Link {
    number: u32,
    name: String,
    mac: Mac,
    up: bool,
    master: Option<u32>,
    is_bridge: bool,
    vlan_filtering: bool,
    forwarding: bool,
}

/// Reads the bridge of this name.
///
/// # Errors
/// There is none, or the kernel refuses.
pub fn bridge(name: &str) -> Result<Bridge, BridgeError> {
    let body = Body::default().octets(&[0; LINK_HEADER]);
    let answers = Socket::route()?.dump(libc::RTM_GETLINK, &body)?;
    let links: Vec<Link> = answers.iter().filter_map(|(_, body)| link(body)).collect();
    of(name, &links)
}

/// The bridge of this name among all interfaces.
fn of(name: &str, links: &[Link]) -> Result<Bridge, BridgeError> {
    let Some(bridge) = links.iter().find(|link| link.name == name) else {
        let bridges = links.iter().filter(|link| link.is_bridge);
        let names: Vec<_> = bridges.map(|link| link.name.as_str()).collect();
        let there = match names.as_slice() {
            [] => String::from("there is no bridge here"),
            names => format!("there are {}", names.join(", ")),
        };
        let missing = format!("no such interface; {there}");
        return Err(BridgeError::Missing(missing));
    };
    if !bridge.is_bridge {
        return Err(BridgeError::Missing(String::from("it is no bridge")));
    }
    let mut ports: Vec<_> = links
        .iter()
        .filter(|link| link.master == Some(bridge.number))
        .map(|link| BridgePort {
            number: link.number,
            name: link.name.clone(),
            mac: link.mac,
            up: link.up && link.forwarding,
        })
        .collect();
    ports.sort_by_key(|port| port.number);
    Ok(Bridge {
        index: bridge.number,
        mac: bridge.mac,
        vlan_filtering: bridge.vlan_filtering,
        ports,
    })
}

fn link(body: &[u8]) -> Option<Link> {
    let number = u32::try_from(i32_at(body, 4)?).ok()?;
    let flags = u32_at(body, 8)?;
    let own = body.get(LINK_HEADER..)?;
    let info = attribute(own, IFLA_LINKINFO).unwrap_or_default();
    let nested = |outer, inner| {
        attribute(info, outer)
            .and_then(|data| attribute(data, inner))
            .and_then(|value| value.first().copied())
    };
    let up = libc::IFF_UP as u32 | IFF_LOWER_UP;
    Some(Link {
        number,
        name: text(attribute(own, IFLA_IFNAME)?),
        mac: attribute(own, IFLA_ADDRESS)
            .and_then(|value| value.try_into().ok())
            .unwrap_or_default(),
        up: flags & up == up,
        master: attribute(own, IFLA_MASTER).and_then(|value| u32_at(value, 0)),
        is_bridge: attribute(info, IFLA_INFO_KIND).map(text).as_deref() == Some("bridge"),
        vlan_filtering: nested(IFLA_INFO_DATA, IFLA_BR_VLAN_FILTERING).is_some_and(|on| on != 0),
        forwarding: nested(IFLA_INFO_SLAVE_DATA, IFLA_BRPORT_STATE) == Some(FORWARDING),
    })
}

/// Hosts that the bridge has learned, and behind which port; `most` of them.
///
/// # Errors
/// The kernel refuses.
pub fn hosts(bridge: &Bridge, most: usize) -> io::Result<Vec<(Mac, u32)>> {
    // As struct ifinfomsg, which names the bridge that is meant.
    let body = Body::default()
        .octets(&[libc::AF_BRIDGE as u8])
        .octets(&[0; LINK_HEADER - 1])
        .attribute(IFLA_MASTER, &bridge.index.to_ne_bytes());
    let answers = Socket::route()?.dump(libc::RTM_GETNEIGH, &body)?;
    let learned = answers.iter().filter_map(|(_, body)| learned(body, bridge));
    Ok(learned.take(most).collect())
}

fn learned(body: &[u8], bridge: &Bridge) -> Option<(Mac, u32)> {
    let port = u32::try_from(i32_at(body, 4)?).ok()?;
    let own = body.get(NEIGHBOUR_HEADER..)?;
    // What a NIC keeps for itself has no master.
    let master = attribute(own, NDA_MASTER).and_then(|value| u32_at(value, 0));
    if u16_at(body, 8)? & NUD_PERMANENT != 0 || master != Some(bridge.index) {
        return None;
    }
    let mac: Mac = attribute(own, NDA_LLADDR)?.try_into().ok()?;
    is_host(&mac).then_some((mac, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_bridge_is_said() {
        let error = bridge("lo").expect_err("no bridge");
        assert_eq!(error.to_string(), "it is no bridge");
        let error = bridge("nosuch0").expect_err("none");
        assert!(
            error.to_string().contains("no such interface; there"),
            "{error}"
        );
    }

    #[test]
    fn ports_that_can_not_be_read_are_there_still() {
        let known = Bridge {
            index: 9,
            ports: vec![BridgePort {
                number: 3,
                name: "p3".into(),
                mac: [2, 0, 0, 0, 0, 3],
                up: true,
            }],
            ..Bridge::default()
        };
        let failed = BridgeError::from(io::Error::from_raw_os_error(libc::ENOBUFS));
        assert_eq!(failed.leaves(&known), known);
        let missing = of("br0", &[]).expect_err("none");
        assert_eq!(missing.leaves(&known), Bridge::default());
    }

    #[test]
    fn of_what_a_bridge_knows_hosts_are_taken() {
        let bridge = Bridge {
            index: 9,
            ..Bridge::default()
        };
        let entry = |state: u16, mac: Mac, master: u32| {
            Body::default()
                .octets(&[libc::AF_BRIDGE as u8, 0, 0, 0])
                .u32(3)
                .octets(&state.to_ne_bytes())
                .octets(&[0, 0])
                .attribute(NDA_LLADDR, &mac)
                .attribute(NDA_MASTER, &master.to_ne_bytes())
        };
        let host = [2, 0, 0, 0, 0, 1];
        let found = |body: &Body| learned(body.as_slice(), &bridge);
        assert_eq!(found(&entry(2, host, 9)), Some((host, 3)));
        assert_eq!(found(&entry(NUD_PERMANENT, host, 9)), None, "its own");
        assert_eq!(found(&entry(2, host, 8)), None, "another bridge's");
        assert_eq!(found(&entry(2, [0x33, 0x33, 0, 0, 0, 1], 9)), None);
        let whole = entry(2, host, 9);
        for end in 0..whole.as_slice().len() {
            assert_eq!(learned(&whole.as_slice()[..end], &bridge), None, "{end}");
        }
    }
}
