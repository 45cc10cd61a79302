//! Who may have a face at a listener: so many in all, and of one address no more than its share.

use std::net::{IpAddr, Ipv6Addr};

use rustc_hash::FxHashMap;

use crate::config::ListenConfig;

/// The faces open at one listener, and the peers that got none.
#[derive(Debug, Default)]
pub(super) struct Admission {
    open: usize,
    by_network: FxHashMap<IpAddr, usize>,
    /// Peers refused for a bound or because the system had no room.
    pub refused: u64,
    /// Datagrams of strangers that were no packet.
    pub malformed: u64,
    /// Peers that have not proven who they are.
    pub unproven: u64,
}

/// Which bound is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// As many faces as there may be.
    OfListener,
    /// As many as one address may have.
    OfAddress,
}

impl Admission {
    /// Faces open now.
    pub fn open(&self) -> usize {
        self.open
    }

    /// What keeps a peer with this address from having a face, if anything does. Peers by Unix sockets have no address.
    pub fn full(&self, address: Option<IpAddr>, config: &ListenConfig) -> Option<Full> {
        let network = address.map(network);
        let own = network.and_then(|network| self.by_network.get(&network));
        if own.is_some_and(|own| *own >= config.max_faces_of_one_address()) {
            return Some(Full::OfAddress);
        }
        (self.open >= config.max_faces).then_some(Full::OfListener)
    }

    /// Whether a peer with this address may have a face; counted where it may not.
    pub fn admits(&mut self, address: Option<IpAddr>, config: &ListenConfig) -> bool {
        let admitted = self.full(address, config).is_none();
        self.refused += u64::from(!admitted);
        admitted
    }

    /// A face was made.
    pub fn came(&mut self, address: Option<IpAddr>) {
        self.open += 1;
        if let Some(address) = address {
            *self.by_network.entry(network(address)).or_default() += 1;
        }
    }

    /// A face is gone.
    pub fn left(&mut self, address: Option<IpAddr>) {
        self.open = self.open.saturating_sub(1);
        let Some(network) = address.map(network) else {
            return;
        };
        if let Some(own) = self.by_network.get_mut(&network) {
            *own -= 1;
            if *own == 0 {
                self.by_network.remove(&network);
            }
        }
    }
}

/// What counts as one address: one of IPv4, or the 64-bit prefix of an IPv6 network, all of which one host may have.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let prefix = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(prefix))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uri::FaceUri;

    fn config(max_faces: usize, per_address: Option<usize>) -> ListenConfig {
        let uri = FaceUri::parse("tcp://127.0.0.1:1").unwrap();
        ListenConfig {
            max_faces,
            max_faces_per_address: per_address,
            ..ListenConfig::new(uri)
        }
    }

    fn fill(admission: &mut Admission, address: &str, config: &ListenConfig) -> usize {
        let address = Some(address.parse().unwrap());
        let mut faces = 0;
        while admission.admits(address, config) {
            admission.came(address);
            faces += 1;
        }
        faces
    }

    #[test]
    fn one_address_does_not_take_all() {
        let mut admission = Admission::default();
        let config = config(16, None);
        assert_eq!(fill(&mut admission, "192.0.2.1", &config), 4);
        assert_eq!(fill(&mut admission, "::ffff:192.0.2.1", &config), 0);
        assert_eq!(fill(&mut admission, "192.0.2.2", &config), 4);
        assert_eq!(fill(&mut admission, "2001:db8::1", &config), 4);
        assert_eq!(fill(&mut admission, "2001:db8::ffff:2", &config), 0);
        assert_eq!(fill(&mut admission, "2001:db8:0:1::1", &config), 4);
        assert_eq!(fill(&mut admission, "192.0.2.3", &config), 0);
        assert_eq!((admission.open(), admission.refused), (16, 7));
        admission.left(Some("2001:db8::9".parse().unwrap()));
        assert_eq!(fill(&mut admission, "2001:db8::7", &config), 1);
    }

    #[test]
    fn the_share_is_a_setting_and_never_none() {
        let mut admission = Admission::default();
        assert_eq!(fill(&mut admission, "192.0.2.1", &config(16, Some(15))), 15);
        assert!(admission.admits(None, &config(16, Some(1))), "no address");
        assert_eq!(config(1, None).max_faces_of_one_address(), 1);
    }
}
