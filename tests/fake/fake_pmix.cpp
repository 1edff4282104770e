// A fake PMIx of a job of two, of which only rank 0 exists. The test says how many fences rank 1
// takes part in.
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "src/runtime/bootstrap/pmix_abi.h"

using namespace shmemctl;

namespace {

std::mutex mutex;
std::condition_variable changed;
std::map<std::string, std::string> values;
int begun = 0, returned = 0, fences_of_rank_1 = 0, last_fence_of_rank_1 = 0;

pmix::Value* copy_of(const std::string& bytes) {
  auto* value = static_cast<pmix::Value*>(std::calloc(1, sizeof(pmix::Value)));
  value->type = pmix::type_byte_object;
  value->data.bytes = {static_cast<char*>(std::malloc(bytes.size())), bytes.size()};
  std::memcpy(value->data.bytes.bytes, bytes.data(), bytes.size());
  return value;
}

} // namespace

extern "C" {

const char* PMIx_Get_version() {
  return "OpenPMIx 4.2.2 (fake)";
}

const char* PMIx_Error_string(pmix::Status) {
  return "ERROR";
}

pmix::Status PMIx_Init(pmix::Process* process, pmix::Info*, std::size_t) {
  *process = {};
  return pmix::success;
}

pmix::Status PMIx_Finalize(const pmix::Info*, std::size_t) {
  return pmix::success;
}

pmix::Status PMIx_Abort(int, const char*, pmix::Process*, std::size_t) {
  return pmix::success;
}

pmix::Status PMIx_Put(pmix::Scope, const char* key, pmix::Value* value) {
  const std::lock_guard lock(mutex);
  values[key] = std::string(value->data.bytes.bytes, value->data.bytes.size);
  return pmix::success;
}

pmix::Status PMIx_Commit() {
  return pmix::success;
}

pmix::Status PMIx_Fence(const pmix::Process*, std::size_t, const pmix::Info* info, std::size_t) {
  std::unique_lock lock(mutex);
  const int mine = ++begun;
  changed.notify_all();
  changed.wait(lock, [&] { return fences_of_rank_1 >= mine; });
  ++returned;
  const bool rank_1_collects = mine != last_fence_of_rank_1;
  return info->value.data.flag == rank_1_collects ? pmix::success : -27;
}

/// Rank 1 has put the same values as rank 0, and greets as rank 1.
pmix::Status PMIx_Get(const pmix::Process* process, const char* key, const pmix::Info*, std::size_t,
                      pmix::Value** value) {
  const std::lock_guard lock(mutex);
  std::string name = key;
  if (name == pmix::key_job_size) {
    *value = static_cast<pmix::Value*>(std::calloc(1, sizeof(pmix::Value)));
    (*value)->type = pmix::type_uint32;
    (*value)->data.uint32 = 2;
    return pmix::success;
  }
  if (process->rank == 1 && name.find("hello") != std::string::npos)
    name.back() = '0';
  const auto found = values.find(name);
  if (found == values.end())
    return pmix::error_not_found;
  *value = copy_of(found->second);
  return pmix::success;
}

/// Forgets everything; rank 1 will take part in that many fences. No call may be under way.
void fake_pmix_reset(int fences) {
  const std::lock_guard lock(mutex);
  values.clear();
  begun = returned = last_fence_of_rank_1 = 0;
  fences_of_rank_1 = fences;
}

/// Waits until rank 0 has begun that many fences; then rank 1 takes part in them, too.
/// @param ends whether rank 1 ends after the last of them, in which it does not collect
void fake_pmix_join(int fences, bool ends) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return begun >= fences; });
  last_fence_of_rank_1 = ends ? fences : 0;
  fences_of_rank_1 = fences;
  changed.notify_all();
}

void fake_pmix_fences(int* begun_fences, int* returned_fences) {
  const std::lock_guard lock(mutex);
  *begun_fences = begun;
  *returned_fences = returned;
}
}
