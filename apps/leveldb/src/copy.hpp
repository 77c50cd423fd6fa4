// A server's folder as a copy of another one's.
#pragma once

#include <string>

namespace qwldb {

// Copies `from`, whose server must not run, to `to`, which must not be there. It is there whole, or
// not.
void copy_folder(const std::string &from, const std::string &to);

} // namespace qwldb
