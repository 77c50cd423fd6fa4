//! The rows of what containers of commands about the server can be asked.
use crate::redis::spec::{NO_SUBCOMMANDS as NONE, commands};

commands! {
    /// What `CLIENT` can be asked.
    pub(super) static CLIENT = {
        "client|caching" 3 Connection "noscript loading stale" "@slow @connection" ""
            []
            "6.0.0" "connection" "O(1)"
            "For tracking, which is never on" NONE;
        "client|getname" 2 Connection "noscript loading stale" "@slow @connection" ""
            []
            "2.6.9" "connection" "O(1)"
            "The connection's name" NONE;
        "client|getredir" 2 Connection "noscript loading stale" "@slow @connection" ""
            []
            "6.0.0" "connection" "O(1)"
            "-1: there is no tracking" NONE;
        "client|help" 2 Connection "loading stale" "@slow @connection" ""
            []
            "5.0.0" "connection" "O(1)"
            "What can be asked" NONE;
        "client|id" 2 Connection "noscript loading stale" "@slow @connection" ""
            []
            "5.0.0" "connection" "O(1)"
            "The connection's number" NONE;
        "client|info" 2 Connection "noscript loading stale" "@slow @connection" "nondeterministic_output"
            []
            "6.2.0" "connection" "O(1)"
            "About the connection" NONE;
        "client|kill" -3 Connection "admin noscript loading stale" "@admin @slow @dangerous @connection" ""
            []
            "2.4.0" "connection" "O(N)"
            "Ends connections" NONE;
        "client|list" -2 Connection "admin noscript loading stale" "@admin @slow @dangerous @connection" "nondeterministic_output"
            []
            "2.4.0" "connection" "O(N)"
            "About all connections" NONE;
        "client|no-evict" 3 Connection "admin noscript loading stale" "@admin @slow @dangerous @connection" ""
            []
            "7.0.0" "connection" "O(1)"
            "Taken, and changes nothing" NONE;
        "client|no-touch" 3 Connection "noscript loading stale" "@slow @connection" ""
            []
            "7.2.0" "connection" "O(1)"
            "Taken, and changes nothing" NONE;
        "client|reply" 3 Connection "noscript loading stale" "@slow @connection" ""
            []
            "3.2.0" "connection" "O(1)"
            "Whether requests are answered" NONE;
        "client|setinfo" 4 Connection "noscript loading stale" "@slow @connection" "request_policy:all_nodes response_policy:all_succeeded"
            []
            "7.2.0" "connection" "O(1)"
            "What `CLIENT LIST` shows as the library of the client" NONE;
        "client|setname" 3 Connection "noscript loading stale" "@slow @connection" ""
            []
            "2.6.9" "connection" "O(1)"
            "Gives the connection a name" NONE;
        "client|tracking" -3 Connection "noscript loading stale" "@slow @connection" ""
            []
            "6.0.0" "connection" "O(1)"
            "Tracking, which can only be off" NONE;
        "client|trackinginfo" 2 Connection "noscript loading stale" "@slow @connection" ""
            []
            "6.2.0" "connection" "O(1)"
            "That there is no tracking" NONE;
        "client|unblock" -3 Connection "admin noscript loading stale" "@admin @slow @dangerous @connection" ""
            []
            "5.0.0" "connection" "O(log N)"
            "Ends the `WAIT` of another connection" NONE;
    }
}

commands! {
    /// What `CONFIG` can be asked.
    pub(super) static CONFIG = {
        "config|get" -3 Connection "admin noscript loading stale" "@admin @slow @dangerous" ""
            []
            "2.0.0" "server" "O(N)"
            "The options with names that match a pattern" NONE;
        "config|help" 2 Connection "loading stale" "@slow" ""
            []
            "5.0.0" "server" "O(1)"
            "What can be asked" NONE;
        "config|resetstat" 2 Connection "admin noscript loading stale" "@admin @slow @dangerous" ""
            []
            "2.0.0" "server" "O(1)"
            "Refused: counters are not reset while a replica runs" NONE;
        "config|rewrite" 2 Connection "admin noscript loading stale" "@admin @slow @dangerous" ""
            []
            "2.8.0" "server" "O(1)"
            "Refused: the server writes no file of options" NONE;
        "config|set" -4 Connection "admin noscript loading stale" "@admin @slow @dangerous" "request_policy:all_nodes response_policy:all_succeeded"
            []
            "2.0.0" "server" "O(N)"
            "Changes the memory limit, for the whole cluster" NONE;
    }
}

commands! {
    /// What `LATENCY` can be asked.
    pub(super) static LATENCY = {
        "latency|doctor" 2 Connection "admin noscript loading stale" "@admin @slow @dangerous" "nondeterministic_output request_policy:all_nodes response_policy:special"
            []
            "2.8.13" "server" "O(1)"
            "Says where latencies are shown" NONE;
        "latency|graph" 3 Connection "admin noscript loading stale" "@admin @slow @dangerous" "nondeterministic_output request_policy:all_nodes response_policy:special"
            []
            "2.8.13" "server" "O(1)"
            "None: no events are noted" NONE;
        "latency|help" 2 Connection "loading stale" "@slow" ""
            []
            "2.8.13" "server" "O(1)"
            "What can be asked" NONE;
        "latency|histogram" -2 Connection "admin noscript loading stale" "@admin @slow @dangerous" "nondeterministic_output request_policy:all_nodes response_policy:special"
            []
            "7.0.0" "server" "O(N)"
            "None: no commands are noted" NONE;
        "latency|history" 3 Connection "admin noscript loading stale" "@admin @slow @dangerous" "nondeterministic_output request_policy:all_nodes response_policy:special"
            []
            "2.8.13" "server" "O(1)"
            "None: no events are noted" NONE;
        "latency|latest" 2 Connection "admin noscript loading stale" "@admin @slow @dangerous" "nondeterministic_output request_policy:all_nodes response_policy:special"
            []
            "2.8.13" "server" "O(1)"
            "None: no events are noted" NONE;
        "latency|reset" -2 Connection "admin noscript loading stale" "@admin @slow @dangerous" "request_policy:all_nodes response_policy:all_succeeded"
            []
            "2.8.13" "server" "O(1)"
            "Forgets none: no events are noted" NONE;
    }
}

commands! {
    /// What `SLOWLOG` can be asked.
    pub(super) static SLOWLOG = {
        "slowlog|get" -2 Connection "admin loading stale" "@admin @slow @dangerous" "request_policy:all_nodes nondeterministic_output"
            []
            "2.2.12" "server" "O(N)"
            "None: no commands are noted" NONE;
        "slowlog|help" 2 Connection "loading stale" "@slow" ""
            []
            "6.2.0" "server" "O(1)"
            "What can be asked" NONE;
        "slowlog|len" 2 Connection "admin loading stale" "@admin @slow @dangerous" "request_policy:all_nodes response_policy:agg_sum nondeterministic_output"
            []
            "2.2.12" "server" "O(1)"
            "0: no commands are noted" NONE;
        "slowlog|reset" 2 Connection "admin loading stale" "@admin @slow @dangerous" "request_policy:all_nodes response_policy:all_succeeded"
            []
            "2.2.12" "server" "O(N)"
            "Forgets none: no commands are noted" NONE;
    }
}
