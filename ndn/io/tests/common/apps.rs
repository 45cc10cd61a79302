//! Two applications: one that answers with segments, one that reads a stream of them.

use std::time::Duration;

use bytes::BufMut;
use ndn_endpoint::Consumer;
use ndn_io::App;
use ndn_packet::{Data, KeyLocatorRef, NetKind, NetPacket, Signer, SigningKey};

/// Answers every Interest with a Data made and signed there and then. What a segment holds
/// follows from its number: see [`Source::content`].
pub struct Source {
    bytes: Vec<u8>,
    segment_bytes: usize,
    signer: Box<dyn Signer + Send + Sync>,
}

impl Source {
    /// Its segments are signed with DigestSha256.
    pub fn new(segment_bytes: usize) -> Self {
        Self::signed(segment_bytes, SigningKey::DigestSha256)
    }

    pub fn signed(segment_bytes: usize, signer: impl Signer + Send + Sync + 'static) -> Self {
        let mut state = 1u64;
        let bytes = (0..1 << 20).map(|_| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 56) as u8
        });
        Self {
            bytes: bytes.collect(),
            segment_bytes,
            signer: Box::new(signer),
        }
    }

    /// Content of a segment.
    pub fn content(&self, segment: u64) -> &[u8] {
        let at = segment as usize * 977 % (self.bytes.len() - self.segment_bytes);
        &self.bytes[at..at + self.segment_bytes]
    }
}

impl App for Source {
    fn on_packet(&mut self, _: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let NetKind::Interest(interest) = &packet.packet else {
            return;
        };
        let name = interest.name_owned();
        let segment = name.last().and_then(|c| c.as_segment()).unwrap_or(0);
        let wire = Data::builder(&name)
            .freshness(Duration::from_secs(10))
            .content(self.content(segment))
            .sign(&*self.signer);
        if let Ok(data) = Data::parse(wire) {
            out.push(NetPacket::data(data).with_pit_token(packet.pit_token));
        }
    }
}

/// A digest that costs nothing and that nothing verifies under.
pub struct NoDigest;

impl Signer for NoDigest {
    fn signature_type(&self) -> u64 {
        SigningKey::DigestSha256.signature_type()
    }

    fn key_locator(&self) -> Option<KeyLocatorRef<'_>> {
        None
    }

    fn max_signature_len(&self) -> usize {
        32
    }

    fn sign(&self, _: &[&[u8]], signature: &mut dyn BufMut) {
        signature.put_bytes(0, 32);
    }
}

/// Reads a stream in order and hands each segment to `check`.
pub struct Reader<F> {
    pub consumer: Consumer,
    pub bytes: usize,
    check: F,
}

impl<F: FnMut(u64, &[u8]) + Send> Reader<F> {
    pub fn new(consumer: Consumer, check: F) -> Self {
        Self {
            consumer,
            bytes: 0,
            check,
        }
    }

    fn step(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        while let Some((segment, data)) = self.consumer.read() {
            let content = data.content();
            self.bytes += content.len();
            (self.check)(segment, &content);
        }
        out.extend(std::iter::from_fn(|| self.consumer.poll_interest(now)));
    }
}

impl<F: FnMut(u64, &[u8]) + Send> App for Reader<F> {
    fn on_packet(&mut self, now: Duration, packet: NetPacket, out: &mut Vec<NetPacket>) {
        let marked = packet.is_marked();
        match packet.packet {
            NetKind::Data(data) => {
                self.consumer.on_data(now, data, marked);
            }
            NetKind::Nack { reason, interest } => self.consumer.on_nack(now, &interest, reason),
            NetKind::Interest(_) => return,
        }
        self.step(now, out);
    }

    fn on_wake(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.step(now, out);
    }

    fn deadline(&self) -> Option<Duration> {
        self.consumer.deadline()
    }

    fn on_deadline(&mut self, now: Duration, out: &mut Vec<NetPacket>) {
        self.consumer.on_deadline(now);
        self.step(now, out);
    }
}
