//! A crate depends only on crates above it.

use super::Finding;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The crates, from the bottom up: each may use those before it.
const LAYERS: &[&str] = &[
    "bristlecone-pmem",
    "bristlecone-report",
    "bristlecone-trees",
    "bristlecone-fidelity",
    "bristlecone",
    "bristlecone-simulated",
    "bristlecone-registry",
    "bristlecone-console",
    "bristlecone-crash",
    "bristlecone-lab",
    "bristlecone-report",
    "bristlecone-reproduce",
    "bristlecone-cli",
    "bristlecone-lab-cli",
];

/// The user's command, whose build has no crate of the laboratory.
const COMMAND: &str = "bristlecone-cli";
const SHOP: &[&str] =
    &["bristlecone-pmem", "bristlecone-trees", "bristlecone", "bristlecone-console", COMMAND];

pub(super) fn check(root: &Path) -> Vec<Finding> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let output = Command::new("cargo").args(arguments).current_dir(root).output();
    let metadata = output.ok().and_then(|output| serde_json::from_slice(&output.stdout).ok());
    match metadata {
        Some(metadata) => {
            let packages = packages(&metadata);
            let mut findings = check_packages(&packages);
            findings.extend(check_wall(&packages));
            findings
        }
        None => vec![Finding::error("cargo metadata says nothing that can be read".into())],
    }
}

/// A package: its name, and the names of its dependencies of every kind.
type Package<'a> = (&'a str, Vec<&'a str>);

fn packages(metadata: &Value) -> Vec<Package<'_>> {
    list(&metadata["packages"])
        .filter_map(|package| {
            let dependencies = list(&package["dependencies"]);
            let names = dependencies.filter_map(|dependency| dependency["name"].as_str());
            Some((package["name"].as_str()?, names.collect()))
        })
        .collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map(Vec::as_slice).unwrap_or_default().iter()
}

fn check_packages(packages: &[Package<'_>]) -> Vec<Finding> {
    let layer = |name: &str| LAYERS.iter().position(|&layer| layer == name);
    let mut findings = Vec::new();
    for (name, dependencies) in packages.iter().filter(|(name, _)| *name != "xtask") {
        let Some(own) = layer(name) else {
            findings.push(Finding::error(format!("{name} has no place among the layers")));
            continue;
        };
        // A crate may name itself, to test itself with a feature.
        for dependency in dependencies.iter().filter(|dependency| *dependency != name) {
            if layer(dependency).is_some_and(|other| other >= own) {
                let text = format!("{name} depends on {dependency}, which is not below it");
                findings.push(Finding::error(text));
            }
        }
    }
    findings
}

/// Checks that the build of the user's command has no crate of the laboratory.
fn check_wall(packages: &[Package<'_>]) -> Vec<Finding> {
    let (mut seen, mut next) = (Vec::new(), vec![COMMAND]);
    while let Some(name) = next.pop() {
        let Some((name, dependencies)) = packages.iter().find(|(other, _)| *other == name) else {
            continue;
        };
        if !seen.contains(name) {
            seen.push(name);
            next.extend(dependencies);
        }
    }
    let beyond = seen.into_iter().filter(|name| !SHOP.contains(name));
    beyond.map(|name| Finding::error(format!("the build of {COMMAND} has {name}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_upwards_is_found() {
        let sound = [("bristlecone-trees", vec!["bristlecone-pmem", "rand"]), ("xtask", vec![])];
        assert!(check_packages(&sound).is_empty());
        let upwards = [("bristlecone-pmem", vec!["bristlecone-trees"])];
        assert_eq!(check_packages(&upwards).len(), 1);
        assert_eq!(check_packages(&[("bristlecone-misc", vec![])]).len(), 1);
    }

    #[test]
    fn the_laboratory_in_the_users_build_is_found() {
        let through = [
            (COMMAND, vec!["bristlecone-console", "clap"]),
            ("bristlecone-console", vec!["bristlecone-lab"]),
            ("bristlecone-lab", vec![]),
        ];
        assert_eq!(check_wall(&through).len(), 1);
        assert!(check_wall(&[(COMMAND, vec!["bristlecone"]), ("bristlecone", vec![])]).is_empty());
    }
}
