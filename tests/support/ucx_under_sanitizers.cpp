// What UCX must not do under a sanitizer; a part of test programs that use it. Variables that are
// set stay.
#include <cstdlib>

namespace {

[[maybe_unused]] const bool done = [] {
  // It asks whether it may read another process by a read to nowhere, which sanitizers take for
  // ours.
  ::setenv("UCX_TLS", "^cma", 0);
  // Its hooks in the C library call it from threads that it has let go.
  ::setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 0);
  return true;
}();

} // namespace
