//! Forwarding strategies: which next hops get an Interest, and what is done about Nacks and retransmissions.
//!
//! | strategy | an Interest goes to | learns |
//! |---|---|---|
//! | best-route | the cheapest next hop; retransmitted, the next one | nothing |
//! | multicast | all next hops | nothing |
//! | self-learning | the face that last answered under the same prefix, else all next hops | that face |

mod best_route;
mod multicast;
mod self_learning;

use crate::forwarder::{Forwarder, nanos};
use crate::interest::Arrival;
use ndn_packet::{ComponentBuf, Name, NameRef};
use std::fmt;

/// A strategy, as chosen for a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StrategyKind {
    /// The cheapest next hop first; the next one on a retransmission or Nack.
    #[default]
    BestRoute,
    /// All next hops at once.
    Multicast,
    /// Floods the first Interest under a prefix (the name without its last component), remembers the face that
    /// answered, and floods again when that face refuses, is gone or stays silent.
    SelfLearning,
}

impl StrategyKind {
    /// All strategies.
    pub const ALL: [StrategyKind; 3] = [
        StrategyKind::BestRoute,
        StrategyKind::Multicast,
        StrategyKind::SelfLearning,
    ];

    /// Last component but the version of the strategy's name: what people call it.
    pub const fn label(self) -> &'static str {
        match self {
            StrategyKind::BestRoute => "best-route",
            StrategyKind::Multicast => "multicast",
            StrategyKind::SelfLearning => "self-learning",
        }
    }

    const fn version(self) -> u64 {
        match self {
            StrategyKind::BestRoute | StrategyKind::Multicast => 5,
            StrategyKind::SelfLearning => 1,
        }
    }

    /// The strategy's name in the management protocol, `/localhost/nfd/strategy/<label>/v=<version>`.
    pub fn name(self) -> Name {
        let version = ComponentBuf::version(self.version());
        ["localhost", "nfd", "strategy", self.label()]
            .into_iter()
            .map(ComponentBuf::generic)
            .chain([version])
            .collect()
    }

    /// The strategy of this name in the management protocol. A version, if there is one, must be that of
    /// [`StrategyKind::name`] or older.
    pub fn from_name(name: NameRef<'_>) -> Option<Self> {
        let kind = Self::ALL
            .into_iter()
            .find(|kind| kind.name().parent().as_ref().is_prefix_of(name))?;
        let mut rest = name.components().skip(4);
        let version = match rest.next() {
            None => Some(kind.version()),
            Some(component) => component.as_version(),
        };
        (version? <= kind.version() && rest.next().is_none()).then_some(kind)
    }

    /// The strategy of this [label](Self::label), or of this name written as a URI.
    pub fn from_label(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.label() == text)
            .or_else(|| Self::from_name(text.parse::<Name>().ok()?.as_ref()))
    }
}

impl fmt::Display for StrategyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

impl Forwarder {
    /// Lets the strategy in charge choose where an Interest goes.
    pub(crate) fn choose_next_hops(&mut self, id: u32, arrival: &Arrival<'_>) {
        match self.pit.get(id).strategy {
            StrategyKind::BestRoute => self.best_route(id, arrival),
            StrategyKind::Multicast => self.multicast(id, arrival),
            StrategyKind::SelfLearning => self.self_learning(id, arrival),
        }
    }

    /// Lets the strategy in charge try upstreams that were not asked, after all others have refused; false when there
    /// are none.
    pub(crate) fn retry(&mut self, id: u32, arrival: &Arrival<'_>) -> bool {
        match self.pit.get(id).strategy {
            StrategyKind::BestRoute => self.next_best_route(id, arrival),
            StrategyKind::Multicast => false,
            StrategyKind::SelfLearning => self.flood_the_rest(id, arrival),
        }
    }

    /// Whether an Interest that is pending already stays here: that of another downstream always (it waits with the
    /// others for what is on its way), that of one which asks again until a pause has passed, twice as long each time.
    fn is_suppressed(&mut self, id: u32, arrival: &Arrival<'_>) -> bool {
        if !arrival.again {
            return true;
        }
        let (min, max) = (
            nanos(self.config.retx_suppression_min),
            nanos(self.config.retx_suppression_max),
        );
        let now = self.now;
        let entry = self.pit.get_mut(id);
        let pause = if entry.suppression == 0 {
            min
        } else {
            entry.suppression
        };
        let last = entry.outs.iter().map(|r| r.sent).max().unwrap_or(0);
        if now - last < pause {
            return true;
        }
        entry.suppression = (pause * 2).min(max);
        entry.retransmissions += 1;
        false
    }
}
