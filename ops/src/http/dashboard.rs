//! The dashboard: a page at `/` that shows what `/v1/live` says. Its files are part of the binary; it asks
//! nobody but this replica, and a browser is told to let it do nothing else.
use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use axum::routing::get;

/// Scripts, styles and data come from here, and nothing from anywhere else; nobody puts the page into theirs.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Where it is, what it is, and its bytes.
type File = (&'static str, &'static str, &'static str);

const FILES: [File; 7] = [
    (
        "/",
        "text/html; charset=utf-8",
        include_str!("dashboard/page.html"),
    ),
    (
        "/dashboard/page.css",
        "text/css; charset=utf-8",
        include_str!("dashboard/page.css"),
    ),
    (
        "/dashboard/page.js",
        "text/javascript; charset=utf-8",
        include_str!("dashboard/page.js"),
    ),
    (
        "/dashboard/icon.svg",
        "image/svg+xml",
        include_str!("dashboard/icon.svg"),
    ),
    (
        "/dashboard/uplot.js",
        "text/javascript; charset=utf-8",
        include_str!("dashboard/uplot/uPlot.iife.min.js"),
    ),
    (
        "/dashboard/uplot.css",
        "text/css; charset=utf-8",
        include_str!("dashboard/uplot/uPlot.min.css"),
    ),
    (
        "/dashboard/uplot-license.txt",
        "text/plain; charset=utf-8",
        include_str!("dashboard/uplot/LICENSE"),
    ),
];

/// One route for each file.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES
        .into_iter()
        .fold(Router::new(), |router, (path, kind, bytes)| {
            let answer = move || async move { (headers(kind), bytes).into_response() };
            router.route(path, get(answer))
        })
}

/// Whether one of them is there.
pub fn has(path: &str) -> bool {
    FILES.iter().any(|(it, _, _)| *it == path)
}

/// What goes with a file of a page, so that a browser lets the page do nothing but speak with whom it comes
/// from.
#[must_use]
pub fn headers(kind: &'static str) -> [(header::HeaderName, HeaderValue); 6] {
    let of = HeaderValue::from_static;
    [
        (header::CONTENT_TYPE, of(kind)),
        (header::CONTENT_SECURITY_POLICY, of(CONTENT_SECURITY_POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, of("nosniff")),
        (header::REFERRER_POLICY, of("no-referrer")),
        (
            header::HeaderName::from_static("cross-origin-resource-policy"),
            of("same-origin"),
        ),
        // Another version of the server may be behind the same address tomorrow.
        (header::CACHE_CONTROL, of("no-cache")),
    ]
}
