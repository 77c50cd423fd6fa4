//! Whether ticks may say what the leader's wall clock shows. Makes no tick.
//!
//! # Members whose code is older
//! They read only the log's time of a tick, and would come to another state than who reads the rest. So a
//! tick says it only while every member has said that it reads it. What a tick then does is a matter of its
//! bytes alone. Who has not been met in this process is taken for one that reads it if the log says the wall
//! clock already: then every member of that time did, and none joins with older code, because it knows no
//! [lineage](crate::lineage).
use crate::Replica;
use crate::members::peer_of;
use crate::mutants::mutant;

impl Replica {
    /// Whether its ticks may say what the wall clock shows. `log_says_it`: the last tick that is applied
    /// does.
    #[must_use]
    pub fn may_tell_wall_clock(&self, log_says_it: bool) -> bool {
        let me = self.config.me;
        let members = self.members.current().members.iter().map(peer_of);
        let mut others = members.filter(|peer| *peer != me);
        others.all(|peer| {
            let promise = self.known_promise(peer);
            promise.map_or(log_says_it, |it| it.keeps_wall_clock)
        }) || mutant("wall-clock-told-early")
    }
}
