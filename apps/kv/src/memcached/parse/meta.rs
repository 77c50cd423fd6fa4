//! Requests of the meta protocol.
use super::{Cut, VALUE_BYTES_MAX, value_bytes};
use crate::memcached::meta::{MetaDebug, split_line, split_word};
use crate::memcached::{Meta, MetaKind, Parsed, Read, RefusalReply, Request, reply};
use crate::{Command, WhyRefused};

impl<'a> Cut<'a> {
    /// `mg key flag...`: a write if a flag says so.
    pub(super) fn meta_get(&self) -> Parsed<'a> {
        let (_, key, flags) = split_line(self.line);
        if key.is_empty() {
            return self.refuse(reply::ERROR);
        }
        match Meta::new(MetaKind::Get, key, flags) {
            Ok(meta) if meta.writes() => self.write(Command::Meta { meta, value: b"" }, false),
            Ok(meta) => self.accept(Request::Read(Read::meta(self.line, &meta))),
            Err(reply) => self.refuse(reply),
        }
    }

    /// `me key [b]`
    pub(super) fn meta_debug(&self) -> Parsed<'a> {
        let (_, key, flags) = split_line(self.line);
        match MetaDebug::new(key, flags) {
            Ok(debug) => self.accept(Request::Read(Read::debug(self.line, &debug, flags))),
            Err(reply) => self.refuse(reply),
        }
    }

    /// `md key flag...`, `ma key flag...`
    pub(super) fn meta_write(&self, kind: MetaKind) -> Parsed<'a> {
        let (_, key, flags) = split_line(self.line);
        if key.is_empty() {
            return self.refuse(reply::ERROR);
        }
        match Meta::new(kind, key, flags) {
            Ok(meta) => self.write(Command::Meta { meta, value: b"" }, false),
            Err(reply) => self.refuse(reply),
        }
    }

    /// `ms key length flag...`, and the data block. Refused together with its data block if the length is
    /// known.
    pub(super) fn meta_set(&self) -> Parsed<'a> {
        let (_, key, rest) = split_line(self.line);
        if key.is_empty() {
            return self.refuse(reply::ERROR);
        }
        let (length, flags) = split_word(rest);
        let Some(value_bytes) = value_bytes(length) else {
            return self.refuse(reply::BAD_FORMAT);
        };
        let block_bytes = value_bytes + 2;
        let meta = match Meta::new(MetaKind::Set, key, flags) {
            Ok(meta) => meta,
            Err(reply) => return self.refuse_block(block_bytes, false, reply),
        };
        if value_bytes > VALUE_BYTES_MAX {
            let too_large = RefusalReply::too_long(reply::TOO_LARGE);
            return self.refuse_block(block_bytes, false, too_large);
        }
        let consumed = self.line_bytes + block_bytes;
        let Some(block) = self.buffer.get(self.line_bytes..consumed) else {
            return Self::incomplete(consumed);
        };
        match block.strip_suffix(b"\r\n") {
            Some(value) => Parsed::Request {
                consumed,
                request: Request::Write {
                    command: Command::Meta { meta, value },
                    noreply: false,
                },
            },
            None => Parsed::Refused {
                consumed,
                swallow: 0,
                reply: reply::BAD_CHUNK,
                why: WhyRefused::Malformed,
                close: false,
            },
        }
    }
}
