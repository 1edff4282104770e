// How much a build can check in reasonable time.
#pragma once

namespace shmemctl::test {

#if defined(NDEBUG) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
inline constexpr bool thorough = true;
#else
inline constexpr bool thorough = false;
#endif

} // namespace shmemctl::test
