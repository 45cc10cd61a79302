//! Fetching an object: first its metadata, if wanted, then its segments in order.
//!
//! ```text
//!   Asking ──metadata──▶ Flowing ──last segment read──▶ Done
//!      │  │                 │ ▲
//!      │  └──▶ Manifest ────┼─┘ all of it came, and it is the one that was signed
//!      │           │        │
//!      └───────────┴─ no answer, bad signature ────▶ Failed
//! ```
//! *Manifest* is where one key's signature vouches for a manifest of digests instead of for each segment.

use std::time::Duration;

use bytes::Bytes;
use ndn_endpoint::rdr::{self, Metadata};
use ndn_endpoint::{
    Consumer, ConsumerConfig, ConsumerStats, Exchange, ExchangeConfig, ExchangeError, FailReason,
    VerifyPolicy,
};
use ndn_packet::{Data, Interest, NackReason, Name, content_type};
use ndn_repo::{ManifestIn, SignedManifest};

use super::WindowSpec;
use crate::error::{CliError, Exit};

/// Tells, once the metadata is known, with which segment to begin.
pub type Start = Box<dyn FnMut(&Metadata) -> Result<u64, CliError> + Send>;

/// What is fetched and how.
pub struct FetchPlan {
    /// The object's name.
    pub object: Name,
    /// Whether its newest version is asked for first.
    pub metadata: bool,
    /// Which version's metadata is asked for; the newest if none is given.
    pub version: Option<u64>,
    /// With which segment to begin, where that is not the first.
    pub start: Option<Start>,
    /// Congestion control.
    pub window: WindowSpec,
    /// All of the consumer's settings but name, window and buffer.
    pub consumer: ConsumerConfig,
}

/// One object on its way here.
pub struct Fetch {
    plan: FetchPlan,
    phase: Phase,
    size: Option<u64>,
    segment_bytes: Option<u64>,
    /// What segments are held against, instead of a signature of their own.
    vouched: Option<SignedManifest>,
}

enum Phase {
    Asking(Box<Exchange>),
    Manifest(Box<Vouching>),
    Flowing(Box<Consumer>),
    Failed(CliError),
}

/// A manifest on its way, and what comes after it.
struct Vouching {
    consumer: Consumer,
    manifest: ManifestIn,
    signed: [u8; 32],
    told: Metadata,
    first: u64,
}

impl Fetch {
    /// Nothing is sent yet; [`Fetch::poll_interest`] has the first Interest.
    pub fn new(plan: FetchPlan, now: Duration) -> Self {
        let phase = if plan.metadata {
            let mut question = match plan.version {
                None => rdr::discovery(&plan.object),
                Some(version) => ExchangeConfig::new(
                    rdr::discovery_name(&plan.object)
                        .append_version(version)
                        .append_segment(0),
                ),
            };
            question = plan.consumer.verify.asking(question);
            question.timeout = plan.consumer.give_up_after;
            question.seed = plan.consumer.seed;
            Phase::Asking(Box::new(Exchange::new(question, now)))
        } else {
            Phase::Flowing(Box::new(consumer(
                &plan,
                match plan.version {
                    None => plan.object.clone(),
                    Some(version) => plan.object.append_version(version),
                },
                None,
                None,
                now,
            )))
        };
        Fetch {
            plan,
            phase,
            size: None,
            segment_bytes: None,
            vouched: None,
        }
    }

    /// The next Interest to send, if one may be sent now.
    pub fn poll_interest(&mut self, now: Duration) -> Option<Bytes> {
        match &mut self.phase {
            Phase::Asking(exchange) => exchange.poll_interest(now),
            Phase::Manifest(vouching) => vouching.consumer.poll_interest(now),
            Phase::Flowing(consumer) => consumer.poll_interest(now),
            Phase::Failed(_) => None,
        }
    }

    /// Data came; `marked` where its link-layer header had a congestion mark.
    pub fn on_data(&mut self, now: Duration, data: Data, marked: bool) {
        match &mut self.phase {
            Phase::Asking(exchange) => {
                exchange.on_data(data);
                self.follow_answer(now);
            }
            Phase::Manifest(vouching) => {
                vouching.consumer.on_data(now, data, marked);
                self.follow_manifest(now);
            }
            Phase::Flowing(consumer) => {
                consumer.on_data(now, data, marked);
            }
            Phase::Failed(_) => {}
        }
    }

