//! `trunkline cache-potential`: how many of a cluster's block reads caches could have served.

pub mod analysis;
mod line;
mod spans;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::args::CachePotentialArgs;
use crate::error::CliError;
use crate::output::{self, Table};
use analysis::{Potential, Read as BlockRead, analyse};
use line::{Seen, parse_line, parse_time};

/// Bytes of a line that are looked at; a client trace line has some 400.
const MAX_LINE: u64 = 16 << 10;
/// Reads that are kept for the analysis, some 100 bytes each.
const MAX_READS: usize = 20_000_000;

/// What the logs held.
#[derive(Debug, Default)]
pub struct Logs {
    /// The reads; after [`Logs::read`] in the order of time.
    pub reads: Vec<BlockRead>,
    /// Number of each host.
    pub hosts: HashMap<IpAddr, u32>,
    blocks: HashMap<String, u32>,
    lines: u64,
    malformed: u64,
    other_operations: u64,
    left_out: u64,
}

impl Logs {
    /// Reads DataNodes' logs; `-` is standard input. Says on standard error when there is no read in them.
    ///
    /// # Errors
    /// A file that can't be read.
    pub fn read(paths: &[PathBuf]) -> Result<Self, CliError> {
        let mut logs = Logs::default();
        for path in paths {
            let done = if path.as_os_str() == "-" {
                logs.take_all(io::stdin().lock())
            } else {
                File::open(path).and_then(|file| logs.take_all(BufReader::new(file)))
            };
            done.map_err(|e| CliError::file(path, &e))?;
        }
        if logs.reads.is_empty() {
            eprintln!("trunkline: no read in these logs: {NO_READS}");
        }
        // A stable order: logs of several DataNodes have lines of one millisecond.
        logs.reads.sort();
        Ok(logs)
    }

    fn host(&mut self, address: IpAddr) -> u32 {
        let next = self.hosts.len() as u32;
        *self.hosts.entry(address).or_insert(next)
    }

    fn take(&mut self, line: &[u8]) {
        self.lines += 1;
        match parse_line(&String::from_utf8_lossy(line)) {
            Seen::Nothing => {}
            Seen::Malformed => self.malformed += 1,
            Seen::Other => self.other_operations += 1,
            Seen::Read(_) if self.reads.len() >= MAX_READS => self.left_out += 1,
            Seen::Read(read) => {
                let next = self.blocks.len() as u32;
                let block = *self.blocks.entry(read.block).or_insert(next);
                let (server, reader) = (self.host(read.server), self.host(read.reader));
                self.reads.push(BlockRead {
                    time_ms: read.time_ms,
                    server,
                    reader,
                    block,
                    offset: read.offset,
                    bytes: read.bytes,
                });
            }
        }
    }

    /// Reads lines, of which the part beyond [`MAX_LINE`] is passed over.
    fn take_all(&mut self, mut from: impl BufRead) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if (&mut from).take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            let whole = line.last() == Some(&b'\n');
            self.take(&line);
            if !whole {
                from.skip_until(b'\n')?;
            }
        }
    }
}

/// Hadoop 3 traces writes at INFO, but reads at DEBUG (its BlockSender).
const NO_READS: &str = "DataNodes trace them only with \
    log4j.logger.org.apache.hadoop.hdfs.server.datanode.DataNode.clienttrace=DEBUG";

/// Runs the subcommand.
///
/// # Errors
/// A file that can't be read, racks or phases that are none.
pub fn run(args: &CachePotentialArgs) -> Result<(), CliError> {
    let phases = phases(&args.phase)?;
    if args.bin.as_millis() == 0 {
        return Err(CliError::usage("--bin", "a step is 1 ms at least"));
    }
    let logs = Logs::read(&args.logs)?;
    let racks = match &args.racks {
        Some(path) => racks(path, &logs.hosts)?,
        None => vec![0; logs.hosts.len()],
    };
    let potential = analyse(&logs.reads, &racks, &phases, args.bin);
    if args.json.json {
        output::json(&serde_json::json!({
            "lines": logs.lines,
            "malformed_lines": logs.malformed,
            "other_operations": logs.other_operations,
            "reads_left_out": logs.left_out,
            "hosts": logs.hosts.len(),
            "blocks": logs.blocks.len(),
            "potential": potential,
        }));
    } else {
        print(&logs, &potential);
    }
    Ok(())
}

