//! Printing facts: text, tables and JSON on standard output. A closed pipe ends the command
//! quietly, as `trunkline … | head` should.

use std::io::{self, Write};

use serde::Serialize;

/// Writes a line to standard output.
pub fn line(text: &str) {
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    if written.is_err_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
        std::process::exit(0);
    }
}

/// Prints `value` as JSON.
pub fn json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => line(&text),
        Err(error) => tracing::error!(%error, "output could not be encoded as JSON"),
    }
}

/// Prints `value` as JSON in a single line, for streams of facts.
pub fn json_line(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(text) => line(&text),
        Err(error) => tracing::error!(%error, "output could not be encoded as JSON"),
    }
}

/// Rows under a heading, in columns as wide as they need to be.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table under `heading`.
    pub fn new(heading: &[&str]) -> Self {
        Table {
            rows: vec![heading.iter().map(|h| (*h).to_owned()).collect()],
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table as text. Columns whose cells are all numbers stand to the right.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |c: usize| {
            self.rows
                .iter()
                .filter_map(|r| r.get(c))
                .map(|s| s.chars().count())
                .max()
                .unwrap_or(0)
        };
        let numeric = |c: usize| {
            self.rows
                .iter()
                .skip(1)
                .filter_map(|r| r.get(c))
                .all(|s| s.bytes().all(|b| b.is_ascii_digit() || b == b'-'))
        };
        let form: Vec<(usize, bool)> = (0..columns).map(|c| (width(c), numeric(c))).collect();
        let mut text = String::new();
        for row in &self.rows {
            let cells: Vec<String> = row
                .iter()
                .zip(&form)
                .map(|(cell, (w, right))| {
                    if *right {
                        format!("{cell:>w$}")
                    } else {
                        format!("{cell:<w$}")
                    }
                })
                .collect();
            text.push_str(cells.join("  ").trim_end());
            text.push('\n');
        }
        text
    }

    /// Prints the table, or `nothing` where it has no rows.
    pub fn print(&self, nothing: &str) {
        if self.rows.len() == 1 {
            line(nothing);
        } else {
            line(self.render().trim_end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut t = Table::new(&["id", "uri"]);
        t.row(vec!["256".into(), "unix:///a".into()]);
        t.row(vec!["7".into(), "tcp://b".into()]);
        assert_eq!(t.render(), " id  uri\n256  unix:///a\n  7  tcp://b\n");
    }
}
