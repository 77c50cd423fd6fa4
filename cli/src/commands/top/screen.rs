//! What `quorumwire top` shows of a document, on a screen of any size. Asks nobody and reads no key.
use quorumwire_node::report::ReplicaRole;
use quorumwire_ops::live::{Figures, Latency, LiveDocument, LiveReplica};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, RenderDirection, Row, Sparkline, Table, Wrap};
use std::collections::VecDeque;
use std::time::Duration;

/// Seconds of throughput that are kept: more than any terminal is wide.
const HISTORY_MAX: usize = 512;
/// Lines that warnings may take; the rest is counted.
const WARNING_LINES_MAX: usize = 6;
/// What stands for a figure that is not known.
const NONE: &str = "-";

/// What columns mean, each told where it is shown.
const COLUMNS: [(&str, &str); 11] = [
    ("BEHIND", "entries a replica is behind the leader"),
    ("W/S", "writes of its clients, a second"),
    ("R/S", "reads of its clients, a second"),
    (
        "P50",
        "half of the writes took less, from receipt to answer",
    ),
    (
        "PLANE",
        "its data plane; + while it carries the common case",
    ),
    ("LOOP", "99 of 100 turns of the event loop were shorter"),
    ("SYNC", "write and fdatasync of a batch, on average"),
    ("BUSY", "part of the time that the disk was waited for"),
    ("LOG", "entries, and bytes of them in memory"),
    ("SNAP", "last index of the newest snapshot, and its age"),
    ("ELECT", "elections started since its process was"),
];
const HELP_END: &str = "\nq or Ctrl-C leaves; ? or Esc closes this";

/// Of the columns that a screen of this width shows.
fn help(width: u16) -> String {
    let tables = [&REPLICA_COLUMNS[..], &STORAGE_COLUMNS[..]];
    let shown: Vec<&str> = tables
        .iter()
        .flat_map(|columns| fitting(columns, width))
        .map(|(name, _)| name)
        .collect();
    let told = COLUMNS.iter();
    let told = told.filter(|(name, _)| shown.contains(name));
    let lines = told.map(|(name, text)| format!("{name:<8} {text}"));
    let lines: Vec<String> = lines.chain([HELP_END.to_owned()]).collect();
    lines.join("\n")
}

/// What is known, and what is shown of it.
#[derive(Debug, Default)]
pub struct Screen {
    document: Option<LiveDocument>,
    writes: VecDeque<u64>,
    reads: VecDeque<u64>,
    has_help: bool,
}

impl Screen {
    /// Something new is known.
    pub fn take(&mut self, document: LiveDocument) {
        let totals = &document.totals;
        for (history, rate) in [
            (&mut self.writes, totals.writes_per_s),
            (&mut self.reads, totals.reads_per_s),
        ] {
            history.push_back(whole(rate.unwrap_or(0.0)));
            if history.len() > HISTORY_MAX {
                history.pop_front();
            }
        }
        self.document = Some(document);
    }

    /// Shows or hides what the columns mean.
    pub fn turn_help(&mut self) {
        self.has_help = !self.has_help;
    }

    /// Hides it.
    pub fn hide_help(&mut self) {
        self.has_help = false;
    }

    /// All of it; what does not fit is left out from below.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        match &self.document {
            Some(document) => self.draw_document(frame, document),
            None => frame.render_widget(Paragraph::new("asking..."), frame.area()),
        }
        if self.has_help {
            draw_help(frame);
        }
    }

    fn draw_document(&self, frame: &mut Frame<'_>, document: &LiveDocument) {
        let rows = u16::try_from(document.replicas.len()).unwrap_or(u16::MAX);
        let warnings = warnings(document);
        let warning_rows = u16::try_from(warnings.len()).unwrap_or(u16::MAX);
        let table_rows = rows.saturating_add(1);
        let [head, graph, replicas, storage, warned, foot] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Max(5),
            Constraint::Length(table_rows.saturating_add(1)),
            Constraint::Length(table_rows.saturating_add(1)),
            Constraint::Length(warning_rows),
            Constraint::Min(1),
        ])
        .areas(frame.area());
        frame.render_widget(Paragraph::new(heading(document)), head);
        self.draw_throughput(frame, graph);
        frame.render_widget(replica_table(document, replicas.width), replicas);
        frame.render_widget(storage_table(document, storage.width), storage);
        frame.render_widget(Paragraph::new(warnings), warned);
        let foot_line = Line::from("q leave  ? help").dim();
        frame.render_widget(Paragraph::new(foot_line), bottom(foot));
    }

    fn draw_throughput(&self, frame: &mut Frame<'_>, area: Rect) {
        let halves = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).spacing(2);
        let [left, right] = halves.areas(area);
        for (area, name, history, color) in [
            (left, "writes", &self.writes, Color::Blue),
            (right, "reads", &self.reads, Color::Yellow),
        ] {
            let newest = history.iter().rev().take(usize::from(area.width));
            let data: Vec<u64> = newest.copied().collect();
            let most = data.iter().max().copied().unwrap_or(0);
            let title = format!("{name}, at most {}/s ", short(as_float(most)));
            let graph = Sparkline::default()
                .block(Block::new().title(title.dim()))
                .direction(RenderDirection::RightToLeft)
                .data(data)
                .style(Style::new().fg(color));
            frame.render_widget(graph, area);
        }
    }
}

