//! The path and the parameters of a request.

use hyper::Uri;
use hyper::header::HeaderValue;
use ndn_packet::{Component, Name};

use crate::api::{PAGE, Query, cursor, from_cursor};
use crate::content::Asked;
use crate::downloads::is_id;
use crate::folder::slashed;
use crate::label::disposition;
use crate::route::{asked, served};

/// What a request's line has between its words: a file that is asked for is one that is served, and written anew it is the
/// same; parameters are as long as what came, and so bounded as it is.
pub fn path(bytes: &[u8]) {
    let Ok(uri) = Uri::try_from(bytes) else {
        return;
    };
    let prefixes = ["/data", "/more/of/it"].map(|name| name.parse().expect("a name"));
    let query = Query::parse(uri.query());
    check_query(&query, uri.query().unwrap_or_default());
    let Some(file) = uri.path().strip_prefix("/files") else {
        return;
    };
    if let Some(folder) = file.strip_suffix('/')
        && let Some(name) = served(&prefixes, folder)
    {
        assert!(is_under(&prefixes, &name));
        let again = slashed(&name);
        // A browser takes two slashes for another host.
        assert!(again.ends_with('/') && !again.starts_with("//"));
        assert!(HeaderValue::from_str(&again).is_ok());
        let again = again.strip_suffix('/').expect("a slash");
        assert_eq!(served(&prefixes, again), Some(name));
    }
    if let Some(file) = asked(&prefixes, file, &query) {
        check_file(&prefixes, &file, &query);
    }
}

fn is_under(prefixes: &[Name], name: &Name) -> bool {
    prefixes.iter().any(|prefix| prefix.is_prefix_of(name))
}

fn check_file(prefixes: &[Name], file: &Asked, query: &Query) {
    assert!(is_under(prefixes, &file.name));
    let versioned = match file.version {
        Some(version) => file.name.append_version(version),
        None => file.name.clone(),
    };
    let again = asked(prefixes, &versioned.to_string(), query).expect("the same");
    assert_eq!((&again.name, again.version), (&file.name, file.version));
    let last = file.name.last().unwrap_or(Component::generic(b""));
    for is_shown in [false, true] {
        check_disposition(&disposition(last, is_shown));
    }
}

/// A file's name can end neither its word nor the header, and names no folder.
fn check_disposition(header: &str) {
    assert!(HeaderValue::from_str(header).is_ok());
    let (_, names) = header.split_once("; filename=\"").expect("a name");
    let (plain, escaped) = names.split_once("\"; filename*=UTF-8''").expect("another");
    assert!(
        !plain.contains(['"', '\\', '/', '%']) && plain.bytes().all(|b| (32..127).contains(&b))
    );
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~%".contains(&b);
    assert!(
        !escaped.is_empty() && escaped.bytes().all(is_plain),
        "{escaped}"
    );
    assert!(!escaped.contains("%2F") && !escaped.contains("%5C"));
}

fn check_query(query: &Query, text: &str) {
    assert!((1..=PAGE).contains(&query.limit()));
    for key in ["folder", "under", "name", "after", "text", "id", "download"] {
        let Some(value) = query.get(key) else {
            continue;
        };
        // A byte that is no text becomes three.
        assert!(value.len() <= 3 * text.len());
        if let Some(name) = query.name(key) {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        if let Some((is_file, component)) = from_cursor(value) {
            let again = cursor(is_file, component.as_component());
            assert_eq!(from_cursor(&again), Some((is_file, component)));
        }
        if is_id(value) {
            assert!(value.len() <= 40 && HeaderValue::from_str(value).is_ok());
        }
    }
}
