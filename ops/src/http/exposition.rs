//! In which of Prometheus' two text formats the page of metrics goes out, and the older one out of the newer.
//! Knows no metric.
use axum::http::{HeaderMap, header};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Media ranges of one request that are looked at.
const RANGES_MAX: usize = 64;

/// A format of the page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// What every scraper reads, and what nobody need ask for.
    Plain,
    /// What newer ones prefer.
    OpenMetrics,
}

impl Format {
    /// What whoever asks so prefers; without a preference, or if it takes neither, the one that all can read.
    pub fn asked_for(headers: &HeaderMap) -> Self {
        let accepted: Vec<Range> = headers
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .take(RANGES_MAX)
            .filter_map(Range::parse)
            .collect();
        if Self::OpenMetrics.quality(&accepted) > Self::Plain.quality(&accepted) {
            Self::OpenMetrics
        } else {
            Self::Plain
        }
    }

    /// Its name, and the version of it that is spoken here.
    const fn named(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Plain => ("text", "plain", "0.0.4"),
            Self::OpenMetrics => ("application", "openmetrics-text", "1.0.0"),
        }
    }

    /// As an answer names it.
    pub fn content_type(self) -> String {
        let (kind, subkind, version) = self.named();
        format!("{kind}/{subkind}; version={version}; charset=utf-8")
    }

    /// The page in it, out of the one in `OpenMetrics`.
    pub fn of(self, page: &str) -> Cow<'_, str> {
        match self {
            Self::OpenMetrics => page.into(),
            Self::Plain => plain(page).into(),
        }
    }

    /// How much it is wanted, in thousandths: what the closest of the ranges that it is in says.
    fn quality(self, accepted: &[Range<'_>]) -> u16 {
        let of_it = accepted.iter().filter_map(|range| {
            let closeness = range.closeness(self)?;
            Some((closeness, range.quality))
        });
        of_it.max().map_or(0, |(_, quality)| quality)
    }
}

/// One of what a request accepts.
struct Range<'a> {
    kind: &'a str,
    subkind: &'a str,
    version: Option<&'a str>,
    /// In thousandths.
    quality: u16,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subkind) = parts.next()?.split_once('/')?;
        let mut range = Self {
            kind: kind.trim(),
            subkind: subkind.trim(),
            version: None,
            quality: 1000,
        };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => range.quality = quality(value)?,
                "version" => range.version = Some(value),
                _ => {}
            }
        }
        Some(range)
    }

    /// How closely it names a format; `None`: not at all.
    fn closeness(&self, format: Format) -> Option<u8> {
        let (kind, subkind, version) = format.named();
        let is_kind = self.kind.eq_ignore_ascii_case(kind);
        let is_subkind = self.subkind.eq_ignore_ascii_case(subkind);
        match self.version {
            Some(wanted) => (is_kind && is_subkind && wanted == version).then_some(3),
            None if is_kind && is_subkind => Some(2),
            None if is_kind && self.subkind == "*" => Some(1),
            None => (self.kind == "*" && self.subkind == "*").then_some(0),
        }
    }
}

/// `0`, `0.5`, `1.000`, in thousandths; `None`: it is nothing of the kind.
fn quality(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_short = fraction.len() <= 3 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let thousandths: u16 = format!("{fraction:0<3}")
        .parse()
        .ok()
        .filter(|_| is_short)?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1000),
        _ => None,
    }
}

/// The page in the older format: what is said of a family names its samples, units are not said, and nothing
/// marks the end.
fn plain(page: &str) -> String {
    let kinds: BTreeMap<&str, &str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .collect();
    let mut out = String::with_capacity(page.len());
    for line in page.lines() {
        let Some(comment) = line.strip_prefix("# ") else {
            out.extend([line, "\n"]);
            continue;
        };
        let mut words = comment.splitn(3, ' ');
        let (Some(what @ ("HELP" | "TYPE")), Some(name)) = (words.next(), words.next()) else {
            continue;
        };
        let (suffix, kind) = match kinds.get(name).copied() {
            Some("counter") => ("_total", "counter"),
            Some("info") => ("_info", "gauge"),
            Some("stateset") => ("", "gauge"),
            Some("unknown") | None => ("", "untyped"),
            Some(other) => ("", other),
        };
        let told = if what == "TYPE" {
            kind
        } else {
            words.next().unwrap_or_default()
        };
        out.extend(["# ", what, " ", name, suffix, " ", told, "\n"]);
    }
    out
}

#[cfg(test)]
#[path = "exposition_test.rs"]
mod tests;