    /// The network refused an Interest.
    pub fn on_nack(&mut self, now: Duration, interest: &Interest, reason: NackReason) {
        match &mut self.phase {
            Phase::Asking(exchange) => {
                exchange.on_nack(now, interest, reason);
                self.follow_answer(now);
            }
            Phase::Manifest(vouching) => {
                vouching.consumer.on_nack(now, interest, reason);
                self.follow_manifest(now);
            }
            Phase::Flowing(consumer) => consumer.on_nack(now, interest, reason),
            Phase::Failed(_) => {}
        }
    }

    /// When [`Fetch::on_deadline`] is to be called.
    pub fn deadline(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Asking(exchange) => exchange.deadline(),
            Phase::Manifest(vouching) => vouching.consumer.deadline(),
            Phase::Flowing(consumer) => consumer.deadline(),
            Phase::Failed(_) => None,
        }
    }

    /// Time has passed.
    pub fn on_deadline(&mut self, now: Duration) {
        match &mut self.phase {
            Phase::Asking(exchange) => {
                exchange.on_deadline(now);
                self.follow_answer(now);
            }
            Phase::Manifest(vouching) => {
                vouching.consumer.on_deadline(now);
                self.follow_manifest(now);
            }
            Phase::Flowing(consumer) => consumer.on_deadline(now),
            Phase::Failed(_) => {}
        }
    }

    /// The next segment's content, in order and verified.
    pub fn read(&mut self) -> Option<Bytes> {
        let Phase::Flowing(consumer) = &mut self.phase else {
            return None;
        };
        loop {
            let (segment, data) = consumer.read()?;
            if let Some(manifest) = &self.vouched
                && !manifest.holds(segment, data.signature_value())
            {
                consumer.reject(segment);
                continue;
            }
            let content = data.content();
            self.segment_bytes.get_or_insert(content.len() as u64);
            return Some(content);
        }
    }

    /// Whether all of it was read.
    pub fn is_done(&self) -> bool {
        matches!(&self.phase, Phase::Flowing(consumer) if consumer.is_done())
    }

    /// Why it gave up, if it did.
    pub fn failure(&self) -> Option<CliError> {
        match &self.phase {
            Phase::Asking(_) | Phase::Manifest(_) => None,
            Phase::Flowing(consumer) => consumer.failure().map(stream_error),
            Phase::Failed(error) => Some(error.clone()),
        }
    }

    /// The size in bytes: as the metadata says, else as segments make it probable.
    pub fn size(&self) -> Option<u64> {
        let Phase::Flowing(consumer) = &self.phase else {
            return self.size;
        };
        self.size
            .or_else(|| Some((consumer.last()? + 1) * self.segment_bytes?))
    }

    /// The name that is fetched, with version, once it is known.
    pub fn versioned(&self) -> Option<&Name> {
        match &self.phase {
            Phase::Flowing(consumer) => Some(consumer.prefix()),
            _ => None,
        }
    }

    /// The consumer's counters, once it is at work.
    pub fn stats(&self) -> Option<ConsumerStats> {
        match &self.phase {
            Phase::Flowing(consumer) => Some(consumer.stats()),
            _ => None,
        }
    }

    /// From the question to the stream, or to the end.
    fn follow_answer(&mut self, now: Duration) {
        let Phase::Asking(exchange) = &self.phase else {
            return;
        };
        let next = match exchange.result() {
            None => return,
            Some(Err(error)) => Phase::Failed(exchange_error(error)),
            Some(Ok(data)) if data.content_type() == content_type::NACK => {
                Phase::Failed(CliError::new(
                    Exit::NoData,
                    self.plan.object.to_string(),
                    "its producer says that there is no such object",
                ))
            }
            Some(Ok(data)) => match Metadata::decode(data.content_slice()) {
                Err(error) => Phase::Failed(
                    CliError::failed(
                        data.name().to_string(),
                        format!("malformed metadata: {error}"),
                    )
                    .or("use --no-metadata with the versioned name"),
                ),
                Ok(metadata) if !self.plan.consumer.verify.believes(data, &metadata) => {
                    Phase::Failed(exchange_error(&ExchangeError::Rejected {
                        name: data.name().to_name(),
                    }))
                }
                Ok(metadata) => self.after_metadata(metadata, now),
            },
        };
        self.phase = next;
    }
}

