//! The steps of CI. A step that fails does not stop the others, so one run shows all failures.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const AARCH64: &str = "aarch64-unknown-linux-gnu";

/// A command and its requirement.
struct Step {
    name: &'static str,
    line: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    /// The requirement of the step. Without it the step is skipped, with a message.
    needs: Need,
}

#[derive(Clone, Copy)]
enum Need {
    Nothing,
    /// A cargo subcommand that is a component of the toolchain.
    Component(&'static str),
    /// The standard library for another target.
    Target(&'static str),
    /// A cargo subcommand that is a package.
    Package(&'static str),
    /// A folder of the system.
    Folder(&'static str),
}

const STEPS: &[Step] = &[
    Step {
        name: "format",
        line: &["cargo", "fmt", "--all", "--check"],
        environment: &[],
        needs: Need::Component("fmt"),
    },
    Step {
        name: "lint",
        line: &[
            "cargo",
            "clippy",
            "--workspace",
            "--all-targets",
            "--features",
            "bristlecone-lab-cli/all-sizes",
            "--",
            "-D",
            "warnings",
        ],
        environment: &[],
        needs: Need::Component("clippy"),
    },
    Step {
        name: "tidy",
        line: &["cargo", "xtask", "tidy"],
        environment: &[],
        needs: Need::Nothing,
    },
    Step {
        name: "test",
        // As the README says. The nightly job also has the trees at all their node sizes.
        line: &["cargo", "test", "--workspace"],
        environment: &[],
        needs: Need::Nothing,
    },
    Step {
        name: "document",
        line: &["cargo", "doc", "--workspace", "--no-deps"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
        needs: Need::Nothing,
    },
    Step {
        name: "loom",
        line: &[
            "cargo",
            "test",
            "--release",
            "--package",
            "bristlecone-pmem",
            "--lib",
            "--target-dir",
            "target/loom",
            "loom",
        ],
        environment: &[("RUSTFLAGS", "--cfg loom")],
        needs: Need::Nothing,
    },
    Step {
        name: "aarch64",
        line: &["cargo", "check", "--workspace", "--target", AARCH64],
        environment: &[],
        needs: Need::Target(AARCH64),
    },
    Step {
        name: "layer cost",
        line: &["cargo", "bench", "--package", "bristlecone-trees", "--bench", "layer_cost"],
        environment: &[],
        needs: Need::Nothing,
    },
    Step {
        name: "demo",
        line: &["cargo", "run", "--release", "--", "demo"],
        environment: &[],
        needs: Need::Nothing,
    },
    Step {
        name: "power cuts",
        line: &[
            "cargo",
            "run",
            "--release",
            "--",
            "torture",
            "--power-cut",
            "500",
            "--seed",
            "1",
            "--folder",
            "/dev/shm",
            "--durability",
            "process",
        ],
        environment: &[],
        needs: Need::Folder("/dev/shm"),
    },
    Step {
        name: "commit cuts",
        line: &[
            "cargo",
            "run",
            "--release",
            "--",
            "torture",
            "--power-cut",
            "100",
            "--seed",
            "1",
            "--folder",
            "/dev/shm",
            "--durability",
            "commit",
        ],
        environment: &[],
        needs: Need::Folder("/dev/shm"),
    },
    Step {
        name: "interval cuts",
        line: &[
            "cargo",
            "run",
            "--release",
            "--",
            "torture",
            "--power-cut",
            "100",
            "--seed",
            "1",
            "--folder",
            "/dev/shm",
            "--durability",
            "interval",
        ],
        environment: &[],
        needs: Need::Folder("/dev/shm"),
    },
    Step {
        name: "own tree",
        // The tests have built it; to build it by itself is to build the explorer once more.
        line: &["target/debug/examples/own_tree"],
        environment: &[],
        needs: Need::Nothing,
    },
    Step {
        name: "crash",
        // Two schedules instead of 400, sequences of two operations instead of three, and a bound
        // on recoveries: the scenarios that exceed it would take most of the time. The nightly job
        // has no such bounds. The tests have built the command.
        line: &[
            "target/debug/bristlecone-lab",
            "crash",
            "--design",
            "all",
            "--schedules",
            "2",
            "--sequences",
            "2",
            "--recoveries",
            "300",
        ],
        environment: &[],
        needs: Need::Nothing,
    },
    Step {
        name: "crashes of the store",
        // Without a bound: what users trust with their data.
        line: &[
            "target/debug/bristlecone-lab",
            "crash",
            "--design",
            "store,cell-tree",
            "--schedules",
            "8",
            "--sequences",
            "2",
        ],
        environment: &[],
        needs: Need::Nothing,
    },
    Step {
        name: "disk crashes",
        // What users have by default. The nightly job explores every design like that.
        line: &[
            "target/debug/bristlecone-lab",
            "crash",
            "--design",
            "store,pool",
            "--mode",
            "disk",
            "--schedules",
            "4",
            "--sequences",
            "2",
        ],
        environment: &[],
        needs: Need::Nothing,
    },
    Step {
        name: "witness",
        line: &["target/debug/bristlecone-lab", "crash", "--design", "all", "--witness"],
        environment: &[],
        needs: Need::Nothing,
    },
    Step {
        name: "fuzz",
        // Half a minute from the seeds of the corpus. It finds no more than a regression that is
        // near them; a search takes hours.
        line: &[
            "sh",
            "-c",
            "mkdir -p fuzz/found && cargo fuzz run --sanitizer none store_image fuzz/found \
             fuzz/corpus/store_image -- -timeout=20 -max_total_time=30",
        ],
        environment: &[],
        needs: Need::Package("cargo-fuzz"),
    },
];

enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// Runs every step. Returns `true` if none failed.
pub(crate) fn run(root: &Path) -> bool {
    let start = Instant::now();
    let mut outcomes = Vec::new();
    for step in STEPS {
        eprintln!("\n== {}: {}", step.name, shown(step));
        let start = Instant::now();
        let outcome = perform(step, root);
        outcomes.push((step.name, start.elapsed(), outcome));
    }
    eprintln!("\n== {}", seconds(start.elapsed()));
    for (name, time, outcome) in &outcomes {
        let word = match outcome {
            Outcome::Passed => "passed",
            Outcome::Failed => "FAILED",
            Outcome::Skipped => "skipped",
        };
        eprintln!("{name:13} {word:8} {}", seconds(*time));
    }
    let count = |wanted: fn(&Outcome) -> bool| outcomes.iter().filter(|o| wanted(&o.2)).count();
    let failed = count(|outcome| matches!(outcome, Outcome::Failed));
    let passed = count(|outcome| matches!(outcome, Outcome::Passed));
    eprintln!(
        "steps: {passed} passed, {failed} failed, {} skipped",
        outcomes.len() - passed - failed
    );
    failed == 0
}

fn perform(step: &Step, root: &Path) -> Outcome {
    if let Some(missing) = missing(step.needs) {
        eprintln!("skipped: {missing}");
        return Outcome::Skipped;
    }
    let mut command = Command::new(step.line[0]);
    command.args(&step.line[1..]).envs(step.environment.iter().copied()).current_dir(root);
    command.env("CARGO_INCREMENTAL", "0"); // Nothing is built twice.
    match command.status() {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) => {
            eprintln!("{}: {status}", step.name);
            Outcome::Failed
        }
        Err(error) => {
            eprintln!("{} cannot be started: {error}", step.line[0]);
            Outcome::Failed
        }
    }
}

/// Returns a message if this machine does not meet the requirement.
fn missing(need: Need) -> Option<String> {
    let succeeds = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
    };
    match need {
        Need::Nothing => None,
        Need::Component(name) => (!succeeds("cargo", &[name, "--version"]))
            .then(|| format!("`cargo {name}` is not installed (rustup component add)")),
        Need::Package(package) => {
            let name = package.trim_start_matches("cargo-");
            (!succeeds("cargo", &[name, "--version"]))
                .then(|| format!("`cargo {name}` is not installed (cargo install {package})"))
        }
        Need::Folder(path) => {
            (!Path::new(path).is_dir()).then(|| format!("there is no folder {path} here"))
        }
        Need::Target(target) => {
            let arguments = ["--print", "target-libdir", "--target", target];
            let output = Command::new("rustc").args(arguments).output().ok();
            let folder = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
            let installed = folder.is_some_and(|folder| Path::new(folder.trim()).is_dir());
            (!installed).then(|| format!("no {target} here (rustup target add {target})"))
        }
    }
}

fn shown(step: &Step) -> String {
    let settings = step.environment.iter().map(|(name, value)| format!("{name}='{value}'"));
    settings.chain(step.line.iter().map(ToString::to_string)).collect::<Vec<_>>().join(" ")
}

fn seconds(time: Duration) -> String {
    format!("{:.0} s", time.as_secs_f64())
}
