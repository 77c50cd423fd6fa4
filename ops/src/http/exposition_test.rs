//! Which format is chosen, and that the older one says the same.
use super::{Format, RANGES_MAX, plain, quality};
use axum::http::{HeaderMap, HeaderValue, header};

fn chosen(accept: &[&str]) -> Format {
    let mut headers = HeaderMap::new();
    for value in accept {
        headers.append(header::ACCEPT, HeaderValue::from_str(value).unwrap());
    }
    Format::asked_for(&headers)
}

#[test]
fn who_asks_gets_what_it_prefers() {
    // As Prometheus 2 and 3 ask.
    let prometheus_2 = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                        text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    let prometheus_3 = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                        application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
                        text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    let old = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,\
               text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
    for (accept, format) in [
        (&[prometheus_2][..], Format::OpenMetrics),
        (&[prometheus_3], Format::OpenMetrics),
        (&[old], Format::Plain),
        (&[], Format::Plain),
        (&["*/*"], Format::Plain),
        (
            &["text/html,application/xhtml+xml,*/*;q=0.8"],
            Format::Plain,
        ),
        (&["text/plain"], Format::Plain),
        (&["text/*"], Format::Plain),
        (&["application/*"], Format::OpenMetrics),
        (&["application/openmetrics-text"], Format::OpenMetrics),
        (
            &["Application/OpenMetrics-Text; Version=\"1.0.0\""],
            Format::OpenMetrics,
        ),
        (
            &["application/openmetrics-text;version=0.0.1"],
            Format::Plain,
        ),
        (&["application/openmetrics-text;q=0"], Format::Plain),
        (
            &["application/openmetrics-text;q=0.5, text/plain;q=0.4"],
            Format::OpenMetrics,
        ),
        (
            &["application/openmetrics-text;q=0.4, text/plain;q=0.5"],
            Format::Plain,
        ),
        (
            &["text/plain;q=0.4", "application/openmetrics-text;q=0.5"],
            Format::OpenMetrics,
        ),
        // The closest range counts, not the best.
        (&["*/*, text/plain;q=0.1"], Format::OpenMetrics),
        (
            &["*/*;q=0.9, text/*;q=0.2, application/openmetrics-text;q=0.3"],
            Format::OpenMetrics,
        ),
        (
            &[
                "text/plain;version=0.0.4;q=0.2, text/plain;q=0.9, application/openmetrics-text;q=0.3",
            ],
            Format::OpenMetrics,
        ),
        (&["image/png"], Format::Plain),
        (
            &["", ",,;q=1", "text", "application/openmetrics-text;q=x"],
            Format::Plain,
        ),
    ] {
        assert_eq!(chosen(accept), format, "{accept:?}");
    }
    let many = "image/png,".repeat(RANGES_MAX) + "application/openmetrics-text";
    assert_eq!(chosen(&[&many]), Format::Plain);
}

#[test]
fn a_quality_has_three_digits_at_most() {
    for (text, expected) in [
        ("0", Some(0)),
        ("1", Some(1000)),
        ("0.5", Some(500)),
        ("0.75", Some(750)),
        ("0.001", Some(1)),
        ("1.000", Some(1000)),
        ("0.", Some(0)),
        ("1.1", None),
        ("2", None),
        ("0.0001", None),
        ("0.-1", None),
        ("-1", None),
        ("", None),
    ] {
        assert_eq!(quality(text), expected, "{text:?}");
    }
}

#[test]
fn the_older_format_says_the_same() {
    let page = "# HELP a_writes Writes.\n\
                # TYPE a_writes counter\n\
                a_writes_total 5\n\
                # HELP a_commit_seconds How long.\n\
                # TYPE a_commit_seconds histogram\n\
                # UNIT a_commit_seconds seconds\n\
                a_commit_seconds_bucket{le=\"0.1\"} 1\n\
                a_commit_seconds_count 1\n\
                # HELP a_replica Who.\n\
                # TYPE a_replica info\n\
                a_replica_info{cluster=\"# HELP x\"} 1\n\
                # HELP a_term Term.\n\
                # TYPE a_term gauge\n\
                a_term 7\n\
                # TYPE a_strange unknown\n\
                a_strange 1\n\
                # EOF\n";
    let expected = "# HELP a_writes_total Writes.\n\
                    # TYPE a_writes_total counter\n\
                    a_writes_total 5\n\
                    # HELP a_commit_seconds How long.\n\
                    # TYPE a_commit_seconds histogram\n\
                    a_commit_seconds_bucket{le=\"0.1\"} 1\n\
                    a_commit_seconds_count 1\n\
                    # HELP a_replica_info Who.\n\
                    # TYPE a_replica_info gauge\n\
                    a_replica_info{cluster=\"# HELP x\"} 1\n\
                    # HELP a_term Term.\n\
                    # TYPE a_term gauge\n\
                    a_term 7\n\
                    # TYPE a_strange untyped\n\
                    a_strange 1\n";
    assert_eq!(plain(page), expected);
    assert_eq!(Format::OpenMetrics.of(page), page);
}

#[test]
fn each_format_is_named_with_its_version() {
    let plain = Format::Plain.content_type();
    assert_eq!(plain, "text/plain; version=0.0.4; charset=utf-8");
    let open = Format::OpenMetrics.content_type();
    assert_eq!(
        open,
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
}
