use super::*;

fn entry(instance: u64, value: &str) -> Entry {
    Entry {
        instance,
        value: value.as_bytes().into(),
    }
}

fn history() -> History {
    History::new(BYTES_MAX, None)
}

fn opened(path: &Path) -> io::Result<History> {
    let history = history();
    history.open(path).map(|()| history)
}

#[test]
fn values_have_numbers_one_after_the_other_and_come_once() {
    let history = history();
    history.add(vec![entry(3, "a"), entry(7, "b")]).unwrap();
    history.add(vec![entry(7, "b"), entry(8, "c")]).unwrap();
    assert_eq!(history.last(), 3);
    assert_eq!(history.get(2), Found::Value(entry(7, "b")));
    assert_eq!(history.get(4), Found::NotYet);
    history.trim(2).unwrap();
    assert_eq!(history.get(2), Found::Gone(2));
    assert_eq!(history.get(3), Found::Value(entry(8, "c")));
    history.trim(99).unwrap();
    assert_eq!(history.last(), 3, "what is not there yet is not forgotten");
    assert_eq!(history.get(4), Found::NotYet);
}

#[test]
fn too_many_bytes_push_the_first_ones_out() {
    let history = History::new(3 * (VALUE_COUNTS_BYTES + 10), None);
    for instance in 1..=5 {
        history.add(vec![entry(instance, "0123456789")]).unwrap();
    }
    assert_eq!(history.get(2), Found::Gone(2));
    assert!(matches!(history.get(3), Found::Value(_)));
}

#[test]
fn a_file_keeps_them_and_a_torn_end_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history");
    let open = || opened(&path);
    let first = open().unwrap();
    first.add(vec![entry(1, "one"), entry(5, "")]).unwrap();
    first.add(vec![entry(6, "three")]).unwrap();
    drop(first);
    let whole = fs::read(&path).unwrap();
    for cut in 1..=RECORD_HEAD_BYTES + 5 {
        fs::write(&path, &whole[..whole.len() - cut]).unwrap();
        let torn = open().unwrap();
        assert_eq!(torn.last(), 2, "{cut}");
        torn.add(vec![entry(6, "three")]).unwrap();
        drop(torn);
        assert_eq!(fs::read(&path).unwrap(), whole, "{cut}");
    }
    let again = open().unwrap();
    assert_eq!(again.get(3), Found::Value(entry(6, "three")));
    again.trim(2).unwrap();
    drop(again);
    let trimmed = open().unwrap();
    assert_eq!(trimmed.get(2), Found::Gone(2));
    assert_eq!(trimmed.get(3), Found::Value(entry(6, "three")));
    trimmed.join(10, 20, vec![entry(21, "other")]).unwrap();
    drop(trimmed);
    let replaced = open().unwrap();
    assert_eq!(replaced.get(11), Found::Value(entry(21, "other")));
    drop(replaced);
    fs::write(&path, b"something else").unwrap();
    assert!(open().is_err());
}

#[test]
fn what_was_marked_must_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history");
    let open = || opened(&path);
    let first = open().unwrap();
    first.add(vec![entry(1, "one"), entry(2, "two")]).unwrap();
    first.mark().unwrap();
    first.add(vec![entry(3, "three")]).unwrap();
    drop(first);
    let whole = fs::read(&path).unwrap();
    for place in 0..whole.len() {
        let mut wrong = whole.clone();
        wrong[place] ^= 1;
        fs::write(&path, wrong).unwrap();
        match open() {
            // In the last value, which was not marked, or in the other mark.
            Ok(history) => assert!(history.last() >= 2, "{place}"),
            Err(error) => assert!(error.to_string().contains("damaged"), "{place}: {error}"),
        }
    }
    let last = RECORD_HEAD_BYTES + 5;
    fs::write(&path, &whole[..whole.len() - last]).unwrap();
    assert_eq!(open().unwrap().last(), 2);
    fs::write(&path, &whole[..whole.len() - last - 1]).unwrap();
    assert!(open().is_err(), "a marked value is cut");
}

#[test]
fn another_ones_values_are_added_or_take_the_place_of_all_if_they_go_further() {
    let (history, other) = (history(), history());
    let all: Vec<_> = (1..=5).map(|it| entry(2 * it, "v")).collect();
    other.add(all.clone()).unwrap();
    history.add(all[..2].to_vec()).unwrap();
    let join = |number| {
        let (base, instance, entries) = other.behind(number);
        history.join(base, instance, entries)
    };
    join(2).unwrap();
    assert_eq!(history.behind(0), other.behind(0));
    other.trim(5).unwrap();
    other.add(vec![entry(12, "w")]).unwrap();
    other.trim(6).unwrap();
    join(5).unwrap();
    assert_eq!((history.last(), history.get(6)), (6, Found::Gone(6)));
    history.add(vec![entry(12, "w"), entry(13, "x")]).unwrap();
    assert_eq!(history.get(7), Found::Value(entry(13, "x")));
}