/// The last line of an area: of one without lines, nothing.
fn bottom(area: Rect) -> Rect {
    let lines = area.height.min(1);
    Rect {
        y: area.bottom() - lines,
        height: lines,
        ..area
    }
}

fn heading(document: &LiveDocument) -> Vec<Line<'_>> {
    let totals = &document.totals;
    let leader = match document.leader {
        Some(id) => format!("replica {id} leads").green().bold(),
        None => "no leader".red().bold(),
    };
    let first = vec![
        format!("{}  ", document.cluster).bold(),
        leader,
        format!(
            "  term {}  {}, {}  {} items, {}",
            document.term,
            document.durability,
            document.quorum,
            totals.items,
            bytes(totals.items_bytes),
        )
        .into(),
    ];
    let latency = totals.write_latency.as_ref();
    let mut second = vec![
        format!("{} clients  ", totals.connections).into(),
        "writes ".dim(),
        per_second(totals.writes_per_s).bold(),
        "  reads ".dim(),
        per_second(totals.reads_per_s).bold(),
        "  p50 ".dim(),
        micros(latency.map(|it| it.p50_us)).bold(),
        "  p99 ".dim(),
        micros(latency.map(|it| it.p99_us)).bold(),
    ];
    for protocol in &totals.protocols {
        let (writes, reads) = (protocol.writes_per_s, protocol.reads_per_s);
        let rates = format!("{} w {} r", per_second(writes), per_second(reads));
        second.push(Span::from(format!("  {}: {rates}", protocol.name)).dim());
    }
    vec![Line::from(first), Line::from(second)]
}

/// A column: heading, and how wide its cells are at most.
type Column = (&'static str, u16);

/// The most wanted first: what does not fit is left out from the right.
const REPLICA_COLUMNS: [Column; 13] = [
    ("ID", 3),
    ("ROLE", 11),
    ("TERM", 6),
    ("BEHIND", 7),
    ("W/S", 7),
    ("R/S", 7),
    ("P50", 7),
    ("P99", 7),
    ("PLANE", 14),
    ("CLIENTS", 7),
    ("COMMIT", 10),
    ("APPLIED", 10),
    ("LOOP", 7),
];

const STORAGE_COLUMNS: [Column; 9] = [
    ("ID", 3),
    ("LOG", 20),
    ("FILES", 5),
    ("SYNC", 7),
    ("SYNC/S", 7),
    ("BUSY", 5),
    ("SNAP", 22),
    ("ELECT", 5),
    ("UP", 9),
];

fn replica_table(document: &LiveDocument, width: u16) -> Table<'_> {
    let rows = document.replicas.iter().map(|replica| {
        let mut cells = vec![replica.id.to_string(), role(replica)];
        if let Some(figures) = &replica.figures {
            let latency = figures.write_latency.as_ref();
            let time = |of: fn(&Latency) -> f64| micros(latency.map(of));
            cells.extend([
                figures.term.to_string(),
                replica
                    .lag
                    .map_or_else(|| NONE.to_owned(), |it| it.to_string()),
                per_second(figures.writes_per_s),
                per_second(figures.reads_per_s),
                time(|it| it.p50_us),
                time(|it| it.p99_us),
                plane(figures),
                figures.connections.to_string(),
                figures.commit_index.to_string(),
                figures.applied_index.to_string(),
                micros(figures.turn.as_ref().map(|it| it.p99_us)),
            ]);
        }
        (cells, style_of(replica))
    });
    table(&REPLICA_COLUMNS, rows, width)
}

fn storage_table(document: &LiveDocument, width: u16) -> Table<'_> {
    let rows = document.replicas.iter().map(|replica| {
        let mut cells = vec![replica.id.to_string()];
        if let Some(figures) = &replica.figures {
            let (log, disk) = (&figures.log, figures.disk.as_ref());
            let entries = log
                .last_index
                .saturating_add(1)
                .saturating_sub(log.first_index);
            cells.extend([
                format!("{entries}, {}", bytes(log.memory_bytes)),
                log.segments.to_string(),
                micros(disk.and_then(|it| it.sync_mean_us)),
                per_second(disk.and_then(|it| it.syncs_per_s)),
                percent(disk.and_then(|it| it.busy)),
                snapshot(figures),
                figures.elections_started.to_string(),
                lasting(figures.uptime_ms),
            ]);
        }
        (cells, style_of(replica))
    });
    table(&STORAGE_COLUMNS, rows, width)
}

