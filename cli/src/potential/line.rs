//! One line of a DataNode's log.
//!
//! ```text
//! 2026-11-21 12:00:00,123 INFO org.apache.hadoop.hdfs.server.datanode.DataNode.clienttrace: src: /10.0.0.1:9866,
//! dest: /10.0.0.2:41012, volume: /data, bytes: 135266304, op: HDFS_READ, cliID: DFSClient_1, offset: 0, srvID: …,
//! blockid: BP-1-10.0.0.9-1700000000000:blk_1073741825_1001, duration(ns): 92000000
//! ```

use std::net::{IpAddr, SocketAddr};

/// A read as the log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedRead {
    /// Milliseconds since 1970 in the log's own time zone.
    pub time_ms: i64,
    /// The DataNode.
    pub server: IpAddr,
    /// Who read.
    pub reader: IpAddr,
    /// Pool and block, without the generation stamp's changes in mind.
    pub block: String,
    /// Where in the block it began.
    pub offset: u64,
    /// Bytes of the block, checksums taken out.
    pub bytes: u64,
}

/// What a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// None of the client trace.
    Nothing,
    /// Of the client trace, but not to be understood.
    Malformed,
    /// A write, or another operation.
    Other,
    /// A read.
    Read(TracedRead),
}

/// Reads a line.
pub fn parse_line(line: &str) -> Seen {
    let Some((head, fields)) = line.split_once("clienttrace: ") else {
        return Seen::Nothing;
    };
    let field = |key: &str| {
        fields
            .split(", ")
            .find_map(|field| field.strip_prefix(key)?.strip_prefix(": "))
            .map(str::trim)
    };
    match field("op") {
        None => Seen::Malformed,
        Some("HDFS_READ") => read(head, field).map_or(Seen::Malformed, Seen::Read),
        Some(_) => Seen::Other,
    }
}

fn read<'a>(head: &str, field: impl Fn(&str) -> Option<&'a str>) -> Option<TracedRead> {
    let address = |key: &str| {
        let text = field(key)?;
        let text = text.rsplit_once('/').map_or(text, |(_, address)| address);
        let end = text.parse::<SocketAddr>().ok()?;
        Some(end.ip())
    };
    let number = |key: &str| field(key)?.parse::<u64>().ok();
    let (offset, counted) = (number("offset")?, number("bytes")?);
    // HDFS counts what it sent: 4 bytes of checksum with each 512 of the block.
    let bytes = counted - counted / 129;
    offset.checked_add(bytes)?;
    Some(TracedRead {
        time_ms: parse_time(head)?,
        server: address("src")?,
        reader: address("dest")?,
        block: field("blockid")?.to_owned(),
        offset,
        bytes,
    })
}

/// Reads `2026-11-21 12:00:00,123` at the front of a text, in milliseconds; a `T` and a point do as well, and the
/// milliseconds may be left out.
pub fn parse_time(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |from: usize, len: usize| {
        let digits = bytes.get(from..from + len)?;
        let plain = digits.iter().all(u8::is_ascii_digit);
        plain.then(|| {
            digits
                .iter()
                .fold(0i64, |n, d| n * 10 + i64::from(d - b'0'))
        })
    };
    let is = |at: usize, of: &[u8]| bytes.get(at).is_some_and(|b| of.contains(b));
    if !(is(4, b"-") && is(7, b"-") && is(10, b" T") && is(13, b":") && is(16, b":")) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    let millis = if is(19, b",.") { number(20, 3)? } else { 0 };
    let sound = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !sound {
        return None;
    }
    // Days since 1970 in the proleptic Gregorian calendar (Hinnant's days_from_civil).
    let y = year - i64::from(month <= 2);
    let era = y.div_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let year_of_era = y.rem_euclid(400);
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = "2026-11-21 12:00:00,123 INFO org.apache.hadoop.hdfs.server.datanode.DataNode.clienttrace: \
        src: /10.0.0.1:9866, dest: /10.0.0.2:41012, volume: /data, bytes: 516, op: HDFS_READ, cliID: DFSClient_1, \
        offset: 1024, srvID: ab, blockid: BP-1-10.0.0.9-1700000000000:blk_1073741825_1001, duration(ns): 92";

    #[test]
    fn a_read_is_read() {
        let Seen::Read(read) = parse_line(LINE) else {
            panic!("no read")
        };
        assert_eq!((read.offset, read.bytes), (1024, 512));
        assert_eq!(read.server, IpAddr::from([10, 0, 0, 1]));
        assert_eq!(read.reader, IpAddr::from([10, 0, 0, 2]));
        assert_eq!(
            read.block,
            "BP-1-10.0.0.9-1700000000000:blk_1073741825_1001"
        );
        assert_eq!(read.time_ms, 1_795_262_400_123);
    }

    #[test]
    fn what_is_none() {
        assert_eq!(parse_line("2026-11-21 INFO something else"), Seen::Nothing);
        assert_eq!(
            parse_line(&LINE.replace("HDFS_READ", "HDFS_WRITE")),
            Seen::Other
        );
        for (from, to) in [
            ("op: HDFS_READ, ", ""),
            ("bytes: 516", "bytes: -1"),
            ("offset: 1024", "offset: 18446744073709551615"),
            ("/10.0.0.1:9866", "/somewhere:9866"),
            ("2026-11-21", "yesterday"),
            ("12:00:00", "25:00:00"),
        ] {
            assert_eq!(parse_line(&LINE.replace(from, to)), Seen::Malformed, "{to}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(parse_time("1970-01-01 00:00:00"), Some(0));
        assert_eq!(parse_time("2000-03-01T00:00:00.500"), Some(951_868_800_500));
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(text: String, at in 0usize..300, with in ".{0,6}") {
            parse_line(&text);
            let mut near = LINE.to_owned();
            if near.is_char_boundary(at) { near.insert_str(at, &with); }
            parse_line(&near);
            parse_time(&text);
        }
    }
}
