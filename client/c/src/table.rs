//! Handles by number. A number is never given twice, so one that was closed stays known as such.
use crate::handle::Handle;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Numbers look like pointers into the first page, and others, where nothing is: whoever follows one is
/// stopped.
const FIRST: usize = 16;
const STEP: usize = 16;

struct Table {
    next: usize,
    handles: BTreeMap<usize, Arc<Handle>>,
}

static TABLE: Mutex<Table> = Mutex::new(Table {
    next: FIRST,
    handles: BTreeMap::new(),
});

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps one; its number.
pub fn add(handle: Handle) -> usize {
    let mut table = table();
    let number = table.next;
    table.next += STEP;
    table.handles.insert(number, Arc::new(handle));
    number
}

/// The handle with this number, unless it is closed.
pub fn get(number: usize) -> Option<Arc<Handle>> {
    table().handles.get(&number).cloned()
}

/// Takes it out: from now on there is none.
pub fn remove(number: usize) -> Option<Arc<Handle>> {
    table().handles.remove(&number)
}
