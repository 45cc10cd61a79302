//! The link service of one face: NDNLPv2 between packets and frames, agreement on packet
//! size, congestion marks, and the counters of all that.

use std::time::Duration;

use bytes::Bytes;
use ndn_forwarder::CongestionMarker;
use ndn_packet::lp::{LpPacket, Reassembler, ReassemblerConfig};
use ndn_packet::{MAX_JUMBO_PACKET, MAX_PACKET, NetKind, NetPacket, Packet};

use crate::config::LinkOptions;
use crate::face::hello::{Hello, MAX_HELLO_BYTES};

/// An incomplete packet is given up this long after its last fragment.
const REASSEMBLY_TIMEOUT: Duration = Duration::from_millis(500);

/// What a face has seen on its link. Packets by kind are counted by the forwarder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LinkCounters {
    /// Bytes received, link headers included.
    pub in_bytes: u64,
    /// Bytes sent, link headers included.
    pub out_bytes: u64,
    /// Frames that were no packet.
    pub malformed: u64,
    /// Frames or reassembled packets above the agreed size.
    pub oversize_in: u64,
    /// Packets not sent because they are above the agreed size.
    pub oversize_out: u64,
    /// Packets not sent because the queue was full or the face down.
    pub queue_drops: u64,
    /// Packets sent with a congestion mark set here.
    pub marks: u64,
    /// Packets put together from fragments.
    pub reassembled: u64,
    /// Packets given up because fragments were missing, contradictory or too many.
    pub reassembly_drops: u64,
    /// How often a permanent face was connected anew.
    pub reconnects: u64,
    /// Sends that the system refused, of one datagram or of several together; those are then
    /// sent one by one.
    pub send_errors: u64,
}

impl LinkCounters {
    /// The sum of both.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self {
            in_bytes: self.in_bytes + other.in_bytes,
            out_bytes: self.out_bytes + other.out_bytes,
            malformed: self.malformed + other.malformed,
            oversize_in: self.oversize_in + other.oversize_in,
            oversize_out: self.oversize_out + other.oversize_out,
            queue_drops: self.queue_drops + other.queue_drops,
            marks: self.marks + other.marks,
            reassembled: self.reassembled + other.reassembled,
            reassembly_drops: self.reassembly_drops + other.reassembly_drops,
            reconnects: self.reconnects + other.reconnects,
            send_errors: self.send_errors + other.send_errors,
        }
    }
}

/// What came out of one frame.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are of the large kind"
)]
pub(crate) enum Received {
    Packet(NetPacket),
    Hello(Hello),
    /// A fragment that was kept, or something dropped and counted.
    Nothing,
}

/// Link service of one face.
pub(crate) struct Link {
    jumbo: bool,
    /// Obey and give face ids in link headers: between a forwarder and local applications.
    pub local_fields: bool,
    said_hello: bool,
    peer_max: Option<usize>,
    reassembler: Option<Reassembler>,
    marker: CongestionMarker,
    pub counters: LinkCounters,
}

impl Link {
    /// The service of a stream face (no fragments) or of a datagram face.
    pub fn new(options: &LinkOptions, datagrams: bool) -> Self {
        let reassembler = datagrams.then(|| {
            Reassembler::new(ReassemblerConfig {
                max_packets: options.reassembly_messages,
                max_bytes: options.reassembly_bytes,
                timeout: REASSEMBLY_TIMEOUT,
                ..ReassemblerConfig::default()
            })
        });
        Self {
            jumbo: options.jumbo,
            local_fields: false,
            said_hello: false,
            peer_max: None,
            reassembler,
            marker: CongestionMarker::new(options.mark_threshold_bytes),
            counters: LinkCounters::default(),
        }
    }

    /// Largest frame, in bytes, that both ends have agreed to.
    pub fn limit(&self) -> usize {
        match self.peer_max {
            Some(max) if self.said_hello && self.jumbo => max.clamp(MAX_PACKET, MAX_JUMBO_PACKET),
            _ => MAX_PACKET,
        }
    }

    /// What we say of ourselves; `None` where there is nothing to offer.
    pub fn hello(&mut self, shm_able: bool) -> Option<Hello> {
        if !self.jumbo && !shm_able {
            return None;
        }
        self.said_hello = true;
        self.agree();
        let max_packet = self.jumbo.then_some(MAX_JUMBO_PACKET as u64);
        Some(Hello {
            max_packet,
            shm_able,
            ..Hello::default()
        })
    }

