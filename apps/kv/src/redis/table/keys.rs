//! The rows of the commands on keys.
use crate::redis::spec::{NO_SUBCOMMANDS as NONE, commands};

commands! {
    /// Keys, whatever their values.
    pub(super) static KEYS = {
        "del" -2 Write "write" "@keyspace @write @slow" "request_policy:multi_shard response_policy:agg_sum"
            [{1 -1 1 "RM delete" ""}]
            "1.0.0" "generic" "O(N)"
            "Deletes keys" NONE;
        "unlink" -2 Write "write fast" "@keyspace @write @fast" "request_policy:multi_shard response_policy:agg_sum"
            [{1 -1 1 "RM delete" ""}]
            "4.0.0" "generic" "O(1)"
            "Deletes keys" NONE;
        "exists" -2 Read "readonly fast" "@keyspace @read @fast" "request_policy:multi_shard response_policy:agg_sum"
            [{1 -1 1 "RO" ""}]
            "1.0.0" "generic" "O(N)"
            "How many of the keys are there" NONE;
        "touch" -2 Read "readonly fast" "@keyspace @read @fast" "request_policy:multi_shard response_policy:agg_sum"
            [{1 -1 1 "RO" ""}]
            "3.2.1" "generic" "O(N)"
            "How many of the keys are there" NONE;
        "type" 2 Read "readonly fast" "@keyspace @read @fast" ""
            [{1 0 1 "RO" ""}]
            "1.0.0" "generic" "O(1)"
            "What kind of value a key has" NONE;
        "keys" 2 Read "readonly" "@keyspace @read @slow @dangerous" "request_policy:all_shards nondeterministic_output_order"
            []
            "1.0.0" "generic" "O(N)"
            "The keys that match a pattern, if they are not too many" NONE;
        "scan" -2 Read "readonly" "@keyspace @read @slow" "nondeterministic_output request_policy:special"
            []
            "2.8.0" "generic" "O(N)"
            "Some of the keys, and the cursor to continue from" NONE;
        "randomkey" 1 Read "readonly" "@keyspace @read @slow" "request_policy:all_shards nondeterministic_output"
            []
            "1.0.0" "generic" "O(1)"
            "Any key" NONE;
        "rename" 3 Write "write" "@keyspace @write @slow" ""
            [{1 0 1 "RW access delete" ""} {2 0 1 "OW update" ""}]
            "1.0.0" "generic" "O(1)"
            "Gives a value another key" NONE;
        "renamenx" 3 Write "write fast" "@keyspace @write @fast" ""
            [{1 0 1 "RW access delete" ""} {2 0 1 "OW insert" ""}]
            "1.0.0" "generic" "O(1)"
            "Gives a value another key if that has none" NONE;
        "copy" -3 Write "write denyoom" "@keyspace @write @slow" ""
            [{1 0 1 "RO access" ""} {2 0 1 "OW update" ""}]
            "6.2.0" "generic" "O(N)"
            "Gives a value to a second key" NONE;
        "expire" -3 Write "write fast" "@keyspace @write @fast" ""
            [{1 0 1 "RW update" ""}]
            "1.0.0" "generic" "O(1)"
            "Gives a key a lifetime in seconds" NONE;
        "pexpire" -3 Write "write fast" "@keyspace @write @fast" ""
            [{1 0 1 "RW update" ""}]
            "2.6.0" "generic" "O(1)"
            "Gives a key a lifetime in milliseconds" NONE;
        "expireat" -3 Write "write fast" "@keyspace @write @fast" ""
            [{1 0 1 "RW update" ""}]
            "1.2.0" "generic" "O(1)"
            "Ends a key at a Unix time in seconds" NONE;
        "pexpireat" -3 Write "write fast" "@keyspace @write @fast" ""
            [{1 0 1 "RW update" ""}]
            "2.6.0" "generic" "O(1)"
            "Ends a key at a Unix time in milliseconds" NONE;
        "ttl" 2 Read "readonly fast" "@keyspace @read @fast" "nondeterministic_output"
            [{1 0 1 "RO access" ""}]
            "1.0.0" "generic" "O(1)"
            "How many seconds a key has left" NONE;
        "pttl" 2 Read "readonly fast" "@keyspace @read @fast" "nondeterministic_output"
            [{1 0 1 "RO access" ""}]
            "2.6.0" "generic" "O(1)"
            "How many milliseconds a key has left" NONE;
        "expiretime" 2 Read "readonly fast" "@keyspace @read @fast" ""
            [{1 0 1 "RO access" ""}]
            "7.0.0" "generic" "O(1)"
            "The Unix time in seconds at which a key ends" NONE;
        "pexpiretime" 2 Read "readonly fast" "@keyspace @read @fast" ""
            [{1 0 1 "RO access" ""}]
            "7.0.0" "generic" "O(1)"
            "The Unix time in milliseconds at which a key ends" NONE;
        "persist" 2 Write "write fast" "@keyspace @write @fast" ""
            [{1 0 1 "RW update" ""}]
            "2.2.0" "generic" "O(1)"
            "Takes a key's end away" NONE;
        "dbsize" 1 Read "readonly fast" "@keyspace @read @fast" "request_policy:all_shards response_policy:agg_sum"
            []
            "1.0.0" "server" "O(1)"
            "How many keys there are" NONE;
        "flushall" -1 Write "write" "@keyspace @write @slow @dangerous" "request_policy:all_shards response_policy:all_succeeded"
            []
            "1.0.0" "server" "O(N)"
            "Deletes all keys" NONE;
        "flushdb" -1 Write "write" "@keyspace @write @slow @dangerous" "request_policy:all_shards response_policy:all_succeeded"
            []
            "1.0.0" "server" "O(N)"
            "Deletes all keys" NONE;
        "object" -2 Read "" "@slow" ""
            []
            "2.2.3" "generic" "Depends on subcommand"
            "How a value is kept" OBJECT;
        "move" 3 Write "write fast" "@keyspace @write @fast" ""
            [{1 0 1 "RW access update" ""}]
            "1.0.0" "generic" "O(1)"
            "Refused: there is one database" NONE;
    }
}

commands! {
    /// What `OBJECT` can be asked.
    static OBJECT = {
        "object|help" 2 Read "loading stale" "@keyspace @slow" ""
            []
            "6.2.0" "generic" "O(1)"
            "What can be asked" NONE;
        "object|idletime" 3 Read "readonly" "@keyspace @read @slow" "nondeterministic_output"
            [{2 0 1 "RO" ""}]
            "2.2.3" "generic" "O(1)"
            "Not kept" NONE;
        "object|freq" 3 Read "readonly" "@keyspace @read @slow" "nondeterministic_output"
            [{2 0 1 "RO" ""}]
            "4.0.0" "generic" "O(1)"
            "Not kept" NONE;
        "object|encoding" 3 Read "readonly" "@keyspace @read @slow" "nondeterministic_output"
            [{2 0 1 "RO" ""}]
            "2.2.3" "generic" "O(1)"
            "How Redis would keep the value" NONE;
        "object|refcount" 3 Read "readonly" "@keyspace @read @slow" "nondeterministic_output"
            [{2 0 1 "RO" ""}]
            "2.2.3" "generic" "O(1)"
            "One" NONE;
    }
}
