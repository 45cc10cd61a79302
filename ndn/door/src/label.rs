//! Names of files as people and browsers read them.

use ndn_packet::Component;

/// A component for people's eyes: its text where it is text, else as in a URI.
pub fn label(component: Component<'_>) -> String {
    match component.as_generic().map(std::str::from_utf8) {
        Some(Ok(text)) if !text.is_empty() => text.to_owned(),
        _ => component.to_string(),
    }
}

/// Content-Disposition (RFC 6266) for a file with this last component.
pub fn disposition(last: Component<'_>, is_shown: bool) -> String {
    let way = if is_shown { "inline" } else { "attachment" };
    let text = label(last);
    let clean: String = text
        .chars()
        .map(|c| match c {
            '/' | '\\' => '_',
            c if c.is_control() => '_',
            c => c,
        })
        .collect();
    let plain: String = clean
        .chars()
        .map(|c| match c {
            '"' | '%' => '_',
            ' '..='~' => c,
            _ => '_',
        })
        .collect();
    let escaped = Component::generic(clean.as_bytes()).to_string();
    // An NDN escape, but for dots alone, is a percent-encoding.
    let escaped = match clean.chars().all(|c| c == '.') {
        true => String::from("file"),
        false => escaped,
    };
    format!("{way}; filename=\"{plain}\"; filename*=UTF-8''{escaped}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_in_headers_can_end_neither_word_nor_line() {
        for (component, right) in [
            (
                &b"a.txt"[..],
                "attachment; filename=\"a.txt\"; filename*=UTF-8''a.txt",
            ),
            (
                b"a\"; x=\"\r\nSet-Cookie: b",
                "attachment; filename=\"a_; x=___Set-Cookie: b\"; filename*=UTF-8''a%22%3B%20x%3D%22__Set-Cookie%3A%20b",
            ),
            (
                "gr\u{fc}n \u{1f980}".as_bytes(),
                "attachment; filename=\"gr_n _\"; filename*=UTF-8''gr%C3%BCn%20%F0%9F%A6%80",
            ),
            (
                b"../../etc/passwd",
                "attachment; filename=\".._.._etc_passwd\"; filename*=UTF-8''.._.._etc_passwd",
            ),
            (b"..", "attachment; filename=\"..\"; filename*=UTF-8''file"),
        ] {
            assert_eq!(disposition(Component::generic(component), false), right);
        }
    }
}
