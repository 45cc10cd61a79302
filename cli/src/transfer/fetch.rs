//! Fetching an object: first its metadata, if wanted, then its segments in order.
//!
//! ```text
//!   Asking ──metadata──▶ Flowing ──last segment read──▶ Done
//!      │                    │
//!      └──────── no answer, bad signature ────▶ Failed
//! ```

use std::time::Duration;

use bytes::Bytes;
use ndn_endpoint::rdr::{self, Metadata};
use ndn_endpoint::{Consumer, ConsumerConfig, ConsumerStats, Exchange, ExchangeError, FailReason};
use ndn_packet::{Data, Interest, NackReason, Name, content_type};

use super::WindowSpec;
use crate::error::{CliError, Exit};

/// What is fetched and how.
#[derive(Debug, Clone)]
pub struct FetchPlan {
    /// The object's name.
    pub object: Name,
    /// Whether its newest version is asked for first.
    pub metadata: bool,
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
}

enum Phase {
    Asking(Box<Exchange>),
    Flowing(Box<Consumer>),
    Failed(CliError),
}

impl Fetch {
    /// Nothing is sent yet; [`Fetch::poll_interest`] has the first Interest.
    pub fn new(plan: FetchPlan, now: Duration) -> Self {
        let phase = if plan.metadata {
            let mut question = rdr::discovery(&plan.object);
            question.verify = plan.consumer.verify.clone();
            question.timeout = plan.consumer.max_stall;
            question.seed = plan.consumer.seed;
            Phase::Asking(Box::new(Exchange::new(question, now)))
        } else {
            Phase::Flowing(Box::new(consumer(
                &plan,
                plan.object.clone(),
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
        }
    }

    /// The next Interest to send, if one may be sent now.
    pub fn poll_interest(&mut self, now: Duration) -> Option<Bytes> {
        match &mut self.phase {
            Phase::Asking(exchange) => exchange.poll_interest(now),
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
            Phase::Flowing(consumer) => consumer.on_nack(now, interest, reason),
            Phase::Failed(_) => {}
        }
    }

    /// When [`Fetch::on_deadline`] is to be called.
    pub fn deadline(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Asking(exchange) => exchange.deadline(),
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
            Phase::Flowing(consumer) => consumer.on_deadline(now),
            Phase::Failed(_) => {}
        }
    }

    /// The next segment's content, in order and verified.
    pub fn read(&mut self) -> Option<Bytes> {
        let Phase::Flowing(consumer) = &mut self.phase else {
            return None;
        };
        let (_, data) = consumer.read()?;
        let content = data.content();
        self.segment_bytes.get_or_insert(content.len() as u64);
        Some(content)
    }

    /// Whether all of it was read.
    pub fn is_done(&self) -> bool {
        matches!(&self.phase, Phase::Flowing(consumer) if consumer.is_done())
    }

    /// Why it gave up, if it did.
    pub fn failure(&self) -> Option<CliError> {
        match &self.phase {
            Phase::Asking(_) => None,
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
                Ok(metadata) => {
                    self.size = metadata.size;
                    self.segment_bytes = metadata.segment_bytes;
                    Phase::Flowing(Box::new(consumer(
                        &self.plan,
                        metadata.name,
                        metadata.last,
                        metadata.segment_bytes,
                        now,
                    )))
                }
            },
        };
        self.phase = next;
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
    let config = ConsumerConfig {
        prefix,
        last,
        window: plan.window.config(),
        max_buffered_segments: plan.window.buffer(segment_bytes),
        ..plan.consumer.clone()
    };
    Consumer::new(config, now)
}

/// `thing: cause; way out`, as the cores say it, with the exit status.
fn said(exit: Exit, text: &str) -> CliError {
    let (thing, rest) = text.split_once(": ").unwrap_or(("object", text));
    CliError::new(exit, thing, rest)
}

fn exchange_error(error: &ExchangeError) -> CliError {
    match error {
        ExchangeError::Rejected { .. } => said(Exit::Unverified, &error.to_string()),
        ExchangeError::Timeout { .. } | ExchangeError::Nack { .. } => {
            said(Exit::NoData, &error.to_string())
        }
    }
}

fn stream_error(reason: &FailReason) -> CliError {
    match reason {
        FailReason::Rejected { .. } => said(Exit::Unverified, &reason.to_string()),
        _ => said(Exit::NoData, &reason.to_string()),
    }
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