impl Fetch {
    /// From the metadata to the content, or to the manifest that is to vouch for it.
    fn after_metadata(&mut self, told: Metadata, now: Duration) -> Phase {
        self.size = told.size;
        self.segment_bytes = told.segment_bytes;
        let first = match &mut self.plan.start {
            None => Ok(0),
            Some(start) => start(&told),
        };
        let first = match first {
            Ok(first) => first,
            Err(error) => return Phase::Failed(error),
        };
        let Some(signed) = told
            .manifest_digest
            .filter(|_| self.plan.consumer.verify.wants_key())
        else {
            return Phase::Flowing(Box::new(self.content(&told, first, now)));
        };
        let segments = told.last.map_or(u64::MAX, |last| last.saturating_add(1));
        let manifest = match ManifestIn::new(segments) {
            Ok(manifest) => manifest,
            Err(error) => {
                return Phase::Failed(CliError::file(&std::env::temp_dir(), &error));
            }
        };
        let mut config = ConsumerConfig {
            prefix: ndn_repo::manifest_name(&told.name),
            congestion: self.plan.window.congestion(),
            max_buffered_segments: self.plan.window.buffer(None),
            ..self.plan.consumer.clone()
        };
        // The whole is held against the digest that was signed.
        config.verify = VerifyPolicy::default();
        Phase::Manifest(Box::new(Vouching {
            consumer: Consumer::new(config, now),
            manifest,
            signed,
            told,
            first,
        }))
    }

    fn content(&self, told: &Metadata, first: u64, now: Duration) -> Consumer {
        let mut config =
            consumer_config(&self.plan, told.name.clone(), told.last, told.segment_bytes);
        config.first = first;
        config.verify = self.plan.consumer.verify.of_segments(told);
        Consumer::new(config, now)
    }

    /// From the manifest to the content, or to the end.
    fn follow_manifest(&mut self, now: Duration) {
        let Phase::Manifest(vouching) = &mut self.phase else {
            return;
        };
        let mut failed = None;
        while let Some((_, data)) = vouching.consumer.read() {
            if let Err(error) = vouching.manifest.push(data.content_slice()) {
                failed = Some(match error.kind() {
                    std::io::ErrorKind::InvalidData => {
                        CliError::new(Exit::Unverified, data.name().to_string(), error.to_string())
                    }
                    _ => CliError::file(&std::env::temp_dir(), &error),
                });
                break;
            }
        }
        if let Some(reason) = vouching.consumer.failure() {
            failed = Some(stream_error(reason));
        }
        if let Some(error) = failed {
            self.phase = Phase::Failed(error);
            return;
        }
        if !vouching.consumer.is_done() {
            return;
        }
        let nothing = Phase::Failed(CliError::failed("manifest", "is being looked at"));
        let Phase::Manifest(vouching) = std::mem::replace(&mut self.phase, nothing) else {
            return;
        };
        self.phase = match vouching.manifest.finish(&vouching.signed) {
            Some(manifest) => {
                self.vouched = Some(manifest);
                Phase::Flowing(Box::new(self.content(&vouching.told, vouching.first, now)))
            }
            None => Phase::Failed(CliError::new(
                Exit::Unverified,
                vouching.consumer.prefix().to_string(),
                "is not the manifest that was signed",
            )),
        };
    }
}

/// The consumer of the stream under `prefix`, whose segments have so many bytes if that is known.
fn consumer(
    plan: &FetchPlan,
    prefix: Name,
    last: Option<u64>,
    segment_bytes: Option<u64>,
    now: Duration,
) -> Consumer {
    Consumer::new(consumer_config(plan, prefix, last, segment_bytes), now)
}

fn consumer_config(
    plan: &FetchPlan,
    prefix: Name,
    last: Option<u64>,
    segment_bytes: Option<u64>,
) -> ConsumerConfig {
    ConsumerConfig {
        prefix,
        last,
        congestion: plan.window.congestion(),
        max_buffered_segments: plan.window.buffer(segment_bytes),
        ..plan.consumer.clone()
    }
}

fn exchange_error(error: &ExchangeError) -> CliError {
    let exit = match error {
        ExchangeError::Rejected { .. } => Exit::Unverified,
        ExchangeError::Timeout { .. } | ExchangeError::Nack { .. } => Exit::NoData,
    };
    CliError::said(exit, error)
}

