//! What each command is written with: for commands without a row here it is nothing but their name.
use crate::redis::argument::{
    Argument, block, double, integer, key, one_of, pattern, string, token, unix_time,
};

const KEY: Argument = key("key", 0);

const KEYS_AND_VALUES: Argument = block("key_value", &[KEY, string("value")]).multiple();

const EXPIRE_CONDITION: Argument = one_of(
    "condition",
    &[
        token("nx", "NX"),
        token("xx", "XX"),
        token("gt", "GT"),
        token("lt", "LT"),
    ],
)
.since("7.0.0")
.optional();

const INDEX_UNIT: Argument = one_of("index_unit", &[token("byte", "BYTE"), token("bit", "BIT")])
    .since("7.0.0")
    .optional();

const FLUSH_MODE: Argument = one_of(
    "async",
    &[
        token("async", "ASYNC").since("4.0.0"),
        token("sync", "SYNC").since("6.2.0"),
    ],
)
.optional();

const ON_OR_OFF: Argument = one_of("enabled", &[token("on", "ON"), token("off", "OFF")]);

/// By the commands' names.
pub(super) static ARGUMENTS: &[(&str, &[Argument])] = &[
    ("get", &[KEY]),
    (
        "set",
        &[
            KEY,
            string("value"),
            one_of("condition", &[token("nx", "NX"), token("xx", "XX")])
                .since("2.6.12")
                .optional(),
            token("get", "GET").since("6.2.0").optional(),
            one_of(
                "expiration",
                &[
                    integer("seconds").after("EX").since("2.6.12"),
                    integer("milliseconds").after("PX").since("2.6.12"),
                    unix_time("unix-time-seconds").after("EXAT").since("6.2.0"),
                    unix_time("unix-time-milliseconds")
                        .after("PXAT")
                        .since("6.2.0"),
                    token("keepttl", "KEEPTTL").since("6.0.0"),
                ],
            )
            .optional(),
        ],
    ),
    ("setnx", &[KEY, string("value")]),
    ("setex", &[KEY, integer("seconds"), string("value")]),
    ("psetex", &[KEY, integer("milliseconds"), string("value")]),
    ("getset", &[KEY, string("value")]),
    (
        "getex",
        &[
            KEY,
            one_of(
                "expiration",
                &[
                    integer("seconds").after("EX"),
                    integer("milliseconds").after("PX"),
                    unix_time("unix-time-seconds").after("EXAT"),
                    unix_time("unix-time-milliseconds").after("PXAT"),
                    token("persist", "PERSIST"),
                ],
            )
            .optional(),
        ],
    ),
    ("getdel", &[KEY]),
    ("mget", &[KEY.multiple()]),
    ("mset", &[KEYS_AND_VALUES]),
    ("msetnx", &[KEYS_AND_VALUES]),
    ("append", &[KEY, string("value")]),
    ("strlen", &[KEY]),
    ("getrange", &[KEY, integer("start"), integer("end")]),
    ("substr", &[KEY, integer("start"), integer("end")]),
    ("setrange", &[KEY, integer("offset"), string("value")]),
    ("incr", &[KEY]),
    ("decr", &[KEY]),
    ("incrby", &[KEY, integer("increment")]),
    ("decrby", &[KEY, integer("decrement")]),
    ("incrbyfloat", &[KEY, double("increment")]),
    ("setbit", &[KEY, integer("offset"), integer("value")]),
    ("getbit", &[KEY, integer("offset")]),
    (
        "bitcount",
        &[
            KEY,
            block("index", &[integer("start"), integer("end"), INDEX_UNIT]).optional(),
        ],
    ),
    (
        "bitpos",
        &[
            KEY,
            integer("bit"),
            block(
                "index",
                &[
                    integer("start"),
                    block("end_index", &[integer("end"), INDEX_UNIT]).optional(),
                ],
            )
            .optional(),
        ],
    ),
    (
        "bitop",
        &[
            string("operation"),
            key("destkey", 0),
            key("key", 1).multiple(),
        ],
    ),
    (
        "bitfield",
        &[
            KEY,
            one_of(
                "operation",
                &[
                    block("encoding_offset", &[string("encoding"), integer("offset")]).after("GET"),
                    block(
                        "write",
                        &[
                            one_of(
                                "wrap_sat_fail",
                                &[
                                    token("wrap", "WRAP"),
                                    token("sat", "SAT"),
                                    token("fail", "FAIL"),
                                ],
                            )
                            .after("OVERFLOW")
                            .optional(),
                            one_of(
                                "write_operation",
                                &[
                                    block(
                                        "encoding_offset_value",
                                        &[string("encoding"), integer("offset"), integer("value")],
                                    )
                                    .after("SET"),
                                    block(
                                        "encoding_offset_increment",
                                        &[
                                            string("encoding"),
                                            integer("offset"),
                                            integer("increment"),
                                        ],
                                    )
                                    .after("INCRBY"),
                                ],
                            ),
                        ],
                    ),
                ],
            )
            .optional()
            .multiple(),
        ],
    ),
    (
        "bitfield_ro",
        &[
            KEY,
            block("encoding_offset", &[string("encoding"), integer("offset")])
                .after("GET")
                .optional()
                .multiple()
                .with_token_each(),
        ],
    ),
    ("del", &[KEY.multiple()]),
    ("unlink", &[KEY.multiple()]),
    ("exists", &[KEY.multiple()]),
    ("touch", &[KEY.multiple()]),
    ("type", &[KEY]),
    ("keys", &[pattern("pattern")]),
    (
        "scan",
        &[
            integer("cursor"),
            pattern("pattern").after("MATCH").optional(),
            integer("count").after("COUNT").optional(),
            string("type").after("TYPE").since("6.0.0").optional(),
        ],
    ),
    ("rename", &[KEY, key("newkey", 1)]),
    ("renamenx", &[KEY, key("newkey", 1)]),
    (
        "copy",
        &[
            key("source", 0),
            key("destination", 1),
            integer("destination-db").after("DB").optional(),
            token("replace", "REPLACE").optional(),
        ],
    ),
    ("expire", &[KEY, integer("seconds"), EXPIRE_CONDITION]),
    ("pexpire", &[KEY, integer("milliseconds"), EXPIRE_CONDITION]),
    (
        "expireat",
        &[KEY, unix_time("unix-time-seconds"), EXPIRE_CONDITION],
    ),
    (
        "pexpireat",
        &[KEY, unix_time("unix-time-milliseconds"), EXPIRE_CONDITION],
    ),
    ("ttl", &[KEY]),
    ("pttl", &[KEY]),
    ("expiretime", &[KEY]),
    ("pexpiretime", &[KEY]),
    ("persist", &[KEY]),
    ("flushall", &[FLUSH_MODE]),
    ("flushdb", &[FLUSH_MODE]),
    ("move", &[KEY, integer("db")]),
    ("object|idletime", &[KEY]),
    ("object|freq", &[KEY]),
    ("object|encoding", &[KEY]),
    ("object|refcount", &[KEY]),
    ("swapdb", &[integer("index1"), integer("index2")]),
    ("ping", &[string("message").optional()]),
    ("echo", &[string("message")]),
    ("select", &[integer("index")]),
    (
        "auth",
        &[
            string("username").since("6.0.0").optional(),
            string("password"),
        ],
    ),
    (
        "hello",
        &[block(
            "arguments",
            &[
                integer("protover"),
                block(
                    "username_password",
                    &[string("username"), string("password")],
                )
                .after("AUTH")
                .optional(),
                string("clientname").after("SETNAME").optional(),
            ],
        )
        .optional()],
    ),
    ("info", &[string("section").optional().multiple()]),
    ("wait", &[integer("numreplicas"), integer("timeout")]),
    ("watch", &[KEY.multiple()]),
    (
        "command|info",
        &[string("command-name").optional().multiple()],
    ),
    (
        "command|list",
        &[one_of(
            "filterby",
            &[
                string("module-name").after("MODULE"),
                string("category").after("ACLCAT"),
                pattern("pattern").after("PATTERN"),
            ],
        )
        .after("FILTERBY")
        .optional()],
    ),
    (
        "command|docs",
        &[string("command-name").optional().multiple()],
    ),
    (
        "memory|usage",
        &[KEY, integer("count").after("SAMPLES").optional()],
    ),
    (
        "client|caching",
        &[one_of("mode", &[token("yes", "YES"), token("no", "NO")])],
    ),
    (
        "client|kill",
        &[one_of(
            "filter",
            &[
                string("ip:port").until("2.8.12"),
                one_of(
                    "new-format",
                    &[
                        integer("client-id").after("ID").since("2.8.12").optional(),
                        one_of(
                            "normal_master_slave_pubsub",
                            &[
                                token("normal", "NORMAL"),
                                token("master", "MASTER").since("3.2.0"),
                                token("slave", "SLAVE"),
                                token("replica", "REPLICA").since("5.0.0"),
                                token("pubsub", "PUBSUB"),
                            ],
                        )
                        .after("TYPE")
                        .since("2.8.12")
                        .optional(),
                        string("username").after("USER").optional(),
                        string("ip:port").after("ADDR").optional(),
                        string("ip:port").after("LADDR").since("6.2.0").optional(),
                        string("yes/no").after("SKIPME").optional(),
                    ],
                )
                .multiple(),
            ],
        )],
    ),
    (
        "client|list",
        &[
            one_of(
                "normal_master_replica_pubsub",
                &[
                    token("normal", "NORMAL"),
                    token("master", "MASTER"),
                    token("replica", "REPLICA"),
                    token("pubsub", "PUBSUB"),
                ],
            )
            .after("TYPE")
            .since("5.0.0")
            .optional(),
            block("id", &[integer("client-id").multiple()])
                .after("ID")
                .since("6.2.0")
                .optional(),
        ],
    ),
    ("client|no-evict", &[ON_OR_OFF]),
    ("client|no-touch", &[ON_OR_OFF]),
    (
        "client|reply",
        &[one_of(
            "on_off_skip",
            &[
                token("on", "ON"),
                token("off", "OFF"),
                token("skip", "SKIP"),
            ],
        )],
    ),
    (
        "client|setinfo",
        &[one_of(
            "attr",
            &[
                string("libname").after("LIB-NAME"),
                string("libver").after("LIB-VER"),
            ],
        )],
    ),
    ("client|setname", &[string("connection-name")]),
    (
        "client|tracking",
        &[
            one_of("status", &[token("on", "ON"), token("off", "OFF")]),
            integer("client-id").after("REDIRECT").optional(),
            string("prefix")
                .after("PREFIX")
                .optional()
                .multiple()
                .with_token_each(),
            token("bcast", "BCAST").optional(),
            token("optin", "OPTIN").optional(),
            token("optout", "OPTOUT").optional(),
            token("noloop", "NOLOOP").optional(),
        ],
    ),
    (
        "client|unblock",
        &[
            integer("client-id"),
            one_of(
                "timeout_error",
                &[token("timeout", "TIMEOUT"), token("error", "ERROR")],
            )
            .optional(),
        ],
    ),
    (
        "config|get",
        &[block("parameter", &[string("parameter")]).multiple()],
    ),
    (
        "config|set",
        &[block("parameter_value", &[string("parameter"), string("value")]).multiple()],
    ),
    ("latency|graph", &[string("event")]),
    (
        "latency|histogram",
        &[string("command").optional().multiple()],
    ),
    ("latency|history", &[string("event")]),
    ("latency|reset", &[string("event").optional().multiple()]),
    ("slowlog|get", &[integer("count").optional()]),
];
