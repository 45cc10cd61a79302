//! One DataNode with a replica, one client that reads it twice.

use std::path::Path;
use std::time::Duration;

use trunkline_native::{Answer, DEFAULT_SEGMENT_BYTES, HEADER_LEN, NamedNode, PullSettings};

use crate::processes::{Meter, Process, listen_at};
use crate::{Outcome, SEGMENT, SUMS, WINDOW, block, open, until_closed};

/// Serves the one replica there is.
pub fn datanode(face: &str, folder: &str, length: u64) -> Outcome {
    let node = open(face, "datanode")?;
    let prefix = "/hadoop/blocks".parse()?;
    let source = node.open_blocks(&prefix, DEFAULT_SEGMENT_BYTES, 16)?;
    let folder = Path::new(folder);
    let (block, meta) = (folder.join("block"), folder.join("meta"));
    let answers = source.clone();
    std::thread::spawn(move || {
        while let Ok(request) = answers.next_request(Duration::from_secs(1)) {
            let answer = Answer {
                block: &block,
                meta: &meta,
                length,
                genstamp: 1001,
                secrets: trunkline_native::Secrets::default(),
            };
            if let Some(request) = request {
                answers.answer(&request, Some(answer));
            }
        }
    });
    println!("ready");
    until_closed()
}

/// Reads the replica twice.
pub fn client(gigabytes: f64, kind: &str) -> Outcome {
    let count = (gigabytes * 1e9) as u64 / SEGMENT;
    let length = count * SEGMENT;
    let folder = std::env::temp_dir().join(format!("trunkline-read-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("block"), vec![0x5a; length as usize])?;
    let mut sums = vec![0, 1, 2, 0, 0, 2, 0];
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &[0x5a; 512]) as u32;
    sums.extend(sum.to_be_bytes().repeat(count as usize * SUMS / 4));
    std::fs::write(folder.join("meta"), sums)?;

    let cache = (length as usize + (256 << 20)).to_string();
    let mut router = Process::start("router", &["--router", &listen_at(kind)?, &cache])?;
    let face = router.first_line()?;
    let args = [
        "--serve",
        &face,
        &folder.to_string_lossy(),
        &length.to_string(),
    ];
    let mut datanode = Process::start("datanode", &args)?;
    datanode.first_line()?;
    let node = open(&face, "client")?;
    let processes = [router, datanode];
    for what in ["first read", "second read"] {
        let meter = Meter::start(&processes)?;
        read(&node, count)?;
        meter.print(&format!("{what} by {kind}"), length as f64)?;
    }
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

fn read(node: &NamedNode, count: u64) -> Outcome {
    let settings = PullSettings {
        first: 0,
        last: Some(count - 1),
        segment_bytes: 64_512,
        window: WINDOW,
        live: false,
    };
    let pull = node.open_pull(&block()?, settings)?;
    let mut packet = vec![0; HEADER_LEN + SUMS + DEFAULT_SEGMENT_BYTES as usize];
    for n in 0..count {
        let content = pull.take(n, Duration::from_secs(30))?;
        let content = content.ok_or("a segment did not come")?;
        packet[..content.len()].copy_from_slice(&content);
    }
    Ok(())
}
