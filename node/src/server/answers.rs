//! What people are told when a request has no answer of the state machine, in the words that all protocols
//! share. What a program is to make of it, it knows by the reason itself where its protocol has a place for
//! that.
use quorumwire_interfaces::Reason;

/// Why, for people: what kind of trouble it is, and more about it, if there is more to say.
const fn words(reason: Reason) -> (&'static str, &'static str) {
    match reason {
        Reason::OutcomeUnknown => (
            "outcome unknown",
            "the write was not known to be committed in time, or before leadership moved",
        ),
        Reason::SequenceTooOld => ("not executed", "sequence too old for its session"),
        Reason::AnswerGone => ("already executed; its answer is not kept", ""),
        Reason::AnswerTooLong => ("executed", "the answer does not fit a message"),
        Reason::NoWayBack => ("executed", "the queue of answers is full"),
        Reason::NoLeader => ("no leader", "nothing was changed, try again"),
        Reason::NotLeader => ("not leader", "leadership moved, nothing was changed"),
        Reason::Busy => ("busy", "too many requests under way, nothing was changed"),
        Reason::DiskFull => ("disk full", "writes are refused until space returns"),
        Reason::Stopping => ("not executed", "this replica is stopping"),
        Reason::NotCommitted => (
            "not executed",
            "another leader took over, nothing was changed",
        ),
        Reason::TooManySessions => ("not executed", "too many sessions"),
        Reason::UnknownSession => ("not executed", "unknown session"),
        Reason::Removed => (
            "no leader",
            "this replica was removed from the cluster, nothing was changed",
        ),
        Reason::DataGone => (
            "no leader",
            "all replicas have forgotten what they held, the data is gone; see `quorumwire status`",
        ),
        Reason::Overdue => (
            "no answer",
            "this key's time is over by the clock, and the log cannot say so while writes are refused or too few \
             replicas answer",
        ),
        Reason::PiecesGone => (
            "not executed",
            "too many long commands under way, nothing was changed",
        ),
        Reason::Malformed => ("not executed", "malformed"),
        Reason::NotServed => ("not executed", "not a read that is served here"),
        Reason::TooManyKeys => ("not executed", "a request asks for too many keys"),
    }
}

/// The same in one line; `instead` of what stands behind the kind, if that is known better.
pub fn text(reason: Reason, instead: &[u8]) -> Vec<u8> {
    let (kind, more) = words(reason);
    let more = if instead.is_empty() {
        more.as_bytes()
    } else {
        instead
    };
    if more.is_empty() {
        kind.into()
    } else {
        [kind.as_bytes(), b": ", more].concat()
    }
}

/// As a server of memcached says it.
pub fn put_memcached(output: &mut Vec<u8>, reason: Reason, instead: &[u8]) {
    output.extend_from_slice(b"SERVER_ERROR ");
    output.extend_from_slice(&text(reason, instead));
    output.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorumwire_client::planes::{DEADLINE_MAX, Verdict, WINDOW};
    use quorumwire_interfaces::Executed;

    /// People and scripts read it in the first words.
    #[test]
    fn the_first_words_say_whether_it_was_carried_out() {
        let ran = ["executed", "already executed"];
        let may_have = ["outcome unknown"];
        for reason in Reason::ALL {
            let said = String::from_utf8(text(reason, b"")).unwrap();
            let begins = |words: &[&str]| words.iter().any(|it| said.starts_with(it));
            // Of this sending; of an earlier one nobody can tell.
            let is_this_one = reason == Reason::SequenceTooOld;
            let expected = match reason.executed() {
                Executed::Yes => (true, false),
                Executed::Unknown => (false, !is_this_one),
                Executed::No => (false, false),
            };
            assert_eq!((begins(&ran), begins(&may_have)), expected, "{reason:?}");
        }
    }

    #[test]
    fn what_is_known_better_stands_behind_the_kind() {
        let mut output = b"STORED\r\n".to_vec();
        put_memcached(
            &mut output,
            Reason::NotLeader,
            b"replica 2 leads, at 10.0.0.2:1",
        );
        put_memcached(&mut output, Reason::AnswerGone, b"");
        assert_eq!(
            output,
            b"STORED\r\nSERVER_ERROR not leader: replica 2 leads, at 10.0.0.2:1\r\n\
              SERVER_ERROR already executed; its answer is not kept\r\n"
        );
    }

    /// Replicas and clients of the version before read these words, and take all others that begin with `not
    /// executed` for ones that were not.
    #[test]
    fn the_version_before_understands_the_words() {
        for (reason, begins) in [
            (Reason::OutcomeUnknown, "outcome unknown"),
            (Reason::SequenceTooOld, "not executed: sequence too old"),
            (Reason::AnswerGone, "already executed"),
            (Reason::AnswerTooLong, "executed"),
            (Reason::NoWayBack, "executed"),
            (Reason::NoLeader, "no leader"),
            (Reason::NotLeader, "not leader"),
            (Reason::Busy, "busy"),
            (Reason::DiskFull, "disk full"),
            (Reason::Stopping, "not executed: this replica is stopping"),
            (Reason::NotCommitted, "not executed: another leader"),
            (Reason::TooManySessions, "not executed: too many sessions"),
            (Reason::UnknownSession, "not executed: unknown session"),
            (Reason::Removed, "no leader"),
            (Reason::DataGone, "no leader"),
        ] {
            let said = String::from_utf8(text(reason, b"")).unwrap();
            assert!(said.starts_with(begins), "{reason:?}: {said}");
        }
    }

    /// Nobody hears that it may be sent again without harm if it was carried out.
    #[test]
    fn clients_of_the_plane_take_nothing_for_undone_that_may_be_done() {
        for reason in Reason::ALL {
            let verdict = Verdict::of(reason);
            let is_undone = matches!(verdict, Verdict::NotExecuted | Verdict::SessionGone);
            let may_be = reason.executed() != Executed::No;
            assert!(!(is_undone && may_be), "{reason:?}: {verdict:?}");
            let is_done = verdict == Verdict::AnswerGone;
            assert_eq!(is_done, reason.executed() == Executed::Yes, "{reason:?}");
        }
    }

    /// Otherwise a command could run twice, or be refused although it is new.
    #[test]
    fn clients_of_the_plane_keep_within_what_sessions_remember() {
        assert_eq!(WINDOW, quorumwire_sessions::WINDOW);
        let forgotten_after = u128::from(quorumwire_sessions::IDLE_MS_MIN);
        assert!(DEADLINE_MAX.as_millis() * 2 <= forgotten_after);
        assert!(quorumwire_client::planes::IDLE_MAX.as_millis() * 2 <= forgotten_after);
    }
}
