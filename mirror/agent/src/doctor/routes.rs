//! Routes, and the congestion control that one may have for its connections (ip-route(8), `congctl`).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::netlink::{Body, Socket, attribute, attributes, text, u32_at};

const HEADER: usize = 12;
/// Of struct rtmsg: its flags.
const FLAGS: std::ops::Range<usize> = 8..12;
const RTNH_F_ONLINK: u32 = 4;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_METRICS: u16 = 8;
const RTA_CACHEINFO: u16 = 12;
const RTA_TABLE: u16 = 15;
const RTAX_CC_ALGO: u16 = 16;
const NLM_F_REPLACE: u16 = 0x100;
const MAIN: u32 = 254;
const UNICAST: u8 = 1;

/// A route of the main table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// As people know it.
    pub text: String,
    /// The congestion control of its connections, where it says one.
    pub congestion: Option<String>,
    /// As the kernel told of it.
    message: Vec<u8>,
}

/// Those by these interfaces.
///
/// # Errors
/// The kernel refuses.
pub fn routes(interfaces: &[u32]) -> io::Result<Vec<Route>> {
    let body = Body::default().octets(&[0; HEADER]);
    let all = Socket::route()?.dump(libc::RTM_GETROUTE, &body)?;
    Ok(all
        .iter()
        .filter_map(|(_, body)| route(body, interfaces))
        .collect())
}

fn route(body: &[u8], interfaces: &[u32]) -> Option<Route> {
    let (family, length, table, kind) =
        (*body.first()?, *body.get(1)?, *body.get(4)?, *body.get(7)?);
    let own = body.get(HEADER..)?;
    let table = attribute(own, RTA_TABLE)
        .and_then(|v| u32_at(v, 0))
        .unwrap_or(table.into());
    let by = attribute(own, RTA_OIF).and_then(|v| u32_at(v, 0))?;
    if table != MAIN || kind != UNICAST || !interfaces.contains(&by) {
        return None;
    }
    let to = attribute(own, RTA_DST).and_then(address);
    if matches!(to, Some(IpAddr::V6(to)) if to.is_unicast_link_local()) {
        return None; // no DataNode is reached by that
    }
    let congestion = attribute(own, RTA_METRICS)
        .and_then(|metrics| attribute(metrics, RTAX_CC_ALGO))
        .map(text);
    let text = match to {
        Some(to) => format!("route {to}/{length}"),
        None if i32::from(family) == libc::AF_INET6 => String::from("IPv6's default route"),
        None => String::from("the default route"),
    };
    Some(Route {
        text,
        congestion,
        message: body.to_vec(),
    })
}

fn address(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?).into()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?).into()),
        _ => None,
    }
}

impl Route {
    /// Has its connections use a congestion control; all else stays.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_congestion(&self, algorithm: &str) -> io::Result<()> {
        let message = with_congestion(&self.message, algorithm);
        Socket::route()?.ask_one(libc::RTM_NEWROUTE, NLM_F_REPLACE, &message)?;
        Ok(())
    }
}

fn with_congestion(message: &[u8], algorithm: &str) -> Body {
    let own = message.get(HEADER..).unwrap_or_default();
    let mut metrics = Body::default();
    for (kind, value) in attributes(attribute(own, RTA_METRICS).unwrap_or_default()) {
        if kind != RTAX_CC_ALGO {
            metrics = metrics.attribute(kind, value);
        }
    }
    metrics = metrics.attribute(RTAX_CC_ALGO, &[algorithm.as_bytes(), &[0]].concat());
    let mut header = message.get(..HEADER).unwrap_or_default().to_vec();
    // What the kernel says of the link's state is not for it to be told.
    if let Some(flags) = header.get_mut(FLAGS) {
        let kept = u32_at(flags, 0).unwrap_or(0) & RTNH_F_ONLINK;
        flags.copy_from_slice(&kept.to_ne_bytes());
    }
    let mut body = Body::default().octets(&header);
    for (kind, value) in attributes(own) {
        if kind != RTA_METRICS && kind != RTA_CACHEINFO {
            body = body.attribute(kind, value);
        }
    }
    body.attribute(RTA_METRICS, metrics.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default_route() -> Vec<u8> {
        let mut header = [0; HEADER];
        (header[0], header[4], header[7]) = (libc::AF_INET as u8, MAIN as u8, UNICAST);
        let metrics = Body::default().attribute(2, &1400u32.to_ne_bytes());
        let body = Body::default()
            .octets(&header)
            .attribute(RTA_OIF, &7u32.to_ne_bytes())
            .attribute(RTA_METRICS, metrics.as_slice())
            .attribute(RTA_CACHEINFO, &[0; 32]);
        body.as_slice().to_vec()
    }

    #[test]
    fn a_route_gets_its_congestion_control_and_keeps_the_rest() {
        let message = default_route();
        assert_eq!(route(&message, &[8]), None);
        let before = route(&message, &[7]).expect("a route");
        assert_eq!(
            (before.text.as_str(), before.congestion.clone()),
            ("the default route", None)
        );
        let once = with_congestion(&message, "reno");
        let twice = with_congestion(once.as_slice(), "cubic");
        let after = route(twice.as_slice(), &[7]).expect("a route");
        assert_eq!(after.congestion.as_deref(), Some("cubic"));
        let own = &after.message[HEADER..];
        assert_eq!(
            attributes(own).map(|(kind, _)| kind).collect::<Vec<_>>(),
            [RTA_OIF, RTA_METRICS]
        );
        let metrics = attribute(own, RTA_METRICS).expect("metrics");
        assert_eq!(attribute(metrics, 2), Some(&1400u32.to_ne_bytes()[..]));
        assert_eq!(attributes(metrics).count(), 2);
    }
}
