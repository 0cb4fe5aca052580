//! The parser of the section `Mechanisms` of a page.

use crate::error::{Flaw, FormError};

/// The heading of the section.
pub const HEADING: &str = "## Mechanisms";
/// The header of the table.
pub const HEADER: &str = "| mechanism | paper | status | here | price |";
/// The line below the header.
const RULE: &str = "|---|---|---|---|---|";
/// The cell of a row that has nothing to say.
const NOTHING: &str = "-";
/// The price of a mechanism that costs what its paper says.
const FREE: &str = "none";

/// The origin of a design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A paper describes the design.
    Published,
    /// The design is this project's.
    Ours,
}

/// The relation of a design's code to a mechanism of its paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MechanismStatus {
    /// The code does what the paper says.
    AsDescribed,
    /// The code does what the paper says, with the least change that makes it correct.
    Repaired,
    /// The code does something else.
    Departed,
    /// The code has nothing in its place.
    Absent,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mechanism<'a> {
    /// The name of the mechanism.
    pub name: &'a str,
    /// The section, figure or algorithm of the paper.
    pub paper: &'a str,
    /// The relation of the code to it.
    pub status: MechanismStatus,
    /// The difference, in a few words; `-` if there is none to state.
    pub here: &'a str,
    /// The price, in lines and fences where it has one in them.
    pub price: &'a str,
}

/// The numbers of mechanisms by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusCounts {
    /// The number of mechanisms as described.
    pub as_described: usize,
    /// The number of mechanisms repaired, at a stated price.
    pub repaired: usize,
    /// The number of mechanisms that are different or absent.
    pub departed: usize,
}

/// The section `Mechanisms` of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MechanismSection<'a> {
    /// The origin of the design.
    pub kind: Kind,
    /// The mechanisms of its paper, in the order of the page.
    pub mechanisms: Vec<Mechanism<'a>>,
}

impl Kind {
    /// Returns the word for the kind: `published` or `ours`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Ours => "ours",
        }
    }
}

impl MechanismStatus {
    /// Returns the status that a cell names.
    fn named(cell: &str) -> Option<Self> {
        match cell {
            "as described" => Some(Self::AsDescribed),
            "repaired" => Some(Self::Repaired),
            "departed" => Some(Self::Departed),
            "absent" => Some(Self::Absent),
            _ => None,
        }
    }
}

impl<'a> Mechanism<'a> {
    /// Reads a row of the table.
    fn parse(row: &'a str) -> Result<Self, Flaw> {
        let inner = row.strip_prefix('|').and_then(|row| row.strip_suffix('|'));
        let cells: Vec<&str> = inner.ok_or(Flaw::Cells)?.split('|').map(str::trim).collect();
        let [name, paper, status, here, price] = cells[..] else { return Err(Flaw::Cells) };
        if cells.contains(&"") {
            return Err(Flaw::Cells);
        }
        let status =
            MechanismStatus::named(status).ok_or_else(|| Flaw::Status(status.to_owned()))?;
        let is_described = status == MechanismStatus::AsDescribed;
        if price == NOTHING || is_described && price != FREE {
            return Err(Flaw::Price);
        }
        if !is_described && here == NOTHING {
            return Err(Flaw::Here);
        }
        Ok(Self { name, paper, status, here, price })
    }
}

impl<'a> MechanismSection<'a> {
    /// Reads the section of a page.
    ///
    /// # Errors
    /// The section departs from the form: one section that begins with `Published.` or `Ours.`, and
    /// has at most one table with the header [`HEADER`]. A published design has a row at least.
    pub fn parse(page: &'a str) -> Result<Self, FormError> {
        let error = |line, flaw| FormError { line, flaw };
        let lines: Vec<(usize, &str)> = (1..).zip(page.lines().map(str::trim_end)).collect();
        let mut headings = lines.iter().filter(|(_, line)| *line == HEADING);
        let (Some(&(heading, _)), None) = (headings.next(), headings.next()) else {
            return Err(error(0, Flaw::Sections));
        };
        let mut rest = lines[heading..]
            .iter()
            .copied()
            .take_while(|(_, line)| !line.starts_with("## "))
            .filter(|(_, line)| !line.is_empty());
        let kind = match rest.next() {
            Some((_, line)) if line.starts_with("Published.") => Kind::Published,
            Some((_, line)) if line.starts_with("Ours.") => Kind::Ours,
            first => return Err(error(first.map_or(heading, |(at, _)| at), Flaw::Kind)),
        };
        let mut table = rest.filter(|(_, line)| line.starts_with('|'));
        let mut mechanisms: Vec<Mechanism<'a>> = Vec::new();
        if let Some((at, header)) = table.next()
            && (header != HEADER || table.next().is_none_or(|(_, line)| line != RULE))
        {
            return Err(error(at, Flaw::Header(HEADER)));
        }
        for (at, row) in table {
            if row == HEADER || row == RULE {
                return Err(error(at, Flaw::SecondTable));
            }
            let mechanism = Mechanism::parse(row).map_err(|flaw| error(at, flaw))?;
            if mechanisms.iter().any(|other| other.name == mechanism.name) {
                return Err(error(at, Flaw::Twice(mechanism.name.to_owned())));
            }
            mechanisms.push(mechanism);
        }
        if kind == Kind::Published && mechanisms.is_empty() {
            return Err(error(heading, Flaw::NoMechanism));
        }
        Ok(Self { kind, mechanisms })
    }

