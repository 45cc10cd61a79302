//! The link service of one face: NDNLPv2 between packets and frames, agreement on packet
//! size, congestion marks, and the counters of all that.

use std::time::Duration;

use bytes::Bytes;
use ndn_forwarder::CongestionMarker;
use ndn_packet::lp::{Lent, LpPacket, Reassembler, ReassemblerConfig, ReassemblyError};
use ndn_packet::{
    DecodeError, MAX_JUMBO_PACKET, MAX_PACKET, MAX_STREAM_PACKET, NetKind, NetPacket, Packet,
};

use crate::config::LinkOptions;
use crate::face::address_proof::AddressProof;
use crate::face::budget::Share;
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
    /// Packets lent: the peer was told where they lie in this process's memory.
    pub lent: u64,
    /// Packets that the peer has lent, copied or used where they lie.
    pub borrowed: u64,
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
            lent: self.lent + other.lent,
            borrowed: self.borrowed + other.borrowed,
        }
    }
}

/// What came out of one frame.
pub(crate) enum Received {
    Packet(NetPacket),
    /// The peer introduces itself, and is to be answered or not.
    Hello {
        hello: Hello,
        answer: bool,
    },
    /// The header of a packet that the peer has lent, to be taken with [`Link::receive_lent`].
    Lent(LpPacket, Lent),
    /// A fragment that was kept, or something dropped and counted.
    Nothing,
}

/// Incomplete packets of one face, within the face's bound and its share of the node's.
struct Reassembly {
    reassembler: Reassembler,
    max_bytes: usize,
    share: Share,
}

impl Reassembly {
    fn receive(
        &mut self,
        now: Duration,
        sender: u64,
        lp: LpPacket,
    ) -> Result<Option<LpPacket>, ReassemblyError> {
        let most = self.max_bytes.min(self.share.allowance());
        self.reassembler.set_max_bytes(most);
        let whole = self.reassembler.receive(now, sender, lp);
        self.count();
        whole
    }

    fn count(&mut self) {
        self.share.set(self.reassembler.memory());
    }
}

/// Link service of one face.
pub(crate) struct Link {
    jumbo: bool,
    /// Greatest packet in bytes, where the peer takes it too.
    most: usize,
    /// Obey and give face ids in link headers: between a forwarder and local applications.
    pub local_fields: bool,
    said_hello: bool,
    peer_max: Option<usize>,
    /// By datagrams: whether the peer receives where it sends from.
    proof: Option<AddressProof>,
    reassembly: Option<Reassembly>,
    marker: CongestionMarker,
    pub counters: LinkCounters,
}

impl Link {
    /// The service of a stream face: no fragments.
    pub fn new(options: &LinkOptions) -> Self {
        Self {
            jumbo: options.jumbo,
            most: MAX_STREAM_PACKET.min((options.send_queue_bytes / 2).max(MAX_JUMBO_PACKET)),
            local_fields: false,
            said_hello: false,
            peer_max: None,
            proof: None,
            reassembly: None,
            marker: CongestionMarker::new(options.mark_threshold_bytes),
            counters: LinkCounters::default(),
        }
    }

    /// The service of a face by datagrams. `challenge` must be a number that nobody can guess; incomplete packets take
    /// `share` of the node's bytes for them.
    pub fn by_datagrams(options: &LinkOptions, challenge: u64, share: Share) -> Self {
        Self {
            most: MAX_JUMBO_PACKET,
            proof: Some(AddressProof::new(challenge)),
            reassembly: Some(Reassembly {
                reassembler: Reassembler::new(ReassemblerConfig {
                    max_packets: options.reassembly_messages,
                    max_bytes: options.reassembly_bytes,
                    timeout: REASSEMBLY_TIMEOUT,
                    ..ReassemblerConfig::default()
                }),
                max_bytes: options.reassembly_bytes,
                share,
            }),
            ..Self::new(options)
        }
    }

    /// Largest frame, in bytes, that both ends have agreed to.
    pub fn limit(&self) -> usize {
        match self.peer_max {
            Some(max) if self.said_hello && self.jumbo => max.clamp(MAX_PACKET, self.most),
            _ => MAX_PACKET,
        }
    }

