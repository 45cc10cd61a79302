//! One client, three DataNodes.

use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use trunkline_native::{
    ChecksumType, DEFAULT_SEGMENT_BYTES, HEADER_LEN, NativeError, PullSettings, SegmentHeader,
};

use crate::processes::{Meter, Process, listen_at};
use crate::{Outcome, SEGMENT, SUMS, WINDOW, block, open, until_closed};

/// Segments that a client may be ahead of the slowest DataNode, as
/// `dfs.client.write.max-packets-in-flight`.
const AHEAD: u64 = 80;
/// Segments between two acknowledgements of a DataNode; each is a byte.
const ACK_EVERY: u64 = 4;

/// Pulls all segments, verifies them and copies them out.
pub fn datanode(face: &str, count: u64) -> Outcome {
    let node = open(face, "datanode")?;
    let settings = PullSettings {
        first: 0,
        last: None,
        segment_bytes: 64_512,
        window: WINDOW,
        live: true,
    };
    let pull = node.open_pull(&block()?, settings)?;
    let mut out = std::io::stdout();
    // What BlockReceiver reads into, in the JVM.
    let mut packet = vec![0; HEADER_LEN + SUMS + DEFAULT_SEGMENT_BYTES as usize];
    for n in 0..count {
        let content = pull.take(n, Duration::from_secs(30))?;
        let content = content.ok_or("a segment did not come")?;
        packet[..content.len()].copy_from_slice(&content);
        if (n + 1) % ACK_EVERY == 0 || n + 1 == count {
            out.write_all(b".")?;
            out.flush()?;
        }
    }
    until_closed()
}

/// Publishes and waits for the acknowledgements.
pub fn client(gigabytes: f64, kind: &str) -> Outcome {
    let count = (gigabytes * 1e9) as u64 / SEGMENT;
    let cache = (64 << 20).to_string();
    let mut router = Process::start("router", &["--router", &listen_at(kind)?, &cache])?;
    let face = router.first_line()?;
    let node = open(&face, "client")?;
    let producer = node.open_producer(&block()?, 2 * AHEAD as usize)?;

    let acked = Arc::new((Mutex::new([0u64; 3]), Condvar::new()));
    let mut processes = vec![router];
    for (n, role) in ["datanode 1", "datanode 2", "datanode 3"]
        .into_iter()
        .enumerate()
    {
        let mut datanode = Process::start(role, &["--pull", &face, &count.to_string()])?;
        let (mut acks, acked) = (datanode.output()?, acked.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 64];
            while let Ok(got @ 1..) = acks.read(&mut bytes) {
                acked.0.lock().expect("no panic")[n] += got as u64 * ACK_EVERY;
                acked.1.notify_one();
            }
        });
        processes.push(datanode);
    }
    std::thread::sleep(Duration::from_millis(500));

    let wait_until_behind = |most: u64| {
        let mut segments = acked.0.lock().expect("no panic");
        while segments
            .iter()
            .min()
            .is_some_and(|&slowest| slowest + AHEAD <= most)
        {
            segments = acked.1.wait(segments).expect("no panic");
        }
    };
    let data: Vec<u8> = (0..DEFAULT_SEGMENT_BYTES)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let sum = |chunk| crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, chunk) as u32;
    let mut body: Vec<u8> = data
        .chunks(512)
        .flat_map(|c| sum(c).to_be_bytes())
        .collect();
    assert_eq!(body.len(), SUMS);
    body.extend(data);
    let meter = Meter::start(&processes)?;
    for n in 0..count {
        wait_until_behind(n);
        let header = SegmentHeader {
            checksum: ChecksumType::Crc32c,
            bytes_per_checksum: 512,
            data_len: DEFAULT_SEGMENT_BYTES,
            offset_in_block: n * SEGMENT,
        };
        let len = HEADER_LEN + body.len();
        producer.publish(n, len, header.checksum, false, |_, content| {
            content[..HEADER_LEN].copy_from_slice(&header.encode());
            content[HEADER_LEN..].copy_from_slice(&body);
            Ok::<(), NativeError>(())
        })?;
    }
    wait_until_behind(count + AHEAD - ACK_EVERY);
    meter.print(
        &format!("write to 3 replicas by {kind}"),
        (count * SEGMENT) as f64,
    )
}