    /// Returns the numbers of mechanisms by status.
    pub fn counts(&self) -> StatusCounts {
        let mut counts = StatusCounts::default();
        for mechanism in &self.mechanisms {
            match mechanism.status {
                MechanismStatus::AsDescribed => counts.as_described += 1,
                MechanismStatus::Repaired => counts.repaired += 1,
                MechanismStatus::Departed | MechanismStatus::Absent => counts.departed += 1,
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a page with the section of `kind`, its table with `rows`, and another section.
    fn page(kind: &str, rows: &[&str]) -> String {
        let rows = rows.join("\n");
        format!(
            "# x\n\n{HEADING}\n\n{kind} Text.\n\n{HEADER}\n{RULE}\n{rows}\n\nMore text.\n\n\
             ## Errors in the paper\n\n| a | table |\n|---|---|\n"
        )
    }

    fn flaw(page: &str) -> Flaw {
        MechanismSection::parse(page).unwrap_err().flaw
    }

    #[test]
    fn rows_are_read_and_counted() {
        let text = page(
            "Published.",
            &[
                "| leaf | 4.1 | as described | - | none |",
                "| insert | Alg. 1 | repaired | a fence more | (0,1) |",
                "| merge | 4.3 | departed | at a quarter | (1,3) |",
                "| bulk load | 5.1 | absent | inserts | none |",
            ],
        );
        let section = MechanismSection::parse(&text).unwrap();
        assert_eq!(section.kind, Kind::Published);
        let insert = &section.mechanisms[1];
        assert_eq!(
            (insert.name, insert.paper, insert.status),
            ("insert", "Alg. 1", MechanismStatus::Repaired)
        );
        assert_eq!((insert.here, insert.price), ("a fence more", "(0,1)"));
        assert_eq!(section.counts(), StatusCounts { as_described: 1, repaired: 1, departed: 2 });
    }

    #[test]
    fn a_design_of_ours_needs_no_table() {
        let text = format!("{HEADING}\n\nOurs. It has no paper.\n");
        let section = MechanismSection::parse(&text).unwrap();
        assert_eq!((section.kind, section.mechanisms), (Kind::Ours, Vec::new()));
        let text = text.replace("Ours.", "Published.");
        assert_eq!(
            MechanismSection::parse(&text).unwrap_err(),
            FormError { line: 1, flaw: Flaw::NoMechanism }
        );
    }

    #[test]
    fn a_page_without_the_form_is_refused() {
        let row = "| leaf | 4.1 | as described | - | none |";
        let whole = page("Published.", &[row]);
        assert!(MechanismSection::parse(&whole).is_ok());
        assert_eq!(flaw(&whole.replace(HEADING, "## Departures")), Flaw::Sections);
        assert_eq!(flaw(&format!("{whole}\n{whole}")), Flaw::Sections);
        assert_eq!(flaw(&page("A tree.", &[row])), Flaw::Kind);
        assert_eq!(flaw(&whole.replace("| price |", "| cost |")), Flaw::Header(HEADER));
        assert_eq!(flaw(&whole.replace(RULE, "|---|")), Flaw::Header(HEADER));
        assert_eq!(flaw(&page("Published.", &[row, "", HEADER, RULE])), Flaw::SecondTable);
        assert_eq!(flaw(&page("Published.", &[row, row])), Flaw::Twice("leaf".into()));
    }

    #[test]
    fn a_row_without_the_form_is_refused() {
        let of = |row: &str| MechanismSection::parse(&page("Ours.", &[row])).unwrap_err();
        let status = of("| leaf | 4.1 | better | - | none |");
        assert_eq!(status, FormError { line: 9, flaw: Flaw::Status("better".into()) });
        for row in ["| leaf | 4.1 | absent | - |", "| leaf | | absent | no | none |", "|", "| a"] {
            assert_eq!(of(row).flaw, Flaw::Cells, "{row}");
        }
        assert_eq!(of("| leaf | 4.1 | as described | - | (1,1) |").flaw, Flaw::Price);
        assert_eq!(of("| leaf | 4.1 | repaired | a fence | - |").flaw, Flaw::Price);
        assert_eq!(of("| leaf | 4.1 | departed | - | none |").flaw, Flaw::Here);
    }
}
