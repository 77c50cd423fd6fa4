/* What stands beside a datagram, in messages of control. */
#include "interpose.h"

#include <string.h>
#include <sys/time.h>

/* What a program can ask for. A datagram has come over the network as over loopback. */
static const struct {
	int level, option;
} told[] = {
	{ SOL_SOCKET, SO_TIMESTAMP },	    { SOL_SOCKET, SO_TIMESTAMPNS }, { IPPROTO_IP, IP_PKTINFO },
	{ IPPROTO_IP, IP_RECVTTL },	    { IPPROTO_IP, IP_RECVTOS },	    { IPPROTO_IPV6, IPV6_RECVPKTINFO },
	{ IPPROTO_IPV6, IPV6_RECVHOPLIMIT },
};
enum { STAMP, STAMP_NS, ADDRESS, TTL, TOS, ADDRESS6, HOPS, TOLD_COUNT };
_Static_assert(sizeof(told) / sizeof(*told) == TOLD_COUNT, "each has a name");

void qw_look_at_controls(int descriptor, struct qw_object *object)
{
	object->told = 0;
	for (unsigned int i = 0; i < TOLD_COUNT; i++)
		object->told |= qw_has_option(descriptor, told[i].level, told[i].option) ? 1U << i : 0;
}

/* One more message of control; the room is cut as the kernel does it. */
static void put_control(struct msghdr *message, size_t *used, int level, int type, const void *what, size_t bytes)
{
	struct cmsghdr head = { .cmsg_level = level, .cmsg_type = type, .cmsg_len = CMSG_LEN(bytes) };
	size_t left = message->msg_controllen - *used;
	uint8_t *to = (uint8_t *)message->msg_control + *used;

	if (left < sizeof(head)) {
		message->msg_flags |= MSG_CTRUNC;
		return;
	}
	if (left < head.cmsg_len) {
		message->msg_flags |= MSG_CTRUNC;
		head.cmsg_len = left;
	}
	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), what, head.cmsg_len - sizeof(head));
	*used += left < CMSG_SPACE(bytes) ? left : CMSG_SPACE(bytes);
}

void qw_put_controls(const struct qw_object *object, struct msghdr *message, const struct qw_packet *packet)
{
	uint64_t now = qw.now_ns + qw.wall_ahead_ns;
	struct timespec stamp_ns = qw_timespec(now);
	struct timeval stamp = { .tv_sec = stamp_ns.tv_sec, .tv_usec = stamp_ns.tv_nsec / 1000 };
	struct in_pktinfo info = { .ipi_ifindex = 1 };
	struct in6_pktinfo info6 = { .ipi6_ifindex = 1 };
	int hops = 64;
	uint8_t service = 0;
	bool is_ipv6 = packet->own.is_ipv6;
	size_t used = 0;

	if (!message->msg_control)
		message->msg_controllen = 0;
	memcpy(&info.ipi_addr, packet->own.ip + 12, 4);
	info.ipi_spec_dst = info.ipi_addr;
	memcpy(&info6.ipi6_addr, packet->own.ip, 16);
	if (object->told & 1U << STAMP)
		put_control(message, &used, SOL_SOCKET, SCM_TIMESTAMP, &stamp, sizeof(stamp));
	if (object->told & 1U << STAMP_NS)
		put_control(message, &used, SOL_SOCKET, SCM_TIMESTAMPNS, &stamp_ns, sizeof(stamp_ns));
	if (object->told & 1U << ADDRESS && !is_ipv6)
		put_control(message, &used, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	if (object->told & 1U << TTL && !is_ipv6)
		put_control(message, &used, IPPROTO_IP, IP_TTL, &hops, sizeof(hops));
	if (object->told & 1U << TOS && !is_ipv6)
		put_control(message, &used, IPPROTO_IP, IP_TOS, &service, sizeof(service));
	if (object->told & 1U << ADDRESS6 && is_ipv6)
		put_control(message, &used, IPPROTO_IPV6, IPV6_PKTINFO, &info6, sizeof(info6));
	if (object->told & 1U << HOPS && is_ipv6)
		put_control(message, &used, IPPROTO_IPV6, IPV6_HOPLIMIT, &hops, sizeof(hops));
	message->msg_controllen = used;
}

void qw_take_source(const struct msghdr *message, struct qw_endpoint *own)
{
	struct msghdr *whole = (struct msghdr *)(uintptr_t)message;
	struct in_pktinfo info;
	struct in6_pktinfo info6;

	for (struct cmsghdr *each = CMSG_FIRSTHDR(message); each; each = CMSG_NXTHDR(whole, each)) {
		if (each->cmsg_level == IPPROTO_IP && each->cmsg_type == IP_PKTINFO &&
		    each->cmsg_len >= CMSG_LEN(sizeof(info))) {
			memcpy(&info, CMSG_DATA(each), sizeof(info));
			if (info.ipi_spec_dst.s_addr)
				memcpy(own->ip + 12, &info.ipi_spec_dst, 4);
		}
		if (each->cmsg_level == IPPROTO_IPV6 && each->cmsg_type == IPV6_PKTINFO &&
		    each->cmsg_len >= CMSG_LEN(sizeof(info6))) {
			memcpy(&info6, CMSG_DATA(each), sizeof(info6));
			memcpy(own->ip, &info6.ipi6_addr, 16);
		}
	}
}
