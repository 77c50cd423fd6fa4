/* SPDX-License-Identifier: Apache-2.0 */
/* The programs' own checks that a test build can leave out one at a time, to show that each is
 * needed; those of the step have theirs (fastpath/include/qw_mutants.h). In every other build
 * qw_left_out() is the constant 0. */
#ifndef QW_XDP_MUTANTS_H
#define QW_XDP_MUTANTS_H

/* In the order of src/mutants.rs, which names them; 0 is none. */
enum qw_left_out_check {
	QW_LEFT_OUT_TAG = 1, /* the tag of a packet is right */
	QW_LEFT_OUT_CHECKSUM, /* so is the checksum of a client's command */
	QW_LEFT_OUT_ADDRESS, /* it is to our address */
	QW_LEFT_OUT_PIECES, /* it does not come in pieces */
	QW_LEFT_OUT_OPTIONS, /* nothing stands between IP and UDP */
	QW_LEFT_OUT_ROOM, /* UDP is within IP */
	QW_LEFT_OUT_LEARN_FROM, /* an Ethernet address is learnt from who has the replica's address */
	QW_LEFT_OUT_LEARN_MOVED, /* a known one only from a packet that moved something */
	QW_LEFT_OUT_FIT, /* a frame that is sent to all has no more bytes than its packet */
	QW_LEFT_OUT_EPOCH, /* what is sent is signed with the key of its epoch */
	QW_LEFT_OUT_UDP_SUM, /* IPv6: the checksum covers the whole packet */
	QW_LEFT_OUT_QUIET, /* a follower's question is not asked again at once */
	QW_LEFT_OUT_ANSWERED_HERE, /* only a request's own client is answered from here */
	QW_LEFT_OUT_OFF, /* a fence switches off */
	QW_LEFT_OUT_COPIES, /* a fence waits for copies: they are counted before they are made */
	QW_LEFT_OUT_WAKE, /* a host that sleeps is woken */
	QW_LEFT_OUT_LOCK, /* one step at a time */
	QW_LEFT_OUT_INDEX_FIRST, /* who overwrites a slot says so first */
	QW_LEFT_OUT_INDEX_LAST, /* a slot says that it is filled when it is */
	QW_LEFT_OUT_STILL_HOLDS, /* what was read of a slot is still in it */
	QW_LEFT_OUT_DATAGRAM_SUM, /* a memcached client's datagram is whole: nothing else says so */
	QW_LEFT_OUT_UNSENT, /* what could not be sent is counted */
	QW_LEFT_OUT_LEADS, /* memcached clients are served by the leader alone */
	QW_LEFT_OUT_READS_UNTIL, /* a `get` is answered while the lease holds */
	QW_LEFT_OUT_APPLIED, /* and while the table shows all that is committed */
	QW_LEFT_OUT_SETS_UNTIL, /* a `set` is taken while nothing else is due before it */
	QW_LEFT_OUT_AMPLIFICATION, /* an answer is not much longer than what asked for it */
	QW_LEFT_OUT_ANSWER_WHOLE, /* what was copied of the table is one answer: it was in use until then */
	QW_LEFT_OUT_VLAN, /* a tag has our number */
	QW_LEFT_OUT_TO_GROUP, /* to the address of all goes only what a leader sends to all */
	QW_LEFT_OUT_SECRET, /* an order for copies is our own program's */
	QW_LEFT_OUT_SETS_STILL, /* a `set` that has waited for its step may still be taken */
	QW_LEFT_OUT_BROKEN, /* nothing changes behind an entry that did not get into the ring */
	QW_LEFT_OUT_HELD, /* a Paxos role that says only what is durable leaves the step to its host */
};

#ifdef QW_XDP_MUTANTS
/* Set before loading: the verifier takes the rest away. */
const volatile __u32 qw_left_out_now SEC(".rodata.mutant") = 0;

#define qw_left_out(check) (qw_left_out_now == (check))
#else
#define qw_left_out(check) 0
#endif

#endif