    /// Largest frame, in bytes, that may be sent: a peer that may be anywhere gets none beyond the standard's.
    fn limit_out(&self) -> usize {
        match &self.proof {
            Some(proof) if !proof.is_proven() => MAX_PACKET,
            _ => self.limit(),
        }
    }

    /// What we say of ourselves; `None` where there is nothing to offer. `asks` where it is not said in answer.
    pub fn hello(&mut self, shm_able: bool, asks: bool) -> Option<Hello> {
        if !self.jumbo && !shm_able {
            return None;
        }
        self.said_hello = true;
        self.agree();
        let mut hello = Hello {
            max_packet: self.jumbo.then_some(self.most as u64),
            shm_able,
            ..Hello::default()
        };
        if let Some(proof) = &self.proof {
            proof.put(&mut hello, asks);
        }
        Some(hello)
    }

    /// Offers no jumbo packets from now on: there is no memory for them.
    pub fn refuse_jumbo(&mut self) {
        self.jumbo = false;
    }

    /// Whether the peer has agreed to more than the standard packet size, and is where it says it is.
    pub fn is_jumbo(&self) -> bool {
        self.limit_out() > MAX_PACKET
    }

    /// Whether nothing is left to be said in hellos.
    pub fn is_settled(&self) -> bool {
        self.is_jumbo() && self.proof.as_ref().is_none_or(AddressProof::is_settled)
    }

