//! Names as text: `/hadoop/blocks/v=3/seg=0`.
//!
//! Sources: NDN Packet Format 0.3, "NDN URI scheme"; NDN naming conventions revision 3.

use crate::tlv::{self, types};
use crate::{Component, ComponentBuf, Name, NameError, NameRef};
use std::fmt::{self, Display, Formatter, Write};
use std::str::FromStr;

/// Types whose value is a number, and their prefix in a URI.
const NUMBERS: [(u16, &str); 5] = [
    (types::SEGMENT_COMPONENT, "seg"),
    (types::BYTE_OFFSET_COMPONENT, "off"),
    (types::VERSION_COMPONENT, "v"),
    (types::TIMESTAMP_COMPONENT, "t"),
    (types::SEQUENCE_COMPONENT, "seq"),
];

/// Types whose value is a digest, and their prefix in a URI.
const DIGESTS: [(u16, &str); 2] = [
    (types::IMPLICIT_SHA256_DIGEST, "sha256digest"),
    (types::PARAMETERS_SHA256_DIGEST, "params-sha256"),
];

impl Name {
    /// Reads a name from its URI form, with or without the scheme `ndn:` (an authority after it is passed over). One
    /// slash may follow the last component.
    ///
    /// # Errors
    /// [`NameError`] names the component at fault.
    pub fn from_uri(uri: &str) -> Result<Name, NameError> {
        let path = match uri.strip_prefix("ndn:") {
            None => uri,
            Some(rest) => match rest.strip_prefix("//") {
                None => rest,
                Some(rest) => &rest[rest.find('/').unwrap_or(rest.len())..],
            },
        };
        if path == "/" || (path.is_empty() && uri.starts_with("ndn://")) {
            return Ok(Name::new());
        }
        let Some(path) = path.strip_prefix('/') else {
            return Err(NameError::NotNdn(uri.into()));
        };
        let path = path.strip_suffix('/').unwrap_or(path);
        let components = path
            .split('/')
            .map(parse_component)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Name::from_components(components))
    }
}

fn parse_component(text: &str) -> Result<ComponentBuf, NameError> {
    let Some((prefix, value)) = text.split_once('=') else {
        return Ok(ComponentBuf::generic(unescape(text, text)?));
    };
    let bad_value = || NameError::BadValue(text.into());
    if let Some(&(typ, _)) = NUMBERS.iter().find(|(_, p)| *p == prefix) {
        if value.is_empty() || !value.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad_value());
        }
        return Ok(ComponentBuf::number(
            typ,
            value.parse().map_err(|_| bad_value())?,
        ));
    }
    if let Some(&(typ, _)) = DIGESTS.iter().find(|(_, p)| *p == prefix) {
        let digest = hex::decode(value)
            .ok()
            .filter(|d| d.len() == 32)
            .ok_or_else(bad_value)?;
        return Ok(ComponentBuf::new(typ, &digest));
    }
    let decimal = !prefix.starts_with('0') && prefix.bytes().all(|b| b.is_ascii_digit());
    let typ = prefix.parse::<u16>().ok().filter(|t| decimal && *t != 0);
    let typ = typ.ok_or_else(|| NameError::UnknownType(text.into()))?;
    let value = unescape(value, text)?;
    if typ <= types::PARAMETERS_SHA256_DIGEST && value.len() != 32 {
        return Err(bad_value());
    }
    Ok(ComponentBuf::new(typ, &value))
}

/// The bytes that `text` stands for; `component` is named in errors.
fn unescape(text: &str, component: &str) -> Result<Vec<u8>, NameError> {
    if text.bytes().all(|b| b == b'.') {
        return match text.len() {
            0..=2 => Err(NameError::Forbidden(component.into())),
            n => Ok(vec![b'.'; n - 3]),
        };
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            out.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = rest else {
            return Err(NameError::BadEscape(component.into()));
        };
        let (Some(high), Some(low)) = (hex_digit(*high), hex_digit(*low)) else {
            return Err(NameError::BadEscape(component.into()));
        };
        out.push(high << 4 | low);
        rest = tail;
    }
    Ok(out)
}

fn hex_digit(c: u8) -> Option<u8> {
    char::from(c).to_digit(16).map(|d| d as u8)
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(uri: &str) -> Result<Name, NameError> {
        Name::from_uri(uri)
    }
}

impl TryFrom<&str> for Name {
    type Error = NameError;

    fn try_from(uri: &str) -> Result<Name, NameError> {
        Name::from_uri(uri)
    }
}

impl Display for Component<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some((_, prefix)) = NUMBERS.iter().find(|(t, _)| *t == self.typ) {
            // A number in a longer form than needed is another component: it keeps its bytes in the text.
            if let Some(n) = self
                .as_number()
                .filter(|n| tlv::nonneg_len(*n) == self.value.len())
            {
                return write!(f, "{prefix}={n}");
            }
        }
        if let Some((_, prefix)) = DIGESTS.iter().find(|(t, _)| *t == self.typ) {
            write!(f, "{prefix}=")?;
            return f.write_str(&hex::encode(self.value));
        }
        if self.typ != types::GENERIC_COMPONENT {
            write!(f, "{}=", self.typ)?;
        }
        escape(f, self.value)
    }
}

