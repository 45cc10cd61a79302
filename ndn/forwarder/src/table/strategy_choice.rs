//! Strategy choice table: which strategy is in charge of a name.

use super::hash::HashedName;
use super::name_table::NameTable;
use ndn_packet::NameRef;

/// A strategy, as its number in the registry.
pub(crate) type StrategyIndex = u8;

/// The table.
#[derive(Debug)]
pub(crate) struct StrategyChoices {
    names: NameTable<StrategyIndex>,
    /// Of all names without a choice.
    pub(crate) default: StrategyIndex,
}

impl StrategyChoices {
    pub(crate) fn new(default: StrategyIndex) -> Self {
        StrategyChoices {
            names: NameTable::new(),
            default,
        }
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.names.memory()
    }

    /// The strategy in charge of a name.
    #[inline]
    pub(crate) fn lookup(&self, name: &HashedName<'_>) -> StrategyIndex {
        self.names
            .longest_prefix(name)
            .map_or(self.default, |(_, index)| *index)
    }

    /// Chooses for a prefix; false when it is too long.
    pub(crate) fn set(&mut self, prefix: &HashedName<'_>, strategy: StrategyIndex) -> bool {
        if prefix.len() == 0 {
            self.default = strategy;
            return true;
        }
        self.names.insert(prefix, strategy).is_ok()
    }

    /// Takes a choice back; false when there was none.
    pub(crate) fn unset(&mut self, prefix: &HashedName<'_>) -> bool {
        self.names.remove(prefix).is_some()
    }

    /// All prefixes with a choice of their own, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (NameRef<'_>, StrategyIndex)> {
        self.names.iter().map(|(name, index)| (name, *index))
    }
}
