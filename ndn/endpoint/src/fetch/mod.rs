//! Fetching an object: its metadata, where a key must vouch its manifest, its segments in order.
//!
//! ```text
//!                    metadata                  manifest whole, and the signed one
//!   Discovering ───────────────▶ Known ──┬──────────────▶ Manifest ────────▶ Vouched
//!        │                               │                    │                 │
//!        │ first segment                 │ no manifest needed │                 │
//!        └─────────────────▶ Flowing ◀───┴────────────────────│─────────────────┘
//!                              │  │                           │
//!         last segment read    │  └───────────────────────────┴──▶ Failed: no answer, not what was signed, no room
//!                Done ◀────────┘
//! ```
//! A fetch goes as far as its [`Goal`] and stays there; [`Fetch::begin`] takes one that stays at *Known* further. Like
//! [`Consumer`], it does no I/O: packets and the time go in, Interests and verified segments come out. A driver polls it
//! after each call: [`Fetch::read`] until `None`, then [`Fetch::poll_interest`] until `None`.
//!
//! ```
//! use ndn_endpoint::{Fetch, FetchConfig, rdr::Metadata};
//! use ndn_packet::{ComponentBuf, Data, Name, SigningKey};
//! let (now, object, key) = (std::time::Duration::ZERO, "/a".parse::<Name>()?, SigningKey::DigestSha256);
//! let mut fetch = Fetch::new(FetchConfig::new(object.clone()), now);
//! assert_eq!(fetch.poll_interest(now).unwrap().name().to_string(), "/a/32=metadata");
//!
//! let newest = object.append_version(1);
//! let metadata = Metadata::new(newest.clone()).packet(&object, 7, now, &key);
//! fetch.on_data(now, Data::parse(metadata)?, false);
//! assert_eq!(fetch.poll_interest(now).unwrap().name().to_string(), "/a/v=1/seg=0");
//!
//! let only = Data::builder(&newest.append_segment(0)).final_block_id(ComponentBuf::segment(0)).content(b"x").sign(&key);
//! fetch.on_data(now, Data::parse(only)?, false);
//! assert_eq!(fetch.read().unwrap().1.content_slice(), b"x");
//! assert!(fetch.is_done());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
mod error;
mod manifest;
mod policy;

pub use config::{Check, FetchConfig, Find, Goal};
pub use error::{FetchError, FetchErrorKind};
pub use manifest::{InMemory, Manifest, ManifestStore};

use std::sync::Arc;
use std::time::Duration;

use ndn_packet::{Component, Data, Interest, NackReason, Name, NameRef, NetPacket};

use crate::rdr::{self, Metadata, MetadataError};
use crate::{
    Consumer, ConsumerConfig, ConsumerStats, Distrust, Exchange, ExchangeConfig, Outcome, Rejected,
    VerifyPolicy,
};
use manifest::{Hash, IncomingManifest};

/// One object on its way here.
#[derive(Debug)]
pub struct Fetch {
    config: FetchConfig,
    stage: Stage,
    metadata: Option<Metadata>,
    /// What told the metadata.
    packet: Option<Data>,
    /// What segments are held against, instead of a signature of their own.
    manifest: Option<Arc<Manifest>>,
    /// How often it was not the one that was signed.
    bad_manifests: u32,
}

/// So often a manifest may be another than the signed one.
const MAX_BAD_MANIFESTS: u32 = 3;

#[derive(Debug)]
enum Stage {
    Discovering(Box<Exchange>),
    Known,
    Manifest(Box<Consumer>, IncomingManifest),
    Vouched,
    Flowing(Box<Flow>),
    Failed(FetchError),
}

/// Segments in order.
#[derive(Debug)]
struct Flow {
    consumer: Consumer,
    /// Came before the consumer began, and is read first.
    first: Option<Data>,
    /// Over the SignatureValues read so far, and what it is to be in the end.
    sum: Option<(Hash, [u8; 32])>,
}