fn escape(f: &mut Formatter<'_>, value: &[u8]) -> fmt::Result {
    if value.iter().all(|b| *b == b'.') {
        f.write_str("...")?;
    }
    for &b in value {
        if b.is_ascii_alphanumeric() || b"-._~".contains(&b) {
            f.write_char(char::from(b))?;
        } else {
            write!(f, "%{b:02X}")?;
        }
    }
    Ok(())
}

impl Display for ComponentBuf {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.as_component().fmt(f)
    }
}

impl Display for NameRef<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_char('/');
        }
        self.components().try_for_each(|c| write!(f, "/{c}"))
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

impl fmt::Debug for NameRef<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    /// (as written, as printed, TLV-VALUE)
    const FORMS: &[(&str, &str, &str)] = &[
        ("/", "/", ""),
        ("ndn:/", "/", ""),
        ("/A", "/A", "080141"),
        ("ndn:/A/B", "/A/B", "080141 080142"),
        ("ndn://host/A", "/A", "080141"),
        ("ndn://host", "/", ""),
        ("/A/", "/A", "080141"),
        ("/...", "/...", "0800"),
        ("/....", "/....", "08012e"),
        ("/.....", "/.....", "08022e2e"),
        ("/.A", "/.A", "08022e41"),
        ("/8=A", "/A", "080141"),
        (
            "/42=Hello%20world",
            "/42=Hello%20world",
            "2a0b48656c6c6f20776f726c64",
        ),
        ("/a%3Db", "/a%3Db", "0803613d62"),
        ("/~-_.%2b", "/~-_.%2B", "08057e2d5f2e2b"),
        ("/%C3%a9", "/%C3%A9", "0802c3a9"),
        ("/32=metadata", "/32=metadata", "20086d65746164617461"),
        ("/32=...", "/32=...", "2000"),
        ("/65535=x", "/65535=x", "fdffff0178"),
        ("/seg=0", "/seg=0", "320100"),
        ("/seg=255/seg=256", "/seg=255/seg=256", "3201ff 32020100"),
        ("/off=70000", "/off=70000", "340400011170"),
        (
            "/v=18446744073709551615",
            "/v=18446744073709551615",
            "3608ffffffffffffffff",
        ),
        ("/t=1", "/t=1", "380101"),
        ("/seq=10", "/seq=10", "3a010a"),
        ("/50=%00%01", "/50=%00%01", "32020001"),
        ("/50=%01", "/seg=1", "320101"),
        ("/54=abc", "/54=abc", "3603616263"),
    ];

    #[test]
    fn names_are_read_and_printed() {
        for (text, printed, value) in FORMS {
            let name = Name::from_uri(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(name.value(), &hex(value)[..], "{text}");
            assert_eq!(name.to_string(), *printed);
            assert_eq!(name.to_string().parse::<Name>().as_ref(), Ok(&name));
        }
    }

    #[test]
    fn digests_are_written_in_hexadecimal() {
        let digest = "893259d98aca58c451453f29ec7dc38688e690dd0b59ef4f3b9d33738bff0b8d";
        for (prefix, typ) in [("sha256digest", "01"), ("params-sha256", "02")] {
            let text = format!("/{prefix}={digest}");
            let name = Name::from_uri(&text.replace("893259d98a", "893259D98A")).unwrap();
            assert_eq!(name.value(), &hex(&format!("{typ}20{digest}"))[..]);
            assert_eq!(name.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_name() {
        use NameError::*;
        let bad = |s: &str| s.to_owned();
        for (text, error) in [
            ("", NotNdn(bad(""))),
            ("A", NotNdn(bad("A"))),
            ("http:/A", NotNdn(bad("http:/A"))),
            ("//A", Forbidden(bad(""))),
            ("/A//B", Forbidden(bad(""))),
            ("/A/../B", Forbidden(bad(".."))),
            ("/.", Forbidden(bad("."))),
            ("/%", BadEscape(bad("%"))),
            ("/%4", BadEscape(bad("%4"))),
            ("/%g0", BadEscape(bad("%g0"))),
            ("/0=A", UnknownType(bad("0=A"))),
            ("/08=A", UnknownType(bad("08=A"))),
            ("/65536=A", UnknownType(bad("65536=A"))),
            ("/=A", UnknownType(bad("=A"))),
            ("/dt=2020", UnknownType(bad("dt=2020"))),
            ("/seg=", BadValue(bad("seg="))),
            ("/seg=+1", BadValue(bad("seg=+1"))),
            (
                "/v=18446744073709551616",
                BadValue(bad("v=18446744073709551616")),
            ),
            ("/sha256digest=00", BadValue(bad("sha256digest=00"))),
            ("/1=A", BadValue(bad("1=A"))),
        ] {
            assert_eq!(Name::from_uri(text), Err(error), "{text}");
        }
    }
}
