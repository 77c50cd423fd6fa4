//! What is seen of a document, on large and small screens.
use super::{
    HELP_END, HISTORY_MAX, Screen, WARNING_LINES_MAX, bytes, help, lasting, micros, short,
};
use quorumwire_ops::live::{
    DiskFigures, Figures, Latency, LiveDocument, LiveReplica, LogFigures, Warning,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

fn replica(id: u16, role: &str) -> LiveReplica {
    LiveReplica {
        id,
        reachable: true,
        lag: Some(12),
        figures: Some(Figures {
            role: role.into(),
            term: 7,
            commit_index: 123_456,
            applied_index: 123_455,
            plane: "socket".to_owned(),
            plane_for_ms: Some(61_000),
            writes_per_s: Some(1_234.0),
            reads_per_s: Some(56.0),
            log: LogFigures {
                first_index: 1,
                last_index: 2_000,
                memory_bytes: 3 << 20,
                segments: 2,
            },
            disk: Some(DiskFigures {
                sync_mean_us: Some(850.0),
                busy: Some(0.5),
                ..DiskFigures::default()
            }),
            snapshot_index: 99,
            ..Figures::default()
        }),
        ..LiveReplica::default()
    }
}

fn document() -> LiveDocument {
    let mut document = LiveDocument {
        cluster: "test".to_owned(),
        leader: Some(1),
        term: 7,
        replicas: vec![
            replica(0, "follower"),
            replica(1, "leader"),
            replica(2, "follower"),
        ],
        ..LiveDocument::default()
    };
    document.totals.writes_per_s = Some(4_321.0);
    document.totals.write_latency = Some(Latency {
        count: 10,
        p50_us: 640.0,
        p99_us: 12_300.0,
    });
    document
}

fn seen(screen: &Screen, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen.draw(frame)).unwrap();
    terminal.backend().to_string()
}

fn line<'t>(text: &'t str, with: &str) -> &'t str {
    let found = text.lines().find(|line| line.contains(with));
    found.unwrap_or_else(|| panic!("no {with:?} in\n{text}"))
}

#[test]
fn before_the_first_answer_it_says_that_it_asks() {
    assert!(seen(&Screen::default(), 80, 24).contains("asking..."));
}

#[test]
fn a_wide_screen_shows_every_figure() {
    let mut screen = Screen::default();
    screen.take(document());
    let text = seen(&screen, 140, 30);
    assert!(line(&text, "test").contains("replica 1 leads  term 7"));
    assert!(line(&text, "writes 4.32k").contains("p50 640us  p99 12.3ms"));
    let leader = line(&text, "leader");
    for figure in [
        "7",
        "12",
        "1.23k",
        "56",
        "socket +1m01s",
        "123456",
        "123455",
    ] {
        assert!(leader.contains(figure), "{figure}: {leader}");
    }
    let storage: Vec<&str> = text
        .lines()
        .filter(|it| it.contains("2000, 3.00 MiB"))
        .collect();
    assert_eq!(storage.len(), 3, "{text}");
    assert!(
        storage[0].contains("850us") && storage[0].contains("50%"),
        "{text}"
    );
    assert!(storage[0].contains("99, old"), "{text}");
}

#[test]
fn what_does_not_fit_is_left_out_from_the_right() {
    let mut screen = Screen::default();
    screen.take(document());
    let text = seen(&screen, 80, 24);
    let heading = line(&text, "ROLE");
    assert!(
        heading.contains("PLANE") && !heading.contains("COMMIT"),
        "{text}"
    );
    assert!(line(&text, "leader  ").contains("socket +1m01s"), "{text}");
    assert!(text.contains("q leave"), "{text}");
    let narrow = seen(&screen, 30, 24);
    assert!(line(&narrow, "ROLE").contains("TERM"), "{narrow}");
    assert!(!narrow.contains("P99"), "{narrow}");
}

#[test]
fn no_size_is_too_small() {
    let mut screen = Screen::default();
    screen.take(document());
    for help in [false, true] {
        for width in [1, 2, 3, 7, 20, 80] {
            for height in [1, 2, 3, 5, 8, 13] {
                seen(&screen, width, height);
            }
        }
        if !help {
            screen.turn_help();
        }
    }
}

#[test]
fn a_dead_replica_and_warnings_are_seen() {
    let mut document = document();
    document.leader = None;
    document.replicas[2].reachable = false;
    document.replicas[0].figures = None;
    let warning = |number: u16| Warning {
        replica: Some(number),
        text: "something".to_owned(),
    };
    document.warnings = (0..20).map(warning).collect();
    let mut screen = Screen::default();
    screen.take(document);
    let text = seen(&screen, 120, 40);
    assert!(line(&text, "test").contains("no leader"), "{text}");
    assert!(line(&text, "2   unreachable").contains("123456"), "{text}");
    assert!(text.contains("replica 0: something"), "{text}");
    let left_out = 20 - (WARNING_LINES_MAX - 1);
    assert!(text.contains(&format!("and {left_out} more")), "{text}");
}

#[test]
fn help_tells_of_the_columns_that_are_shown() {
    let (narrow, wide) = (help(80), help(140));
    for column in ["LOOP", "ELECT"] {
        assert!(!narrow.contains(column), "{narrow}");
        assert!(wide.contains(column), "{wide}");
    }
    assert!(
        narrow.contains("BEHIND") && narrow.contains("SYNC"),
        "{narrow}"
    );
}

#[test]
fn the_first_lines_fit_into_eighty_columns() {
    let mut screen = Screen::default();
    let mut full = document();
    full.cluster = "quorumwire".to_owned();
    (full.durability, full.quorum) = ("sync".into(), "majority".to_owned());
    (full.term, full.totals.connections) = (12, 8);
    (full.totals.items, full.totals.items_bytes) = (100_000, 1000 << 20);
    screen.take(full);
    let text = seen(&screen, 80, 24);
    assert!(text.contains("100000 items, 1000 MiB"), "{text}");
    assert!(text.contains("8 clients"), "{text}");
}

#[test]
fn help_comes_and_goes() {
    let mut screen = Screen::default();
    screen.take(document());
    let last = HELP_END.trim();
    for shown in [true, false, true] {
        screen.turn_help();
        assert_eq!(seen(&screen, 80, 24).contains(last), shown);
    }
    screen.hide_help();
    assert!(!seen(&screen, 80, 24).contains(last));
}

#[test]
fn what_is_kept_is_bounded() {
    let mut screen = Screen::default();
    for _ in 0..HISTORY_MAX + 9 {
        screen.take(document());
    }
    assert_eq!(screen.writes.len(), HISTORY_MAX);
    assert_eq!(screen.reads.len(), HISTORY_MAX);
    assert!(seen(&screen, 120, 40).contains("at most 4.32k/s"));
}

#[test]
fn numbers_are_short() {
    for (rate, text) in [
        (0.0, "0"),
        (999.0, "999"),
        (999.9, "1.00k"),
        (12_345.0, "12.3k"),
        (999_960.0, "1.00M"),
        (5e9, "5000M"),
    ] {
        assert_eq!(short(rate), text);
    }
    assert_eq!(bytes(1023), "1023 B");
    assert_eq!(bytes(1024), "1.00 KiB");
    assert_eq!(bytes(u64::MAX), "16777216 TiB");
    assert_eq!(micros(None), "-");
    assert_eq!(micros(Some(1_500.0)), "1.50ms");
    for (ms, text) in [
        (59_999, "59s"),
        (61_000, "1m01s"),
        (3_660_000, "1h01m"),
        (90_000_000, "1d01h"),
    ] {
        assert_eq!(lasting(ms), text);
    }
}
