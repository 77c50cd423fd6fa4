//! The values that were decided, by number from 1: what learners that begin late are given. Kept until
//! somebody says that nobody needs them, or there are too many bytes; in a file, too, if they are to survive
//! the process.
use crate::evpaxos::log;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that are kept; each value counts some more.
pub const BYTES_MAX: usize = 256 << 20;
const VALUE_COUNTS_BYTES: usize = 64;

/// A value, and the instance of the deployment that has decided it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    pub instance: u64,
    pub value: Arc<[u8]>,
}

/// What is asked for.
#[derive(Debug, Eq, PartialEq)]
pub enum Found {
    Value(Entry),
    NotYet,
    /// Gone up to this number.
    Gone(u64),
}

#[derive(Default)]
struct Inner {
    /// The number before that of the first.
    base: u64,
    entries: VecDeque<Entry>,
    bytes: usize,
    /// The last instance that is in, or was.
    instance: u64,
    file: Option<Kept>,
    has_dropped: bool,
}

/// It.
pub struct History {
    inner: Mutex<Inner>,
    changed: Condvar,
    bytes_max: usize,
    /// Told when there is more.
    listener: Mutex<Option<Box<dyn Fn() + Send>>>,
}

impl History {
    /// One in memory, with this listener.
    pub fn new(bytes_max: usize, listener: Option<Box<dyn Fn() + Send>>) -> Self {
        Self {
            inner: Mutex::default(),
            changed: Condvar::new(),
            bytes_max,
            listener: Mutex::new(listener),
        }
    }

    /// Goes on with what a file holds, and keeps the rest there.
    pub fn open(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        let (file, base, instance, entries) = Kept::open(path)?;
        inner.base = base;
        inner.instance = instance;
        inner.bytes = entries.iter().map(counted).sum();
        inner.entries = entries.into();
        inner.file = Some(file);
        drop(inner);
        self.tell();
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.changed.notify_all();
        let listener = self.listener.lock();
        if let Some(listener) = &*listener.unwrap_or_else(PoisonError::into_inner) {
            listener();
        }
    }

    /// Whoever waits looks again.
    pub fn wake(&self) {
        self.tell();
    }

    /// The number of the last one.
    pub fn last(&self) -> u64 {
        let inner = self.lock();
        inner.base + inner.entries.len() as u64
    }

    /// More values, in the order of their instances. What is in already is left out. Durable, if it is to be,
    /// when this returns.
    pub fn add(&self, entries: Vec<Entry>) -> io::Result<()> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let known = inner.instance;
        let new: Vec<_> = entries
            .into_iter()
            .filter(|it| it.instance > known)
            .collect();
        let Some(last) = new.last() else {
            return Ok(());
        };
        let last = last.instance;
        if let Some(file) = &mut inner.file {
            file.append(&new)?;
        }
        inner.instance = last;
        inner.bytes += new.iter().map(counted).sum::<usize>();
        inner.entries.extend(new);
        let mut upto = inner.base;
        let mut left = inner.bytes;
        for entry in &inner.entries {
            if left <= self.bytes_max {
                break;
            }
            left -= counted(entry);
            upto += 1;
        }
        if upto > inner.base {
            if !std::mem::replace(&mut inner.has_dropped, true) {
                let max = self.bytes_max >> 20;
                log::info(&format!(
                    "More than {max} MiB of values are kept: the first ones are forgotten. \
                     A learner that begins with instance 1 is not given them"
                ));
            }
            inner.forget(upto)?;
        }
        self.tell();
        Ok(())
    }

    /// From now on values up to the last one are needed from here: a file in which one of them is missing is
    /// damaged, and is not gone on with.
    pub fn mark(&self) -> io::Result<()> {
        let mut inner = self.lock();
        let last = inner.base + inner.entries.len() as u64;
        match &mut inner.file {
            Some(file) => file.mark(last),
            None => Ok(()),
        }
    }

    /// Nobody needs values up to this number.
    pub fn trim(&self, upto: u64) -> io::Result<()> {
        self.lock().forget(upto)
    }

    /// Takes over another one's values behind number `base` and its last instance: what goes on from here
    /// is added, what goes further otherwise takes the place of all.
    pub fn join(&self, base: u64, instance: u64, entries: Vec<Entry>) -> io::Result<()> {
        let mut inner = self.lock();
        let ours = inner.base + inner.entries.len() as u64;
        if base + entries.len() as u64 <= ours {
            return Ok(());
        }
        if base == ours {
            drop(inner);
            return self.add(entries);
        }
        inner.base = base;
        inner.instance = entries.last().map_or(instance, |it| it.instance);
        inner.bytes = entries.iter().map(counted).sum();
        inner.entries = entries.into();
        inner.rewrite()?;
        drop(inner);
        self.tell();
        Ok(())
    }

    /// The value with this number.
    pub fn get(&self, number: u64) -> Found {
        self.lock().get(number)
    }

    /// As [`Self::get`]; waits for it so long.
    pub fn wait_for(&self, number: u64, at_most: Duration) -> Found {
        let is_missing = |it: &mut Inner| it.get(number) == Found::NotYet;
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), at_most, is_missing);
        let (inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        inner.get(number)
    }

    /// All behind this number, for another one: the number before the first, the last instance before it, the
    /// values.
    pub fn behind(&self, number: u64) -> (u64, u64, Vec<Entry>) {
        let inner = self.lock();
        let last = inner.base + inner.entries.len() as u64;
        let base = number.clamp(inner.base, last);
        let place = usize::try_from(base - inner.base).unwrap_or(usize::MAX);
        let entries: Vec<_> = inner.entries.iter().skip(place).cloned().collect();
        let instance = entries
            .first()
            .map_or(inner.instance, |it| it.instance.saturating_sub(1));
        (base, instance, entries)
    }
}

