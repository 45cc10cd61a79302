use super::super::WriteKey;
use super::*;
use crate::own::testing::Writable;
use proptest::prelude::*;

/// Lengths at which pieces begin and end.
const LENGTHS: [usize; 7] = [
    0,
    1,
    PIECE_LEN - 1,
    PIECE_LEN,
    PIECE_LEN + 1,
    3 * PIECE_LEN,
    20_000,
];

fn sealed(sealer: &Sealer, name: &[u8], segment: u64, plain: &[u8]) -> Vec<u8> {
    let mut content = vec![0; sealed_len(plain.len())];
    sealer
        .seal(name, segment, &mut content, from(plain))
        .unwrap();
    content
}

fn some(len: usize) -> Vec<u8> {
    (0..len).map(|n| ((n * 31) >> 2) as u8).collect()
}

/// The tag of nothing in draft-irtf-cfrg-aegis-aead, "AEGIS-128X2 Test Vectors".
#[test]
fn the_cipher_is_that_of_its_draft() {
    let key: Key = std::array::from_fn(|n| n as u8);
    let nonce: Nonce = std::array::from_fn(|n| 16 + n as u8);
    let tag = Aegis128X2::<TAG_LEN>::new(&key, &nonce).encrypt_in_place(&mut [], &[]);
    assert_eq!(u128::from_be_bytes(tag), 0x63117dc57756e402819a82e13eca8379);
}

/// Content of two pieces, by the checksum of what it is sealed: where that changes,
/// older hosts must be told by another version of the preamble.
#[test]
fn the_format_is_that_of_its_version() {
    let key = WriteKey::new(&std::array::from_fn(|n| n as u8));
    let content = sealed(
        &key.sealer(StreamKind::Stream),
        b"name",
        7,
        &some(PIECE_LEN + 3),
    );
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &content);
    assert_eq!(
        (content.len(), sum),
        (PIECE_LEN + 3 + 2 * TAG_LEN, 0xb0f1_c73d)
    );
}

#[test]
fn only_the_same_key_kind_name_and_number_open() {
    let key = WriteKey::draw().unwrap();
    let content = sealed(
        &key.sealer(StreamKind::Block),
        b"/a/seg=7",
        7,
        b"twelve bytes",
    );
    let opener = key.opener(StreamKind::Block);
    let open = |name, number, content: &[u8]| opener.open(name, number, content);
    assert_eq!(open(b"/a/seg=7", 7, &content).unwrap(), b"twelve bytes");
    assert!(!content.windows(12).any(|w| w == b"twelve bytes"));
    assert_eq!(open(b"/a/seg=7", 8, &content), None, "another number");
    assert_eq!(open(b"/b/seg=7", 7, &content), None, "another name");
    let stream = key.opener(StreamKind::Stream);
    assert_eq!(
        stream.open(b"/a/seg=7", 7, &content),
        None,
        "another stream"
    );
    let other = WriteKey::draw().unwrap().opener(StreamKind::Block);
    assert_eq!(other.open(b"/a/seg=7", 7, &content), None, "another key");
    assert_eq!(open(b"/a/seg=7", 7, &content[..TAG_LEN - 1]), None);
    assert_eq!(open(b"/a/seg=7", 7, b""), None);
}

#[test]
fn what_was_sealed_opens_again() {
    let key = WriteKey::draw().unwrap();
    let (sealer, opener) = (
        key.sealer(StreamKind::Stream),
        key.opener(StreamKind::Stream),
    );
    for (n, len) in (0..).zip(LENGTHS) {
        let plain = some(len);
        let content = sealed(&sealer, b"name", n, &plain);
        assert_eq!(open_len(content.len()), Some(len));
        assert_eq!(opener.open(b"name", n, &content).unwrap(), plain, "{len}");
    }
    let lengths: Vec<_> = LENGTHS.map(sealed_len).into();
    let none = (0..=sealed_len(20_000)).filter(|len| open_len(*len).is_none());
    assert!(none.into_iter().all(|len| !lengths.contains(&len)));
}

#[test]
fn no_length_is_that_of_two_contents() {
    for len in 0..4 * PIECE_LEN {
        assert_eq!(open_len(sealed_len(len)), Some(len));
    }
    for sealed in [0, TAG_LEN - 1, PIECE_LEN + TAG_LEN + 1, usize::MAX] {
        assert_eq!(open_len(sealed), None, "{sealed}");
    }
}