fn stream_error(reason: &FailReason) -> CliError {
    let exit = match reason {
        FailReason::Rejected { .. } => Exit::Unverified,
        _ => Exit::NoData,
    };
    CliError::said(exit, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndn_packet::{ComponentBuf, SigningKey};

    fn plan(metadata: bool) -> FetchPlan {
        let object: Name = "/o".parse().expect("a name");
        FetchPlan {
            consumer: ConsumerConfig::new(object.clone()),
            object,
            metadata,
            version: None,
            start: None,
            window: WindowSpec::Cubic,
        }
    }

    fn interest(fetch: &mut Fetch) -> Interest {
        Interest::parse(fetch.poll_interest(Duration::ZERO).expect("an Interest"))
            .expect("well formed")
    }

    fn segment(name: &Name, n: u64, last: u64, key: &SigningKey) -> Data {
        let wire = Data::builder(&name.append_segment(n))
            .final_block_id(ComponentBuf::segment(last))
            .content(format!("<{n}>").as_bytes())
            .sign(key);
        Data::parse(wire).expect("well formed")
    }

    fn metadata(content: &[u8], content_type: u64) -> Data {
        let name: Name = "/o/32=metadata/v=1/seg=0".parse().expect("a name");
        Data::parse(
            Data::builder(&name)
                .content_type(content_type)
                .content(content)
                .sign(&SigningKey::DigestSha256),
        )
        .expect("well formed")
    }

    #[test]
    fn asks_and_then_flows() {
        let mut f = Fetch::new(plan(true), Duration::ZERO);
        assert_eq!(interest(&mut f).name().to_string(), "/o/32=metadata");
        let versioned: Name = "/o/v=9".parse().expect("a name");
        let told = Metadata {
            last: Some(1),
            size: Some(6),
            ..Metadata::new(versioned.clone())
        };
        f.on_data(
            Duration::ZERO,
            metadata(&told.encode(), content_type::BLOB),
            false,
        );
        assert_eq!(interest(&mut f).name().to_string(), "/o/v=9/seg=0");
        assert_eq!((f.size(), f.versioned()), (Some(6), Some(&versioned)));
        f.on_data(
            Duration::ZERO,
            segment(&versioned, 0, 1, &SigningKey::DigestSha256),
            false,
        );
        assert_eq!(f.read().as_deref(), Some(&b"<0>"[..]));
        assert_eq!(interest(&mut f).name().to_string(), "/o/v=9/seg=1");
        f.on_data(
            Duration::ZERO,
            segment(&versioned, 1, 1, &SigningKey::DigestSha256),
            false,
        );
        assert_eq!(f.read().as_deref(), Some(&b"<1>"[..]));
        assert!(f.is_done() && f.failure().is_none());
    }

    #[test]
    fn takes_the_name_as_it_is() {
        let mut f = Fetch::new(plan(false), Duration::ZERO);
        assert_eq!(interest(&mut f).name().to_string(), "/o/seg=0");
    }

    #[test]
    fn says_why_it_failed() {
        let mut refused = Fetch::new(plan(true), Duration::ZERO);
        interest(&mut refused);
        refused.on_data(Duration::ZERO, metadata(b"", content_type::NACK), false);
        assert_eq!(refused.failure().expect("failed").exit, Exit::NoData);

        let mut malformed = Fetch::new(plan(true), Duration::ZERO);
        interest(&mut malformed);
        malformed.on_data(Duration::ZERO, metadata(b"?", content_type::BLOB), false);
        assert!(
            malformed
                .failure()
                .expect("failed")
                .to_string()
                .contains("malformed metadata")
        );

        let mut silent = Fetch::new(plan(true), Duration::ZERO);
        while let Some(at) = silent.deadline() {
            silent.poll_interest(at);
            silent.on_deadline(at);
        }
        let error = silent.failure().expect("failed");
        assert_eq!(
            (error.exit, error.thing.as_str()),
            (Exit::NoData, "/o/32=metadata")
        );
    }

    #[test]
    fn a_wrong_signature_is_its_own_failure() {
        let mut f = Fetch::new(plan(false), Duration::ZERO);
        let name: Name = "/o".parse().expect("a name");
        for _ in 0..20 {
            while f.poll_interest(Duration::ZERO).is_some() {}
            f.on_data(
                Duration::ZERO,
                segment(&name, 0, 0, &SigningKey::hmac_sha256(b"another key")),
                false,
            );
            assert!(f.read().is_none());
        }
        assert_eq!(f.failure().expect("failed").exit, Exit::Unverified);
    }
}
