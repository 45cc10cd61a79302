//! Extents: where runs of a series' packets are, a dozen bytes for each run of up to 131,072.

use ndn_packet::tlv;

/// Most packets of an extent.
pub(crate) const MAX_COUNT: u64 = 1 << 17;

/// A run of consecutive segments whose packets are in one log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The first segment.
    pub first: u64,
    /// How many there are.
    pub count: u64,
    /// The log of the packets.
    pub log: u32,
    /// The log of the table that tells where they are: the same, or a later one.
    pub table_log: u32,
    /// Where in that log the table's entry of the first segment is.
    pub table: u64,
    /// Bytes of the packets' records.
    pub bytes: u64,
}

impl Extent {
    /// The segment after the last.
    pub fn end(&self) -> u64 {
        self.first + self.count
    }
}

/// The bytes of extents in the order of segments.
pub(crate) fn encode(extents: &[Extent]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(extents.len() * 16);
    let (mut segment, mut log) = (0, 0);
    for extent in extents {
        tlv::write_var(&mut bytes, extent.first - segment);
        tlv::write_var(&mut bytes, extent.count);
        // Logs mostly go up, by little.
        tlv::write_var(&mut bytes, step(log, extent.log));
        tlv::write_var(&mut bytes, step(extent.log, extent.table_log));
        tlv::write_var(&mut bytes, extent.table);
        tlv::write_var(&mut bytes, extent.bytes);
        (segment, log) = (extent.end(), extent.log);
    }
    bytes
}

/// From one log to another, as a number that is small where they are near.
fn step(from: u32, to: u32) -> u64 {
    let step = i64::from(to) - i64::from(from);
    ((step << 1) ^ (step >> 63)) as u64
}

fn stepped(from: u32, step: u64) -> Option<u32> {
    let step = (step >> 1) as i64 ^ -((step & 1) as i64);
    u32::try_from(i64::from(from).checked_add(step)?).ok()
}

/// Reads what [`encode`] wrote; `None` for other bytes.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<Vec<Extent>> {
    let mut extents = Vec::new();
    let (mut segment, mut log) = (0u64, 0u32);
    while !bytes.is_empty() {
        let mut number = || {
            let (value, len) = tlv::read_var(bytes).ok()?;
            bytes = &bytes[len..];
            Some(value)
        };
        let (gap, count, to_log, to_table) = (number()?, number()?, number()?, number()?);
        let log_of_packets = stepped(log, to_log)?;
        let extent = Extent {
            first: segment.checked_add(gap)?,
            count: (1..=MAX_COUNT).contains(&count).then_some(count)?,
            log: log_of_packets,
            table_log: stepped(log_of_packets, to_table)?,
            table: number()?,
            bytes: number()?,
        };
        segment = extent.first.checked_add(count)?;
        log = extent.log;
        extents.push(extent);
    }
    Some(extents)
}

/// `old` with `new` in the place of what they have in common. `part` cuts an extent to segments from the first up to,
/// without, the second; both lists are in order and do not overlap in themselves.
pub(crate) fn replace<E>(
    old: &[Extent],
    new: &[Extent],
    mut part: impl FnMut(&Extent, u64, u64) -> Result<Option<Extent>, E>,
) -> Result<Vec<Extent>, E> {
    let mut kept = new.to_vec();
    for extent in old {
        let mut from = extent.first;
        for over in new {
            if over.end() <= from || over.first >= extent.end() {
                continue;
            }
            if over.first > from {
                kept.extend(part(extent, from, over.first)?);
            }
            from = over.end().min(extent.end());
        }
        if from == extent.first {
            kept.push(*extent);
        } else if from < extent.end() {
            kept.extend(part(extent, from, extent.end())?);
        }
    }
    kept.sort_unstable_by_key(|extent| extent.first);
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    fn cut(extent: &Extent, from: u64, to: u64) -> Result<Option<Extent>, Infallible> {
        Ok(Some(Extent {
            first: from,
            count: to - from,
            table: extent.table + 8 * (from - extent.first),
            bytes: to - from,
            ..*extent
        }))
    }

    /// Which log has which segment, and where its entry is.
    fn places(extents: &[Extent]) -> BTreeMap<u64, (u32, u64)> {
        extents
            .iter()
            .flat_map(|e| (0..e.count).map(|i| (e.first + i, (e.log, e.table + 8 * i))))
            .collect()
    }

    fn extents(log: u32) -> impl Strategy<Value = Vec<Extent>> {
        prop::collection::vec((0u64..4, 1u64..5, 0u64..1000), 0..6).prop_map(move |runs| {
            let mut segment = 0;
            runs.into_iter()
                .map(|(gap, count, table)| {
                    let first = segment + gap;
                    segment = first + count;
                    Extent {
                        first,
                        count,
                        log,
                        table_log: log,
                        table,
                        bytes: count,
                    }
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn extents_go_round(runs in prop::collection::vec((0u64..1 << 40, 1..=MAX_COUNT, any::<u32>(), any::<u32>(), any::<u64>(), any::<u64>()), 0..20)) {
            let mut segment = 0;
            let extents: Vec<Extent> = runs.into_iter().map(|(gap, count, log, table_log, table, bytes)| {
                let first = segment + gap;
                segment = first + count;
                Extent { first, count, log, table_log, table, bytes }
            }).collect();
            prop_assert_eq!(decode(&encode(&extents)), Some(extents));
        }

        #[test]
        fn no_bytes_are_a_panic(bytes: Vec<u8>) {
            let _ = decode(&bytes);
        }

        #[test]
        fn the_new_goes_before_the_old(old in extents(1), new in extents(2)) {
            let Ok(replaced) = replace(&old, &new, cut);
            let mut expected = places(&old);
            expected.extend(places(&new));
            prop_assert_eq!(places(&replaced), expected);
            prop_assert!(replaced.windows(2).all(|w| w[0].end() <= w[1].first));
        }
    }

    #[test]
    fn a_million_packets_take_less_than_a_kilobyte() {
        // Packets of 8 KB in logs of 1 GiB, an extent ending where its log does or at the greatest count.
        let each = (1 << 30) / 8200;
        let extents: Vec<Extent> = (0..1_000_000u64.div_ceil(each))
            .map(|i| Extent {
                first: i * each,
                count: each,
                log: 7 + i as u32,
                table_log: 7 + i as u32,
                table: (1 << 30) - 8 * each,
                bytes: each * 8200,
            })
            .collect();
        assert!(encode(&extents).len() < 300, "{}", encode(&extents).len());
    }
}
