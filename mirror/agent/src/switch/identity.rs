//! Which switch a bridge is to the controller: the Ethernet address that it had when the program was attached first. Linux
//! gives a bridge another one when ports come and go, unless somebody has set it; so it is written down in the pins.

use serde::{Deserialize, Serialize};

use super::frames::Mac;

/// What is written down, as long as the pins are there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The bridge's name.
    pub bridge: String,
    /// Its datapath id, 16 hex digits.
    pub dpid: String,
}

impl Identity {
    /// Of a bridge that has this address now: what was written down for it, or else what is to be.
    #[must_use]
    pub fn of(kept: Option<Self>, bridge: &str, mac: &Mac) -> Self {
        let is_one = |kept: &Self| kept.bridge == bridge && kept.number().is_some();
        kept.filter(is_one).unwrap_or_else(|| Self {
            bridge: bridge.to_owned(),
            dpid: format!("{:016x}", number(mac)),
        })
    }

    /// The datapath id; `None` where it is none.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        let is_text = self.dpid.len() == 16 && self.dpid.bytes().all(|c| c.is_ascii_hexdigit());
        is_text.then(|| u64::from_str_radix(&self.dpid, 16).ok())?
    }

    /// Whether it is the address that the bridge has.
    #[must_use]
    pub fn is_of(&self, mac: &Mac) -> bool {
        self.number() == Some(number(mac))
    }
}

fn number(mac: &Mac) -> u64 {
    mac.iter()
        .fold(0, |number, octet| number << 8 | u64::from(*octet))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Mac = [2, 0, 0, 0, 0, 1];
    const LATER: Mac = [2, 0, 0, 0, 0, 2];

    #[test]
    fn the_first_address_is_kept_for_the_same_bridge() {
        let first = Identity::of(None, "br0", &FIRST);
        assert_eq!(
            (first.dpid.as_str(), first.number()),
            ("0000020000000001", Some(0x0200_0000_0001))
        );
        assert!(first.is_of(&FIRST));
        let later = Identity::of(Some(first.clone()), "br0", &LATER);
        assert_eq!(later, first);
        assert!(!later.is_of(&LATER));
        assert!(Identity::of(Some(first), "br1", &LATER).is_of(&LATER));
    }

    #[test]
    fn what_is_no_datapath_id_is_not_kept() {
        for dpid in [
            "",
            "2",
            "+000020000000001",
            "00000200000000zz",
            "00000000020000000001",
        ] {
            let kept = Identity {
                bridge: "br0".into(),
                dpid: dpid.into(),
            };
            assert!(
                Identity::of(Some(kept), "br0", &FIRST).is_of(&FIRST),
                "{dpid}"
            );
        }
    }
}
