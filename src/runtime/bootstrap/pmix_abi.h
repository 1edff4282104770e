// The part of the PMIx ABI that is used here, declared so that the build needs no pmix.h. The
// layouts are those of version 3 and later, on LP64 machines; a test compares them with the header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shmemctl::pmix {

using Status = int;
inline constexpr Status success = 0, error_timeout = -24, error_unreachable = -25,
                        error_not_found = -46, error_partial_success = -52,
                        error_lost_connection = -61;

using Rank = std::uint32_t;
inline constexpr Rank rank_wildcard = UINT32_MAX - 1;

using DataType = std::uint16_t;
inline constexpr DataType type_bool = 1, type_uint32 = 14, type_byte_object = 27;

using Scope = std::uint8_t;
inline constexpr Scope scope_global = 3;

inline constexpr const char* key_job_size = "pmix.job.size";
inline constexpr const char* key_collect_data = "pmix.collect";
inline constexpr std::size_t max_namespace = 255, max_key = 511;

struct Process {
  char name_space[max_namespace + 1];
  Rank rank;
};

struct ByteObject {
  char* bytes;
  std::size_t size;
};

struct Value {
  DataType type;
  union Data {
    bool flag;
    std::uint32_t uint32;
    ByteObject bytes;
    struct {
      char *name, *value;
      char separator;
    } longest; ///< an environment variable: the largest member
  } data;
};

struct Info {
  char key[max_key + 1];
  std::uint32_t flags;
  Value value;
};

using Init = Status(Process* process, Info* info, std::size_t count);
using Finalize = Status(const Info* info, std::size_t count);
using Abort = Status(int status, const char* message, Process* processes, std::size_t count);
using Put = Status(Scope scope, const char* key, Value* value);
using Commit = Status();
using Fence = Status(const Process* processes, std::size_t process_count, const Info* info,
                     std::size_t info_count);
using Get = Status(const Process* process, const char* key, const Info* info, std::size_t count,
                   Value** value);
using ErrorString = const char*(Status status);
using GetVersion = const char*();

} // namespace shmemctl::pmix
