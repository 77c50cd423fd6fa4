//! stub
pub(crate) struct Extended;
