//! The report of the benchmark: a table for people, and one line of JSON with which a later run can compare itself.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The figures of one case on one database. A figure that was not measured is `None`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) database: String,
    pub(crate) name: String,
    pub(crate) per_second: f64,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    /// The times at a load of half of `per_second`.
    pub(crate) half_p50_ms: Option<f64>,
    pub(crate) half_p99_ms: Option<f64>,
    /// The ceiling of `per_second`, measured in the same run.
    pub(crate) ceiling_per_second: Option<f64>,
    /// The CPU time of the service for one item.
    pub(crate) cpu_us: Option<f64>,
    pub(crate) allocations: Option<f64>,
}

impl Line {
    pub(crate) fn new(database: &str, name: impl Into<String>, per_second: f64) -> Self {
        Self {
            database: database.to_owned(),
            name: name.into(),
            per_second,
            p50_ms: None,
            p99_ms: None,
            half_p50_ms: None,
            half_p99_ms: None,
            ceiling_per_second: None,
            cpu_us: None,
            allocations: None,
        }
    }

    fn to_row(&self, earlier: Option<&Self>) -> String {
        let ratio = self
            .ceiling_per_second
            .map(|ceiling| self.per_second / ceiling);
        let compared = earlier.map_or_else(String::new, |earlier| {
            let times = |now: Option<f64>, then: Option<f64>| {
                format_number(now.zip(then).map(|(now, then)| now / then), 2)
            };
            format!(
                "   x {:.2}   p50 x {}   p99 x {}",
                self.per_second / earlier.per_second,
                times(self.p50_ms, earlier.p50_ms),
                times(self.p99_ms, earlier.p99_ms)
            )
        });
        format!(
            "{:<10} {:<36} {:>9.0} {:>8} {:>8} {:>9} {:>9} {:>10} {:>6} {:>8} {:>8}{compared}",
            self.database,
            self.name,
            self.per_second,
            format_number(self.p50_ms, 1),
            format_number(self.p99_ms, 1),
            format_number(self.half_p50_ms, 1),
            format_number(self.half_p99_ms, 1),
            format_number(self.ceiling_per_second, 0),
            format_number(ratio, 2),
            format_number(self.cpu_us, 0),
            format_number(self.allocations, 0),
        )
    }
}

/// The lines of the report. Prints each line when it is added, and all lines as JSON at the end.
pub(crate) struct Report {
    lines: Vec<Line>,
    earlier: Vec<Line>,
}

impl Report {
    /// Begins a report that compares itself with the JSON line of an earlier run, if there is one.
    pub(crate) fn new(earlier: Option<&Path>) -> Self {
        let earlier = earlier.map_or_else(Vec::new, |path| {
            let text = fs::read_to_string(path).expect("the file of --compare cannot be read");
            let lines = text.lines().rev().find_map(parse_lines);
            lines.expect("the file of --compare holds no line of JSON that this benchmark printed")
        });
        println!(
            "{:<10} {:<36} {:>9} {:>8} {:>8} {:>9} {:>9} {:>10} {:>6} {:>8} {:>8}",
            "database",
            "case",
            "/s",
            "p50 ms",
            "p99 ms",
            "half p50",
            "half p99",
            "ceiling",
            "ratio",
            "cpu us",
            "allocs"
        );
        Self {
            lines: Vec::new(),
            earlier,
        }
    }

    pub(crate) fn add(&mut self, line: Line) {
        let is_same =
            |earlier: &&Line| earlier.database == line.database && earlier.name == line.name;
        println!("{}", line.to_row(self.earlier.iter().find(is_same)));
        self.lines.push(line);
    }

    pub(crate) fn end(self) {
        println!("{}", serde_json::to_string(&self.lines).unwrap());
    }
}

fn parse_lines(json: &str) -> Option<Vec<Line>> {
    serde_json::from_value(strict_json::from_trusted(json).ok()?).ok()
}

fn format_number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}
