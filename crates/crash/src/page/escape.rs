//! Escaping of text in HTML.

/// Returns `text` with the special characters of HTML escaped.
pub(super) fn escaped(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => spelled.push_str("&lt;"),
            '>' => spelled.push_str("&gt;"),
            '&' => spelled.push_str("&amp;"),
            '"' => spelled.push_str("&quot;"),
            other => spelled.push(other),
        }
    }
    spelled
}
