//! Bytes in JSON: a string where they are UTF-8, else hexadecimal digits under a name that ends in
//! `_hex`. So text stays readable, and any bytes come back as they were.

use serde::Deserialize;
use serde_json::{Map, Value};

/// Adds `bytes` to `object` as `name`, or as `name_hex`.
pub(crate) fn put(object: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.to_owned(), text.into()),
        Err(_) => object.insert(format!("{name}_hex"), hex(bytes).into()),
    };
}

/// A key and its value, as an object.
pub(crate) fn pair(key: &[u8], value: &[u8]) -> Map<String, Value> {
    let mut object = Map::new();
    put(&mut object, "key", key);
    put(&mut object, "value", value);
    object
}

/// The same on the way back.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    key: Option<String>,
    key_hex: Option<String>,
    value: Option<String>,
    value_hex: Option<String>,
}

/// The key and the value that `line` spells; without a value, an empty one.
///
/// # Errors
/// What is wrong with the line.
pub(crate) fn read_pair(line: &[u8]) -> Result<(Vec<u8>, Vec<u8>), String> {
    let Pair { key, key_hex, value, value_hex } =
        serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let key = one("key", key, key_hex)?.ok_or_else(|| "no key".to_owned())?;
    Ok((key, one("value", value, value_hex)?.unwrap_or_default()))
}

fn one(name: &str, text: Option<String>, hex: Option<String>) -> Result<Option<Vec<u8>>, String> {
    match (text, hex) {
        (Some(_), Some(_)) => Err(format!("both {name} and {name}_hex")),
        (Some(text), None) => Ok(Some(text.into_bytes())),
        (None, Some(digits)) => {
            unhex(&digits).map(Some).ok_or_else(|| format!("{name}_hex is not hexadecimal"))
        }
        (None, None) => Ok(None),
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}"); // Writing to a string does not fail.
        digits
    })
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Some((digit(pair[0])? << 4 | digit(*pair.get(1)?)?) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_pair_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        let pairs: [(&[u8], &[u8]); 4] =
            [(b"", b""), (b"a\n\"\\\t", "\u{e9}".as_bytes()), (&all, b"\xff"), (b"k", &all)];
        for (key, value) in pairs {
            let line = serde_json::to_vec(&pair(key, value)).unwrap();
            assert_eq!(read_pair(&line).unwrap(), (key.to_vec(), value.to_vec()));
        }
    }

    #[test]
    fn a_line_that_is_no_pair_is_refused() {
        for line in [
            "",
            "[]",
            "{}",
            r#"{"value":"v"}"#,
            r#"{"key":"a","key_hex":"61"}"#,
            r#"{"key_hex":"6"}"#,
            r#"{"key_hex":"zz"}"#,
            r#"{"key":"a","valeu":"b"}"#,
        ] {
            assert!(read_pair(line.as_bytes()).is_err(), "{line}");
        }
    }
}
