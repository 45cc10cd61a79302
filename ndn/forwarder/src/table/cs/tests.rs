use super::super::hash::{HashKey, NameHashes};
use super::*;
use bytes::Bytes;
use ndn_packet::{Component, ComponentBuf, Name, SigningKey};
use proptest::prelude::*;
use std::time::Duration;

fn with<R>(name: &Name, f: impl FnOnce(&HashedName<'_>) -> R) -> R {
    let mut hashes = NameHashes::default();
    hashes.push(&HashKey::new(5), name.as_ref());
    f(&hashes.last(name.as_ref()))
}

fn data(name: &Name, content: &[u8]) -> Data {
    Data::parse(
        Data::builder(name)
            .content(content)
            .sign(&SigningKey::DigestSha256),
    )
    .unwrap()
}

fn put(cs: &mut ContentStore, uri: &str, content: &[u8], fresh_until: u64) -> Data {
    let name: Name = uri.parse().unwrap();
    let data = data(&name, content);
    with(&name, |n| {
        cs.insert(n, &data, fresh_until, Origin::default())
    });
    data
}

fn get(
    cs: &mut ContentStore,
    uri: &str,
    can_be_prefix: bool,
    must_be_fresh: bool,
    now: u64,
) -> Option<String> {
    let name: Name = uri.parse().unwrap();
    let query = Query {
        can_be_prefix,
        must_be_fresh,
        now,
    };
    let data = with(&name, |n| cs.find(n, query).cloned())?;
    Some(data.name().to_name().to_string())
}

#[test]
fn exact_and_prefix_matches() {
    let mut cs = ContentStore::new(1 << 20, 4096, CachePolicy::Lru);
    put(&mut cs, "/a/b/c", b"", 0);
    assert_eq!(
        get(&mut cs, "/a/b/c", false, false, 0).as_deref(),
        Some("/a/b/c")
    );
    assert_eq!(get(&mut cs, "/a/b", false, false, 0), None);
    assert_eq!(
        get(&mut cs, "/a/b", true, false, 0).as_deref(),
        Some("/a/b/c")
    );
    assert_eq!(get(&mut cs, "/", true, false, 0).as_deref(), Some("/a/b/c"));
    assert_eq!(get(&mut cs, "/a/b/c/d", true, false, 0), None);
    assert_eq!((cs.hits, cs.misses), (3, 2));
}

#[test]
fn only_fresh_data_answers_who_wants_it_fresh() {
    let mut cs = ContentStore::new(1 << 20, 4096, CachePolicy::Lru);
    put(&mut cs, "/a/v=1", b"", 100);
    put(&mut cs, "/a/v=2", b"", 0);
    assert_eq!(
        get(&mut cs, "/a/v=1", false, true, 99).as_deref(),
        Some("/a/v=1")
    );
    assert_eq!(get(&mut cs, "/a/v=1", false, true, 100), None);
    assert_eq!(
        get(&mut cs, "/a/v=1", false, false, 100).as_deref(),
        Some("/a/v=1")
    );
    // The newest is stale, an older one is fresh.
    assert_eq!(
        get(&mut cs, "/a", true, true, 50).as_deref(),
        Some("/a/v=1")
    );
    assert_eq!(
        get(&mut cs, "/a", true, false, 50).as_deref(),
        Some("/a/v=2")
    );
}

#[test]
fn a_newer_packet_takes_the_place_of_an_older_one_of_the_same_name() {
    let mut cs = ContentStore::new(1 << 20, 0, CachePolicy::Lru);
    let old = put(&mut cs, "/a", b"old", 0);
    let bytes = cs.bytes();
    let new = put(&mut cs, "/a", b"new", 0);
    assert_eq!((cs.len(), cs.bytes()), (1, bytes));
    assert!(get(&mut cs, &new.full_name().to_string(), false, false, 0).is_some());
    assert!(get(&mut cs, &old.full_name().to_string(), false, false, 0).is_none());
}

#[test]
fn the_least_recently_used_goes_first_and_takes_its_prefixes_along() {
    let mut cs = ContentStore::new(1 << 20, 4096, CachePolicy::Lru);
    for n in 0..10 {
        put(&mut cs, &format!("/block/{n}/seg=0"), &[0; 1000], 0);
    }
    let all = cs.bytes();
    assert!(get(&mut cs, "/block/0/seg=0", false, false, 0).is_some());
    cs.set_capacity(all - 1);
    assert!(get(&mut cs, "/block/0/seg=0", false, false, 0).is_some());
    assert!(get(&mut cs, "/block/1", true, false, 0).is_none());
    assert_eq!(cs.len(), 9);
    cs.set_capacity(0);
    assert_eq!((cs.len(), cs.bytes()), (0, 0));
}

#[test]
fn small_packets_do_not_keep_the_buffer_they_came_in() {
    let chunk = Bytes::from(vec![0; 1 << 16]);
    let name: Name = "/a".parse().unwrap();
    let wire = Data::builder(&name)
        .content(&[1; 100])
        .sign(&SigningKey::DigestSha256);
    let mut buffer = chunk.to_vec();
    buffer[..wire.len()].copy_from_slice(&wire);
    let chunk = Bytes::from(buffer);
    let mut cs = ContentStore::new(1 << 20, 4096, CachePolicy::Lru);
    let data = Data::parse(chunk.slice(..wire.len())).unwrap();
    with(&name, |n| cs.insert(n, &data, 0, Origin::default()));
    drop(data);
    assert!(chunk.is_unique());
}

#[test]
fn packets_that_cannot_fit_or_are_not_admitted_are_left_out() {
    let mut cs = ContentStore::new(1000, 4096, CachePolicy::Lru);
    put(&mut cs, "/a", &[0; 1000], 0);
    assert_eq!(cs.len(), 0);
    cs.admit = false;
    put(&mut cs, "/b", b"", 0);
    assert_eq!(cs.len(), 0);
    cs.admit = true;
    put(&mut cs, "/b", b"", 0);
    cs.serve = false;
    assert_eq!(get(&mut cs, "/b", false, false, 0), None);
}

#[test]
fn erases_under_a_prefix_up_to_a_limit() {
    let mut cs = ContentStore::new(1 << 20, 4096, CachePolicy::Lru);
    for n in 0..10 {
        put(&mut cs, &format!("/a/{n}"), b"", 0);
    }
    put(&mut cs, "/b", b"", 0);
    let prefix: Name = "/a".parse().unwrap();
    assert_eq!(with(&prefix, |n| cs.erase(n, 4)), (4, true));
    assert_eq!(with(&prefix, |n| cs.erase(n, 6)), (6, false));
    assert_eq!(with(&prefix, |n| cs.erase(n, 6)), (0, false));
    assert_eq!(cs.len(), 1);
}

#[test]
fn a_digest_is_computed_once_and_forgotten_with_its_packet() {
    let mut cs = ContentStore::new(1 << 20, 4096, CachePolicy::Lru);
    let old = put(&mut cs, "/a", b"old", 0).full_name().to_string();
    let bytes = cs.bytes();
    for n in 0..100 {
        let digest = ComponentBuf::implicit_digest(&[n; 32]);
        let wrong = "/a".parse::<Name>().unwrap().append(digest).to_string();
        assert_eq!(get(&mut cs, &wrong, false, false, 0), None);
    }
    assert_eq!(cs.digests.len(), 1);
    assert_eq!(cs.bytes(), bytes + DIGEST_BYTES);
    // What answers now can only be the digest that was kept.
    let kept = *cs.digests.values().next().unwrap();
    *cs.digests.values_mut().next().unwrap() = [7; 32];
    assert_eq!(get(&mut cs, &old, false, false, 0), None);
    *cs.digests.values_mut().next().unwrap() = kept;
    assert!(get(&mut cs, &old, false, false, 0).is_some());
    put(&mut cs, "/a", b"new", 0);
    assert_eq!((cs.digests.len(), cs.bytes()), (0, bytes));
    assert_eq!(get(&mut cs, &old, false, false, 0), None);
    cs.set_capacity(0);
    assert_eq!((cs.digests.len(), cs.bytes()), (0, 0));
}

#[test]
fn digests_count_for_the_capacity() {
    let mut cs = ContentStore::new(1 << 20, 4096, CachePolicy::Lru);
    let packets: Vec<_> = (0..10)
        .map(|n| put(&mut cs, &format!("/{n}"), b"", 0))
        .collect();
    let full = cs.bytes();
    cs.set_capacity(full);
    // The one that is used least recently is asked for: what makes room for its digest is the next.
    let name = packets[0].full_name().to_string();
    assert!(get(&mut cs, &name, false, false, 0).is_some());
    assert!(get(&mut cs, "/1", false, false, 0).is_none());
    assert!(cs.bytes() <= full);
}

/// A list of everything ever put, newest last: what a store without bounds would hold.
#[derive(Default)]
struct Naive(Vec<(Name, Bytes, u64)>);

impl Naive {
    fn answers(&self, name: &Name, query: Query) -> Vec<Bytes> {
        let matching = self.0.iter().filter(|(n, wire, fresh_until)| {
            let full = Data::parse(wire.clone()).unwrap().full_name();
            let named = n == name || full == *name || (query.can_be_prefix && name.is_prefix_of(n));
            named && (!query.must_be_fresh || query.now < *fresh_until)
        });
        matching.map(|(_, wire, _)| wire.clone()).collect()
    }
}

fn names() -> impl Strategy<Value = Name> {
    let component = prop::sample::select(vec![
        "a",
        "b",
        "a-component-so-long-that-three-of-it-are-not-kept-in-place",
    ]);
    prop::collection::vec(component, 0..5).prop_map(|c| {
        c.into_iter()
            .map(|c| Component::generic(c.as_bytes()))
            .collect()
    })
}

proptest! {
    #[test]
    fn agrees_with_a_naive_store(
        ops in prop::collection::vec((0u8..8, names(), any::<bool>(), any::<bool>(), 0u64..100), 1..120),
        capacity in prop_oneof![Just(1usize << 20), 4_000usize..40_000],
        policy in prop::sample::select(CachePolicy::ALL.to_vec()),
    ) {
        let mut cs = ContentStore::new(capacity, 4096, policy);
        let mut naive = Naive::default();
        for (op, name, can_be_prefix, must_be_fresh, time) in ops {
            match op {
                0..=3 => {
                    let packet = Data::builder(&name)
                        .freshness(Duration::from_millis(time))
                        .content(&[op; 50])
                        .sign(&SigningKey::DigestSha256);
                    let data = Data::parse(packet.clone()).unwrap();
                    with(&name, |n| cs.insert(n, &data, time, Origin::default()));
                    naive.0.retain(|(n, ..)| *n != name);
                    naive.0.push((name, packet, time));
                }
                4 if capacity == 1 << 20 => {
                    let erased = with(&name, |n| cs.erase(n, usize::MAX)).0;
                    let before = naive.0.len();
                    naive.0.retain(|(n, ..)| !name.is_prefix_of(n));
                    prop_assert_eq!(erased, before - naive.0.len());
                }
                _ => {
                    let query = Query { can_be_prefix, must_be_fresh, now: time };
                    let right = naive.answers(&name, query);
                    match with(&name, |n| cs.find(n, query).cloned()) {
                        Some(data) => prop_assert!(right.contains(data.wire())),
                        None => prop_assert!(right.is_empty() || capacity < 1 << 20),
                    }
                }
            }
            prop_assert!(cs.bytes() <= capacity);
            if capacity == 1 << 20 {
                prop_assert_eq!(cs.len(), naive.0.len());
            }
        }
        cs.set_capacity(0);
        prop_assert_eq!((cs.len(), cs.bytes()), (0, 0));
        prop_assert_eq!(cs.index.len(), 0);
    }
}
