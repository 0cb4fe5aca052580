//! Modules in a stated order, and no circles of files.
//!
//! 1. A module of a crate uses itself and the modules before it in [`ORDERS`]; `lib.rs` may use
//!    all.
//! 2. The graph of files has an arrow where a file names another by `crate::`, `super::` or
//!    `self::`. A name that the other file re-exports leads on to the file that declares it.
//! 3. A file and the files of its folder belong together: arrows from a module to the `mod.rs`
//!    above it, and back, are no circle.

use super::Finding;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The modules of a crate, from the bottom up. Modules of one word are on one floor.
const ORDERS: &[(&str, &[&str])] = &[
    (
        "pmem",
        &[
            "word", "line", "error", "layout", "defect", "sys", "checksum", "numa", "medium",
            "sync", "dram", "journal", "alloc", "log", "pool",
        ],
    ),
    (
        "trees",
        &[
            "fingerprint",
            "sorting",
            "parallel",
            "key",
            "spec",
            "maintenance",
            "index",
            "erased",
            "unique_words",
            "leaf",
            "node",
            "inner",
            "hybrid",
            "all_pm",
            "leaf_table",
            "linked_leaves",
            "designs",
            "names",
        ],
    ),
    (
        "crash",
        &[
            "trace",
            "config",
            "model",
            "outcome",
            "subject",
            "medium",
            "task",
            "page",
            "guard",
            "scenario",
            "explore",
            "media_faults",
            "threads",
            "campaign",
            "hardware_trace",
        ],
    ),
    ("lab", &["workload", "device", "error", "system", "bench"]),
];

/// Circles of files that are true recursion.
const RECURSIVE: &[&[&str]] = &[&["crash/explore/mod", "crash/explore/nested"]];

pub(super) fn check(root: &Path, files: &[PathBuf]) -> Vec<Finding> {
    let mut sources = BTreeMap::new();
    for file in files {
        let name = file.display().to_string();
        let Some(module) = module_of(&name) else { continue };
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or(&text).to_owned();
        sources.insert(module, code);
    }
    let graph = Graph::of(&sources);
    let mut findings = graph.check_order();
    findings.extend(graph.check_circles());
    findings
}

/// Returns the module of a source file, with its crate first: `pmem/pool/mod`; `None` for tests.
fn module_of(file: &str) -> Option<String> {
    let (owner, path) = file.strip_prefix("crates/")?.split_once("/src/")?;
    let path = path.strip_suffix(".rs")?;
    let is_test =
        path.split('/').any(|part| part == "tests" || part == "testing" || part == "loom");
    (!is_test).then(|| format!("{owner}/{path}"))
}

struct Graph<'a> {
    sources: &'a BTreeMap<String, String>,
    arrows: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Graph<'a> {
    fn of(sources: &'a BTreeMap<String, String>) -> Self {
        let mut graph = Self { sources, arrows: BTreeMap::new() };
        for (module, code) in sources {
            let arrows = paths(code)
                .into_iter()
                .filter_map(|path| graph.target(module, &path))
                .filter(|target| target != module)
                .collect();
            graph.arrows.insert(module, arrows);
        }
        graph
    }

    /// Returns the file that declares what `path` names in `module`.
    fn target(&self, module: &str, path: &str) -> Option<&'a str> {
        let mut segments = path.split("::").peekable();
        let mut folder = match segments.next()? {
            "crate" => module.split('/').next()?.to_owned(),
            "super" => parent(&own_folder(module))?.to_owned(),
            "self" => own_folder(module),
            _ => return None,
        };
        while segments.next_if_eq(&"super").is_some() {
            folder = parent(&folder)?.to_owned();
        }
        let mut file = self.file_of(&folder);
        for segment in segments {
            let next = format!("{folder}/{segment}");
            if let Some(found) = self.file_of(&next) {
                (folder, file) = (next, Some(found));
            } else {
                return self.declares(file?, &folder, segment);
            }
        }
        file
    }

    /// Returns the file of the module at `folder`.
    fn file_of(&self, folder: &str) -> Option<&'a str> {
        let lib = format!("{folder}/lib");
        let names = [folder.to_owned(), format!("{folder}/mod"), lib];
        names
            .iter()
            .find_map(|name| self.sources.get_key_value(name))
            .map(|(name, _)| name.as_str())
    }

    /// Returns the file from which `file` re-exports `name`; else `file`.
    fn declares(&self, file: &'a str, folder: &str, name: &str) -> Option<&'a str> {
        for line in statements(&self.sources[file]) {
            let Some(uses) = line.strip_prefix("pub") else { continue };
            let Some((_, path)) = uses.split_once("use ") else { continue };
            for path in expand(path.trim_end_matches(';')) {
                if path.rsplit("::").next() == Some(name) {
                    let first = path.split("::").next().unwrap_or_default();
                    let child = self.file_of(&format!("{folder}/{first}"));
                    return child.or_else(|| self.target(file, &path));
                }
            }
        }
        Some(file)
    }

    fn check_order(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (crate_name, order) in ORDERS {
            let place = |module: &str| {
                let top = module.strip_prefix(crate_name)?.strip_prefix('/')?.split('/').next()?;
                order.iter().position(|name| *name == top)
            };
            for (module, arrows) in &self.arrows {
                let Some(own) = place(module) else { continue };
                for target in arrows.iter().filter(|target| place(target) > Some(own)) {
                    let text = format!("crates/{module}: uses {target}, which comes after it");
                    findings.push(Finding::error(text));
                }
            }
        }
        findings
    }

    fn check_circles(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for module in self.arrows.keys() {
            if seen.contains(module) {
                continue;
            }
            let circle: BTreeSet<&str> = self
                .reached(module)
                .into_iter()
                .filter(|other| other == module || self.reached(other).contains(module))
                .collect();
            seen.extend(circle.iter());
            let is_known = RECURSIVE.iter().any(|known| circle.iter().all(|m| known.contains(m)));
            if circle.len() > 1 && !is_known {
                let list = circle.into_iter().collect::<Vec<_>>().join(", ");
                findings.push(Finding::error(format!("a circle of files: {list}")));
            }
        }
        findings
    }

    /// Returns the files to which arrows lead from `module`, except for arrows within a folder's
    /// family.
    fn reached(&self, module: &'a str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut next = vec![module];
        while let Some(module) = next.pop() {
            for target in self.arrows.get(module).into_iter().flatten() {
                if !is_family(module, target) && found.insert(*target) {
                    next.push(target);
                }
            }
        }
        found
    }
}

