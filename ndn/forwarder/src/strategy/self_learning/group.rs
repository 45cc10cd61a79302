//! Which names are learned together.

use crate::table::hash::HashedName;
use ndn_packet::Name;

/// The groups of a configuration. Few: they are looked at one after the other.
#[derive(Debug)]
pub(super) struct Groups(Vec<Group>);

#[derive(Debug)]
struct Group {
    below: Name,
    components: usize,
}

impl Groups {
    /// Names below each prefix are learned by so many of their first components. The longest prefix that fits decides.
    pub(super) fn new(groups: &[(Name, usize)]) -> Self {
        let groups = groups.iter().map(|(below, components)| Group {
            below: below.clone(),
            components: *components,
        });
        let mut groups: Vec<Group> = groups.collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.below.len()));
        Groups(groups)
    }

    fn components(&self, name: &HashedName<'_>) -> Option<usize> {
        let fits = |group: &&Group| {
            let length = group.below.len();
            length <= name.len() && name.prefix(length) == group.below.value()
        };
        let group = self.0.iter().find(fits)?;
        (group.components < name.len()).then_some(group.components)
    }

    /// Whether the name is one of a group's objects.
    pub(super) fn has(&self, name: &HashedName<'_>) -> bool {
        self.components(name).is_some()
    }

    /// What a name is learned by: its object, or else all of it but the last component.
    pub(super) fn prefix<'a>(&self, name: &HashedName<'a>) -> HashedName<'a> {
        let components = self.components(name);
        name.without_last(components.map_or(1, |components| name.len() - components))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::hash::{HashKey, NameHashes};

    fn prefix(groups: &Groups, name: &str) -> String {
        let name: Name = name.parse().unwrap();
        let mut hashes = NameHashes::default();
        hashes.push(&HashKey::new(5), name.as_ref());
        let prefix = groups.prefix(&hashes.last(name.as_ref()));
        ndn_packet::NameRef::from_value(prefix.value())
            .unwrap()
            .to_string()
    }

    #[test]
    fn names_of_an_object_share_what_is_learned() {
        let group = |below: &str, components| (below.parse().unwrap(), components);
        let groups = Groups::new(&[group("/h", 3), group("/h/blocks", 4), group("/x", 9)]);
        for (name, learned_by) in [
            ("/h/blocks/p/7/v=1/seg=3", "/h/blocks/p/7"),
            ("/h/blocks/p/7/32=metadata", "/h/blocks/p/7"),
            ("/h/blocks/p/7", "/h/blocks/p"),
            ("/h/rpc/nn/4/5", "/h/rpc/nn"),
            ("/hh/blocks/p/7/8", "/hh/blocks/p/7"),
            ("/x/a/b", "/x/a"),
            ("/a", "/"),
        ] {
            assert_eq!(prefix(&groups, name), learned_by, "{name}");
        }
    }
}
