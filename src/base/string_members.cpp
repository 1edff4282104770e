// All members of std::string, once, for libshmemctl_all.a (cmake/Library.cmake). Kernels' host code
// is C++17, which leaves them to the C++ library, while objects of C++20 may define some of them: a
// linker that takes the first definition in the archive would add such an object, and all that it
// uses, to a program.
#include <string>

template class std::basic_string<char>;
