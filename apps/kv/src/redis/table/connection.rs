//! The rows of the commands that whoever holds the connection serves.
use super::server::{CLIENT, CONFIG, LATENCY, SLOWLOG};
use crate::redis::spec::{NO_SUBCOMMANDS as NONE, commands};

commands! {
    /// Connections and the server.
    pub(super) static CONNECTION = {
        "swapdb" 3 Connection "write fast" "@keyspace @write @fast @dangerous" ""
            []
            "4.0.0" "server" "O(N)"
            "Refused: there is one database" NONE;
        "ping" -1 Connection "fast" "@fast @connection" "request_policy:all_shards response_policy:all_succeeded"
            []
            "1.0.0" "connection" "O(1)"
            "Answers" NONE;
        "echo" 2 Connection "loading stale fast" "@fast @connection" ""
            []
            "1.0.0" "connection" "O(1)"
            "Answers its argument" NONE;
        "select" 2 Connection "loading stale fast" "@fast @connection" ""
            []
            "1.0.0" "connection" "O(1)"
            "Chooses a database: there is only 0" NONE;
        "auth" -2 Connection "noscript loading stale fast no_auth allow_busy" "@fast @connection" ""
            []
            "1.0.0" "connection" "O(N)"
            "Tells the password" NONE;
        "hello" -1 Connection "noscript loading stale fast no_auth allow_busy" "@fast @connection" ""
            []
            "6.0.0" "connection" "O(1)"
            "Chooses the protocol's version, and gives the password" NONE;
        "quit" -1 Connection "noscript loading stale fast no_auth allow_busy" "@fast @connection" ""
            []
            "1.0.0" "connection" "O(1)"
            "Closes the connection" NONE;
        "reset" 1 Connection "noscript loading stale fast no_auth allow_busy" "@fast @connection" ""
            []
            "6.2.0" "connection" "O(1)"
            "Makes the connection as new" NONE;
        "client" -2 Connection "" "@slow" ""
            []
            "2.4.0" "connection" "Depends on subcommand"
            "About connections" CLIENT;
        "config" -2 Connection "" "@slow" ""
            []
            "2.0.0" "server" "Depends on subcommand"
            "The server's options" CONFIG;
        "info" -1 Connection "loading stale" "@slow @dangerous" "nondeterministic_output request_policy:all_shards response_policy:special"
            []
            "1.0.0" "server" "O(1)"
            "About the server" NONE;
        "command" -1 Connection "loading stale" "@slow @connection" "nondeterministic_output_order"
            []
            "2.8.13" "server" "O(N)"
            "About the commands" COMMAND;
        "wait" 3 Connection "noscript" "@slow @connection" "request_policy:all_shards response_policy:agg_min"
            []
            "3.0.0" "generic" "O(1)"
            "Waits until this many replicas have the connection's writes" NONE;
        "multi" 1 Connection "noscript loading stale fast allow_busy" "@fast @transaction" ""
            []
            "1.2.0" "transactions" "O(1)"
            "Begins a transaction" NONE;
        "exec" 1 Connection "noscript loading stale skip_slowlog" "@slow @transaction" ""
            []
            "1.2.0" "transactions" "Depends on commands in the transaction"
            "Carries a transaction out" NONE;
        "discard" 1 Connection "noscript loading stale fast allow_busy" "@fast @transaction" ""
            []
            "2.0.0" "transactions" "O(N)"
            "Forgets a transaction" NONE;
        "watch" -2 Connection "noscript loading stale fast allow_busy" "@fast @transaction" ""
            [{1 -1 1 "RO" ""}]
            "2.2.0" "transactions" "O(1)"
            "Makes the next transaction fail if one of these keys changes first" NONE;
        "unwatch" 1 Connection "noscript loading stale fast allow_busy" "@fast @transaction" ""
            []
            "2.2.0" "transactions" "O(1)"
            "Forgets the watched keys" NONE;
        "debug" -2 Connection "admin noscript loading stale" "@admin @slow @dangerous" ""
            []
            "1.0.0" "server" "Depends on subcommand"
            "For tests" NONE;
        "latency" -2 Connection "" "@slow" ""
            []
            "2.8.13" "server" "Depends on subcommand"
            "About latency" LATENCY;
        "memory" -2 Connection "" "@slow" ""
            []
            "4.0.0" "server" "Depends on subcommand"
            "About memory" MEMORY;
        "slowlog" -2 Connection "" "@slow" ""
            []
            "2.2.12" "server" "Depends on subcommand"
            "About slow commands" SLOWLOG;
        "time" 1 Connection "loading stale fast" "@fast" "nondeterministic_output"
            []
            "2.6.0" "server" "O(1)"
            "The time" NONE;
        "lastsave" 1 Connection "loading stale fast" "@admin @fast @dangerous" "nondeterministic_output"
            []
            "1.0.0" "server" "O(1)"
            "When the state was last saved" NONE;
        "role" 1 Connection "noscript loading stale fast" "@admin @fast @dangerous" ""
            []
            "2.8.12" "server" "O(1)"
            "Whether this replica leads" NONE;
        "readonly" 1 Connection "loading stale fast" "@fast @connection" ""
            []
            "3.0.0" "cluster" "O(1)"
            "For clients of clusters" NONE;
        "readwrite" 1 Connection "loading stale fast" "@fast @connection" ""
            []
            "3.0.0" "cluster" "O(1)"
            "For clients of clusters" NONE;
    }
}

