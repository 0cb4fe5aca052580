//! Bytes in JSON: a string if they are UTF-8, else hexadecimal digits under a name that ends in
//! `_hex`. So text stays readable, and any bytes survive the round trip.

use serde_core::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// The most bytes of text that one byte is spelled with: `\u0001`.
pub const BYTES_MAX: usize = 6;
/// The room for braces, names, quotes and blanks that a pair's line may take besides its bytes.
pub const FRAME_BYTES_MAX: usize = 1024;

/// Adds `bytes` to `object` under `name`, or under `name_hex` if they are not UTF-8.
pub fn put(object: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.to_owned(), text.into()),
        Err(_) => object.insert(format!("{name}_hex"), hex(bytes).into()),
    };
}

/// Returns a key and its value as an object.
pub fn pair(key: &[u8], value: &[u8]) -> Map<String, Value> {
    let mut object = Map::new();
    put(&mut object, "key", key);
    put(&mut object, "value", value);
    object
}

/// The fields of a pair's object, each at most once. `None` stands for an absent field alone: a
/// field that is `null` is an error, so no input turns into an empty value in silence.
#[derive(Debug, Default)]
struct Fields {
    key: Option<String>,
    key_hex: Option<String>,
    value: Option<String>,
    value_hex: Option<String>,
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a key and a value")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                while let Some(name) = map.next_key::<String>()? {
                    let field = match &name[..] {
                        "key" => &mut fields.key,
                        "key_hex" => &mut fields.key_hex,
                        "value" => &mut fields.value,
                        "value_hex" => &mut fields.value_hex,
                        _ => return Err(Error::custom(format!("unknown field {name:?}"))),
                    };
                    if field.is_some() {
                        return Err(Error::custom(format!("field {name:?} appears twice")));
                    }
                    *field = Some(map.next_value()?);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// Parses a line with a pair. The object must have a key and a value; an empty value is `""`.
///
/// # Errors
/// The line is no such object; the error says why, and in which column.
pub fn read_pair(line: &[u8]) -> Result<(Vec<u8>, Vec<u8>), String> {
    let Fields { key, key_hex, value, value_hex } =
        serde_json::from_slice(line).map_err(|error| spelled(&error))?;
    let missing = |name| move || format!("the object has no {name} and no {name}_hex");
    let key = one("key", key, key_hex)?.ok_or_else(missing("key"))?;
    Ok((key, one("value", value, value_hex)?.ok_or_else(missing("value"))?))
}

/// Returns the text of `error` without its line number: every line is parsed alone, so the parser
/// counts it as line 1.
fn spelled(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or(&text);
    format!("column {}: {reason}", error.column())
}

/// Returns the bytes of a field that is given as text, as digits, or not at all.
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
    fn any_pair_survives_the_round_trip() {
        let all: Vec<u8> = (0..=255).collect();
        let pairs: [(&[u8], &[u8]); 4] =
            [(b"", b""), (b"a\n\"\\\t", "\u{e9}".as_bytes()), (&all, b"\xff"), (b"k", &all)];
        for (key, value) in pairs {
            let line = serde_json::to_vec(&pair(key, value)).unwrap();
            assert_eq!(read_pair(&line).unwrap(), (key.to_vec(), value.to_vec()));
        }
        assert_eq!(read_pair(br#"{"value":"","key":"a"}"#), Ok((b"a".to_vec(), Vec::new())));
    }

    #[test]
    fn an_error_names_the_column_and_no_line() {
        let wrong = read_pair(br#"{"key":"a","value":null}"#).unwrap_err();
        assert!(wrong.starts_with("column 23: ") && !wrong.contains("line"), "{wrong}");
    }

    #[test]
    fn a_line_that_is_no_pair_is_refused() {
        for line in [
            "",
            "[]",
            "{}",
            r#"{"value":"v"}"#,
            r#"{"key":"a","key_hex":"61"}"#,
            r#"{"key":"a","key":"b"}"#,
            r#"{"key":1}"#,
            r#"{"key_hex":"6"}"#,
            r#"{"key_hex":"zz"}"#,
            r#"{"key":"a","valeu":"b"}"#,
            r#"{"key":"a"}"#,
            r#"{"key":"a","value":null}"#,
            r#"{"key":null,"value":"b"}"#,
            r#"{"key":"a","value_hex":null}"#,
            r#"{"key":"a","value":["b"]}"#,
            r#"{"key":"a","value":{"b":"c"}}"#,
            r#"{"key":"a","value":true}"#,
            r#"["a","b"]"#,
            r#"["a",null,"b",null]"#,
            r#"{"key":"a","value":"b"} {}"#,
        ] {
            assert!(read_pair(line.as_bytes()).is_err(), "{line}");
        }
    }
}