    /// Whether we have introduced ourselves on this connection.
    pub fn said_hello(&self) -> bool {
        self.said_hello
    }

    /// Whether the peer has agreed to more than the standard packet size.
    pub fn is_jumbo(&self) -> bool {
        self.limit() > MAX_PACKET
    }

    fn agree(&mut self) {
        let limit = self.limit();
        if let Some(reassembler) = &mut self.reassembler {
            reassembler.set_max_packet_size(limit);
        }
    }

    /// Takes one frame: a whole TLV of a stream, or a datagram from `sender`.
    pub fn receive(&mut self, now: Duration, sender: u64, frame: Bytes) -> Received {
        self.counters.in_bytes += frame.len() as u64;
        let Some(&first) = frame.first() else {
            self.counters.malformed += 1;
            return Received::Nothing;
        };
        let packet = if first == ndn_packet::tlv::types::LP_PACKET as u8 {
            let small = (frame.len() <= MAX_HELLO_BYTES).then(|| frame.clone());
            let Ok(lp) = LpPacket::decode(frame) else {
                self.counters.malformed += 1;
                return Received::Nothing;
            };
            if lp.fragment.is_none() {
                return small.map_or(Received::Nothing, |frame| self.receive_idle(&frame));
            }
            let Some(lp) = self.reassemble(now, sender, lp) else {
                return Received::Nothing;
            };
            NetPacket::from_lp(lp)
        } else {
            Packet::parse(frame).map(|packet| {
                Some(NetPacket::new(match packet {
                    Packet::Interest(interest) => NetKind::Interest(interest),
                    Packet::Data(data) => NetKind::Data(data),
                }))
            })
        };
        match packet {
            Ok(Some(mut packet)) => {
                if packet.wire().len() > self.limit() {
                    self.counters.oversize_in += 1;
                    return Received::Nothing;
                }
                if !self.local_fields {
                    packet.incoming_face = None;
                    packet.next_hop_face = None;
                }
                Received::Packet(packet)
            }
            Ok(None) => Received::Nothing,
            Err(_) => {
                self.counters.malformed += 1;
                Received::Nothing
            }
        }
    }

    fn receive_idle(&mut self, frame: &Bytes) -> Received {
        let Ok(hello) = Hello::decode(frame) else {
            self.counters.malformed += 1;
            return Received::Nothing;
        };
        if let Some(max) = hello.max_packet {
            self.peer_max = Some(usize::try_from(max).unwrap_or(usize::MAX));
            self.agree();
        }
        Received::Hello(hello)
    }

    fn reassemble(&mut self, now: Duration, sender: u64, lp: LpPacket) -> Option<LpPacket> {
        if lp.frag_count == 1 {
            return Some(lp);
        }
        let Some(reassembler) = &mut self.reassembler else {
            self.counters.malformed += 1;
            return None;
        };
        let whole = reassembler.receive(now, sender, lp);
        let done = reassembler.counters();
        self.counters.reassembled = done.completed;
        match whole {
            Ok(whole) => whole,
            Err(_) => {
                self.counters.reassembly_drops += 1;
                None
            }
        }
    }

    /// Changes when congestion is marked; `None` leaves a setting as it is.
    pub fn set_marking(
        &mut self,
        on: Option<bool>,
        interval: Option<Duration>,
        threshold_bytes: Option<usize>,
    ) {
        self.marker.set(on, interval, threshold_bytes);
    }

    /// Bytes waiting above which Data may be marked; `usize::MAX` where none is.
    pub fn mark_threshold(&self) -> usize {
        self.marker.threshold().unwrap_or(usize::MAX)
    }

    /// When [`Link::on_deadline`] has something to do.
    pub fn deadline(&self) -> Option<Duration> {
        self.reassembler.as_ref().and_then(Reassembler::deadline)
    }

    /// Gives up packets whose fragments did not come.
    pub fn on_deadline(&mut self, now: Duration) {
        if let Some(reassembler) = &mut self.reassembler {
            reassembler.on_deadline(now);
        }
    }

    /// The counters, those of reassembly included.
    pub fn counters(&self) -> LinkCounters {
        let mut counters = self.counters;
        if let Some(reassembler) = &self.reassembler {
            let done = reassembler.counters();
            counters.reassembly_drops += done.timed_out + done.evicted;
        }
        counters
    }

