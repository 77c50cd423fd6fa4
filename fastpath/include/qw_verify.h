/* SPDX-License-Identifier: Apache-2.0 */
/* What is checked of a packet before any state is read: its form, then its tag, then the checksum
 * of a command that enters the log with it. What it means is qw_step.h's; the checksum is made by
 * the plane, whose hardware may have an instruction for it. */
#ifndef QW_VERIFY_H
#define QW_VERIFY_H

#include "qw_mutants.h"
#include "qw_tag.h"
#include "qw_wire.h"

/* Keys of one kind, by the lowest bit of their epoch's number; `valid` has a bit for each that is
 * there. */
struct qw_key_pair {
	struct qw_tag_key key[2];
	__u64 valid;
};

/* All keys of a plane: what replicas say to each other, and what passes between clients and
 * replicas. */
struct qw_keys {
	struct qw_key_pair cluster;
	struct qw_key_pair clients;
};

/* Whether a kind is one whose tag is made with the clients' key. The kind decides, not the sender:
 * else a client could sign a replica's words with its own key. */
static inline __attribute__((always_inline)) int qw_is_clients(__u8 kind)
{
	return kind == QW_KIND_REQUEST || kind == QW_KIND_ANSWER || kind == QW_KIND_SUBMIT;
}

/* Whether a kind's payload has a size that its sender can have made. */
static inline __attribute__((always_inline)) int qw_payload_fits(const struct qw_header *header)
{
	switch (header->kind) {
	case QW_KIND_REQUEST:
	case QW_KIND_APPEND:
	case QW_KIND_ANSWER:
	case QW_KIND_SUBMIT:
	case QW_KIND_P1B:
	case QW_KIND_P2A:
	case QW_KIND_P2B:
		return header->payload_bytes <= QW_PAYLOAD_BYTES_MAX;
	case QW_KIND_FORWARD:
		return header->payload_bytes >= QW_ORIGIN_BYTES &&
		       header->payload_bytes <= QW_PAYLOAD_BYTES_MAX;
	case QW_KIND_APPEND_OK:
	case QW_KIND_RETRANSMIT:
	case QW_KIND_HEARTBEAT:
	case QW_KIND_HEARTBEAT_OK:
	case QW_KIND_CHECKPOINT:
		return header->payload_bytes == 0;
	case QW_KIND_P1A:
	case QW_KIND_ADMIT:
		return header->payload_bytes <= QW_ACCEPTORS_MAX * QW_LIFE_BYTES;
	default:
		return 0; /* a kind unknown here */
	}
}

/* Whether the checksum is to be compared with the command: where a client made both. A leader has
 * compared them before it sends an entry on, and the tag says that neither has changed since. */
static inline __attribute__((always_inline)) int qw_brings_command(const struct qw_header *header)
{
	return header->kind == QW_KIND_REQUEST || header->kind == QW_KIND_FORWARD ||
	       header->kind == QW_KIND_SUBMIT;
}

/* A refusal: leaves a function of this file if the condition holds, with the reason that the list
 * of checks gives the name (checks.toml). */
#define QW_REFUSE_IF(condition, name) \
	do { \
		if (QW_BAD(condition, name)) \
			return QW_REASON_OF_##name; \
	} while (0)

/* Decodes and checks the form of a packet of `frame_bytes` bytes; `frame` has at least
 * QW_HEADER_BYTES. The reason why it is not taken, or QW_REASON_NONE. */
static inline __attribute__((always_inline)) enum qw_reason
qw_check_form(const __u8 *frame, __u32 frame_bytes, struct qw_header *header)
{
	__u32 packet_bytes;

	QW_REFUSE_IF(frame_bytes < QW_HEADER_BYTES, HEADER_WHOLE);
	qw_header_decode(header, frame);
	QW_REFUSE_IF(header->magic != QW_MAGIC, MAGIC);
	QW_REFUSE_IF(header->version != QW_VERSION, VERSION);
	QW_REFUSE_IF(!qw_payload_fits(header), PAYLOAD_SIZE);
	/* A cut packet must not be stored, and what stands behind one is covered by no tag. */
	packet_bytes = (__u32)QW_HEADER_BYTES + header->payload_bytes;
	QW_REFUSE_IF(packet_bytes > frame_bytes, PACKET_WHOLE);
	QW_REFUSE_IF(packet_bytes != frame_bytes, EXACT_LENGTH);
	QW_REFUSE_IF((header->flags & ~QW_FLAGS_KNOWN) != 0, FLAGS_KNOWN);
	return QW_REASON_NONE;
}

/* Which of the keys a packet's kind and epoch name: 0 and 1 the replicas', 2 and 3 the clients'; -1
 * if it is not there. */
static inline __attribute__((always_inline)) int
qw_key_number(const struct qw_keys *keys, const struct qw_header *header)
{
	int epoch = header->flags & QW_FLAG_EPOCH;
	int is_clients = QW_VALUE(qw_is_clients(header->kind), header->sender == QW_SENDER_CLIENT, KEY_OF_KIND);
	__u64 valid = is_clients ? keys->clients.valid : keys->cluster.valid;

	/* A key that is not there is zeros: anybody knows those. */
	if (QW_BAD((valid & (1ULL << epoch)) == 0, KEY_VALID))
		return -1;
	return is_clients ? 2 + epoch : epoch;
}

/* The key of a number. */
static inline __attribute__((always_inline)) const struct qw_tag_key *
qw_key_at(const struct qw_keys *keys, int number)
{
	return number & 2 ? &keys->clients.key[number & 1] : &keys->cluster.key[number & 1];
}

/* Whether the tag of a packet of sound form is right under the key that its kind and epoch name. */
static inline enum qw_reason qw_check_tag(const struct qw_keys *keys, const struct qw_header *header,
					  const __u8 *frame, const __u8 *payload)
{
	int number = qw_key_number(keys, header);
	__u64 tag;

	if (number < 0)
		return QW_REASON_OF_KEY_VALID;
	tag = qw_tag(qw_key_at(keys, number), frame, payload, header->payload_bytes);
	QW_REFUSE_IF(header->tag != tag, TAG);
	return QW_REASON_NONE;
}

#endif
