/* Configuration files of libpaxos. */
#include "internal.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* Longest line, with what ends it; longest file, in lines. */
#define LINE_BYTES_MAX 512
#define LINES_MAX 100000

enum kind {
	IS_BOOLEAN,
	IS_NUMBER,
	IS_TEXT,
	IS_BYTES,
	IS_VERBOSITY,
	IS_BACKEND,
};

struct key {
	const char *name;
	enum kind kind;
	void *value;
	/* Something here depends on it. */
	int has_effect;
};

static const struct key keys[] = {
	{ "verbosity", IS_VERBOSITY, &paxos_config.verbosity, 1 },
	{ "tcp-nodelay", IS_BOOLEAN, &paxos_config.tcp_nodelay, 1 },
	{ "tcp-reuseaddr", IS_BOOLEAN, &paxos_config.tcp_reuseaddr, 0 },
	{ "learner-catch-up", IS_BOOLEAN, &paxos_config.learner_catch_up, 1 },
	{ "proposer-timeout", IS_NUMBER, &paxos_config.proposer_timeout, 0 },
	{ "proposer-preexec-window", IS_NUMBER, &paxos_config.proposer_preexec_window, 0 },
	{ "storage-backend", IS_BACKEND, &paxos_config.storage_backend, 1 },
	{ "acceptor-trash-files", IS_BOOLEAN, &paxos_config.trash_files, 1 },
	{ "lmdb-sync", IS_BOOLEAN, &paxos_config.lmdb_sync, 0 },
	{ "lmdb-env-path", IS_TEXT, &paxos_config.lmdb_env_path, 1 },
	{ "lmdb-mapsize", IS_BYTES, &paxos_config.lmdb_mapsize, 0 },
	{ "bdb-sync", IS_BOOLEAN, &paxos_config.bdb_sync, 0 },
	{ "bdb-cachesize", IS_BYTES, &paxos_config.bdb_cachesize, 0 },
	{ "bdb-env-path", IS_TEXT, &paxos_config.bdb_env_path, 1 },
	{ "bdb-db-filename", IS_TEXT, &paxos_config.bdb_db_filename, 0 },
};

#define KEY_COUNT (sizeof(keys) / sizeof(keys[0]))

static int has_told[KEY_COUNT];

/* Roles that a line can name, by their usual names and short ones. */
enum role {
	REPLICA,
	ACCEPTOR,
	PROPOSER,
	LEARNER,
	NO_ROLE,
};

static enum role role_of(const char *word)
{
	static const char *const names[] = { "replica", "acceptor", "proposer", "learner" };
	int role;

	for (role = REPLICA; role < NO_ROLE; role++) {
		char letter[2] = { names[role][0], '\0' };

		if (strcasecmp(word, names[role]) == 0 || strcasecmp(word, letter) == 0)
			return (enum role)role;
	}
	return NO_ROLE;
}

/* The next word, which is ended by a 0, and what follows it; NULL: there is none. */
static char *next_word(char **rest)
{
	char *word = *rest;
	char *end;

	while (isspace((unsigned char)*word))
		word++;
	if (*word == '\0')
		return NULL;
	end = word;
	while (*end != '\0' && !isspace((unsigned char)*end))
		end++;
	*rest = end;
	if (*end != '\0') {
		*end = '\0';
		*rest = end + 1;
	}
	return word;
}

/* What is left of a line, without spaces around it. */
static char *trimmed(char *text)
{
	size_t length;

	while (isspace((unsigned char)*text))
		text++;
	length = strlen(text);
	while (length > 0 && isspace((unsigned char)text[length - 1]))
		length--;
	text[length] = '\0';
	return text;
}

/* A number of these bounds, or not. */
static int parse_number(const char *text, long least, long most, long *number)
{
	char *end;

	if (!text)
		return 0;
	errno = 0;
	*number = strtol(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && *number >= least && *number <= most;
}

static int parse_bytes(const char *text, size_t *bytes)
{
	static const struct {
		const char *unit;
		unsigned shift;
	} units[] = { { "", 0 }, { "kb", 10 }, { "mb", 20 }, { "gb", 30 } };
	unsigned long long number;
	char *end;
	size_t place;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno != 0 || end == text || strchr(text, '-'))
		return 0;
	while (isspace((unsigned char)*end))
		end++;
	for (place = 0; place < sizeof(units) / sizeof(units[0]); place++) {
		if (strcasecmp(end, units[place].unit) != 0)
			continue;
		if (number > (SIZE_MAX >> units[place].shift))
			return 0;
		*bytes = (size_t)number << units[place].shift;
		return 1;
	}
	return 0;
}