/// Those that a screen of this width has room for.
fn fitting(columns: &[Column], width: u16) -> Vec<Column> {
    let mut room = width.saturating_add(1);
    let fitting = columns.iter().take_while(|(_, width)| {
        let left = room.checked_sub(width + 1);
        room = left.unwrap_or(0);
        left.is_some()
    });
    fitting.copied().collect()
}

fn table<'t>(
    columns: &[Column],
    rows: impl Iterator<Item = (Vec<String>, Style)>,
    width: u16,
) -> Table<'t> {
    let fitting = fitting(columns, width);
    let count = fitting.len();
    let rows = rows.map(|(cells, style)| Row::new(cells.into_iter().take(count)).style(style));
    let headings = fitting.iter().map(|(heading, _)| *heading);
    let widths = fitting.iter().map(|(_, width)| Constraint::Length(*width));
    let head = Row::new(headings).style(Style::new().add_modifier(Modifier::REVERSED));
    Table::new(rows, widths).header(head)
}

fn style_of(replica: &LiveReplica) -> Style {
    match replica.figures.as_ref().map(|it| &it.role) {
        _ if !replica.reachable => Style::new().fg(Color::Red),
        Some(ReplicaRole::Leader) => Style::new().fg(Color::Green),
        Some(ReplicaRole::Follower) => Style::new(),
        Some(_) | None => Style::new().fg(Color::Yellow),
    }
}

fn role(replica: &LiveReplica) -> String {
    let figures = replica.figures.as_ref().filter(|_| replica.reachable);
    figures.map_or_else(|| "unreachable".to_owned(), |it| it.role.to_string())
}

fn plane(figures: &Figures) -> String {
    match figures.plane_for_ms {
        Some(ms) => format!("{} +{}", figures.plane, lasting(ms)),
        None => figures.plane.clone(),
    }
}

fn snapshot(figures: &Figures) -> String {
    match (figures.snapshot_index, figures.snapshot_age_ms) {
        (0, _) => NONE.to_owned(),
        (index, None) => format!("{index}, old"),
        (index, Some(age)) => format!("{index}, {} ago", lasting(age)),
    }
}

/// A line for each, as far as they fit.
fn warnings(document: &LiveDocument) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = document
        .warnings
        .iter()
        .map(|warning| {
            let of = warning.replica.map(|id| format!("replica {id}: "));
            Line::from(of.unwrap_or_default() + &warning.text).red()
        })
        .collect();
    if lines.len() > WARNING_LINES_MAX {
        let more = lines.len() - (WARNING_LINES_MAX - 1);
        lines.truncate(WARNING_LINES_MAX - 1);
        lines.push(Line::from(format!("and {more} more: `quorumwire status`")).red());
    }
    lines
}

fn draw_help(frame: &mut Frame<'_>) {
    let help = help(frame.area().width);
    let lines = u16::try_from(help.lines().count()).unwrap_or(u16::MAX);
    let width = help.lines().map(str::len).max().unwrap_or(0);
    let width = u16::try_from(width).unwrap_or(u16::MAX);
    let area = frame.area();
    let window = area.centered(
        Constraint::Length(width.saturating_add(4)),
        Constraint::Length(lines.saturating_add(2)),
    );
    let text = Paragraph::new(help).wrap(Wrap { trim: false });
    frame.render_widget(Clear, window);
    frame.render_widget(text.block(Block::bordered().title(" help ")), window);
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Rates are small and not negative.
fn whole(rate: f64) -> u64 {
    rate.round() as u64
}

#[allow(clippy::cast_precision_loss)] // To be read by people, in three digits.
fn as_float(number: u64) -> f64 {
    number as f64
}

fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    let mut digits = 0;
    for larger in units {
        if value < step * 0.9995 {
            break;
        }
        (value, unit) = (value / step, larger);
        digits = usize::from(value < 99.95) + usize::from(value < 9.995);
    }
    format!("{value:.digits$}{unit}")
}

fn short(rate: f64) -> String {
    scaled(rate, 1e3, &["", "k", "M"])
}

fn per_second(rate: Option<f64>) -> String {
    rate.map_or_else(|| NONE.to_owned(), short)
}

fn bytes(number: u64) -> String {
    let units = [" B", " KiB", " MiB", " GiB", " TiB"];
    scaled(as_float(number), 1024.0, &units)
}

fn micros(time: Option<f64>) -> String {
    time.map_or_else(|| NONE.to_owned(), |it| scaled(it, 1e3, &["us", "ms", "s"]))
}

fn percent(part: Option<f64>) -> String {
    part.map_or_else(|| NONE.to_owned(), |it| format!("{:.0}%", it * 100.0))
}

fn lasting(milliseconds: u64) -> String {
    let seconds = Duration::from_millis(milliseconds).as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

#[cfg(test)]
#[path = "screen_test.rs"]
mod tests;