impl Fetch {
    /// Nothing is sent yet; [`Fetch::poll_interest`] has the first Interest.
    pub fn new(mut config: FetchConfig, now: Duration) -> Self {
        let find = std::mem::replace(&mut config.find, Find::AsNamed);
        let mut fetch = Self {
            config,
            stage: Stage::Known,
            metadata: None,
            packet: None,
            manifest: None,
            bad_manifests: 0,
        };
        match find {
            Find::Newest => fetch.discover(rdr::discovery(&fetch.config.object), now),
            Find::Version(version) => {
                let name = rdr::discovery_name(&fetch.config.object)
                    .append_version(version)
                    .append_segment(0);
                fetch.discover(ExchangeConfig::new(name), now);
            }
            Find::FirstSegment => {
                let verify = fetch.config.consumer.verify.clone();
                let question = ExchangeConfig {
                    can_be_prefix: true,
                    must_be_fresh: true,
                    ..ExchangeConfig::new(fetch.config.object.clone())
                };
                fetch.ask(question, verify, now);
            }
            Find::AsNamed => fetch.flow(fetch.config.object.clone(), None, now),
            Find::Known(metadata, manifest) => {
                fetch.metadata = Some(*metadata);
                fetch.manifest = manifest;
                fetch.go_on(now);
            }
        }
        fetch
    }

    /// The next Interest to send, if one may be sent now.
    pub fn poll_interest(&mut self, now: Duration) -> Option<NetPacket> {
        match &mut self.stage {
            Stage::Discovering(exchange) => exchange.poll_interest(now),
            Stage::Manifest(consumer, _) => consumer.poll_interest(now),
            Stage::Flowing(flow) => flow.consumer.poll_interest(now),
            Stage::Known | Stage::Vouched | Stage::Failed(_) => None,
        }
    }

    /// Takes a Data; `marked` where its link-layer header had a congestion mark.
    pub fn on_data(&mut self, now: Duration, data: Data, marked: bool) -> Outcome {
        let outcome = match &mut self.stage {
            Stage::Discovering(exchange) => match exchange.on_data(data) {
                true => Outcome::Accepted,
                false => Outcome::Unsolicited,
            },
            Stage::Manifest(consumer, _) => consumer.on_data(now, data, marked),
            Stage::Flowing(flow) => flow.consumer.on_data(now, data, marked),
            Stage::Known | Stage::Vouched | Stage::Failed(_) => Outcome::Unsolicited,
        };
        self.follow(now);
        outcome
    }

    /// Takes a Nack for `interest`.
    pub fn on_nack(&mut self, now: Duration, interest: &Interest, reason: NackReason) {
        match &mut self.stage {
            Stage::Discovering(exchange) => exchange.on_nack(now, interest, reason),
            Stage::Manifest(consumer, _) => consumer.on_nack(now, interest, reason),
            Stage::Flowing(flow) => flow.consumer.on_nack(now, interest, reason),
            Stage::Known | Stage::Vouched | Stage::Failed(_) => {}
        }
        self.follow(now);
    }

    /// When [`Fetch::on_deadline`] is to be called; `None` for never.
    pub fn deadline(&self) -> Option<Duration> {
        match &self.stage {
            Stage::Discovering(exchange) => exchange.deadline(),
            Stage::Manifest(consumer, _) => consumer.deadline(),
            Stage::Flowing(flow) => flow.consumer.deadline(),
            Stage::Known | Stage::Vouched | Stage::Failed(_) => None,
        }
    }

    /// Gives up what is overdue, asks again. Earlier or later calls do no harm.
    pub fn on_deadline(&mut self, now: Duration) {
        match &mut self.stage {
            Stage::Discovering(exchange) => exchange.on_deadline(now),
            Stage::Manifest(consumer, _) => consumer.on_deadline(now),
            Stage::Flowing(flow) => flow.consumer.on_deadline(now),
            Stage::Known | Stage::Vouched | Stage::Failed(_) => {}
        }
        self.follow(now);
    }