    fn agree(&mut self) {
        let limit = self.limit();
        if let Some(reassembly) = &mut self.reassembly {
            reassembly.reassembler.set_max_packet_size(limit);
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
            let Ok(mut lp) = LpPacket::decode(frame) else {
                self.counters.malformed += 1;
                return Received::Nothing;
            };
            if lp.fragment.is_none()
                && let Some(lent) = lp.lent.take()
            {
                return Received::Lent(lp, lent);
            }
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
        self.received(packet)
    }

    /// Takes the rest of a packet that the peer has lent.
    pub fn receive_lent(&mut self, header: LpPacket, packet: Bytes) -> Received {
        self.counters.in_bytes += packet.len() as u64;
        self.counters.borrowed += 1;
        let lp = LpPacket {
            fragment: Some(packet),
            ..header
        };
        self.received(NetPacket::from_lp(lp))
    }

    fn received(&mut self, packet: Result<Option<NetPacket>, DecodeError>) -> Received {
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
        let asked = self
            .proof
            .as_mut()
            .is_some_and(|proof| proof.on_hello(&hello));
        Received::Hello {
            answer: asked || !self.said_hello,
            hello,
        }
    }

    fn reassemble(&mut self, now: Duration, sender: u64, lp: LpPacket) -> Option<LpPacket> {
        if lp.frag_count == 1 {
            return Some(lp);
        }
        let Some(reassembly) = &mut self.reassembly else {
            self.counters.malformed += 1;
            return None;
        };
        let whole = reassembly.receive(now, sender, lp);
        self.counters.reassembled = reassembly.reassembler.counters().completed;
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
        let reassembly = self.reassembly.as_ref()?;
        reassembly.reassembler.deadline()
    }

    /// Gives up packets whose fragments did not come.
    pub fn on_deadline(&mut self, now: Duration) {
        if let Some(reassembly) = &mut self.reassembly {
            reassembly.reassembler.on_deadline(now);
            reassembly.count();
        }
    }

    /// The counters, those of reassembly included.
    pub fn counters(&self) -> LinkCounters {
        let mut counters = self.counters;
        if let Some(reassembly) = &self.reassembly {
            let done = reassembly.reassembler.counters();
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
        if len + lp.header_len(len) > self.limit_out() {
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

/// Whether a stranger's datagram is worth a face: a packet that decodes, a piece of one, or a hello. Noise is not.
pub(crate) fn opens_face(datagram: &Bytes) -> bool {
    if datagram.first() != Some(&(ndn_packet::tlv::types::LP_PACKET as u8)) {
        return Packet::parse(datagram.clone()).is_ok();
    }
    match LpPacket::decode(datagram.clone()) {
        Err(_) => false,
        Ok(lp) if lp.frag_count > 1 => true,
        Ok(lp) if lp.fragment.is_some() => matches!(NetPacket::from_lp(lp), Ok(Some(_))),
        Ok(_) => {
            datagram.len() <= MAX_HELLO_BYTES
                && Hello::decode(datagram).is_ok_and(|hello| hello.max_packet.is_some())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::budget::Budget;
    use ndn_packet::{Data, Interest, Name, PitToken, SigningKey};

    fn link() -> Link {
        Link::new(&LinkOptions::default())
    }

    fn by_datagrams(challenge: u64) -> Link {
        let share = Budget::unbounded().share();
        Link::by_datagrams(&LinkOptions::default(), challenge, share)
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
        let hello = Bytes::from(a.hello(false, true).unwrap().encode());
        assert!(!a.is_jumbo());
        assert!(matches!(
            b.receive(Duration::ZERO, 0, hello),
            Received::Hello { answer: true, .. }
        ));
        assert!(!b.is_jumbo());
        let hello = Bytes::from(b.hello(false, false).unwrap().encode());
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

    /// Somebody who cannot hear what is sent to the address that he uses gets no jumbo packets, whatever he says.
    #[test]
    fn a_datagram_peer_gets_jumbo_packets_when_its_address_is_proven() {
        let (mut peer, mut own) = (by_datagrams(7), by_datagrams(8));
        let said = |link: &mut Link, asks| Bytes::from(link.hello(false, asks).unwrap().encode());
        let hello = said(&mut peer, true);
        for _ in 0..3 {
            let received = own.receive(Duration::ZERO, 0, hello.clone());
            assert!(matches!(received, Received::Hello { answer: true, .. }));
            let answer = said(&mut own, false);
            assert!(answer.len() <= MAX_HELLO_BYTES);
            assert!(!own.is_jumbo());
            let big = own.wrap(Duration::ZERO, &big_data(60_000), 0);
            assert!(big.is_none());
        }
        let answer = said(&mut own, false);
        peer.receive(Duration::ZERO, 0, answer);
        assert!(peer.is_jumbo() && !peer.is_settled());
        // The proven side may send at once: the other has offered to take it.
        let frame = peer.wrap(Duration::ZERO, &big_data(60_000), 0).unwrap();
        let received = own.receive(Duration::ZERO, 0, frame.encode());
        assert!(matches!(received, Received::Packet(_)));
        let echo = said(&mut peer, false);
        let received = own.receive(Duration::ZERO, 0, echo);
        assert!(matches!(received, Received::Hello { answer: false, .. }));
        assert!(own.is_jumbo());
        assert!(own.wrap(Duration::ZERO, &big_data(60_000), 0).is_some());
    }

    #[test]
    fn reassembly_of_all_faces_shares_a_budget() {
        let budget = Budget::new(200_000);
        let mut links: Vec<Link> = (0..20)
            .map(|n| Link::by_datagrams(&LinkOptions::default(), n, budget.share()))
            .collect();
        for turn in 0..50 {
            for link in &mut links {
                let piece = LpPacket {
                    sequence: Some(turn * 100),
                    frag_count: 8,
                    ..LpPacket::bare(vec![1; 1000].into())
                };
                link.receive(Duration::ZERO, 0, piece.encode());
                assert!(budget.used() <= budget.capacity());
            }
        }
        assert!(budget.used() > budget.capacity() / 2);
        assert!(
            links
                .iter()
                .all(|link| link.counters().reassembly_drops > 0)
        );
        for link in &mut links {
            link.on_deadline(REASSEMBLY_TIMEOUT);
        }
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn only_what_decodes_opens_a_face() {
        let interest = Interest::builder(&name()).nonce(1).build();
        let mut fragment = LpPacket::bare(interest.slice(..4));
        (fragment.sequence, fragment.frag_count) = (Some(1), 2);
        let hello = link().hello(true, true).unwrap().encode();
        for good in [
            interest.clone(),
            LpPacket::bare(interest.clone()).encode(),
            fragment.encode(),
            hello.into(),
        ] {
            assert!(opens_face(&good), "{good:?}");
        }
        for bad in [
            &b""[..],
            b"\x05\x02\x07\x00",
            b"\x06\x00",
            b"\x64\x00",
            b"\x64\x04\x50\x02\x05\x00",
            b"\x64\x03\x50\x01\x05",
            &interest[..10],
        ] {
            assert!(!opens_face(&Bytes::copy_from_slice(bad)), "{bad:?}");
        }
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
