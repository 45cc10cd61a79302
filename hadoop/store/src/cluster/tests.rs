//! What is known, without a NameNode.

use super::*;
use crate::cut::Cut;
use crate::file::Draft;

fn cluster() -> Cluster {
    Cluster::new(StoreOptions {
        prefix: name("/c"),
        path: String::new(),
        key: SigningKey::DigestSha256,
        signatures: Signatures::Batch,
    })
}

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

fn interest(name: &Name) -> Interest {
    let wire = Interest::builder(name).can_be_prefix(true).nonce(1).build();
    Interest::parse(wire).expect("an Interest")
}

/// An empty file.
fn empty(name: &Name, mtime: u64) -> File {
    let status = format!(
        r#"{{"type":"FILE","length":0,"blockSize":1,"modificationTime":{mtime},"fileId":7,"permission":"644"}}"#,
    );
    let status = serde_json::from_str(&status).expect("a status");
    let cut = Cut {
        root: "/hadoop".parse().expect("a name"),
        block_segment_bytes: 10,
        segment_bytes: 8,
        freshness: Duration::from_secs(1),
    };
    let draft = Draft::new();
    draft.finish(name, &status, &cut).expect("served")
}

/// Tells of an empty file at `/c/f`, and what its version's name is.
fn told(cluster: &mut Cluster) -> Name {
    let file = empty(&name("/c/f"), 5);
    let versioned = file.versioned().clone();
    let answer = Answer::File(Ok(Some(Arc::new(file))));
    cluster.learn(Topic::File(name("/c/f")), answer, Duration::ZERO);
    versioned
}

#[test]
fn whatever_is_asked_of_a_version_makes_it_doubtful_in_time() {
    let mut cluster = cluster();
    let versioned = told(&mut cluster);
    let version = versioned
        .last()
        .and_then(|c| c.as_version())
        .expect("a version");
    let metadata = name("/c/f/32=metadata").append_version(version);
    for asked in [
        versioned.append_segment(3),
        versioned.clone(),
        metadata.append_segment(0),
        metadata,
    ] {
        let doubt = |now| cluster.doubtful(&interest(&asked), now);
        assert_eq!(doubt(CONFIRMED - Duration::from_millis(1)), None, "{asked}");
        let topic = Topic::File(name("/c/f"));
        assert_eq!(doubt(CONFIRMED), Some(topic), "{asked}");
    }
    let unknown = interest(&name("/c/f").append_version(version + 1));
    assert_eq!(cluster.doubtful(&unknown, CONFIRMED), None);
}

#[test]
fn a_version_stays_doubtful_where_others_took_the_place_of_what_was_told() {
    let mut cluster = cluster();
    let asked = interest(&told(&mut cluster).append_segment(0));
    assert_eq!(cluster.doubtful(&asked, Duration::ZERO), None);
    let long = "x".repeat(MAX_PATH - 10);
    for n in 0..1000 {
        let other = Topic::File(name(&format!("/c/{long}{n}")));
        cluster.learn(other, Answer::File(Ok(None)), Duration::ZERO);
    }
    let (kept, bytes) = (cluster.files.count(), cluster.files.bytes());
    assert!(kept < 1000 && bytes <= TOLD_BYTES && bytes > TOLD_BYTES / 2);
    assert!(cluster.doubtful(&asked, Duration::ZERO).is_some());
    let topic = Topic::File(name("/c/f"));
    cluster.learn(topic, Answer::File(Ok(None)), Duration::ZERO);
    assert!(!matches!(
        cluster.step(&asked, Duration::ZERO),
        Step::Answer(_)
    ));
}

#[test]
fn a_folder_that_has_gone_is_listed_no_longer() {
    let mut cluster = cluster();
    let mut tell = |folder: &str, found| {
        let topic = Topic::Folder(name(folder));
        cluster.learn(topic, Answer::Folder(found), Duration::ZERO);
    };
    let listing = |folder: &str| {
        let versioned = name(folder).append_keyword("ls").append_version(5);
        Arc::new(Listing::new(versioned, Bytes::from_static(b"a\0")))
    };
    for folder in ["/c/d", "/c/e"] {
        tell(folder, Ok(Some(listing(folder))));
    }
    tell("/c/d", Ok(None));
    for (folder, is_listed) in [("/c/d", false), ("/c/e", true)] {
        let asked = listing(folder).versioned().append_segment(0);
        let step = cluster.step(&interest(&asked), Duration::ZERO);
        assert_eq!(matches!(step, Step::Answer(_)), is_listed, "{folder}");
    }
}

#[test]
fn a_block_segment_that_is_kept_keeps_no_buffer() {
    let mut cluster = cluster();
    let buffer = Bytes::from(vec![7; 100_000]);
    let segment = name("/hadoop/blocks/BP-1/7").append_segment(0);
    cluster.keep(&segment, &buffer.slice(..5), Duration::ZERO);
    assert_eq!(
        cluster.segments.peek(&segment).map(|c| &c[..]),
        Some(&[7; 5][..])
    );
    assert!(buffer.is_unique());
    for n in 0..1000 {
        cluster.keep(&segment.append_segment(n), &buffer, Duration::ZERO);
    }
    assert!(cluster.segments.bytes() <= SEGMENTS_BYTES);
}

#[test]
fn versions_take_as_much_as_their_blocks_and_names() {
    let mut cluster = cluster();
    let long = name(&format!("/c/{}", "x".repeat(MAX_PATH - 10)));
    for n in 0..3000 {
        let file = empty(&long, n);
        let topic = Topic::File(long.clone());
        cluster.learn(
            topic,
            Answer::File(Ok(Some(Arc::new(file)))),
            Duration::ZERO,
        );
    }
    let (kept, bytes) = (cluster.versions.count(), cluster.versions.bytes());
    assert!(
        kept * MAX_PATH < bytes && bytes <= VERSIONS_BYTES,
        "{kept} of {bytes} bytes"
    );
}
