//! The rows of the commands on values.
use crate::redis::spec::{NO_SUBCOMMANDS as NONE, commands};

commands! {
    /// Values, and the bits in them.
    pub(super) static STRINGS = {
        "get" 2 Read "readonly fast" "@read @string @fast" ""
            [{1 0 1 "RO access" ""}]
            "1.0.0" "string" "O(1)"
            "The value of a key" NONE;
        "set" -3 Write "write denyoom" "@write @string @slow" ""
            [{1 0 1 "RW access update variable_flags" "RW and ACCESS due to the optional `GET` argument"}]
            "1.0.0" "string" "O(1)"
            "Sets a value, and a lifetime if given" NONE;
        "setnx" 3 Write "write denyoom fast" "@write @string @fast" ""
            [{1 0 1 "OW insert" ""}]
            "1.0.0" "string" "O(1)"
            "Gives a key a value if it has none" NONE;
        "setex" 4 Write "write denyoom" "@write @string @slow" ""
            [{1 0 1 "OW update" ""}]
            "2.0.0" "string" "O(1)"
            "Gives a key a value for so many seconds" NONE;
        "psetex" 4 Write "write denyoom" "@write @string @slow" ""
            [{1 0 1 "OW update" ""}]
            "2.6.0" "string" "O(1)"
            "Gives a key a value for so many milliseconds" NONE;
        "getset" 3 Write "write denyoom fast" "@write @string @fast" ""
            [{1 0 1 "RW access update" ""}]
            "1.0.0" "string" "O(1)"
            "Sets a value and answers the old one" NONE;
        "getex" -2 Write "write fast" "@write @string @fast" ""
            [{1 0 1 "RW access update" "RW and UPDATE because it changes the TTL"}]
            "6.2.0" "string" "O(1)"
            "Answers a value and changes its lifetime" NONE;
        "getdel" 2 Write "write fast" "@write @string @fast" ""
            [{1 0 1 "RW access delete" ""}]
            "6.2.0" "string" "O(1)"
            "Answers a value and deletes the key" NONE;
        "mget" -2 Read "readonly fast" "@read @string @fast" "request_policy:multi_shard"
            [{1 -1 1 "RO access" ""}]
            "1.0.0" "string" "O(N)"
            "The values of keys" NONE;
        "mset" -3 Write "write denyoom" "@write @string @slow" "request_policy:multi_shard response_policy:all_succeeded"
            [{1 -1 2 "OW update" ""}]
            "1.0.1" "string" "O(N)"
            "Gives keys their values" NONE;
        "msetnx" -3 Write "write denyoom" "@write @string @slow" "request_policy:multi_shard response_policy:agg_min"
            [{1 -1 2 "OW insert" ""}]
            "1.0.1" "string" "O(N)"
            "Gives keys their values if none of them has one" NONE;
        "append" 3 Write "write denyoom fast" "@write @string @fast" ""
            [{1 0 1 "RW insert" ""}]
            "2.0.0" "string" "O(N)"
            "Puts bytes behind a value" NONE;
        "strlen" 2 Read "readonly fast" "@read @string @fast" ""
            [{1 0 1 "RO" ""}]
            "2.2.0" "string" "O(1)"
            "The length of a value" NONE;
        "getrange" 4 Read "readonly" "@read @string @slow" ""
            [{1 0 1 "RO access" ""}]
            "2.4.0" "string" "O(N)"
            "A part of a value" NONE;
        "substr" 4 Read "readonly" "@read @string @slow" ""
            [{1 0 1 "RO access" ""}]
            "1.0.0" "string" "O(N)"
            "A part of a value, as GETRANGE" NONE;
        "setrange" 4 Write "write denyoom" "@write @string @slow" ""
            [{1 0 1 "RW update" ""}]
            "2.2.0" "string" "O(N)"
            "Overwrites a part of a value" NONE;
        "incr" 2 Write "write denyoom fast" "@write @string @fast" ""
            [{1 0 1 "RW access update" ""}]
            "1.0.0" "string" "O(1)"
            "Adds one to a number" NONE;
        "decr" 2 Write "write denyoom fast" "@write @string @fast" ""
            [{1 0 1 "RW access update" ""}]
            "1.0.0" "string" "O(1)"
            "Takes one from a number" NONE;
        "incrby" 3 Write "write denyoom fast" "@write @string @fast" ""
            [{1 0 1 "RW access update" ""}]
            "1.0.0" "string" "O(1)"
            "Adds to a number" NONE;
        "decrby" 3 Write "write denyoom fast" "@write @string @fast" ""
            [{1 0 1 "RW access update" ""}]
            "1.0.0" "string" "O(1)"
            "Takes from a number" NONE;
        "incrbyfloat" 3 Write "write denyoom fast" "@write @string @fast" ""
            [{1 0 1 "RW access update" ""}]
            "2.6.0" "string" "O(1)"
            "Adds to a number with a fraction" NONE;
        "setbit" 4 Write "write denyoom" "@write @bitmap @slow" ""
            [{1 0 1 "RW access update" ""}]
            "2.2.0" "bitmap" "O(1)"
            "Sets or clears a bit of a value" NONE;
        "getbit" 3 Read "readonly fast" "@read @bitmap @fast" ""
            [{1 0 1 "RO access" ""}]
            "2.2.0" "bitmap" "O(1)"
            "A bit of a value" NONE;
        "bitcount" -2 Read "readonly" "@read @bitmap @slow" ""
            [{1 0 1 "RO access" ""}]
            "2.6.0" "bitmap" "O(N)"
            "How many bits of a value are set" NONE;
        "bitpos" -3 Read "readonly" "@read @bitmap @slow" ""
            [{1 0 1 "RO access" ""}]
            "2.8.7" "bitmap" "O(N)"
            "The first bit of a value that is set, or that is clear" NONE;
        "bitop" -4 Write "write denyoom" "@write @bitmap @slow" ""
            [{2 0 1 "OW update" ""} {3 -1 1 "RO access" ""}]
            "2.6.0" "bitmap" "O(N)"
            "Makes a value of the bits of others" NONE;
        "bitfield" -2 Write "write denyoom" "@write @bitmap @slow" ""
            [{1 0 1 "RW access update variable_flags" "This command allows both access and modification of the key"}]
            "3.2.0" "bitmap" "O(1)"
            "Reads, writes and counts with integers in the bits of a value" NONE;
        "bitfield_ro" -2 Read "readonly fast" "@read @bitmap @fast" ""
            [{1 0 1 "RO access" ""}]
            "6.0.0" "bitmap" "O(1)"
            "Reads integers in the bits of a value" NONE;
    }
}