commands! {
    /// What `COMMAND` can be asked.
    static COMMAND = {
        "command|getkeys" -4 Connection "loading stale" "@slow @connection" ""
            []
            "2.8.13" "server" "O(N)"
            "The keys among the words of a command" NONE;
        "command|count" 2 Connection "loading stale" "@slow @connection" ""
            []
            "2.8.13" "server" "O(1)"
            "How many commands there are" NONE;
        "command|getkeysandflags" -4 Connection "loading stale" "@slow @connection" ""
            []
            "7.0.0" "server" "O(N)"
            "The keys among the words of a command, and what is done to them" NONE;
        "command|info" -2 Connection "loading stale" "@slow @connection" "nondeterministic_output_order"
            []
            "2.8.13" "server" "O(N)"
            "What clients need to know about commands" NONE;
        "command|list" -2 Connection "loading stale" "@slow @connection" "nondeterministic_output_order"
            []
            "7.0.0" "server" "O(N)"
            "The names of the commands" NONE;
        "command|help" 2 Connection "loading stale" "@slow @connection" ""
            []
            "5.0.0" "server" "O(1)"
            "What can be asked" NONE;
        "command|docs" -2 Connection "loading stale" "@slow @connection" "nondeterministic_output_order"
            []
            "7.0.0" "server" "O(N)"
            "What people may want to know about commands" NONE;
    }
}

commands! {
    /// What `MEMORY` can be asked.
    static MEMORY = {
        "memory|usage" -3 Read "readonly" "@read @slow" ""
            [{2 0 1 "RO" ""}]
            "4.0.0" "server" "O(1)"
            "The bytes that a key and its value are counted with" NONE;
        "memory|doctor" 2 Connection "" "@slow" "nondeterministic_output request_policy:all_shards response_policy:special"
            []
            "4.0.0" "server" "O(1)"
            "Not served" NONE;
        "memory|help" 2 Connection "loading stale" "@slow" ""
            []
            "4.0.0" "server" "O(1)"
            "What can be asked" NONE;
        "memory|stats" 2 Connection "" "@slow" "nondeterministic_output request_policy:all_shards response_policy:special"
            []
            "4.0.0" "server" "O(1)"
            "Not served" NONE;
        "memory|malloc-stats" 2 Connection "" "@slow" "nondeterministic_output request_policy:all_shards response_policy:special"
            []
            "4.0.0" "server" "Depends on how much memory is allocated, could be slow"
            "Not served" NONE;
        "memory|purge" 2 Connection "" "@slow" "request_policy:all_shards response_policy:all_succeeded"
            []
            "4.0.0" "server" "Depends on how much memory is allocated, could be slow"
            "Not served" NONE;
    }
}
