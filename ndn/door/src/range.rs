//! The Range header (RFC 9110, section 14): one range of bytes.

/// What part of a file is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// All of it: no range, several, or one that is none; these may be passed over.
    Whole,
    /// Bytes from the first up to and without the second.
    Part(u64, u64),
    /// A range that begins after the end.
    Outside,
}

/// Reads a Range header for a file of `size` bytes.
pub fn wanted(header: Option<&str>, size: u64) -> Wanted {
    let Some(range) = header.and_then(|h| h.strip_prefix("bytes=")) else {
        return Wanted::Whole;
    };
    let Some((first, last)) = range.trim().split_once('-') else {
        return Wanted::Whole;
    };
    let number = |text: &str| -> Option<u64> {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    match (first, last, number(first), number(last)) {
        (_, "", Some(from), _) if from < size => Wanted::Part(from, size),
        (_, "", Some(_), _) => Wanted::Outside,
        ("", _, _, Some(0)) => Wanted::Outside,
        ("", _, _, Some(_)) if size == 0 => Wanted::Outside,
        ("", _, _, Some(n)) => Wanted::Part(size.saturating_sub(n), size),
        (_, _, Some(from), Some(to)) if from > to => Wanted::Whole,
        (_, _, Some(from), Some(_)) if from >= size => Wanted::Outside,
        (_, _, Some(from), Some(to)) => Wanted::Part(from, size.min(to.saturating_add(1))),
        _ => Wanted::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_understood_and_all_else_passed_over() {
        for (header, size, right) in [
            ("bytes=0-0", 10, Wanted::Part(0, 1)),
            ("bytes=3-", 10, Wanted::Part(3, 10)),
            ("bytes=3-99", 10, Wanted::Part(3, 10)),
            ("bytes=-4", 10, Wanted::Part(6, 10)),
            ("bytes=-40", 10, Wanted::Part(0, 10)),
            ("bytes=10-", 10, Wanted::Outside),
            ("bytes=10-12", 10, Wanted::Outside),
            ("bytes=-0", 10, Wanted::Outside),
            ("bytes=-1", 0, Wanted::Outside),
            ("bytes=0-", 0, Wanted::Outside),
            ("bytes=0-99999999999999999999999", 10, Wanted::Part(0, 10)),
            ("bytes=99999999999999999999999-", 10, Wanted::Outside),
            ("bytes=5-3", 10, Wanted::Whole),
            ("bytes=0-1,3-4", 10, Wanted::Whole),
            ("bytes=+1-2", 10, Wanted::Whole),
            ("bytes=-", 10, Wanted::Whole),
            ("bytes=", 10, Wanted::Whole),
            ("lines=0-1", 10, Wanted::Whole),
        ] {
            assert_eq!(wanted(Some(header), size), right, "{header} of {size}");
        }
        assert_eq!(wanted(None, 10), Wanted::Whole);
    }
}
