// A file descriptor, closed at the end of its scope.
#pragma once

#include <unistd.h>

namespace qwldb {

class Descriptor {
public:
	explicit Descriptor(int number) : number_(number)
	{
	}

	~Descriptor()
	{
		if (number_ >= 0)
			close(number_);
	}

	Descriptor(const Descriptor &) = delete;
	Descriptor &operator=(const Descriptor &) = delete;

	int number() const
	{
		return number_;
	}

	bool is_none() const
	{
		return number_ < 0;
	}

	// It is somebody else's from now on.
	int release()
	{
		int number = number_;

		number_ = -1;
		return number;
	}

private:
	int number_;
};

} // namespace qwldb