fn counted(entry: &Entry) -> usize {
    entry.value.len() + VALUE_COUNTS_BYTES
}

impl Inner {
    fn get(&self, number: u64) -> Found {
        let Some(place) = number.checked_sub(self.base + 1) else {
            return Found::Gone(self.base);
        };
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        match self.entries.get(place) {
            Some(entry) => Found::Value(entry.clone()),
            None => Found::NotYet,
        }
    }

    fn forget(&mut self, upto: u64) -> io::Result<()> {
        let mut is_news = false;
        while self.base < upto
            && let Some(first) = self.entries.pop_front()
        {
            self.base += 1;
            self.bytes -= counted(&first);
            if let Some(file) = &mut self.file {
                file.dead += counted(&first);
            }
            is_news = true;
        }
        if is_news && self.file.as_ref().is_some_and(|it| it.dead > self.bytes) {
            self.rewrite()?;
        }
        Ok(())
    }

    fn rewrite(&mut self) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.rewrite(self.base, self.instance, &self.entries),
            None => Ok(()),
        }
    }
}

/// The file.
///
/// ```text
///  | "QWEVHIS1" | base (8) | last instance before (8) | crc32c (4) | mark | mark |
///  | crc32c (4) | bytes (4) | instance (8) | value |   for each
/// ```
/// A mark is a number, and its crc32c (4): so many values have to be there. Of two, the second is written
/// while the first one is whole.
struct Kept {
    path: PathBuf,
    file: File,
    /// Where the next record goes.
    end: u64,
    marks: u64,
    /// What values that are forgotten count, in it.
    dead: usize,
}

const FILE_MAGIC: [u8; 8] = *b"QWEVHIS1";
const FILE_HEAD_BYTES: usize = 28;
const MARK_BYTES: usize = 12;
const RECORDS_AT: usize = FILE_HEAD_BYTES + 2 * MARK_BYTES;
const RECORD_HEAD_BYTES: usize = 16;

fn damaged(what: &str) -> io::Error {
    let text = format!(
        "the file with values is damaged: {what}; without the folder, the others give this one all anew"
    );
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// As much as there is.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn file_head(base: u64, instance: u64) -> Vec<u8> {
    let mut head = FILE_MAGIC.to_vec();
    head.extend_from_slice(&base.to_le_bytes());
    head.extend_from_slice(&instance.to_le_bytes());
    let sum = crc32c::crc32c(&head);
    head.extend_from_slice(&sum.to_le_bytes());
    head
}

fn mark_of(number: u64) -> [u8; MARK_BYTES] {
    let mut mark = [0; MARK_BYTES];
    mark[..8].copy_from_slice(&number.to_le_bytes());
    let sum = crc32c::crc32c(&mark[..8]);
    mark[8..].copy_from_slice(&sum.to_le_bytes());
    mark
}

/// The higher one of two marks that is whole.
fn marked(marks: &[u8]) -> Option<u64> {
    let (all, _) = marks.as_chunks::<MARK_BYTES>();
    let numbers = all.iter().filter_map(|mark| {
        let number = u64::from_le_bytes(*mark.first_chunk()?);
        (mark_of(number) == *mark).then_some(number)
    });
    numbers.max()
}

