//! A markup parser for tests: checks that output is well formed and gives access to its elements.
//!
//! It accepts the part of HTML that is also XML, and HTML's void elements. It does not check which
//! element may contain which.

use std::collections::BTreeMap;

/// The void elements that the page uses.
const VOID: [&str; 2] = ["meta", "br"];
const ENTITIES: [(&str, char); 6] = [
    ("&lt;", '<'),
    ("&gt;", '>'),
    ("&quot;", '"'),
    ("&#39;", '\''),
    ("&#183;", '\u{b7}'),
    ("&amp;", '&'),
];

#[derive(Debug, Default)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: BTreeMap<String, String>,
    /// The text directly in this element, without that of its children.
    pub(crate) text: String,
    pub(crate) children: Vec<Element>,
}

impl Element {
    /// Returns all descendants of that name, in document order.
    pub(crate) fn all(&self, name: &str) -> Vec<&Element> {
        let mut found = Vec::new();
        for child in &self.children {
            if child.name == name {
                found.push(child);
            }
            found.extend(child.all(name));
        }
        found
    }

    /// Returns an attribute, or an empty string if it is absent.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }

    pub(crate) fn number(&self, name: &str) -> f64 {
        self.get(name).parse().unwrap_or_else(|_| panic!("{name} of {self:?} is not a number"))
    }

    pub(crate) fn has_class(&self, class: &str) -> bool {
        self.get("class").split(' ').any(|own| own == class)
    }
}

/// Returns the elements of `markup` below a root without a name, or the first error of form.
pub(crate) fn parsed(markup: &str) -> Result<Element, String> {
    let mut rest = markup.strip_prefix("<!DOCTYPE html>").unwrap_or(markup);
    let mut open = vec![Element::default()];
    while let Some(at) = rest.find('<') {
        let text = unescaped(&rest[..at])?;
        let end = rest[at..].find('>').ok_or("a tag without an end")? + at;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        let top = open.last_mut().ok_or("no element is open")?;
        top.text.push_str(&text);
        if let Some(name) = tag.strip_prefix('/') {
            let closed = open.pop().filter(|closed| closed.name == name);
            let closed = closed.ok_or(format!("</{name}> closes something else"))?;
            open.last_mut().ok_or(format!("</{name}> closes nothing"))?.children.push(closed);
            continue;
        }
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let element = opened(tag)?;
        if is_empty || VOID.contains(&element.name.as_str()) {
            top.children.push(element);
        } else {
            open.push(element);
        }
    }
    unescaped(rest)?;
    match open.len() {
        1 => open.pop().ok_or("nothing".into()),
        _ => Err(format!("{} is never closed", open[open.len() - 1].name)),
    }
}

fn opened(tag: &str) -> Result<Element, String> {
    let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric()) {
        return Err(format!("<{tag}> has no name"));
    }
    let mut element = Element { name: name.into(), ..Element::default() };
    while !rest.trim().is_empty() {
        let (key, after) = rest.split_once("=\"").ok_or(format!("<{tag}>: {rest}"))?;
        let (value, after) = after.split_once('"').ok_or(format!("<{tag}>: {rest}"))?;
        if element.attributes.insert(key.trim().into(), unescaped(value)?).is_some() {
            return Err(format!("<{tag}> has {key} twice"));
        }
        rest = after;
    }
    Ok(element)
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        let entity = ENTITIES.iter().find(|(spelled, _)| rest[at..].starts_with(spelled));
        let (spelled, character) = entity.ok_or(format!("a bare & in {text}"))?;
        plain.push(*character);
        rest = &rest[at + spelled.len()..];
    }
    plain.push_str(rest);
    Ok(plain)
}

#[test]
fn malformed_markup_is_refused() {
    assert!(parsed("<a b=\"1\">x &amp; y<br/><c/></a>").is_ok());
    for wrong in ["<a>", "</a>", "<a><b></a></b>", "<a b=1></a>", "a & b", "<a b=\"1\" b=\"2\"/>"] {
        assert!(parsed(wrong).is_err(), "{wrong}");
    }
}
