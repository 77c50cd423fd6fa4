//! Who fills the program's folder with what was saved: one thread at a time, and only what the newest
//! beginning wants. Snapshots may come one right behind the other.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Of one program's folder.
#[derive(Default)]
pub struct Fills {
    newest: AtomicU64,
    alone: Mutex<()>,
}

impl Fills {
    /// The program begins: what earlier beginnings wanted to be there counts no more. The number of this one.
    pub fn begin(&self) -> u64 {
        self.newest.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Does this in the folder for the beginning of this number, unless a newer one has come; then nobody
    /// waits for it.
    pub fn fill(
        &self,
        number: u64,
        work: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        if self.newest.load(Ordering::Relaxed) == number {
            work()
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn only_the_newest_beginning_fills_the_folder_and_behind_who_is_at_it() {
        let (fills, folder) = (Fills::default(), Mutex::new(Vec::new()));
        let write = |word: &'static str| folder.lock().expect("nobody has panicked").push(word);
        let (first, (is_at_it, at_it)) = (fills.begin(), mpsc::channel());
        let (go_on, goes_on) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let (fills, write) = (&fills, &write);
            let begun = scope.spawn(move || {
                fills.fill(first, || {
                    is_at_it.send(())?;
                    goes_on.recv()?;
                    write("first");
                    Ok(())
                })
            });
            at_it.recv().expect("it begins");
            let (second, third) = (fills.begin(), fills.begin());
            let late = scope.spawn(move || {
                fills.fill(third, || {
                    write("third");
                    Ok(())
                })
            });
            go_on.send(()).expect("it waits");
            begun.join().expect("no panic").expect("it is done");
            late.join().expect("no panic").expect("it is done");
            let none = fills.fill(second, || {
                write("second");
                Ok(())
            });
            none.expect("nobody waits for it");
        });
        assert_eq!(*folder.lock().expect("nobody"), ["first", "third"]);
    }
}