fn put_record(to: &mut Vec<u8>, entry: &Entry) {
    let begin = to.len();
    to.extend_from_slice(&[0; 4]);
    let bytes = u32::try_from(entry.value.len()).unwrap_or(u32::MAX);
    to.extend_from_slice(&bytes.to_le_bytes());
    to.extend_from_slice(&entry.instance.to_le_bytes());
    to.extend_from_slice(&entry.value);
    let sum = crc32c::crc32c(&to[begin + 4..]);
    to[begin..begin + 4].copy_from_slice(&sum.to_le_bytes());
}

/// The next record, unless it is torn: the end of what was written when the machine died.
fn take_record(from: &mut impl Read, left: u64) -> io::Result<Option<Entry>> {
    let mut head = [0; RECORD_HEAD_BYTES];
    if fill(from, &mut head)? < RECORD_HEAD_BYTES {
        return Ok(None);
    }
    let number =
        |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let bytes = u64::from(number(4));
    if bytes > left.saturating_sub(RECORD_HEAD_BYTES as u64) {
        return Ok(None);
    }
    let mut value = vec![0; usize::try_from(bytes).unwrap_or(0)];
    if fill(from, &mut value)? < value.len() {
        return Ok(None);
    }
    let sum = crc32c::crc32c_append(crc32c::crc32c(&head[4..]), &value);
    if sum != number(0) {
        return Ok(None);
    }
    let instance = u64::from(number(8)) | u64::from(number(12)) << 32;
    Ok(Some(Entry {
        instance,
        value: value.into(),
    }))
}

impl Kept {
    fn open(path: &Path) -> io::Result<(Self, u64, u64, Vec<Entry>)> {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = Self::make(path, 0, 0, 0, &[])?;
                return Ok((made, 0, 0, Vec::new()));
            }
            Err(error) => return Err(error),
        };
        let length = file.metadata()?.len();
        let mut reader = BufReader::new(&file);
        let mut head = [0; RECORDS_AT];
        if fill(&mut reader, &mut head)? < RECORDS_AT {
            return Err(damaged("its head is cut"));
        }
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|it| head[at + it]));
        let (base, mut instance) = (number(8), number(16));
        if file_head(base, instance) != head[..FILE_HEAD_BYTES] {
            return Err(damaged("its head is wrong"));
        }
        let needed = marked(&head[FILE_HEAD_BYTES..]).ok_or_else(|| damaged("it has no mark"))?;
        let mut entries = Vec::new();
        let mut at = RECORDS_AT as u64;
        while let Some(entry) = take_record(&mut reader, length - at)? {
            if entry.instance <= instance {
                return Err(damaged("instances are out of order"));
            }
            at += (RECORD_HEAD_BYTES + entry.value.len()) as u64;
            instance = entry.instance;
            entries.push(entry);
        }
        drop(reader);
        if base + (entries.len() as u64) < needed {
            return Err(damaged("a value is missing"));
        }
        if at < length {
            // What was not marked is learned again.
            file.set_len(at)?;
            file.sync_all()?;
        }
        let kept = Self {
            path: path.to_owned(),
            file,
            end: at,
            marks: 0,
            dead: 0,
        };
        Ok((kept, base, instance, entries))
    }

    /// A new file in the place of the one that there may be.
    fn make(path: &Path, base: u64, before: u64, last: u64, records: &[u8]) -> io::Result<Self> {
        let aside = path.with_extension("new");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&aside)?;
        let mut bytes = file_head(base, before);
        bytes.extend_from_slice(&mark_of(last));
        bytes.extend_from_slice(&mark_of(last));
        bytes.extend_from_slice(records);
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&aside, path)?;
        if let Some(folder) = path.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            end: bytes.len() as u64,
            marks: 0,
            dead: 0,
        })
    }

    fn mark(&mut self, number: u64) -> io::Result<()> {
        let place = FILE_HEAD_BYTES as u64 + self.marks % 2 * MARK_BYTES as u64;
        self.marks += 1;
        self.file.write_all_at(&mark_of(number), place)?;
        self.file.sync_data()
    }

    fn append(&mut self, entries: &[Entry]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for entry in entries {
            put_record(&mut bytes, entry);
        }
        self.file.write_all_at(&bytes, self.end)?;
        self.end += bytes.len() as u64;
        self.file.sync_data()
    }

    fn rewrite(&mut self, base: u64, last: u64, entries: &VecDeque<Entry>) -> io::Result<()> {
        let before = match entries.front() {
            Some(first) => first.instance.saturating_sub(1),
            None => last,
        };
        let mut records = Vec::new();
        for entry in entries {
            put_record(&mut records, entry);
        }
        let number = base + entries.len() as u64;
        *self = Self::make(&self.path, base, before, number, &records)?;
        Ok(())
    }
}

#[cfg(test)]
#[path = "history_test.rs"]
mod tests;
