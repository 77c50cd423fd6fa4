//! The reasons for which there is no answer: the table that people read is the list that programs have.
use quorumwire_interfaces::Reason;

#[test]
fn the_table_has_every_reason_with_its_number() {
    let page = include_str!("../../README.md");
    let table = page.split("## Why there is no answer").nth(1).unwrap();
    let table = table.split("\n## ").next().unwrap();
    let rows: Vec<(String, String)> = table
        .lines()
        .filter_map(|line| {
            let mut cells = line.split(" | ");
            let number = cells.next()?.strip_prefix("| ")?;
            let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
            Some((number.to_owned(), name.to_owned()))
        })
        .collect();
    let listed = Reason::ALL.map(|it| (it.code().to_string(), format!("{it:?}")));
    assert_eq!(rows, listed);
}
