/* Names of machines. What another server says of one is not in the log, so once the program serves
 * only numbers are known, and this machine, unless it may ask others. */
#include "interpose.h"

#include <netdb.h>
#include <resolv.h>
#include <string.h>

/* The port of those who are asked, for the replica's log. */
#define NAMES_PORT 53

/* It serves, and may not ask others. */
static bool serves(void)
{
	return qw_is_on() && qw.turn > 0 && !qw_may_leave();
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

static bool is_known(const char *name)
{
	return !serves() || is_here(name) || is_number(name);
}

static struct hostent *ask_again(void)
{
	qw_tell_outbound(NAMES_PORT);
	h_errno = TRY_AGAIN;
	return NULL;
}

QW_CALL struct hostent *gethostbyname(const char *name)
{
	return is_known(name) ? QW_REAL(gethostbyname)(name) : ask_again();
}

QW_CALL struct hostent *gethostbyname2(const char *name, int family)
{
	return is_known(name) ? QW_REAL(gethostbyname2)(name, family) : ask_again();
}

static int ask_again_r(struct hostent **found, int *error)
{
	*found = ask_again();
	*error = TRY_AGAIN;
	return EAGAIN;
}

QW_CALL int gethostbyname_r(const char *name, struct hostent *host, char *room, size_t bytes,
			    struct hostent **found, int *error)
{
	if (!is_known(name))
		return ask_again_r(found, error);
	return QW_REAL(gethostbyname_r)(name, host, room, bytes, found, error);
}

QW_CALL int gethostbyname2_r(const char *name, int family, struct hostent *host, char *room, size_t bytes,
			     struct hostent **found, int *error)
{
	if (!is_known(name))
		return ask_again_r(found, error);
	return QW_REAL(gethostbyname2_r)(name, family, host, room, bytes, found, error);
}

QW_CALL struct hostent *gethostbyaddr(const void *address, socklen_t length, int family)
{
	if (!serves())
		return QW_REAL(gethostbyaddr)(address, length, family);
	h_errno = HOST_NOT_FOUND;
	return NULL;
}

QW_CALL int gethostbyaddr_r(const void *address, socklen_t length, int family, struct hostent *host, char *room,
			    size_t bytes, struct hostent **found, int *error)
{
	if (!serves())
		return QW_REAL(gethostbyaddr_r)(address, length, family, host, room, bytes, found, error);
	*found = NULL;
	*error = HOST_NOT_FOUND;
	return 0;
}

/* Its threads would ask the network, and say so at any time. */
QW_CALL int getaddrinfo_a(int mode, struct gaicb **list, int count, struct sigevent *event)
{
	if (!serves())
		return QW_REAL(getaddrinfo_a)(mode, list, count, event);
	qw_tell_outbound(NAMES_PORT);
	return EAI_AGAIN;
}

/* --- questions to the network as such. Each has an older name, too. */

#define QUESTION(name, parameters, arguments) \
	QW_CALL int name parameters \
	{ \
		if (!serves()) \
			return QW_REAL(name) arguments; \
		ask_again(); \
		errno = ECONNREFUSED; \
		return -1; \
	} \
	QW_CALL int __##name parameters \
	{ \
		return name arguments; \
	}

QUESTION(res_query, (const char *name, int class, int type, unsigned char *answer, int room),
	 (name, class, type, answer, room))
QUESTION(res_search, (const char *name, int class, int type, unsigned char *answer, int room),
	 (name, class, type, answer, room))
QUESTION(res_querydomain,
	 (const char *name, const char *domain, int class, int type, unsigned char *answer, int room),
	 (name, domain, class, type, answer, room))
QUESTION(res_send, (const unsigned char *question, int bytes, unsigned char *answer, int room),
	 (question, bytes, answer, room))
QUESTION(res_nquery, (res_state state, const char *name, int class, int type, unsigned char *answer, int room),
	 (state, name, class, type, answer, room))
QUESTION(res_nsearch, (res_state state, const char *name, int class, int type, unsigned char *answer, int room),
	 (state, name, class, type, answer, room))
QUESTION(res_nquerydomain,
	 (res_state state, const char *name, const char *domain, int class, int type, unsigned char *answer, int room),
	 (state, name, domain, class, type, answer, room))
QUESTION(res_nsend, (res_state state, const unsigned char *question, int bytes, unsigned char *answer, int room),
	 (state, question, bytes, answer, room))
