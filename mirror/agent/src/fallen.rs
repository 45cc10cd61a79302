//! Which flows have fallen back to real sending, by the entries of the maps. Pure.

use std::net::SocketAddr;

use crate::layout::{Key, Rcv, RcvState, Snd, SndState};
use crate::wire::{Connection, Flow, Part, Place};
use crate::words::{REASON, word};

/// A listed flow that has fallen back: copies to it or past it do nothing from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallen {
    /// The flow.
    pub part: Part,
    /// What the log and the controller are told.
    pub why: String,
}

/// Those of the listed flows with an entry that has fallen back.
pub fn fallen(flows: &[Flow], snd: &[(Key, Snd)], rcv: &[(Key, Rcv)]) -> Vec<Fallen> {
    let snd = snd
        .iter()
        .filter(|(_, snd)| snd.state == SndState::Fallen as u8)
        .map(|(key, snd)| (*key, snd.reason));
    let rcv = rcv
        .iter()
        .filter(|(_, rcv)| rcv.state == RcvState::Fallen as u8)
        .map(|(key, rcv)| (*key, rcv.reason));
    let (snd, rcv): (Vec<_>, Vec<_>) = (snd.collect(), rcv.collect());
    if snd.is_empty() && rcv.is_empty() {
        return Vec::new();
    }
    let of = |entries: &[(Key, u8)], connection: Connection, what: &str| {
        let key = connection.key();
        let (_, reason) = entries.iter().find(|(other, _)| *other == key)?;
        let (source, destination) = (at(connection.source), at(connection.destination));
        let reason = word(&REASON, *reason);
        Some(format!(
            "{what}, {source} to {destination}, fell back to real sending: {reason}"
        ))
    };
    flows
        .iter()
        .filter_map(|flow| {
            let why = flow
                .send
                .and_then(|send| of(&snd, send, "the connection to the next replica"))
                .or_else(|| of(&rcv, flow.receive, "the connection that brings the block"))?;
            let part = flow.part();
            Some(Fallen { part, why })
        })
        .collect()
}

fn at(place: Place) -> SocketAddr {
    SocketAddr::new(place.address, place.port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Reason;

    fn connection(port: u16, to: &str) -> Connection {
        let place = |address: &str, port| Place {
            address: address.parse().expect("an address"),
            port,
        };
        Connection {
            source: place("10.0.0.1", port),
            destination: place(to, 9866),
        }
    }

    fn flow(id: &str, port: u16) -> Flow {
        Flow {
            id: id.into(),
            position: 1,
            receive: connection(port, "10.0.0.2"),
            send: Some(connection(port, "10.0.0.3")),
            lead: false,
            head: None,
        }
    }

    fn snd(of: &Flow, state: SndState, reason: Reason) -> (Key, Snd) {
        let value = Snd {
            state: state as u8,
            reason: reason as u8,
            ..Snd::announced(0)
        };
        (of.send.expect("one").key(), value)
    }

    fn rcv(of: &Flow, state: RcvState, reason: Reason) -> (Key, Rcv) {
        let value = Rcv {
            state: state as u8,
            reason: reason as u8,
            ..Rcv::announced(0, None)
        };
        (of.receive.key(), value)
    }

    #[test]
    fn a_listed_flow_of_which_either_side_has_fallen_is_named_with_the_reason() {
        let flows: Vec<_> = (1..=4).map(|n| flow(&format!("f{n}"), n)).collect();
        let unlisted = flow("gone", 9);
        let sending = [
            snd(&flows[0], SndState::Fallen, Reason::Gap),
            snd(&flows[1], SndState::Virtual, Reason::None),
            snd(&flows[2], SndState::Closed, Reason::None),
            snd(&unlisted, SndState::Fallen, Reason::Urgent),
        ];
        let receiving = [
            rcv(&flows[0], RcvState::InStep, Reason::None),
            rcv(&flows[1], RcvState::Fallen, Reason::Options),
            rcv(&flows[2], RcvState::OutOfStep, Reason::None),
        ];
        let told: Vec<_> = fallen(&flows, &sending, &receiving)
            .into_iter()
            .map(|fallen| (fallen.part.id, fallen.why))
            .collect();
        let wanted = [
            (
                "f1",
                "the connection to the next replica, 10.0.0.1:1 to 10.0.0.3:9866, fell back to real sending: gap",
            ),
            (
                "f2",
                "the connection that brings the block, 10.0.0.1:2 to 10.0.0.2:9866, fell back to real sending: options",
            ),
        ];
        assert_eq!(told, wanted.map(|(id, why)| (id.into(), why.into())));
    }
}