/* Which of these names it is, or -1. */
static int name_among(const char *text, const char *const *names, int count)
{
	int place;

	for (place = 0; place < count; place++) {
		if (strcasecmp(text, names[place]) == 0)
			return place;
	}
	return -1;
}

static int parse_text(const char *text, char **value)
{
	char *copy;

	if (*text == '\0')
		return 0;
	copy = strdup(text);
	if (!copy)
		return 0;
	/* The one before may be the program's, or in use: it stays. */
	*value = copy;
	return 1;
}

/* What a key may be set to, for people. */
static const char *allowed(enum kind kind)
{
	switch (kind) {
	case IS_BOOLEAN:
		return "yes or no";
	case IS_NUMBER:
		return "a number";
	case IS_TEXT:
		return "a text";
	case IS_BYTES:
		return "a number of bytes, or one with kb, mb or gb";
	case IS_VERBOSITY:
		return "quiet, error, info or debug";
	case IS_BACKEND:
		return "memory, lmdb or bdb";
	}
	return "";
}

static int set(const struct key *key, const char *text)
{
	static const char *const answers[] = { "no", "yes" };
	static const char *const levels[] = { "quiet", "error", "info", "debug" };
	static const char *const backends[] = { "memory", "lmdb", "bdb" };
	long number = -1;

	switch (key->kind) {
	case IS_BOOLEAN:
		number = name_among(text, answers, 2);
		if (number >= 0)
			*(int *)key->value = (int)number;
		break;
	case IS_NUMBER:
		if (!parse_number(text, 0, INT_MAX, &number))
			return 0;
		*(int *)key->value = (int)number;
		break;
	case IS_TEXT:
		return parse_text(text, key->value);
	case IS_BYTES:
		return parse_bytes(text, key->value);
	case IS_VERBOSITY:
		number = name_among(text, levels, 4);
		if (number >= 0)
			*(paxos_log_level *)key->value = (paxos_log_level)number;
		break;
	case IS_BACKEND:
		number = name_among(text, backends, 3);
		if (number >= 0)
			*(paxos_storage_backend *)key->value = (paxos_storage_backend)number;
		break;
	}
	return number >= 0;
}

static int parse_key(const char *name, char *rest)
{
	size_t place;

	for (place = 0; place < KEY_COUNT; place++) {
		if (strcasecmp(keys[place].name, name) == 0)
			break;
	}
	if (place == KEY_COUNT) {
		paxos_log_error("%s is no key of a configuration", name);
		return 0;
	}
	if (!set(&keys[place], trimmed(rest))) {
		paxos_log_error("%s: allowed: %s", name, allowed(keys[place].kind));
		return 0;
	}
	if (!keys[place].has_effect && !has_told[place]) {
		has_told[place] = 1;
		paxos_log_info("%s has no effect here", keys[place].name);
	}
	return 1;
}

/*
 * `0 127.0.0.1 8800`. The ids of a role are 0, 1 and so on, in this order: a line's place
 * is its id, for libpaxos too, which does not look whether they agree.
 */
static int parse_address(char *rest, int place, struct qw_address *address)
{
	char *words[3];
	struct in_addr ip;
	long id, port;
	int word;

	for (word = 0; word < 3; word++)
		words[word] = next_word(&rest);
	if (!words[2] || !parse_number(words[0], 0, MAX_N_OF_PROPOSERS - 1, &id) ||
	    inet_pton(AF_INET, words[1], &ip) != 1 || !parse_number(words[2], 1, 65535, &port)) {
		paxos_log_error("allowed: an id, an IPv4 address and a port");
		return 0;
	}
	if (id != place) {
		paxos_log_error("the id is %ld; allowed: %d, the next one of its role", id, place);
		return 0;
	}
	memcpy(address->ip, &ip, sizeof(address->ip));
	address->port = (uint16_t)port;
	return 1;
}

