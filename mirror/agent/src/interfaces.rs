//! The network interfaces of this host, as rtnetlink(7) has them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::netlink::{Body, Socket, attribute, i32_at, text, u16_at, u32_at};

const LINK_HEADER: usize = 16;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_GSO_MAX_SIZE: u16 = 41;
const IFLA_GSO_IPV4_MAX_SIZE: u16 = 63;
const ADDRESS_HEADER: usize = 8;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// Scopes that reach no further than the cable.
const RT_SCOPE_LINK: u8 = 253;

/// An interface, and what of it matters to mirrored replication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Whether it is the loopback.
    pub loopback: bool,
    /// Whether it is switched on.
    pub up: bool,
    /// Octets of the largest packet.
    pub mtu: u32,
    /// Octets of the largest super-segment, in IPv6 and where nothing else is said.
    pub gso_max_size: u32,
    /// The same in IPv4, on kernels that tell them apart.
    pub gso_ipv4_max_size: Option<u32>,
    /// What made it: `vlan`, `bond`, `veth`; none for a NIC.
    pub kind: Option<String>,
    /// The bond or bridge that it is a port of, by number.
    pub master: Option<u32>,
    /// Its Ethernet address.
    pub mac: Vec<u8>,
    /// Its addresses, but for those that reach no further than the cable.
    pub addresses: Vec<IpAddr>,
}

/// All interfaces of this network namespace.
///
/// # Errors
/// The kernel refuses.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut socket = Socket::route()?;
    let links = socket.dump(
        libc::RTM_GETLINK,
        &Body::default().octets(&[0; LINK_HEADER]),
    )?;
    let mut found: Vec<Interface> = links.iter().filter_map(|(_, body)| link(body)).collect();
    let body = Body::default().octets(&[0; ADDRESS_HEADER]);
    for (_, body) in socket.dump(libc::RTM_GETADDR, &body)? {
        if let Some((index, address)) = address(&body)
            && let Some(interface) = found.iter_mut().find(|i| i.index == index)
        {
            interface.addresses.push(address);
        }
    }
    Ok(found)
}

/// The interface of this name.
///
/// # Errors
/// There is none, or the kernel refuses.
pub fn interface(name: &str) -> io::Result<Interface> {
    let all = interfaces()?;
    let names: Vec<_> = all.iter().map(|i| i.name.clone()).collect();
    all.into_iter().find(|i| i.name == name).ok_or_else(|| {
        let names = names.join(", ");
        io::Error::new(
            io::ErrorKind::NotFound,
            format!("no such interface; there are {names}"),
        )
    })
}

/// Whether there is an interface of this number, as far as can be told.
#[must_use]
pub fn is_there(index: u32) -> bool {
    let body = Body::default().octets(&[0; 4]).u32(index).octets(&[0; 8]);
    let asked = Socket::route().and_then(|mut socket| socket.ask_one(libc::RTM_GETLINK, 0, &body));
    !asked.is_err_and(|error| error.raw_os_error() == Some(libc::ENODEV))
}

/// Lowers the size of an interface's super-segments.
///
/// # Errors
/// The kernel refuses.
pub fn set_gso_max_size(interface: &Interface, octets: u32) -> io::Result<()> {
    let mut body = Body::default()
        .octets(&[0; 4])
        .u32(interface.index)
        .octets(&[0; 8])
        .attribute(IFLA_GSO_MAX_SIZE, &octets.to_ne_bytes());
    if interface
        .gso_ipv4_max_size
        .is_some_and(|size| size > octets)
    {
        body = body.attribute(IFLA_GSO_IPV4_MAX_SIZE, &octets.to_ne_bytes());
    }
    Socket::route()?.ask_one(libc::RTM_SETLINK, 0, &body)?;
    Ok(())
}

fn link(body: &[u8]) -> Option<Interface> {
    let index = u32::try_from(i32_at(body, 4)?).ok()?;
    let flags = u32_at(body, 8)?;
    let ethernet = u16_at(body, 2)? == libc::ARPHRD_ETHER;
    let attributes = body.get(LINK_HEADER..)?;
    let number = |kind| attribute(attributes, kind).and_then(|v| u32_at(v, 0));
    let info = attribute(attributes, IFLA_LINKINFO);
    Some(Interface {
        index,
        name: text(attribute(attributes, IFLA_IFNAME)?),
        loopback: flags & libc::IFF_LOOPBACK as u32 != 0,
        up: flags & libc::IFF_UP as u32 != 0,
        mtu: number(IFLA_MTU).unwrap_or(0),
        gso_max_size: number(IFLA_GSO_MAX_SIZE).unwrap_or(0),
        gso_ipv4_max_size: number(IFLA_GSO_IPV4_MAX_SIZE),
        kind: info.and_then(|info| attribute(info, IFLA_INFO_KIND).map(text)),
        master: number(IFLA_MASTER).filter(|master| *master != 0),
        mac: attribute(attributes, IFLA_ADDRESS)
            .filter(|_| ethernet)
            .unwrap_or_default()
            .to_vec(),
        addresses: Vec::new(),
    })
}

fn address(body: &[u8]) -> Option<(u32, IpAddr)> {
    let (family, scope) = (i32::from(*body.first()?), *body.get(3)?);
    if scope >= RT_SCOPE_LINK {
        return None;
    }
    let attributes = body.get(ADDRESS_HEADER..)?;
    let value = attribute(attributes, IFA_LOCAL).or_else(|| attribute(attributes, IFA_ADDRESS))?;
    let address = match family {
        libc::AF_INET => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?)),
        libc::AF_INET6 => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?)),
        _ => return None,
    };
    Some((u32_at(body, 4)?, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_found() {
        let all = interfaces().expect("interfaces");
        let loopback = all.iter().find(|i| i.loopback).expect("a loopback");
        assert_eq!((loopback.name.as_str(), loopback.index), ("lo", 1));
        assert!(
            loopback.mtu > 0 && loopback.gso_max_size > 0,
            "{loopback:?}"
        );
        assert!(is_there(1) && !is_there(i32::MAX as u32));
        let error = interface("nosuch0").expect_err("there is none");
        assert!(error.to_string().contains("there are"), "{error}");
    }
}
