//! One Interest, one Data: asked again until it is answered or time is up. For metadata, discovery, pings.

use crate::{Distrust, VerifyPolicy};
use bytes::Bytes;
use fastrand::Rng;
use ndn_packet::{Data, Interest, NackReason, Name, NameRef, NetPacket};
use std::time::Duration;

/// Settings of an [`Exchange`]. Start from [`ExchangeConfig::new`] and change fields.
#[derive(Debug, Clone)]
pub struct ExchangeConfig {
    /// Name asked for.
    pub name: Name,
    /// Whether the Data may have a longer name. Default false.
    pub can_be_prefix: bool,
    /// Whether stale Data in caches is no answer. Default false.
    pub must_be_fresh: bool,
    /// The last answer was not genuine: routers are told so, and ask past whoever it came from
    /// ([`NetPacket::rejected`]). Goes with `must_be_fresh`, for those that don't know it. Default false.
    pub rejected: bool,
    /// ApplicationParameters, if any.
    pub parameters: Option<Bytes>,
    /// Lifetime of each Interest. Default 4 s.
    pub lifetime: Duration,
    /// Wait before the Interest is sent again; doubles each time. Default 500 ms.
    pub retry_after: Duration,
    /// All of the time there is. Default 8 s.
    pub timeout: Duration,
    /// How many Nacks are taken before it fails; after each but the last it asks again. Default 3.
    pub max_nacks: u32,
    /// What must be true of the signature. Default DigestSha256.
    pub verify: VerifyPolicy,
    /// Seed of the nonces. Default 0.
    pub seed: u64,
}

impl ExchangeConfig {
    /// The defaults, for `name`.
    pub fn new(name: Name) -> Self {
        Self {
            name,
            can_be_prefix: false,
            must_be_fresh: false,
            rejected: false,
            parameters: None,
            lifetime: Duration::from_secs(4),
            retry_after: Duration::from_millis(500),
            timeout: Duration::from_secs(8),
            max_nacks: 3,
            verify: VerifyPolicy::default(),
            seed: 0,
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    /// Nothing came in time.
    #[error("{name}: no answer in {waited:?}; is its producer running and reachable?")]
    Timeout {
        /// The name asked for.
        name: Name,
        /// How long nothing came.
        waited: Duration,
    },
    /// The network refused the Interest.
    #[error("{name}: refused ({reason}); is the prefix registered?")]
    Nack {
        /// The name asked for.
        name: Name,
        /// The last Nack's reason.
        reason: NackReason,
    },
    /// The answer is not believed.
    #[error("{name}: the answer is rejected: {why}; {}", .why.way_out())]
    Rejected {
        /// The name asked for.
        name: Name,
        /// Why not.
        why: Distrust,
    },
}

/// ```text
///   Ask ──Interest sent──▶ Out ──Data──▶ Over(Ok)
///    ▲                      │ │
///    └── wait over, Nack ───┘ └──── timeout, Nacks, bad signature ──▶ Over(Err)
/// ```
#[derive(Debug)]
enum Phase {
    /// An Interest is to be sent, not before this time.
    Ask(Duration),
    /// One is out; the next is to be sent at this time.
    Out(Duration),
    Over(Result<Data, ExchangeError>),
}

/// Asks for one packet.
#[derive(Debug)]
pub struct Exchange {
    config: ExchangeConfig,
    phase: Phase,
    started: Duration,
    wait: Duration,
    nacks: u32,
    nonce: u32,
    rng: Rng,
}

impl Exchange {
    /// An exchange that has sent nothing yet.
    pub fn new(config: ExchangeConfig, now: Duration) -> Self {
        Self {
            phase: Phase::Ask(now),
            started: now,
            wait: config.retry_after,
            nacks: 0,
            nonce: 0,
            rng: Rng::with_seed(config.seed),
            config,
        }
    }

    /// The next Interest to send, if one may be sent now.
    pub fn poll_interest(&mut self, now: Duration) -> Option<NetPacket> {
        match self.phase {
            Phase::Ask(at) if at <= now => {}
            _ => return None,
        }
        self.nonce = self.rng.u32(..);
        self.phase = Phase::Out(now + self.wait);
        self.wait *= 2;
        let interest = Interest::builder(&self.config.name)
            .can_be_prefix(self.config.can_be_prefix)
            .must_be_fresh(self.config.must_be_fresh || self.config.rejected)
            .nonce(self.nonce)
            .lifetime(self.config.lifetime);
        let wire = match &self.config.parameters {
            Some(parameters) => interest.application_parameters(parameters.clone()).build(),
            None => interest.build(),
        };
        let interest = Interest::parse(wire).ok()?;
        Some(NetPacket {
            rejected: self.config.rejected,
            ..NetPacket::interest(interest)
        })
    }

    /// Takes a Data; false when it answers something else.
    pub fn on_data(&mut self, data: Data) -> bool {
        if !self.wants(data.name()) || self.result().is_some() {
            return false;
        }
        self.phase = Phase::Over(match self.config.verify.check(&data) {
            Ok(()) => Ok(data),
            Err(why) => Err(ExchangeError::Rejected {
                name: self.config.name.clone(),
                why,
            }),
        });
        true
    }

    /// Whether Data of this name is an answer.
    pub fn wants(&self, name: NameRef<'_>) -> bool {
        let asked = &self.config.name;
        let longer = self.config.can_be_prefix || self.config.parameters.is_some();
        match longer {
            true => asked.as_ref().is_prefix_of(name),
            false => name == *asked,
        }
    }

    /// The name asked for.
    pub fn name(&self) -> &Name {
        &self.config.name
    }

    /// Takes a Nack for `interest`.
    pub fn on_nack(&mut self, now: Duration, interest: &Interest, reason: NackReason) {
        let mine = interest.nonce() == Some(self.nonce)
            && self.config.name.as_ref().is_prefix_of(interest.name());
        let Phase::Out(again) = self.phase else {
            return;
        };
        if !mine {
            return;
        }
        self.nacks += 1;
        self.phase = if self.nacks >= self.config.max_nacks {
            Phase::Over(Err(ExchangeError::Nack {
                name: self.config.name.clone(),
                reason,
            }))
        } else if reason == NackReason::Duplicate {
            Phase::Ask(now)
        } else {
            Phase::Ask(again.min(now + self.config.retry_after))
        };
    }

    /// When [`on_deadline`](Self::on_deadline) is to be called; `None` once it is over.
    pub fn deadline(&self) -> Option<Duration> {
        match self.phase {
            Phase::Ask(at) | Phase::Out(at) => Some(at.min(self.started + self.config.timeout)),
            Phase::Over(_) => None,
        }
    }

    /// Asks again or gives up; poll for an Interest afterwards.
    pub fn on_deadline(&mut self, now: Duration) {
        if self.result().is_some() {
            return;
        }
        let waited = now.saturating_sub(self.started);
        match self.phase {
            _ if waited >= self.config.timeout => {
                self.phase = Phase::Over(Err(ExchangeError::Timeout {
                    name: self.config.name.clone(),
                    waited,
                }));
            }
            Phase::Out(at) if at <= now => self.phase = Phase::Ask(now),
            _ => {}
        }
    }

    /// The answer, once there is one or none will be.
    pub fn result(&self) -> Option<Result<&Data, &ExchangeError>> {
        match &self.phase {
            Phase::Over(result) => Some(result.as_ref()),
            _ => None,
        }
    }
}
