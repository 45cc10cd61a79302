//! Small JSON objects taken apart for Java, where loading a library for it costs every short command some 30 ms of
//! processor time.

use serde_json::{Map, Value};

use crate::error::{NativeError, Result};

const MAX_DEPTH: usize = 16;
/// Longest name, with those of the objects that it lies in: each value within keeps them anew.
const MAX_NAME_CHARS: usize = 200;

/// Names and values of a JSON object's scalars, as `Json.scalars` of the plug-in gives them: those of an object within
/// are named `outer.inner`, lists are left out.
///
/// # Errors
/// The text is no JSON object, or objects or names in it are beyond all use.
pub fn scalars(json: &[u8]) -> Result<Vec<(String, String)>> {
    let malformed =
        |error: serde_json::Error| NativeError::Failed(format!("no JSON object: {error}"));
    let object: Map<String, Value> = serde_json::from_slice(json).map_err(malformed)?;
    let mut found = Vec::new();
    take(object, "", &mut found, 0)?;
    Ok(found)
}

fn take(
    object: Map<String, Value>,
    prefix: &str,
    found: &mut Vec<(String, String)>,
    depth: usize,
) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(NativeError::Failed(
            "JSON objects lie too deep in one another".into(),
        ));
    }
    for (own, value) in object {
        if prefix.len() + own.len() > MAX_NAME_CHARS {
            return Err(NativeError::Failed(format!(
                "JSON object with a name of more than {MAX_NAME_CHARS} chars"
            )));
        }
        let name = format!("{prefix}{own}");
        match value {
            Value::Object(within) => take(within, &format!("{name}."), found, depth + 1)?,
            Value::Array(_) => {}
            Value::String(text) => found.push((name, text)),
            scalar => found.push((name, scalar.to_string())),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(json: &str) -> Vec<(String, String)> {
        scalars(json.as_bytes()).unwrap()
    }

    #[test]
    fn scalars_come_by_name() {
        let found = of(r#"{"a":"x\ny","b":{"c":-7,"d":{"e":true}},"l":[1,{"m":2}],"n":null}"#);
        let expected = [
            ("a", "x\ny"),
            ("b.c", "-7"),
            ("b.d.e", "true"),
            ("n", "null"),
        ];
        assert_eq!(found, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert_eq!(of("{}"), []);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(18), "}".repeat(18));
        let long = format!(r#"{{"{}":1}}"#, "n".repeat(201));
        for bad in ["", "1", "[]", "{", r#"{"a":1} 2"#, r#"{"a"}"#, &deep, &long] {
            assert!(scalars(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(scalars(&[b'{', b'"', 0xff, b'"', b':', b'1', b'}']).is_err());
    }

    proptest! {
        #[test]
        fn anything_ends_well(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = scalars(&bytes);
        }

        #[test]
        fn what_is_written_is_read(flat in prop::collection::btree_map("[a-z]{1,8}", ".{0,20}", 0..8)) {
            let json = serde_json::to_vec(&flat).unwrap();
            prop_assert_eq!(scalars(&json).unwrap(), flat.into_iter().collect::<Vec<_>>());
        }
    }
}