fn phases(texts: &[String]) -> Result<Vec<(i64, String)>, CliError> {
    let mut phases = vec![(i64::MIN, "setup".to_owned())];
    for text in texts {
        let phase = text
            .split_once('=')
            .and_then(|(time, name)| Some((parse_time(time)?, name.to_owned())));
        phases.push(phase.ok_or_else(|| {
            CliError::usage("--phase", format!("`{text}` is no phase"))
                .or("write it as '2026-11-21 12:00:00,000=map'")
        })?);
    }
    phases.sort();
    Ok(phases)
}

/// The rack of each host, as a number: lines of an address and a rack, as HDFS's topology scripts print them.
///
/// # Errors
/// A file that can't be read, or a line that is none.
pub fn racks(path: &Path, hosts: &HashMap<IpAddr, u32>) -> Result<Vec<u32>, CliError> {
    let text = std::fs::read_to_string(path).map_err(|e| CliError::file(path, &e))?;
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut racks = vec![0; hosts.len()];
    for (at, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        let (Some(address), rack) = (words.next(), words.next()) else {
            continue;
        };
        let (Ok(address), Some(rack)) = (address.parse::<IpAddr>(), rack) else {
            let place = format!("{}:{}", path.display(), at + 1);
            return Err(CliError::usage(place, "no address and rack")
                .or("write lines such as `10.0.0.7 /rack1`"));
        };
        let next = numbers.len() as u32 + 1;
        let number = *numbers.entry(rack.to_owned()).or_insert(next);
        if let Some(&host) = hosts.get(&address) {
            racks[host as usize] = number;
        }
    }
    Ok(racks)
}

fn print(logs: &Logs, potential: &Potential) {
    output::line(&format!(
        "{} lines: {} reads of {} blocks by {} hosts; {} other operations, {} malformed lines, {} reads left out",
        logs.lines,
        logs.reads.len(),
        logs.blocks.len(),
        logs.hosts.len(),
        logs.other_operations,
        logs.malformed,
        logs.left_out
    ));
    let mut table = Table::new(&[
        "phase",
        "reads",
        "local MB",
        "network MB",
        "node",
        "network",
        "unified",
    ]);
    let all = std::iter::once(("all", &potential.all));
    for (name, sums) in all.chain(potential.phases.iter().map(|p| (p.name.as_str(), &p.sums))) {
        let share = |bytes: u64| match sums.network_bytes {
            0 => "-".to_owned(),
            total => format!("{:.1}%", bytes as f64 * 100.0 / total as f64),
        };
        table.row(vec![
            name.to_owned(),
            sums.reads.to_string(),
            format!("{:.1}", sums.local_bytes as f64 / 1e6),
            format!("{:.1}", sums.network_bytes as f64 / 1e6),
            share(sums.node_bytes),
            share(sums.network_level_bytes),
            share(sums.unified_bytes),
        ]);
    }
    table.print("no reads");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever a log holds, every line is counted and none is a panic.
        #[test]
        fn hostile_logs_are_counted(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..30)) {
            let mut text = Vec::new();
            let mut expected = 0;
            for line in &lines {
                let line: Vec<u8> = line.iter().copied().filter(|&b| b != b'\n').collect();
                text.extend_from_slice(b"clienttrace: src: ");
                text.extend_from_slice(&line);
                text.push(b'\n');
                expected += 1;
            }
            let mut logs = Logs::default();
            logs.take_all(&text[..]).expect("memory can be read");
            prop_assert_eq!(logs.lines, expected);
            prop_assert_eq!(logs.malformed + logs.other_operations + logs.reads.len() as u64, expected);
        }
    }

    #[test]
    fn an_endless_line_is_one_line() {
        let mut logs = Logs::default();
        let endless = io::repeat(b'x').take(10 << 20).chain(&b"\nshort\n"[..]);
        logs.take_all(BufReader::new(endless))
            .expect("memory can be read");
        assert_eq!(logs.lines, 2);
    }
}
