/* Names of machines. What another server says of one is not in the log, so once the program serves
 * only numbers are known, and this machine. */
#include "interpose.h"

#include <netdb.h>
#include <string.h>

/* The port of those who are asked, for the replica's log. */
#define NAMES_PORT 53

static bool serves(void)
{
	return qw_is_on() && qw.turn > 0;
}

static bool is_here(const char *name)
{
	return !name || !*name || !strcmp(name, "localhost") || !strcmp(name, "ip6-localhost");
}

QW_CALL int getaddrinfo(const char *name, const char *service, const struct addrinfo *wanted,
			struct addrinfo **found)
{
	struct addrinfo numeric = { .ai_flags = AI_V4MAPPED | AI_ADDRCONFIG };
	int result;

	if (!serves() || is_here(name) || (wanted && wanted->ai_flags & AI_NUMERICHOST))
		return QW_REAL(getaddrinfo)(name, service, wanted, found);
	if (wanted)
		numeric = *wanted;
	numeric.ai_flags |= AI_NUMERICHOST;
	result = QW_REAL(getaddrinfo)(name, service, &numeric, found);
	if (result != EAI_NONAME)
		return result;
	qw_tell_outbound(NAMES_PORT);
	return EAI_AGAIN;
}

QW_CALL int getnameinfo(const struct sockaddr *address, socklen_t length, char *name, socklen_t name_room,
			char *service, socklen_t service_room, int flags)
{
	if (!serves() || flags & NI_NUMERICHOST || !name)
		return QW_REAL(getnameinfo)(address, length, name, name_room, service, service_room, flags);
	if (flags & NI_NAMEREQD)
		return EAI_NONAME;
	return QW_REAL(getnameinfo)(address, length, name, name_room, service, service_room,
				    flags | NI_NUMERICHOST);
}

static bool is_number(const char *name)
{
	return name[strspn(name, "0123456789.")] == 0 || strchr(name, ':');
}

QW_CALL struct hostent *gethostbyname(const char *name)
{
	if (!serves() || is_here(name) || is_number(name))
		return QW_REAL(gethostbyname)(name);
	qw_tell_outbound(NAMES_PORT);
	h_errno = TRY_AGAIN;
	return NULL;
}

QW_CALL struct hostent *gethostbyname2(const char *name, int family)
{
	if (!serves() || is_here(name) || is_number(name))
		return QW_REAL(gethostbyname2)(name, family);
	qw_tell_outbound(NAMES_PORT);
	h_errno = TRY_AGAIN;
	return NULL;
}

QW_CALL struct hostent *gethostbyaddr(const void *address, socklen_t length, int family)
{
	if (!serves())
		return QW_REAL(gethostbyaddr)(address, length, family);
	h_errno = HOST_NOT_FOUND;
	return NULL;
}
