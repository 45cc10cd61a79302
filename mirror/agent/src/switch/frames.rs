//! What frames say of who is at a port: LLDP of other switches, ARP and neighbour discovery of hosts. Strangers make them,
//! so what is malformed says nothing, and nothing of a frame is kept but what is named here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::layout::MARK;

/// An Ethernet address.
pub type Mac = [u8; 6];

/// Octets of a frame that are looked at; LLDP of ours is shorter.
pub const SNAP: usize = 256;

const LLDP: [u8; 2] = [0x88, 0xcc];
const ARP: [u8; 2] = [0x08, 0x06];
const IPV6: [u8; 2] = [0x86, 0xdd];
const ICMPV6: u8 = 58;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// The controller's own TLV: organisation and subtype, then datapath id and port.
const ORIGIN: [u8; 4] = [0x02, 0x74, 0x72, 1];
const ORIGIN_OCTETS: usize = 12;

/// A switch and its port, as its LLDP says it: whether that is true the controller can tell.
pub type Origin = [u8; ORIGIN_OCTETS];

/// What a frame says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Another switch is at the other end of the cable, or one who says so.
    Switch(Origin),
    /// A host is behind the port.
    Host {
        /// Its Ethernet address.
        mac: Mac,
        /// The IP address that it says to have.
        address: IpAddr,
    },
}

/// Reads a frame.
#[must_use]
pub fn read(frame: &[u8]) -> Option<Heard> {
    let mac: Mac = frame.get(6..12)?.try_into().ok()?;
    match frame.get(12..14)?.try_into().ok()? {
        LLDP => origin(frame.get(14..)?).map(Heard::Switch),
        _ if !is_host(&mac) => None,
        ARP => arp(frame, &mac).map(|address| Heard::Host { mac, address }),
        IPV6 => neighbour(frame).map(|address| Heard::Host { mac, address }),
        _ => None,
    }
}

/// Whether a host may have this address: it is one host's, and no mark.
#[must_use]
pub fn is_host(mac: &Mac) -> bool {
    mac[0] & 1 == 0 && *mac != [0; 6] && mac[..3] != MARK
}

/// As people write it.
#[must_use]
pub fn mac_text(mac: &Mac) -> String {
    mac.map(|octet| format!("{octet:02x}")).join(":")
}

/// From that.
#[must_use]
pub fn mac_of(text: &str) -> Option<Mac> {
    let octets: Vec<u8> = text
        .split(':')
        .map(|pair| {
            let is_pair = pair.len() == 2 && pair.bytes().all(|c| c.is_ascii_hexdigit());
            is_pair.then(|| u8::from_str_radix(pair, 16).ok())?
        })
        .collect::<Option<_>>()?;
    octets.try_into().ok()
}

/// The values of LLDP follow one another, each behind a type of 7 bits and a length of 9.
fn origin(mut values: &[u8]) -> Option<Origin> {
    loop {
        let head = u16::from_be_bytes(values.get(..2)?.try_into().ok()?);
        let (kind, length) = (head >> 9, usize::from(head & 0x1ff));
        let value = values.get(2..2 + length)?;
        match kind {
            0 => return None,
            127 if value.starts_with(&ORIGIN) => {
                return value.get(4..4 + ORIGIN_OCTETS)?.try_into().ok();
            }
            _ => values = values.get(2 + length..)?,
        }
    }
}

/// Whose hardware address is not the frame's speaks for another.
fn arp(frame: &[u8], mac: &Mac) -> Option<IpAddr> {
    let body = frame.get(14..42)?;
    if body[..6] != [0, 1, 8, 0, 6, 4] || body[8..14] != mac[..] {
        return None;
    }
    let address = Ipv4Addr::from(<[u8; 4]>::try_from(&body[14..18]).ok()?);
    let first = address.octets()[0];
    (first != 0 && first != 127 && first < 224).then_some(address.into())
}