    /// The next segment in order, verified. Poll for Interests afterwards.
    ///
    /// Under [`Check::AtEnd`] what was read is to be believed only once [`Fetch::is_done`].
    pub fn read(&mut self) -> Option<(u64, Data)> {
        let Stage::Flowing(flow) = &mut self.stage else {
            return None;
        };
        let (segment, data) = loop {
            if let Some(first) = flow.first.take() {
                break (0, first);
            }
            let (segment, data) = flow.consumer.read()?;
            match &self.manifest {
                Some(manifest) if !manifest.holds(segment, data.signature_value()) => {
                    flow.consumer.reject_for(segment, Distrust::NotTheSigned);
                }
                _ => break (segment, data),
            }
        };
        if let Some((sum, _)) = &mut flow.sum {
            sum.0.update(data.signature_value());
        }
        if flow.consumer.is_done()
            && let Some((sum, signed)) = flow.sum.take()
            && sum.0.finish().as_ref() != signed
        {
            let name = flow.consumer.prefix().clone();
            self.stage = Stage::Failed(FetchError::NotTheSigned { name });
            return None;
        }
        Some((segment, data))
    }

    /// Takes a segment back that was read: its content is not what it should be, and it must come anew. False when it
    /// can't be had again.
    pub fn reject(&mut self, segment: u64) -> bool {
        match &mut self.stage {
            Stage::Flowing(flow) => flow.consumer.reject(segment),
            _ => false,
        }
    }

    /// No segment beyond `segment` is asked for until this is called again, as [`Consumer::want_up_to`] has it.
    pub fn want_up_to(&mut self, segment: u64) {
        if let Stage::Flowing(flow) = &mut self.stage {
            flow.consumer.want_up_to(segment);
        }
    }

    /// From metadata alone, where the goal was no more, on to the content. `tune` may change how it is fetched: with which
    /// segment it begins, how many are held.
    pub fn begin(&mut self, now: Duration, tune: impl FnOnce(&Metadata, &mut ConsumerConfig)) {
        let (Stage::Known, Some(metadata)) = (&self.stage, &self.metadata) else {
            return;
        };
        tune(metadata, &mut self.config.consumer);
        self.config.goal = Goal::Content;
        self.go_on(now);
    }

    /// Whether it has reached its goal.
    pub fn is_done(&self) -> bool {
        match &self.stage {
            Stage::Known | Stage::Vouched => true,
            Stage::Flowing(flow) => flow.first.is_none() && flow.consumer.is_done(),
            Stage::Discovering(_) | Stage::Manifest(..) | Stage::Failed(_) => false,
        }
    }

    /// Why it gave up, if it did.
    pub fn failure(&self) -> Option<FetchError> {
        match &self.stage {
            Stage::Flowing(flow) => flow.consumer.failure().cloned().map(FetchError::Stream),
            Stage::Failed(error) => Some(error.clone()),
            _ => None,
        }
    }