/// Each piece opens by itself where it stands: what is bound must hold the rest.
#[test]
fn pieces_stay_where_they_are() {
    let key = WriteKey::draw().unwrap();
    let sealer = key.sealer(StreamKind::Block);
    let plain = some(3 * PIECE_LEN);
    let content = sealed(&sealer, b"name", 0, &plain);
    let other = sealed(&sealer, b"name", 1, &plain);
    let open = |content: &[u8]| key.opener(StreamKind::Block).open(b"name", 0, content);
    let tags = 3 * PIECE_LEN;

    let mut swapped = content.clone();
    swapped[..2 * PIECE_LEN].rotate_left(PIECE_LEN);
    swapped[tags..tags + 2 * TAG_LEN].rotate_left(TAG_LEN);
    assert_eq!(open(&swapped), None, "in another order");

    let mut cut = content[..2 * PIECE_LEN].to_vec();
    cut.extend_from_slice(&content[tags..tags + 2 * TAG_LEN]);
    assert_eq!(open(&cut), None, "without the last one");

    let mut mixed = content.clone();
    mixed[PIECE_LEN..2 * PIECE_LEN].copy_from_slice(&other[PIECE_LEN..2 * PIECE_LEN]);
    mixed[tags + TAG_LEN..][..TAG_LEN].copy_from_slice(&other[tags + TAG_LEN..][..TAG_LEN]);
    assert_eq!(open(&mixed), None, "with one of another segment");
    assert_eq!(open(&content).unwrap(), plain);
}

#[test]
fn a_number_is_sealed_once() {
    let sealer = WriteKey::draw().unwrap().sealer(StreamKind::Block);
    sealed(&sealer, b"n", 0, b"first");
    sealed(&sealer, b"n", 5, b"later");
    for again in [0, 3, 5] {
        let mut to = vec![1; sealed_len(24)];
        assert!(
            sealer.seal(b"n", again, &mut to, from(&[2; 24])).is_err(),
            "{again}"
        );
        assert_eq!(to, [1; sealed_len(24)], "nothing is sealed");
    }
    sealed(&sealer, b"n", 6, b"next");
    let mut to = [0; sealed_len(1)];
    assert!(sealer.seal(b"n", u64::MAX, &mut to, from(b"1")).is_err());
    assert!(
        sealer
            .seal(b"n", 7, &mut [0; TAG_LEN - 1], from(b""))
            .is_err()
    );
}

/// What could not be read to its end may have been sealed in part.
#[test]
fn a_number_is_used_up_by_what_could_not_be_read() {
    let sealer = WriteKey::draw().unwrap().sealer(StreamKind::Block);
    let mut to = vec![0; sealed_len(2 * PIECE_LEN)];
    let failed: Result<()> = sealer.seal(b"n", 3, &mut to, |at, _| match at {
        0 => Ok(()),
        _ => Err(NativeError::Failed("gone".into())),
    });
    assert!(failed.is_err());
    let plain = some(2 * PIECE_LEN);
    assert!(sealer.seal(b"n", 3, &mut to, from(&plain)).is_err());
    sealer.seal(b"n", 4, &mut to, from(&plain)).unwrap();
}

/// Whoever looks at the memory meanwhile, as the router may, sees nothing else.
#[test]
fn memory_never_has_what_is_not_sealed() {
    let plain = some(3 * PIECE_LEN);
    let sealer = WriteKey::draw().unwrap().sealer(StreamKind::Block);
    let mut to = vec![0; sealed_len(plain.len())];
    let memory = to.as_ptr();
    let seen = |at: usize| {
        // SAFETY: the first `at` bytes of `to`, which lives longer and which nobody writes to here.
        unsafe { std::slice::from_raw_parts(memory, at) }.to_vec()
    };
    sealer
        .seal(b"n", 0, &mut to, |at, piece| {
            let before = seen(at);
            let open = before.iter().zip(&plain).filter(|(a, b)| a == b).count();
            assert!(open * 16 <= at, "{open} of {at} bytes are as they were");
            from(&plain)(at, piece)
        })
        .unwrap();
}

#[test]
fn a_piece_is_opened_as_it_was_copied() {
    let key = WriteKey::draw().unwrap();
    let plain = some(3 * PIECE_LEN);
    let content = sealed(&key.sealer(StreamKind::Block), b"n", 0, &plain);
    let memory = Writable::holding(&content);
    let bytes = memory.bytes();
    let mut put = Vec::new();
    let opened = key
        .opener(StreamKind::Block)
        .open_pieces(b"n", 0, &bytes, |at, piece| {
            assert_eq!(at, put.len());
            put.extend_from_slice(piece);
            memory.turn();
            Ok::<(), Forged>(())
        });
    assert_eq!(opened, Err(Forged), "the second piece is another one");
    assert_eq!(put, plain[..PIECE_LEN]);
}

proptest! {
    #[test]
    fn any_change_is_seen(plain in proptest::collection::vec(any::<u8>(), 0..3 * PIECE_LEN), segment in 0..u64::MAX, at: usize, bit in 0..8u8) {
        let key = WriteKey::draw().unwrap();
        let mut content = sealed(&key.sealer(StreamKind::Stream), b"name", segment, &plain);
        let opener = key.opener(StreamKind::Stream);
        let open = |content: &[u8]| opener.open(b"name", segment, content);
        prop_assert_eq!(&open(&content).unwrap()[..], &plain[..]);
        let at = at % content.len();
        content[at] ^= 1 << bit;
        prop_assert_eq!(open(&content), None);
        content[at] ^= 1 << bit;
        prop_assert_eq!(open(&content[..at]), None);
    }
}
