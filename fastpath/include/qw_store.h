/* Generated from apps/kv/shared.toml by `make generate`; do not edit.
 * What the key-value store and planes that read requests for it have in common. */
#ifndef QW_STORE_H
#define QW_STORE_H

#include "qw_wire.h"

/* Longest key of a memcached client. */
#define QW_MEMCACHED_KEY_BYTES_MAX 250
/* A command before its key: what it is, the key's length, flags, expiry. */
#define QW_MEMCACHED_COMMAND_HEAD_BYTES 14
/* The store's number for a `set`, in its first format. */
#define QW_MEMCACHED_COMMAND_SET 17

#endif