    /// The object's metadata, once known.
    pub fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()
    }

    /// The packet that told it.
    pub fn metadata_packet(&self) -> Option<&Data> {
        self.packet.as_ref()
    }

    /// What vouches for each segment, once it is here and where it is needed.
    pub fn manifest(&self) -> Option<&Arc<Manifest>> {
        self.manifest.as_ref()
    }

    /// The name whose segments are fetched, with version, once they are.
    pub fn versioned(&self) -> Option<&Name> {
        self.consumer().map(Consumer::prefix)
    }

    /// The last segment, once it is known.
    pub fn last(&self) -> Option<u64> {
        self.consumer().and_then(Consumer::last)
    }

    /// Counters of the segments' consumer, once it is at work.
    pub fn stats(&self) -> Option<ConsumerStats> {
        self.consumer().map(Consumer::stats)
    }

    /// Whether Data of this name is for this fetch, as far as its name tells.
    pub fn wants(&self, name: NameRef<'_>) -> bool {
        match &self.stage {
            Stage::Discovering(exchange) => exchange.wants(name),
            Stage::Manifest(consumer, _) => consumer.wants(name),
            Stage::Flowing(flow) => flow.consumer.wants(name),
            Stage::Known | Stage::Vouched | Stage::Failed(_) => false,
        }
    }

    fn consumer(&self) -> Option<&Consumer> {
        match &self.stage {
            Stage::Flowing(flow) => Some(&flow.consumer),
            _ => None,
        }
    }

    fn discover(&mut self, question: ExchangeConfig, now: Duration) {
        let question = self.config.consumer.verify.asking(question);
        let verify = question.verify.clone();
        self.ask(question, verify, now);
    }

    fn ask(&mut self, question: ExchangeConfig, verify: VerifyPolicy, now: Duration) {
        let consumer = &self.config.consumer;
        let question = ExchangeConfig {
            verify,
            lifetime: consumer.interest_lifetime,
            timeout: consumer.give_up_after,
            seed: consumer.seed,
            ..question
        };
        self.stage = Stage::Discovering(Box::new(Exchange::new(question, now)));
    }

    /// Goes on where an answer, or the last of a manifest, has come.
    fn follow(&mut self, now: Duration) {
        match &mut self.stage {
            Stage::Discovering(exchange) => match exchange.result() {
                None => {}
                Some(Err(error)) => self.stage = Stage::Failed(error.clone().into()),
                Some(Ok(data)) => {
                    let data = data.clone();
                    let is_first = exchange.name() == &self.config.object;
                    if let Err(error) = self.on_answer(data, is_first, now) {
                        self.stage = Stage::Failed(error);
                    }
                }
            },
            Stage::Manifest(consumer, manifest) => {
                while let Some((_, data)) = consumer.read() {
                    match manifest.push(&data) {
                        Ok(()) => {}
                        Err(FetchError::NotTheSigned { .. }) => return self.on_manifest(now),
                        Err(error) => {
                            self.stage = Stage::Failed(error);
                            return;
                        }
                    }
                }
                if let Some(reason) = consumer.failure() {
                    self.stage = Stage::Failed(reason.clone().into());
                } else if consumer.is_done() {
                    self.on_manifest(now);
                }
            }
            _ => {}
        }
    }

    fn on_answer(&mut self, data: Data, is_first: bool, now: Duration) -> Result<(), FetchError> {
        if is_first {
            return self.on_first_segment(data, now);
        }
        let metadata = Metadata::from_data(&data).map_err(|error| match error {
            MetadataError::Refused(_) => FetchError::Absent {
                name: self.config.object.clone(),
            },
            MetadataError::Malformed { name, source } => FetchError::Malformed { name, source },
        })?;
        self.config
            .consumer
            .verify
            .check_metadata(&data, &metadata)
            .map_err(|why| FetchError::Untrusted {
                name: data.name().to_name(),
                why,
            })?;
        self.metadata = Some(metadata);
        self.packet = Some(data);
        self.go_on(now);
        Ok(())
    }

    /// The first segment came by the name of the whole; the others are asked for by their numbers.
    fn on_first_segment(&mut self, data: Data, now: Duration) -> Result<(), FetchError> {
        if data.content_type() == ndn_packet::content_type::NACK {
            let name = self.config.object.clone();
            return Err(FetchError::Absent { name });
        }
        let last = data
            .final_block_id()
            .as_ref()
            .and_then(Component::as_segment);
        let is_segment = data.name().last().and_then(|c| c.as_segment()) == Some(0);
        let prefix = match is_segment {
            true => data.name().parent().to_name(),
            false => data.name_owned(),
        };
        let consumer = ConsumerConfig {
            prefix,
            first: 1,
            last: Some(last.filter(|_| is_segment).unwrap_or(0)),
            ..self.config.consumer.clone()
        };
        self.stage = Stage::Flowing(Box::new(Flow {
            consumer: Consumer::new(consumer, now),
            first: Some(data),
            sum: None,
        }));
        Ok(())
    }

    /// As far as the goal, from what is known.
    fn go_on(&mut self, now: Duration) {
        let Some(metadata) = &self.metadata else {
            return;
        };
        self.stage = Stage::Known;
        if self.config.goal == Goal::Metadata {
            return;
        }
        let verify = &self.config.consumer.verify;
        let signed = metadata
            .manifest_digest
            .filter(|_| self.config.check == Check::EachSegment && verify.wants_key());
        match signed {
            Some(signed) if self.manifest.is_none() => {
                let store = std::mem::replace(&mut self.config.store, Box::new(InMemory::new(0)));
                self.fetch_manifest(signed, store, Rejected::None, now);
            }
            _ if self.config.goal == Goal::Manifest => self.stage = Stage::Vouched,
            _ => self.flow(metadata.name.clone(), metadata.last, now),
        }
    }

    /// The manifest whose digest was signed, into `store`.
    fn fetch_manifest(
        &mut self,
        signed: [u8; 32],
        store: Box<dyn ManifestStore>,
        rejected: Rejected,
        now: Duration,
    ) {
        let Some(metadata) = &self.metadata else {
            return;
        };
        let segments = metadata
            .last
            .map_or(u64::MAX, |last| last.saturating_add(1));
        let consumer = ConsumerConfig {
            prefix: rdr::manifest_name(&metadata.name),
            first: 0,
            last: None,
            // The whole is held against the digest that was signed.
            verify: VerifyPolicy::default(),
            believe_nack: false,
            rejected,
            ..self.config.consumer.clone()
        };
        self.stage = Stage::Manifest(
            Box::new(Consumer::new(consumer, now)),
            IncomingManifest::new(store, segments, signed),
        );
    }

    /// The manifest is whole, or longer than it can be. One of its segments may be somebody else's, and it can't be told
    /// which: where the whole is not what was signed, all of them are asked for past whoever they came from.
    fn on_manifest(&mut self, now: Duration) {
        let Stage::Manifest(consumer, manifest) = std::mem::replace(&mut self.stage, Stage::Known)
        else {
            return;
        };
        let signed = manifest.signed();
        let whole = match consumer.is_done() {
            true => manifest.finish(),
            false => Err(manifest.into_store()),
        };
        let mut store = match whole {
            Ok(manifest) => {
                self.manifest = Some(Arc::new(manifest));
                return self.go_on(now);
            }
            Err(store) => store,
        };
        self.bad_manifests += 1;
        let name = consumer.prefix().clone();
        if self.bad_manifests == MAX_BAD_MANIFESTS {
            self.stage = Stage::Failed(FetchError::NotTheSigned { name });
        } else if let Err(error) = store.clear() {
            let cause = error.to_string();
            self.stage = Stage::Failed(FetchError::NoRoom { name, cause });
        } else {
            self.fetch_manifest(signed, store, Rejected::All, now);
        }
    }

    /// The segments under `prefix`.
    fn flow(&mut self, prefix: Name, last: Option<u64>, now: Duration) {
        let config = &self.config.consumer;
        let verify = match &self.metadata {
            Some(metadata) => config.verify.of_segments(metadata),
            None => config.verify.clone(),
        };
        let sum = self.metadata.as_ref().and_then(|metadata| {
            let at_end = self.config.check == Check::AtEnd && config.first == 0;
            let signed = metadata
                .manifest_digest
                .filter(|_| at_end && !matches!(config.verify, VerifyPolicy::None))?;
            Some((Hash::new(), signed))
        });
        let consumer = ConsumerConfig {
            prefix,
            last: last.or(config.last),
            verify,
            ..config.clone()
        };
        self.stage = Stage::Flowing(Box::new(Flow {
            consumer: Consumer::new(consumer, now),
            first: None,
            sum,
        }));
    }
}
