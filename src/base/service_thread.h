// Threads of the runtime, in addition to those of the program.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace shmemctl {

/// Starts a thread in which no signal handler of the program runs, except for synchronous signals
/// of the thread itself (SIGSEGV and the like). Throws Error (unavailable) if the thread cannot be
/// started.
/// @param name at most 15 bytes, which debuggers and top show
std::thread start_service_thread(const std::string& name, std::function<void()> body);

} // namespace shmemctl
