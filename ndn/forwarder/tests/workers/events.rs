//! What can happen to a forwarder, at random.

use ndn_forwarder::StrategyKind;
use proptest::prelude::*;

pub const NAMES: [&str; 14] = [
    "/",
    "/a",
    "/a/b",
    "/a/b/c",
    "/a/b/d",
    "/a/e",
    "/x/y/z",
    "/x/y",
    "/localhost/a",
    "/localhop/a",
    "/a/b/c/seg=1",
    "/a/b/c/seg=2",
    "/a/b/c/d/seg=1",
    "/q/r/s/t/u",
];

#[derive(Debug, Clone)]
pub struct Asks {
    pub name: usize,
    pub nonce: u32,
    pub prefix: bool,
    pub fresh: bool,
    /// The name is followed by the digest of the Data that is never fresh.
    pub digest: bool,
    pub rejected: bool,
    pub hops: Option<u8>,
    pub lifetime_ms: u64,
}

#[derive(Debug, Clone, Copy)]
pub enum Token {
    Own,
    None,
    Forged(u64),
}

#[derive(Debug, Clone)]
pub enum Event {
    AddFace {
        kind: u8,
        worker: usize,
    },
    RemoveFace(usize),
    FaceUp(usize, bool),
    Resize(usize, bool),
    Interest(usize, Asks),
    Batch(usize, Vec<Asks>),
    /// Data as the answer to the n-th Interest that was last sent.
    Answer {
        pick: usize,
        token: Token,
        fresh_ms: u64,
        cached: bool,
        /// It is of a name below the one that was asked for.
        below: bool,
    },
    Nack {
        pick: usize,
        token: Token,
    },
    Data {
        face: usize,
        name: usize,
        token: Token,
    },
    Route {
        name: usize,
        face: usize,
        cost: u64,
    },
    Unroute {
        name: usize,
        face: usize,
    },
    Strategy {
        name: usize,
        kind: usize,
    },
    Unstrategy(usize),
    Erase(usize),
    Wait(u64),
}

pub fn asks(deep_prefixes_only: bool) -> impl Strategy<Value = Asks> {
    let flags = (any::<bool>(), any::<bool>(), 0u8..6, 0u8..4);
    (
        1..NAMES.len(),
        0u32..20,
        flags,
        prop::option::of(0u8..3),
        1u64..3000,
    )
        .prop_map(
            move |(name, nonce, (prefix, fresh, digest, rejected), hops, lifetime_ms)| {
                let is_deep = NAMES[name].split('/').count() > 5;
                let digest = digest == 0 && (is_deep || !deep_prefixes_only);
                Asks {
                    name,
                    nonce,
                    prefix: prefix && !digest && (is_deep || !deep_prefixes_only),
                    fresh,
                    digest,
                    // A short Interest that tells of a reject looks into no caches: it passes those that do.
                    rejected: rejected == 0 && !prefix,
                    hops,
                    lifetime_ms,
                }
            },
        )
}

pub fn token_use() -> impl Strategy<Value = Token> {
    prop_oneof![
        4 => Just(Token::Own),
        2 => Just(Token::None),
        1 => any::<u64>().prop_map(|n| Token::Forged(n & 0xffff_ffff_ffff)),
        1 => (0u64..4, 0u64..4).prop_map(|(worker, id)| Token::Forged(worker << 26 | id)),
    ]
}

pub fn events(kinds: &'static [StrategyKind]) -> impl Strategy<Value = Event> {
    let deep = kinds.contains(&StrategyKind::SelfLearning);
    let (face, name) = (0usize..6, 0usize..NAMES.len());
    let answer = (
        any::<usize>(),
        token_use(),
        0u64..100,
        0u8..4,
        any::<bool>(),
    );
    prop_oneof![
        1 => (0u8..4, 0usize..8).prop_map(|(kind, worker)| Event::AddFace { kind, worker }),
        1 => face.clone().prop_map(Event::RemoveFace),
        1 => (face.clone(), any::<bool>()).prop_map(|(f, up)| Event::FaceUp(f, up)),
        1 => (face.clone(), any::<bool>()).prop_map(|(f, small)| Event::Resize(f, small)),
        10 => (face.clone(), asks(deep)).prop_map(|(face, asks)| Event::Interest(face, asks)),
        2 => (face.clone(), prop::collection::vec(asks(deep), 1..20))
            .prop_map(|(face, asks)| Event::Batch(face, asks)),
        8 => answer.prop_map(|(pick, token, fresh_ms, cached, below)| {
            Event::Answer { pick, token, fresh_ms, cached: cached > 0, below }
        }),
        3 => (any::<usize>(), token_use()).prop_map(|(pick, token)| Event::Nack { pick, token }),
        2 => (face.clone(), name.clone(), token_use())
            .prop_map(|(face, name, token)| Event::Data { face, name: name.max(1), token }),
        3 => (face.clone(), name.clone(), 0u64..3)
            .prop_map(|(face, name, cost)| Event::Route { name, face, cost }),
        1 => (face, name.clone()).prop_map(|(face, name)| Event::Unroute { name, face }),
        1 => (name.clone(), 0..kinds.len()).prop_map(|(name, kind)| Event::Strategy { name, kind }),
        1 => name.clone().prop_map(Event::Unstrategy),
        1 => name.prop_map(Event::Erase),
        3 => (0u64..2000).prop_map(Event::Wait),
    ]
}
