//! What the log was told of replicas that contradict each other, so that each contradiction is said once.
//! Without TLS anybody can say a hello. So what is said goes by replica and subject, never by text; what has
//! ended is forgotten; and strangers have a share of their own, so they never silence what is said of a
//! replica that is known.
use super::REFUSAL_SHOWN;
use quorumwire_control::Now;
use quorumwire_interfaces::ReplicaId;
use std::collections::BTreeMap;

/// Contradictions of replicas that are neither members nor dialed that are remembered.
pub(super) const STRANGERS_SAID_MAX: usize = 256;

/// What a replica and this one may contradict each other in.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Subject {
    /// Which cluster it is.
    Cluster,
    /// The value of an option of ours.
    Setting(String),
    /// Whether to begin one.
    Beginning,
}

/// In what, with which replica.
pub(super) type About = (ReplicaId, Subject);

/// Texts that the log was told.
#[derive(Default)]
pub(super) struct LoggedTexts(BTreeMap<About, LoggedText>);

struct LoggedText {
    text: String,
    is_known: bool,
    /// When the log was told.
    at: Now,
    /// When it was so last.
    last: Now,
}

impl LoggedTexts {
    /// Whether the log is to be told now: it was not told of it, or something else that long ago that nobody
    /// can flood it with new texts.
    pub fn is_news(&mut self, about: &About, is_known: bool, text: &str, now: Now) -> bool {
        if let Some(logged) = self.0.get_mut(about) {
            logged.last = now;
            let is_due = now.0.saturating_sub(logged.at.0) >= REFUSAL_SHOWN;
            if logged.text == text || !is_due {
                return false;
            }
            (logged.text, logged.at) = (text.to_owned(), now);
            return true;
        }
        let strangers = self.0.values().filter(|logged| !logged.is_known).count();
        if !is_known && strangers >= STRANGERS_SAID_MAX {
            return false;
        }
        let logged = LoggedText {
            text: text.to_owned(),
            is_known,
            at: now,
            last: now,
        };
        self.0.insert(about.clone(), logged);
        true
    }

    /// What was not so for a while is over: should it come again, it is said again.
    pub fn forget_ended(&mut self, now: Now) {
        let lasts = |logged: &LoggedText| now.0.saturating_sub(logged.last.0) < REFUSAL_SHOWN;
        self.0.retain(|_, logged| lasts(logged));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn after(seconds: u64) -> Now {
        Now(Duration::from_secs(seconds))
    }

    #[test]
    fn it_is_said_once_however_often_the_text_changes_and_again_once_it_had_ended() {
        let mut said = LoggedTexts::default();
        let about = (ReplicaId(1), Subject::Cluster);
        let mut told = Vec::new();
        for second in 0..70 {
            let text = format!("lineage {second}");
            if said.is_news(&about, true, &text, after(second)) {
                told.push(second);
            }
            said.forget_ended(after(second));
        }
        assert_eq!(told, [0, 30, 60]);
        assert!(
            !said.is_news(&about, true, "lineage 60", after(95)),
            "it goes on"
        );
        said.forget_ended(after(95));
        assert!(!said.is_news(&about, true, "lineage 60", after(96)));
        said.forget_ended(after(130));
        assert!(said.is_news(&about, true, "lineage 60", after(130)));
    }

    #[test]
    fn strangers_silence_no_replica_that_is_known() {
        let mut said = LoggedTexts::default();
        let now = after(0);
        let of = |id| (ReplicaId(id), Subject::Cluster);
        let heard = (100..2000).filter(|id| said.is_news(&of(*id), false, "lineage", now));
        assert_eq!(heard.count(), STRANGERS_SAID_MAX);
        assert!(said.is_news(&of(1), true, "lineage", now));
        said.forget_ended(after(30));
        assert!(said.is_news(&of(99), false, "lineage", after(30)));
    }
}
