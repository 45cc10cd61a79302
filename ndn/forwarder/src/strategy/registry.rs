//! Which strategies there are: one line each. Its name is what people and the management protocol choose it by.

use super::best_route::BestRoute;
use super::hooks::{Strategy, StrategyMemory};
use super::multicast::Multicast;
use super::self_learning::SelfLearning;
use super::settings::StrategySettings;
use crate::face::FaceSlot;
use crate::table::strategy_choice::StrategyIndex;
use ndn_packet::{ComponentBuf, Name, NameRef};
use std::fmt;

/// Makes the enum and what depends on its variants alone.
macro_rules! registry {
    ($($(#[$doc:meta])* $kind:ident = $label:literal, version $version:literal, $strategy:ident;)*) => {
        /// A strategy, as chosen for a prefix.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub enum StrategyKind { $($(#[$doc])* $kind,)* }

        impl StrategyKind {
            /// All strategies.
            pub const ALL: [StrategyKind; [$($label),*].len()] = [$(StrategyKind::$kind),*];

            /// Last component but the version of the strategy's name: what people call it.
            pub const fn label(self) -> &'static str {
                match self { $(StrategyKind::$kind => $label,)* }
            }

            const fn version(self) -> u64 {
                match self { $(StrategyKind::$kind => $version,)* }
            }

            fn make(self, settings: &StrategySettings) -> Box<dyn Strategy> {
                match self { $(StrategyKind::$kind => Box::new($strategy::new(settings)),)* }
            }
        }
    };
}

registry! {
    /// The cheapest next hop first; the next one on a retransmission or Nack.
    #[default]
    BestRoute = "best-route", version 5, BestRoute;
    /// All next hops at once.
    Multicast = "multicast", version 5, Multicast;
    /// Floods the first Interest under a prefix (the name without its last component), remembers the face that
    /// answered, and floods again when that face refuses, is gone or stays silent.
    SelfLearning = "self-learning", version 1, SelfLearning;
}

impl StrategyKind {
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

    /// What the tables keep of it.
    pub(crate) fn index(self) -> StrategyIndex {
        self as StrategyIndex
    }

    /// The strategy of an [index](Self::index).
    pub(crate) fn from_index(index: StrategyIndex) -> Self {
        Self::ALL[usize::from(index)]
    }
}

impl fmt::Display for StrategyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// An instance of each strategy.
#[derive(Debug)]
pub(crate) struct Strategies([Box<dyn Strategy>; StrategyKind::ALL.len()]);

impl Strategies {
    pub(crate) fn new(settings: &StrategySettings) -> Self {
        Strategies(StrategyKind::ALL.map(|kind| kind.make(settings)))
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: StrategyIndex) -> &mut dyn Strategy {
        &mut *self.0[usize::from(index)]
    }

    /// Tells all that a face went down or is gone.
    pub(crate) fn after_face_down(&mut self, face: FaceSlot) {
        self.0.iter_mut().for_each(|s| s.after_face_down(face));
    }

    /// What all remember together.
    pub(crate) fn memory(&self) -> StrategyMemory {
        let add = |a: StrategyMemory, b: StrategyMemory| StrategyMemory {
            entries: a.entries + b.entries,
            bytes: a.bytes + b.bytes,
            capacity_bytes: a.capacity_bytes + b.capacity_bytes,
        };
        let each = self.0.iter().map(|strategy| strategy.memory());
        each.fold(StrategyMemory::default(), add)
    }
}