/// Returns `true` if one is the root of the folder that the other is in.
fn is_family(a: &str, b: &str) -> bool {
    let is_root = |root: &str, other: &str| {
        let folder = own_folder(root);
        other.strip_prefix(&folder).is_some_and(|rest| rest.starts_with('/'))
    };
    is_root(a, b) || is_root(b, a)
}

/// Returns the folder of a module's children.
fn own_folder(module: &str) -> String {
    let end = ["/mod", "/lib", "/main"].iter().find_map(|end| module.strip_suffix(end));
    end.unwrap_or(module).to_owned()
}

fn parent(folder: &str) -> Option<&str> {
    folder.rsplit_once('/').map(|(parent, _)| parent)
}

/// Returns the statements of a file's code, one a line, without comments.
fn statements(code: &str) -> Vec<String> {
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or(line).trim());
    let text = lines.collect::<Vec<_>>().join(" ");
    text.split_inclusive([';', '}']).map(|part| part.trim().to_owned()).fold(
        Vec::new(),
        |mut all: Vec<String>, part| {
            // A list in braces is one statement with what precedes it.
            match all.last_mut() {
                Some(last) if last.contains("use ") && !last.ends_with(';') => {
                    last.push_str(&part);
                }
                _ => all.push(part),
            }
            all
        },
    )
}

/// Returns the paths in code that begin with `crate`, `super` or `self`.
fn paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for statement in statements(code) {
        let mut rest = statement.as_str();
        while let Some(at) =
            ["crate::", "super::", "self::"].iter().filter_map(|s| rest.find(s)).min()
        {
            let before = rest[..at].chars().next_back();
            let is_word =
                before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$');
            let path = &rest[at..];
            let end = path
                .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':' || c == '{'))
                .unwrap_or(path.len());
            let length = if path[..end].contains('{') {
                path.find([';']).unwrap_or(path.len())
            } else {
                end
            };
            if !is_word {
                found.extend(expand(&path[..length]));
            }
            rest = &rest[at + "self::".len()..];
        }
    }
    found
}

/// Returns the paths of a `use` with lists in braces.
fn expand(path: &str) -> Vec<String> {
    let path = path.split(" as ").next().unwrap_or(path).trim();
    let Some((head, list)) = path.split_once('{') else {
        return vec![path.trim_end_matches(':').to_owned()];
    };
    let list = list.strip_suffix('}').unwrap_or(list);
    let (mut depth, mut items, mut item) = (0, Vec::new(), String::new());
    for c in list.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(core::mem::take(&mut item));
                continue;
            }
            _ => {}
        }
        item.push(c);
    }
    items.push(item);
    let items = items.iter().map(|item| item.trim()).filter(|item| !item.is_empty());
    items
        .flat_map(|item| if item == "self" { vec![String::new()] } else { expand(item) })
        .map(|item| format!("{head}{item}").trim_end_matches(':').to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(list: &[(&str, &str)]) -> BTreeMap<String, String> {
        list.iter().map(|(name, code)| ((*name).to_owned(), (*code).to_owned())).collect()
    }

    #[test]
    fn paths_are_read_with_their_lists() {
        let code = "use crate::a::{self, b::C, D};\nfn f() { super::g(); } // crate::x\n";
        assert_eq!(paths(code), ["crate::a", "crate::a::b::C", "crate::a::D", "super::g"]);
    }

    #[test]
    fn an_arrow_up_is_found() {
        let files = sources(&[
            ("pmem/lib", "mod line;\npub use pool::Pool;\n"),
            ("pmem/line", "use crate::pool::Pool;\n"),
            ("pmem/pool/mod", "pub use file::Pool;\n"),
            ("pmem/pool/file", "use crate::line::LINE;\nuse super::Pool;\n"),
        ]);
        let graph = Graph::of(&files);
        assert_eq!(graph.check_order().len(), 1);
        assert_eq!(graph.arrows["pmem/line"], BTreeSet::from(["pmem/pool/file"]));
        assert_eq!(graph.check_circles().len(), 1);
    }

    #[test]
    fn a_folder_is_no_circle_and_siblings_can_be() {
        let family = [("lab/x/mod", "use self::a::A;\n"), ("lab/x/a", "use super::B;\n")];
        assert!(Graph::of(&sources(&family)).check_circles().is_empty());
        let siblings = [
            ("lab/x/mod", "pub use a::A;\npub use b::B;\n"),
            ("lab/x/a", "use super::B;\n"),
            ("lab/x/b", "use super::a::A;\n"),
        ];
        assert_eq!(Graph::of(&sources(&siblings)).check_circles().len(), 1);
    }
}