static int parse_role(struct evpaxos_config *config, enum role role, char *rest)
{
	struct qw_address address = { { 0 }, 0 };
	int is_acceptor = role == REPLICA || role == ACCEPTOR;
	int is_proposer = role == REPLICA || role == PROPOSER;
	int place = is_acceptor ? config->acceptor_count : config->proposer_count;

	if (role == LEARNER)
		return 1; /* it needs no address */
	if ((is_acceptor && config->acceptor_count == MAX_N_OF_PROPOSERS) ||
	    (is_proposer && config->proposer_count == MAX_N_OF_PROPOSERS)) {
		paxos_log_error("allowed: at most %d of a role", MAX_N_OF_PROPOSERS);
		return 0;
	}
	if (!parse_address(rest, place, &address))
		return 0;
	if (is_acceptor)
		config->acceptors[config->acceptor_count++] = address;
	if (is_proposer)
		config->proposers[config->proposer_count++] = address;
	return 1;
}

static int parse_line(struct evpaxos_config *config, char *line)
{
	char *word = next_word(&line);
	enum role role;

	if (!word || *word == '#')
		return 1;
	role = role_of(word);
	if (role != NO_ROLE)
		return parse_role(config, role, line);
	return parse_key(word, line);
}

static int parse_file(struct evpaxos_config *config, FILE *file, const char *path)
{
	char line[LINE_BYTES_MAX];
	int number = 0;

	while (fgets(line, sizeof(line), file)) {
		size_t length = strlen(line);
		int is_whole = (length > 0 && line[length - 1] == '\n') || feof(file);

		number++;
		if (!is_whole)
			paxos_log_error("allowed: lines of at most %d bytes, and no byte 0",
					LINE_BYTES_MAX - 2);
		if (number > LINES_MAX || !is_whole || !parse_line(config, line)) {
			paxos_log_error("%s is not used: see line %d", path, number);
			return 0;
		}
	}
	if (ferror(file)) {
		paxos_log_error("%s: %s", path, strerror(errno));
		return 0;
	}
	return 1;
}

struct evpaxos_config *evpaxos_config_read(const char *path)
{
	struct evpaxos_config *config = NULL;
	struct stat status;
	FILE *file;

	if (!path) {
		paxos_log_error("no configuration file is named");
		return NULL;
	}
	/* Anything else could be waited for in vain. */
	if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
		paxos_log_error("%s is no file", path);
		return NULL;
	}
	file = fopen(path, "re");
	if (!file) {
		paxos_log_error("%s: %s", path, strerror(errno));
		return NULL;
	}
	config = calloc(1, sizeof(*config));
	if (config && !parse_file(config, file, path)) {
		free(config);
		config = NULL;
	}
	fclose(file);
	return config;
}

void evpaxos_config_free(struct evpaxos_config *config)
{
	free(config);
}

static struct sockaddr_in address_of(const struct qw_address *all, int count, int id)
{
	struct sockaddr_in address;

	memset(&address, 0, sizeof(address));
	address.sin_family = AF_INET;
	if (id >= 0 && id < count) {
		address.sin_port = htons(all[id].port);
		memcpy(&address.sin_addr, all[id].ip, sizeof(all[id].ip));
	}
	return address;
}

static int port_of(const struct qw_address *all, int count, int id)
{
	return id >= 0 && id < count ? all[id].port : -1;
}

int evpaxos_proposer_count(struct evpaxos_config *config)
{
	return config->proposer_count;
}

struct sockaddr_in evpaxos_proposer_address(struct evpaxos_config *config, int id)
{
	return address_of(config->proposers, config->proposer_count, id);
}

int evpaxos_proposer_listen_port(struct evpaxos_config *config, int id)
{
	return port_of(config->proposers, config->proposer_count, id);
}

int evpaxos_acceptor_count(struct evpaxos_config *config)
{
	return config->acceptor_count;
}

struct sockaddr_in evpaxos_acceptor_address(struct evpaxos_config *config, int id)
{
	return address_of(config->acceptors, config->acceptor_count, id);
}

int evpaxos_acceptor_listen_port(struct evpaxos_config *config, int id)
{
	return port_of(config->acceptors, config->acceptor_count, id);
}
