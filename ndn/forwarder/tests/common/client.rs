//! A client of the management protocol on a local face.

use super::*;
use ndn_forwarder::mgmt::*;
use ndn_packet::{ComponentBuf, Data};

pub const UNIX: Duration = Duration::from_secs(1_700_000_000);

/// An application that manages the forwarder.
pub struct Client {
    pub w: World,
    pub face: FaceId,
    pub nonce: u64,
}

impl Client {
    pub fn new() -> Self {
        let mut w = World::new(|c| c.unix_time_at_zero = UNIX);
        let face = w.local();
        w.sent();
        Client { w, face, nonce: 0 }
    }

    pub fn signed(&mut self, name: &Name, key: &SigningKey) -> NetPacket {
        self.nonce += 1;
        let wire = command(name, key, self.nonce, UNIX + self.w.now, ms(4000));
        NetPacket::interest(Interest::parse(wire).unwrap())
    }

    pub fn command(&mut self, module: &str, verb: &str, p: ControlParameters) -> ControlResponse {
        let name = command_name(Scope::Localhost, module, verb, &p);
        let packet = self.signed(&name, &SigningKey::DigestSha256);
        self.answer_to(packet)
            .unwrap_or_else(|| panic!("no answer to {module}/{verb}"))
    }

    pub fn answer_to(&mut self, packet: NetPacket) -> Option<ControlResponse> {
        let sent = self.w.receive(self.face, packet);
        response_in(&sent)
    }

    pub fn dataset(&mut self, name: &str) -> Vec<u8> {
        self.dataset_named(&dataset_name(Scope::Localhost, name))
    }

    pub fn dataset_named(&mut self, name: &Name) -> Vec<u8> {
        self.nonce += 1;
        let wire = Interest::builder(name)
            .can_be_prefix(true)
            .must_be_fresh(true)
            .nonce(self.nonce as u32)
            .build();
        let mut data = self.ask(wire);
        let mut content = Vec::new();
        loop {
            content.extend_from_slice(data.content_slice());
            if data.is_final_block() {
                return content;
            }
            let segment = data.name().last().unwrap().as_segment().unwrap();
            let next = data
                .name()
                .parent()
                .append(ComponentBuf::segment(segment + 1));
            self.nonce += 1;
            data = self.ask(Interest::builder(&next).nonce(self.nonce as u32).build());
        }
    }

    pub fn ask(&mut self, wire: bytes::Bytes) -> Data {
        let sent = self.w.receive(
            self.face,
            NetPacket::interest(Interest::parse(wire).unwrap()),
        );
        let [
            (
                _,
                NetPacket {
                    packet: NetKind::Data(data),
                    ..
                },
            ),
        ] = &sent[..]
        else {
            panic!("{}", brief(&sent).join(", "))
        };
        assert!(data.verify_digest());
        data.clone()
    }

    pub fn rib(&mut self) -> Vec<RibEntry> {
        RibEntry::decode_all(&self.dataset("rib/list")).unwrap()
    }
}

pub fn response_in(sent: &[(FaceId, NetPacket)]) -> Option<ControlResponse> {
    sent.iter().find_map(|(_, packet)| match &packet.packet {
        NetKind::Data(data) => Some(ControlResponse::decode(data.content_slice()).unwrap()),
        _ => None,
    })
}

pub fn named(uri: &str) -> ControlParameters {
    ControlParameters {
        name: Some(name(uri)),
        ..Default::default()
    }
}