fn neighbour(frame: &[u8]) -> Option<IpAddr> {
    const HOPS: u8 = 255; // from no further than the cable (RFC 4861, 7.1)
    if frame.len() < 78 || frame[20] != ICMPV6 || frame[21] != HOPS {
        return None;
    }
    let at = match frame[54] {
        SOLICITATION => 22,
        ADVERTISEMENT => 62,
        _ => return None,
    };
    let address = Ipv6Addr::from(<[u8; 16]>::try_from(&frame[at..at + 16]).ok()?);
    let is_one = !(address.is_unspecified() || address.is_multicast() || address.is_loopback());
    is_one.then_some(address.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Mac = [2, 0, 0, 0, 0, 9];

    fn frame(kind: [u8; 2], source: Mac, body: &[u8]) -> Vec<u8> {
        [&[0xff; 6][..], &source, &kind, body].concat()
    }

    fn asks(source: Mac, hardware: Mac, address: [u8; 4]) -> Vec<u8> {
        let body = [
            &[0, 1, 8, 0, 6, 4, 0, 1][..],
            &hardware,
            &address,
            &[0; 6],
            &[10, 0, 0, 1],
        ]
        .concat();
        frame(ARP, source, &body)
    }

    fn solicits(kind: u8, from: Ipv6Addr, target: Ipv6Addr, hops: u8) -> Vec<u8> {
        let body = [
            &[0x60, 0, 0, 0, 0, 24, ICMPV6, hops][..],
            &from.octets(),
            &Ipv6Addr::LOCALHOST.octets(),
            &[kind, 0, 0, 0, 0, 0, 0, 0],
            &target.octets(),
        ]
        .concat();
        frame(IPV6, HOST, &body)
    }

    fn lldp(values: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        for (kind, value) in values {
            body.extend((kind << 9 | value.len() as u16).to_be_bytes());
            body.extend(*value);
        }
        frame(LLDP, HOST, &body)
    }

    #[test]
    fn hosts_are_known_by_what_they_ask_and_answer() {
        let four = IpAddr::from([10, 0, 0, 9]);
        let said = read(&asks(HOST, HOST, [10, 0, 0, 9]));
        let host = |address| Some(Heard::Host { mac: HOST, address });
        assert_eq!(said, host(four));
        let (a, b): (Ipv6Addr, Ipv6Addr) =
            ("fd00::9".parse().expect("a"), "fd00::1".parse().expect("b"));
        assert_eq!(read(&solicits(SOLICITATION, a, b, 255)), host(a.into()));
        assert_eq!(read(&solicits(ADVERTISEMENT, a, b, 255)), host(b.into()));
    }

    #[test]
    fn who_speaks_for_others_or_from_afar_says_nothing() {
        let other = [2, 0, 0, 0, 0, 8];
        let a: Ipv6Addr = "fd00::9".parse().expect("an address");
        for silent in [
            asks(HOST, other, [10, 0, 0, 9]),
            asks([1, 0, 0, 0, 0, 9], [1, 0, 0, 0, 0, 9], [10, 0, 0, 9]),
            asks(
                [2, 0x4d, 0x52, 0, 0, 0],
                [2, 0x4d, 0x52, 0, 0, 0],
                [10, 0, 0, 9],
            ),
            asks(HOST, HOST, [0; 4]),
            asks(HOST, HOST, [224, 0, 0, 1]),
            solicits(SOLICITATION, a, a, 64),
            solicits(SOLICITATION, Ipv6Addr::UNSPECIFIED, a, 255),
            solicits(133, a, a, 255),
        ] {
            assert_eq!(read(&silent), None, "{silent:?}");
        }
    }

    #[test]
    fn a_switch_says_which_it_is() {
        let ours = [&ORIGIN[..], &[7; ORIGIN_OCTETS], &[0; 20]].concat();
        let frame = lldp(&[
            (1, b"\x07x"),
            (2, b"\x07y"),
            (3, &[0, 120]),
            (127, &ours),
            (0, b""),
        ]);
        assert_eq!(read(&frame), Some(Heard::Switch([7; ORIGIN_OCTETS])));
        let theirs = [&[0, 0x80, 0xc2, 1][..], &[7; ORIGIN_OCTETS]].concat();
        for strange in [
            lldp(&[(1, b"\x07x"), (127, &theirs), (0, b"")]),
            lldp(&[(0, b""), (127, &ours)]),
            lldp(&[(127, &ORIGIN)]),
        ] {
            assert_eq!(read(&strange), None);
        }
    }

    #[test]
    fn what_is_cut_short_says_nothing_and_does_no_harm() {
        let a: Ipv6Addr = "fd00::9".parse().expect("an address");
        let ours = [&ORIGIN[..], &[7; ORIGIN_OCTETS]].concat();
        for whole in [
            asks(HOST, HOST, [10, 0, 0, 9]),
            solicits(SOLICITATION, a, a, 255),
            lldp(&[(1, b"\x07x"), (127, &ours)]),
        ] {
            for end in 0..whole.len() {
                assert_eq!(read(&whole[..end]), None, "{end}");
            }
        }
        let mut dice = fastrand::Rng::with_seed(3);
        for _ in 0..20_000 {
            let octets: Vec<u8> = (0..dice.usize(..SNAP)).map(|_| dice.u8(..)).collect();
            for kind in [LLDP, ARP, IPV6] {
                let _ = read(&frame(kind, HOST, &octets));
            }
        }
    }

    #[test]
    fn addresses_are_read_as_written() {
        assert_eq!(mac_of(&mac_text(&HOST)), Some(HOST));
        for wrong in [
            "",
            "02:00",
            "02:00:00:00:00:0g",
            "02:00:00:00:00:00:01",
            "+2:00:00:00:00:09",
        ] {
            assert_eq!(mac_of(wrong), None, "{wrong}");
        }
    }
}
