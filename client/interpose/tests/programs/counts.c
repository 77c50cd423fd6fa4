/* A server over UDP whose answers depend on the order of all that it was sent: how many datagrams,
 * how long the last one was, and a digest of all of them. Its argument is its port. The tests
 * compile it. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static uint64_t digest_on(uint64_t digest, const uint8_t *bytes, size_t count)
{
	for (size_t at = 0; at < count; at++)
		digest = (digest ^ bytes[at]) * 0x100000001b3ULL;
	return digest;
}

int main(int count, char **arguments)
{
	static uint8_t bytes[1 << 16];
	uint64_t digest = 0xcbf29ce484222325ULL, number = 0;
	struct sockaddr_in own = { .sin_family = AF_INET };
	int descriptor = socket(AF_INET, SOCK_DGRAM, 0);

	if (count != 2)
		return 2;
	own.sin_port = htons((uint16_t)atoi(arguments[1]));
	if (bind(descriptor, (struct sockaddr *)&own, sizeof(own)))
		return 1;
	for (;;) {
		struct sockaddr_in peer;
		socklen_t length = sizeof(peer);
		char answer[80];
		ssize_t got = recvfrom(descriptor, bytes, sizeof(bytes), 0, (struct sockaddr *)&peer, &length);

		if (got < 0)
			return 1;
		digest = digest_on(digest, bytes, (size_t)got);
		digest = digest_on(digest, (uint8_t *)&got, sizeof(got));
		int said = snprintf(answer, sizeof(answer), "%llu %zd %016llx", (unsigned long long)++number, got,
				    (unsigned long long)digest);

		if (sendto(descriptor, answer, (size_t)said, 0, (struct sockaddr *)&peer, length) != said)
			return 1;
	}
}
