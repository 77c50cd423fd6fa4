/* Streams of the C library over virtual descriptors: its own calls are not seen, so it is given
 * others. */
#include "interpose.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int of(const void *cookie)
{
	return (int)(intptr_t)cookie;
}

static ssize_t read_cookie(void *cookie, char *bytes, size_t count)
{
	return read(of(cookie), bytes, count);
}

/* It says 0 for an error, not -1. */
static ssize_t write_cookie(void *cookie, const char *bytes, size_t count)
{
	ssize_t done = write(of(cookie), bytes, count);

	return done < 0 ? 0 : done;
}

static int close_cookie(void *cookie)
{
	return close(of(cookie));
}

QW_CALL FILE *fdopen(int descriptor, const char *mode)
{
	cookie_io_functions_t calls = { .read = read_cookie, .write = write_cookie, .close = close_cookie };
	FILE *stream;

	if (!qw_object_of(descriptor))
		return QW_REAL(fdopen)(descriptor, mode);
	stream = fopencookie((void *)(intptr_t)descriptor, mode, calls);
	if (stream)
		stream->_fileno = descriptor;
	/* What is read ahead of chance would be another turn's. */
	if (stream && !qw_is_socket(qw_object_of(descriptor)))
		setvbuf(stream, NULL, _IONBF, 0);
	return stream;
}

static int print(int descriptor, const char *format, va_list list)
{
	char *text;
	int count = vasprintf(&text, format, list);

	if (count < 0)
		return count;
	if (write(descriptor, text, (size_t)count) < 0)
		count = -1;
	free(text);
	return count;
}

QW_CALL int vdprintf(int descriptor, const char *format, va_list list)
{
	if (!qw_object_of(descriptor))
		return QW_REAL(vdprintf)(descriptor, format, list);
	return print(descriptor, format, list);
}

QW_CALL int dprintf(int descriptor, const char *format, ...)
{
	va_list list;
	int count;

	va_start(list, format);
	count = vdprintf(descriptor, format, list);
	va_end(list);
	return count;
}

/* What is checked is `%n`, which no text of a program's own has. */
QW_CALL int __vdprintf_chk(int descriptor, int flag, const char *format, va_list list)
{
	(void)flag;
	return vdprintf(descriptor, format, list);
}

QW_CALL int __dprintf_chk(int descriptor, int flag, const char *format, ...)
{
	va_list list;
	int count;

	(void)flag;
	va_start(list, format);
	count = vdprintf(descriptor, format, list);
	va_end(list);
	return count;
}