    /// The link packet for `packet`, marked where `waiting` bytes wait before it; `None` (and
    /// counted) where it is above the agreed size.
    pub fn wrap(&mut self, now: Duration, packet: &NetPacket, waiting: usize) -> Option<LpPacket> {
        let mut lp = packet.to_lp();
        if !self.local_fields {
            lp.incoming_face = None;
            lp.next_hop_face = None;
        }
        let len = packet.wire().len();
        if len + lp.header_len(len) > self.limit() {
            self.counters.oversize_out += 1;
            return None;
        }
        // Of a pair of Interest and Data the Data tells the consumer, and it is what fills the queue.
        if matches!(packet.packet, NetKind::Data(_)) && self.marker.marks(now, waiting) {
            lp.congestion_mark = Some(1);
            self.counters.marks += 1;
        }
        Some(lp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndn_packet::{Data, Interest, Name, PitToken, SigningKey};

    fn link() -> Link {
        Link::new(&LinkOptions::default(), true)
    }

    fn name() -> Name {
        "/a/b".parse().unwrap()
    }

    fn big_data(content: usize) -> NetPacket {
        let wire = Data::builder(&name())
            .content(&vec![7; content])
            .sign(&SigningKey::DigestSha256);
        NetPacket::data(Data::parse(wire).unwrap())
    }

    #[test]
    fn jumbo_needs_both() {
        let (mut a, mut b) = (link(), link());
        assert!(a.wrap(Duration::ZERO, &big_data(60_000), 0).is_none());
        let hello = Bytes::from(a.hello(false).unwrap().encode());
        assert!(!a.is_jumbo());
        assert!(matches!(
            b.receive(Duration::ZERO, 0, hello),
            Received::Hello(_)
        ));
        assert!(!b.is_jumbo());
        let hello = Bytes::from(b.hello(false).unwrap().encode());
        assert!(b.is_jumbo());
        a.receive(Duration::ZERO, 0, hello);
        assert!(a.is_jumbo());
        let frame = a
            .wrap(Duration::ZERO, &big_data(60_000), 0)
            .unwrap()
            .encode();
        assert!(matches!(
            b.receive(Duration::ZERO, 0, frame),
            Received::Packet(_)
        ));
        assert_eq!(a.counters.oversize_out, 1);
        let mut b = link();
        let frame = a
            .wrap(Duration::ZERO, &big_data(60_000), 0)
            .unwrap()
            .encode();
        assert!(matches!(
            b.receive(Duration::ZERO, 0, frame),
            Received::Nothing
        ));
        assert_eq!(b.counters.oversize_in, 1);
    }

    #[test]
    fn fields_pass_and_local_ones_do_not() {
        let (mut a, mut b) = (link(), link());
        let interest = Interest::parse(Interest::builder(&name()).nonce(1).build()).unwrap();
        let mut packet = NetPacket::interest(interest).with_pit_token(Some(PitToken::from_u48(9)));
        packet.next_hop_face = Some(300);
        let frame = a.wrap(Duration::ZERO, &packet, 0).unwrap().encode();
        let Received::Packet(got) = b.receive(Duration::ZERO, 0, frame.clone()) else {
            panic!("no packet")
        };
        assert_eq!(got.pit_token.and_then(|t| t.as_u48()), Some(9));
        assert_eq!(got.next_hop_face, None);
        (a.local_fields, b.local_fields) = (true, true);
        let frame = a.wrap(Duration::ZERO, &packet, 0).unwrap().encode();
        let Received::Packet(got) = b.receive(Duration::ZERO, 0, frame) else {
            panic!("no packet")
        };
        assert_eq!(got.next_hop_face, Some(300));
    }

    #[test]
    fn rubbish_is_counted() {
        let mut link = link();
        for frame in [
            &b""[..],
            b"\x05",
            b"\x06\x00",
            b"\x64\x01\x99",
            b"\x99\x01\x00",
            b"\x64\x03\x50\x01\x05",
        ] {
            assert!(matches!(
                link.receive(Duration::ZERO, 0, Bytes::copy_from_slice(frame)),
                Received::Nothing
            ));
        }
        assert_eq!(link.counters.malformed, 6);
    }
}
