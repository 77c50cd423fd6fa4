//! Words of a report that say which of a few things holds: typed here, text over HTTP. A word of a newer
//! server is kept as it came.
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $($(#[$of])* $variant,)*
            /// Nothing was said, or something that is not known here.
            Unknown(String),
        }

        impl $name {
            /// All that are known here.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$variant),*];

            /// Its word.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Unknown(word) => word,
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Unknown(String::new())
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)*
                    _ => Self::Unknown(word.to_owned()),
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                Self::from(word.as_str())
            }
        }

        impl From<$name> for String {
            fn from(it: $name) -> Self {
                it.as_str().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(self.as_str())
            }
        }
    )*};
}

words! {
    /// What a replica is now.
    ReplicaRole {
        /// It will vote once it has caught up.
        Joining = "joining",
        /// It follows and never votes.
        Learner = "learner",
        /// It votes, and follows whoever leads.
        Follower = "follower",
        /// It stands for election, or asks whether it could win one.
        Candidate = "candidate",
        /// It leads.
        Leader = "leader",
        /// It is no member any more.
        Removed = "removed",
    }

    /// What a member is to the others.
    MemberStanding {
        /// It votes.
        Voter = "voter",
        /// It does not.
        Learner = "learner",
        /// It will vote once it has caught up.
        Joining = "joining",
    }

    /// What has happened to a write before it is answered.
    ReportedDurability {
        /// It is on the disks of a quorum.
        Sync = "sync",
        /// It is in the memory of a quorum.
        Memory = "memory",
    }

    /// What happens at the memory limit.
    ReportedPolicy {
        /// Writes are refused.
        Refuse = "refuse",
        /// What was written or touched longest ago is deleted.
        Evict = "evict",
    }

    /// What has chosen a data plane.
    PlaneChooser {
        /// An option names it.
        Option = "option",
        /// It is the fastest that can run there.
        Auto = "auto",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::IntoDeserializer;
    use serde::de::value::Error;

    #[test]
    fn each_word_is_that_of_one_role_and_others_are_kept() {
        let read = |word: &str| {
            let text = IntoDeserializer::<Error>::into_deserializer(word);
            ReplicaRole::deserialize(text).unwrap()
        };
        for role in ReplicaRole::ALL {
            assert_eq!(read(role.as_str()), role);
            assert_eq!(String::from(role.clone()), role.to_string());
        }
        let newer = read("witness");
        assert_eq!(newer, ReplicaRole::Unknown("witness".to_owned()));
        assert_eq!(String::from(newer), "witness");
    }
}
